package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
)

const unit = "origin-node.service"

// systemdUnit is the node's service in a Debian.
type systemdUnit struct {
	*world
	*machine.Debian
}

// does runs a command in the machine, and returns what it prints.
func (s *systemdUnit) does(name string, args ...string) string {
	s.Helper()
	out, err := s.Debian.Run(name, args...)
	s.must(err)
	return strings.TrimSpace(out)
}

// property is one of the unit's (systemctl(1)).
func (s *systemdUnit) property(name string) string {
	s.Helper()
	return s.does("systemctl", "show", unit, "--value", "--property="+name)
}

// overrides gives the unit further settings, which count from its next start on.
func (s *systemdUnit) overrides(settings string) {
	s.Helper()
	const dir = "/run/systemd/system/origin-node.service.d"
	s.must(os.MkdirAll(s.Debian.File(dir), 0o755))
	s.must(os.WriteFile(s.Debian.File(dir+"/test.conf"), []byte("[Service]\n"+settings+"\n"), 0o644)) //nolint:gosec // as systemd wants it
	s.does("systemctl", "daemon-reload")
}

// journal is what the service has printed, and what systemd says of it.
func (s *systemdUnit) journal() []machine.Entry {
	s.Helper()
	entries, err := s.Debian.Journal(unit)
	s.must(err)
	return entries
}

// said is how often the journal has a text.
func (s *systemdUnit) said(text string) (count int) {
	s.Helper()
	for _, e := range s.journal() {
		if strings.Contains(e.Message, text) {
			count++
		}
	}
	return count
}

// says waits until do has had the journal say a text.
func (s *systemdUnit) says(text string, do func()) {
	s.Helper()
	before := s.said(text)
	do()
	s.eventually(func() error {
		if s.said(text) == before {
			return fmt.Errorf("the journal does not say %q", text)
		}
		return nil
	})
}

// runsAnew waits until the service runs, with another process than that.
func (s *systemdUnit) runsAnew(than string) {
	s.Helper()
	s.eventually(func() error {
		pid := s.property("MainPID") // 0 while there is none
		if state := s.property("ActiveState"); state != "active" || pid == "0" || pid == than {
			return fmt.Errorf("%s is %s with the process %s; it had the process %s", unit, state, pid, than)
		}
		return nil
	})
}

// hasStatus waits until the service tells how many bindings it has, of which there are some, and after that this note or nothing.
func (s *systemdUnit) hasStatus(note ...string) {
	s.Helper()
	want := regexp.MustCompile(`^(iptables|nftables) proxy synced; egress SNAT: [1-9]\d* bindings to \d+ egress IPs, \d+ refused(; tunnel's ports: [^;]*)?` + regexp.QuoteMeta(strings.Join(note, "")) + "$")
	s.eventually(func() error {
		if status := s.property("StatusText"); !want.MatchString(status) {
			return fmt.Errorf("the status is %q, want one like %s", status, want)
		}
		return nil
	})
}

var (
	// logged is an entry of the log: its severity, and what it says.
	logged = regexp.MustCompile(`^([IWEF])\d{4} \S+ +\d+ \S+:\d+\] (.*)`)
	// continued are the lines of an entry that follow its first one; the journal removes white space in front.
	continued = regexp.MustCompile(`^(\| |>$)`)
)

