package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
	process "github.com/openshift/origin-node/hack/node"
)

// TestSystemd_UnitKeepsTheNodeRunning: whatever happens to the service, it runs again, no address moves, and no packet leaves from
// another address. Its journal says so.
func TestSystemd_UnitKeepsTheNodeRunning(t *testing.T) {
	belongsTo(t, long)
	w := newServiceWorld(t, settings{}, "", "")
	w.scenario("status", func() { w.hasStatus() })
	w.scenario("exposure", w.isExposed)
	w.scenario("configuration", w.followsItsConfiguration)
	w.scenario("killed", w.survivesAKill)
	w.scenario("restart", func() {
		w.movesNothing("restart", func() { w.does("systemctl", "restart", unit) })
	})
	w.scenario("stop", w.leavesEverything)
	w.scenario("upgrade", w.takesAnotherBinary)
	w.scenario("journal", func() { w.tellsItRight(append(w.credentialsIn(w.on.File("node.kubeconfig")), poolKey)...) })
}

// isExposed: as little as the unit says.
func (w *serviceWorld) isExposed() {
	analysis := strings.Split(w.does("systemd-analyze", "security", "--no-pager", "--threshold=30", unit), "\n")
	w.Log(analysis[len(analysis)-1])
}

// followsItsConfiguration: the service runs on with an invalid one and says so; a valid one it takes at once.
func (w *serviceWorld) followsItsConfiguration() {
	pid := w.property("MainPID")
	valid, err := os.ReadFile(w.on.Config())
	w.must(err)
	w.says("The configuration has changed but is not valid", func() { w.on.Write(w.on.Config(), append(valid, "unknownField: 1\n"...)) })
	if now := w.property("MainPID"); now != pid {
		w.Errorf("with an invalid configuration the service runs as %s, want %s", now, pid)
	}
	w.movesNothing("another configuration", func() {
		w.on.Configure(poolArguments + "egress-snat-min-sync-period: [\"50ms\"]\n")
		w.runsAnew(pid)
	})
	if failed := w.does("systemctl", "list-units", "--no-legend", "--state=failed"); strings.Contains(failed, unit) {
		w.Error(failed)
	}
}

// survivesAKill: systemd starts the service again, and the rules are there all the time.
func (w *serviceWorld) survivesAKill() {
	pid := w.property("MainPID")
	w.movesNothing("killed", func() {
		w.does("systemctl", "kill", "--signal=KILL", unit)
		w.seenAsTheEgressIPs()
		w.runsAnew(pid)
	})
}

// leavesEverything: a stop changes nothing in the kernel.
func (w *serviceWorld) leavesEverything() {
	w.movesNothing("stop", func() {
		w.does("systemctl", "stop", unit)
		w.settled()
		w.hasAll()
		w.seenAsTheEgressIPs()
		w.does("systemctl", "start", unit)
	})
}

// takesAnotherBinary: an upgrade, while pods speak.
func (w *serviceWorld) takesAnotherBinary() {
	const binary = "/usr/bin/openshift"
	traffic := w.crowd(200)
	began := time.Now()
	w.movesNothing("upgrade", func() {
		w.does("sh", "-c", "cp "+binary+" /usr/bin/new && echo another version >>/usr/bin/new && mv /usr/bin/new "+binary)
		w.does("systemctl", "restart", unit)
		w.does("cmp", "/proc/"+w.property("MainPID")+"/exe", binary)
	})
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	w.must(traffic.Round(ctx))
	w.Logf("upgrade in %s: %s", time.Since(began).Round(time.Millisecond), w.noneWrong(traffic))
}

// TestSystemd_WatchdogEndsANodeThatHangs, and systemd starts it again. What the kernel has stays meanwhile.
func TestSystemd_WatchdogEndsANodeThatHangs(t *testing.T) {
	belongsTo(t, long)
	w := newServiceWorld(t, settings{}, "", "WatchdogSec=6s") // not three minutes
	hangs := func(name string, hang, end func()) {
		w.scenario(name, func() {
			pid := w.property("MainPID")
			w.movesNothing(name, func() {
				w.says("Watchdog timeout", func() {
					hang()
					w.seenAsTheEgressIPs()
				})
				end()
				w.runsAnew(pid)
				w.settled()
			})
		})
	}
	hangs("stopped", func() { w.does("systemctl", "kill", "--kill-whom=main", "--signal=STOP", unit) }, func() {})
	const iptables, never = "/usr/sbin/xtables-nft-multi", "/run/never-ends"
	w.must(os.WriteFile(w.Debian.File(never), []byte("#!/bin/sh\nexec sleep infinity\n"), 0o755)) //nolint:gosec // a program
	hangs("cannot write", func() {
		w.does("mount", "--bind", never, iptables)
		w.service("shop", "due", nil, nil, tcp80) // rules are due
	}, func() { w.does("umount", iptables) })
	w.tellsItRight()
}

// TestSystemd_ShutdownHandsAddressesOver to other nodes before the node's process ends, and connections go on. systemd-logind waits
// for the node; where it does not know of the shutdown, the unit's ExecStop does.
func TestSystemd_ShutdownHandsAddressesOver(t *testing.T) {
	belongsTo(t, long)
	w := newServiceWorld(t, settings{}, "", "")
	all := w.pods
	w.pods = w.podsOff(w.on)
	w.scenario("with logind", func() {
		w.handsOver("The system shuts down: this node gives its egress IPs to other nodes", "systemctl", "poweroff")
	})
	w.Debian.Close()
	w.bootsMachine()
	w.does("systemctl", "start", unit)
	w.takesAll()
	w.pods = all
	w.seenAsTheEgressIPs()
	w.pods = w.podsOff(w.on)
	w.scenario("without logind", func() {
		w.handsOver("Drain started", "systemctl", "start", "--no-block", "--job-mode=replace-irreversibly", "poweroff.target")
	})
}

// handsOver shuts the machine down by a command. The service has to say a text then, and that it has released its addresses
// before it ends.
func (w *serviceWorld) handsOver(says string, command ...string) {
	c := w.keepConnections(w.egressIPs[0], w.pods)
	began := time.Now()
	w.does(command[0], command[1:]...)
	w.eventually(func() error {
		if !w.Off() {
			return errors.New("the machine does not end")
		}
		return nil
	})
	w.Logf("the machine is off after %s", time.Since(began).Round(time.Millisecond))
	for _, ip := range w.egressIPs {
		w.holderOf(ip, w.on)
	}
	c.end(w.poolWorld, w.egressIPs[0], "shutdown", 100)
	w.seenAsTheEgressIPs()
	released := 0
	for _, e := range w.journal() {
		if strings.Contains(e.Message, "Released an egress IP") {
			released++
		}
		if strings.HasPrefix(e.Message, "Stopped ") {
			break
		}
	}
	if w.said(says) == 0 || released < len(w.egressIPs) {
		w.Errorf("the journal says %q %d times, and that the node had released %d addresses before it was stopped, want %d", says, w.said(says), released, len(w.egressIPs))
	}
}

// TestSystemd_NoCommandIsForbidden: under the unit's own rules, but that a forbidden system call kills, the node and all that it runs
// do their work, with the pool, the tunnel's ports and the CNI plugin switched on.
func TestSystemd_NoCommandIsForbidden(t *testing.T) {
	belongsTo(t, long)
	for name, s := range map[string]settings{"iptables-nft": {}, "iptables-legacy": {backend: lab.Legacy}, "nftables": {nftables: true}} {
		t.Run(name, func(t *testing.T) {
			w := newServiceWorld(t, s, everything, killing)
			w.scenario("list of plugins", w.listsItsPlugin)
			w.scenario("restart", func() {
				w.movesNothing("restart", func() { w.does("systemctl", "restart", unit) })
			})
			w.scenario("status", func() { w.hasStatus() })
			w.scenario("commands", w.runsItsCommands)
			w.scenario("journal", w.lacksNoRight)
		})
	}
}

// everything is switched on by these arguments.
const everything = `
egress-snat-cni-install: ["/opt/cni/bin"]
egress-snat-watch-pods: ["true"]
tunnel-ports: ["true"]
tunnel-secure-address: ["192.0.2.10:10263"]
tunnel-insecure-address: ["192.0.2.10:10264"]
`

// killing has a forbidden system call end the process that makes it.
const killing = "SystemCallErrorNumber=kill"

// listsItsPlugin: it may change the list of plugins that comes after its start.
func (w *serviceWorld) listsItsPlugin() {
	list := w.Debian.File("/etc/cni/net.d/10-cluster.conflist")
	w.must(os.WriteFile(list, []byte(`{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`), 0o600))
	w.eventually(func() error {
		text, err := os.ReadFile(list)
		if err == nil && !strings.Contains(string(text), "origin-node-cni") {
			err = errors.New("the list of plugins is " + string(text))
		}
		return err
	})
}

// tools are commands of other packages that the node runs, or people on it; TOOL is each of iptables and ip6tables of both flavours.
// The first one may not do what it does, and is killed.
const tools = `
nice true; [ $? -eq 159 ]
TOOL -w 5 -t nat -S
TOOL-save -t nat
printf '*nat\nCOMMIT\n' | TOOL-restore --wait 5 --noflush --test
nft list ruleset
nft --json list counters
printf 'table ip try {}\n' | nft --check --file -
nft add table ip try && nft delete table ip try
conntrack -L
conntrack -D --orig-src 198.51.100.250 || [ $? -eq 1 ]
ipset create try hash:ip && ipset destroy try
ip -details link
ip -6 route show table all
ip rule add priority 30000 table 30000 && ip rule del priority 30000
ip link add try type veth peer name try2 && ip link del try
sysctl -n net.ipv4.ip_forward
modprobe --all --quiet ip_tables ip6_tables || [ $? -eq 1 ]
openshift version
openshift ex validate node-config /etc/origin/node/node-config.yaml
openshift egress list
openshift egress refused
openshift egress addresses
openshift egress verify
openshift egress explain shop/web
openshift egress pool --config=/etc/origin/node/node-config.yaml
openshift egress drain --config=/etc/origin/node/node-config.yaml --until-restart
openshift egress undrain
openshift tunnel list
openshift tunnel verify
`