// tellsItRight fails unless each line that the service has printed has the priority of its severity in the journal, or that of an
// error; no process says the same again and again; and no line has one of these secrets.
func (s *systemdUnit) tellsItRight(secrets ...string) {
	s.Helper()
	priorities := map[string]string{"I": "6", "W": "4", "E": "3", "F": "2"}
	said, last := map[string]int{}, map[string]string{}
	lines := 0
	for _, e := range s.journal() {
		if e.Unit != unit {
			continue // systemd's own
		}
		lines++
		want, text := "3", "" // a crash, which may print the same twice
		if entry := logged.FindStringSubmatch(e.Message); entry != nil {
			want, text = priorities[entry[1]], entry[2]
			last[e.Process] = want
		} else if continued.MatchString(e.Message) {
			want = last[e.Process]
		} else if strings.HasPrefix(e.Message, "error: ") {
			text = e.Message
		}
		if e.Priority != want {
			s.Errorf("the journal has a line with the priority %s, want %s: %s", e.Priority, want, e.Message)
		}
		const most = 3
		if what := e.Process + " says " + text; text != "" {
			if said[what]++; said[what] == most+1 {
				s.Errorf("the process %s more than %d times", what, most)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(e.Message, secret) {
				s.Errorf("the journal has a secret, in a line of %d bytes", len(e.Message))
			}
		}
	}
	if lines == 0 {
		s.Error("the service has printed nothing")
	}
	s.Logf("%d lines", lines)
}

// serviceWorld is a pool of three nodes, of which the first one's process belongs to systemd.
type serviceWorld struct {
	*poolWorld
	*systemdUnit
	on *member
}

// poolKey is what the nodes of a serviceWorld have in common.
const poolKey = "a key that all nodes of the pool share"

// newServiceWorld makes one in which the service runs, and has all addresses. It has arguments beside those of the pool, and
// overrides are further settings of the unit; both may be empty.
func newServiceWorld(t *testing.T, s settings, arguments, overrides string) *serviceWorld {
	t.Helper()
	machine.RequireDebian(t)
	s.nodes = 3
	p := newIdlePoolWorldOf(t, s)
	w := &serviceWorld{p, &systemdUnit{world: p.world}, p.members[0]}
	for _, m := range w.members {
		m.Write(m.File("egress.key"), []byte(poolKey))
		m.Arguments = with(m.Arguments, map[string]any{"egress-snat-key-file": []string{m.File("egress.key")}})
		m.Configure(poolArguments)
	}
	w.on.Arguments = with(w.on.Arguments, serviceArguments, map[string]any{"egress-snat-key-file": []string{"/etc/origin/node/egress.key"}})
	w.on.Configure(poolArguments + arguments)
	for _, rights := range []string{"rbac-tunnel.yaml", "rbac-cni.yaml"} { // for those whose arguments need them
		w.must(w.Apply(t.Context(), "../../images/node/"+rights))
	}
	w.bootsMachine()
	w.must(os.MkdirAll(w.Debian.File("/etc/cni/net.d"), 0o755))
	w.overrides(overrides)
	if s.backend == lab.Legacy {
		for _, tool := range []string{"iptables", "ip6tables"} {
			w.does("update-alternatives", "--set", tool, "/usr/sbin/"+tool+"-legacy")
		}
	}
	w.assignable = addrs(w.egressIPs)
	for _, m := range w.members[1:] {
		m.Start()
		m.Ready()
	}
	w.does("systemctl", "start", unit)
	w.pods = w.shop(w.egressIPs...)
	w.takesAll()
	return w
}

// serviceArguments are the defaults, which are the tests' own elsewhere.
var serviceArguments = map[string]any{
	"egress-snat-socket":     []string{"/run/origin-node/egress.sock"},
	"egress-snat-cni-socket": []string{"/run/origin-node/cni.sock"}, "egress-snat-cni-conf-dir": []string{"/etc/cni/net.d"},
}

// with is a map with what others have.
func with(all ...map[string]any) map[string]any {
	sum := map[string]any{}
	for _, one := range all {
		maps.Copy(sum, one)
	}
	return sum
}

// bootsMachine boots the machine of the service, which does not run then. It runs until the end of the test, or of the scenario in
// which it is booted.
func (w *serviceWorld) bootsMachine() {
	w.Helper()
	w.Debian = machine.Boot(w.T, w.on.Name, w.on.Host, w.on.File(""), machine.AsHere)
}

// takesAll has the service take all addresses.
func (w *serviceWorld) takesAll() {
	w.Helper()
	for _, m := range w.members[1:] {
		w.sees(m, len(w.members))
		w.drain(m, true)
	}
	for _, m := range w.members[1:] {
		w.drain(m, false)
	}
	w.hasAll()
	w.settled()
}

// hasAll fails unless the service's node has all addresses.
func (w *serviceWorld) hasAll() {
	w.Helper()
	for _, ip := range w.egressIPs {
		if holder := w.holderOf(ip, nil); holder != w.on {
			w.Fatalf("%s is on %s, want it on %s", ip, holder.Name, w.on.Name)
		}
	}
}

// movesNothing fails if another node takes an address during do, which changes the service, or if pods do not leave from the
// egress IPs after it. Packets that leave from other addresses fail the test at its end.
func (w *serviceWorld) movesNothing(what string, do func()) {
	w.Helper()
	w.unmoved(what, func() {
		do()
		w.hasAll()
		w.seenAsTheEgressIPs()
	})
}

// seenAsTheEgressIPs fails unless the pods leave from the egress IPs, whoever has them.
func (w *serviceWorld) seenAsTheEgressIPs() {
	w.Helper()
	for _, pod := range w.pods {
		w.leaves("tcp", pod, w.egressIPs...)
	}
}