// runsItsCommands: each succeeds.
func (w *serviceWorld) runsItsCommands() {
	var commands []string
	for line := range strings.Lines(strings.TrimLeft(tools, "\n")) {
		if !strings.Contains(line, "TOOL") {
			commands = append(commands, line)
			continue
		}
		for _, tool := range []string{"iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"} {
			commands = append(commands, strings.ReplaceAll(line, "TOOL", tool))
		}
	}
	w.must(os.WriteFile(w.Debian.File("/run/commands"), []byte(strings.Join(commands, "")), 0o600))
	w.must(os.WriteFile(w.Debian.File("/run/each"), []byte(`while read -r command; do
	sh -c "$command" </dev/null >/tmp/out 2>&1 || { echo "$command: status $?"; cat /tmp/out; }
done </run/commands
`), 0o600))
	run := []string{"--quiet", "--pipe", "--wait", "--collect"}
	for _, rule := range append(w.rules(), killing) {
		run = append(run, "--property="+rule)
	}
	failed := w.does("systemd-run", append(run, "sh", "/run/each")...)
	if w.Logf("%d commands", len(commands)); failed != "" {
		w.Errorf("they fail under the unit's rules:\n%s", failed)
	}
}

// rules are the unit's settings of what its processes may do.
func (w *serviceWorld) rules() (rules []string) {
	w.Helper()
	text, err := os.ReadFile(w.Debian.File("/usr/lib/systemd/system/" + unit))
	w.must(err)
	_, after, _ := strings.Cut(string(text), "\nNoNewPrivileges=")
	before, _, found := strings.Cut("NoNewPrivileges="+after, "\n[Install]")
	if !found {
		w.Fatalf("the unit has no rules:\n%s", text)
	}
	for line := range strings.Lines(before) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	return rules
}

// lacksNoRight: nothing that the node has run was killed, or told that it may not do something.
func (w *serviceWorld) lacksNoRight() {
	signs := []string{"ermission denied", "not permitted", "ad system call", "SIGSYS", "status=31/SYS"}
	for _, e := range w.journal() {
		if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(e.Message, sign) }) {
			w.Error(e.Message)
		}
	}
	if restarts := w.property("NRestarts"); restarts != "0" {
		w.Errorf("the service has ended by itself %s times", restarts)
	}
}

// TestSystemd_WrongConfigurationIsNamed by systemctl and the journal, with file, line, field and what to do. The service starts when
// the file is right. The machine has cgroups of version 2 alone.
func TestSystemd_WrongConfigurationIsNamed(t *testing.T) {
	belongsTo(t, long)
	machine.RequireDebian(t)
	l := lab.ForTest(t, lab.Config{})
	m := process.New(t, "node-1", l.Node())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(m.File("manifests"), os.DirFS("../demo/manifests")))
	m.Arguments = serviceArguments
	m.Configure("proxy-mode: [iptable]")
	s := &systemdUnit{&world{T: t, Lab: l}, machine.Boot(t, m.Name, m.Host, filepath.Dir(m.Config()), machine.Unified)}
	must(os.WriteFile(s.Debian.File("/etc/sysconfig/origin-node"), []byte("OPTIONS=--manifests=/etc/origin/node/manifests\nCONFIG_FILE=/etc/origin/node/node-config.yaml\n"), 0o600))
	if out, err := s.Debian.Run("systemctl", "start", unit); err == nil || !strings.Contains(out, "systemctl status "+unit) {
		t.Errorf("systemctl start: %v, and says %q; want it to fail, and to say where more is", err, out)
	}
	s.names(`error: /etc/origin/node/node-config.yaml:`, `: proxyArguments.proxy-mode: unknown mode "iptable": expected "iptables", "nftables" or "ipvs"`)
	m.Configure("")
	s.runsAnew("0") // systemd starts it again all the time
	s.hasStatus()
	s.says("The configuration has changed but is not valid; the node continues with the old one. Correct the file", func() {
		m.Configure("egress-snat-protocols: [everything]")
	})
	const note = "; the changed configuration is not valid and not used, see the log"
	s.hasStatus(note)
	s.names("/etc/origin/node/node-config.yaml:", `: proxyArguments.egress-snat-protocols: invalid value \"everything\": expected \"service\" or \"all\"`)
	m.Configure("") // as it was
	s.hasStatus()
	s.tellsItRight()
}

// names fails unless both 'systemctl status' and the journal's errors have a line with all these texts.
func (s *systemdUnit) names(texts ...string) {
	s.Helper()
	status, err := s.Debian.Run("systemctl", "status", "--no-pager", "--full", unit)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // 3 if the service does not run
		s.Fatal(err)
	}
	errs := s.does("journalctl", "--no-pager", "--priority=err", "--output=cat", "--unit="+unit)
	for where, told := range map[string]string{"systemctl status": status, "the journal": errs} {
		has := func(line string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
		}
		if !slices.ContainsFunc(strings.Split(told, "\n"), has) {
			s.Errorf("%s has no line with %q:\n%s", where, texts, told)
		}
	}
}
