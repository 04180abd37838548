package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// besideWorld is a steeredWorld with other software, and with a pod on each node that no Service binds.
type besideWorld struct {
	*steeredWorld
	unbound []*lab.Host
}

// unboundPort is the port of the servers outside that pods ask which nobody binds.
const unboundPort = 8081

func newBesideWorld(t *testing.T, s settings, prepare func(*world)) *besideWorld {
	t.Helper()
	w := &besideWorld{steeredWorld: newSteeredWorld(t, s, prepare)}
	for _, host := range []*lab.Host{w.Outside(), w.Far()} {
		w.must(cluster.Serve(host, unboundPort))
	}
	w.namespace("plain")
	for i, m := range w.members {
		w.unbound = append(w.unbound, w.runPod("plain", fmt.Sprintf("plain-%d", i+1), m, app("plain")))
	}
	return w
}

// right fails unless pods are seen as who they are: outside as the egress IPs those of shop/web, by their holder, as their nodes the
// others, and all by each other as themselves. Verification finds nothing.
func (w *besideWorld) right() {
	w.Helper()
	for _, pod := range w.unbound {
		for _, to := range append(at(w.Outside(), unboundPort), at(w.Far(), unboundPort)...) {
			w.seen("tcp", pod, to, identity(pod, to, nil))
			w.seen("udp", pod, to, identity(pod, to, nil))
		}
	}
	w.leaveByTheHolder()
	for _, from := range slices.Concat(w.pods, w.unbound) {
		for _, other := range w.pods {
			for _, to := range at(other, port) {
				if other != from {
					w.seen("tcp", from, to, like(to.Addr(), from))
					w.seen("udp", from, to, like(to.Addr(), from))
				}
			}
		}
	}
	for _, m := range w.members {
		w.eventually(func() error { // a warning goes when the node has looked again
			out, errs, status := m.Openshift("egress", "verify", "--socket="+m.Socket())
			if status != 0 {
				w.Fatalf("%s: verify ended with %d and said %s%s", m.Name, status, out, errs)
			}
			if strings.Contains(out, "warning") {
				return fmt.Errorf("%s: verify said %s", m.Name, out)
			}
			return nil
		})
	}
}

// clean ends the count of packets. It fails if one to the servers outside had a wrong source, be it of a bound pod, as which the fragments
// count that have no port, or of another. There must have been so many.
func (w *besideWorld) clean(least int) {
	w.Helper()
	w.must(w.wire.Close())
	var outside []netip.Addr
	for _, to := range w.everywhere() {
		outside = append(outside, to.Addr())
	}
	counts, wrong, egress := map[string]int{}, []string{}, addrs(w.egressIPs)
	for s, packets := range w.wire.Seen() {
		if !slices.Contains(outside, s.To.Addr()) {
			continue
		}
		kind, right := "bound", slices.Contains(egress, s.Source)
		switch {
		case s.To.Port() == unboundPort:
			kind, right = "unbound", s.Source == like(s.Source, s.Node)
		case s.To.Port() == 0 && (s.Protocol == "udp" || s.Protocol == fmt.Sprint(unix.IPPROTO_FRAGMENT)):
			kind = "fragments"
		}
		if counts[kind] += packets; !right {
			wrong = append(wrong, fmt.Sprintf("%d packets of %s from %s to %s, by %s", packets, s.Protocol, s.Source, s.To, s.Node.Name))
		}
	}
	if len(wrong) > 0 || counts["bound"] < least || counts["unbound"] == 0 {
		w.Errorf("%v packets, want at least %d of bound pods; with a wrong source:\n%s", counts, least, strings.Join(wrong, "\n"))
	}
	w.Logf("%v packets, with wrong sources: %d", counts, len(wrong))
}

// neighbour is a process of other software.
type neighbour struct {
	*testing.T
	cmd   *exec.Cmd
	ended <-chan struct{}
	log   string
}

// runNeighbour starts one on a host, with these variables in its environment.
func (w *world) runNeighbour(name string, host *lab.Host, env []string, program string, args ...string) *neighbour {
	w.Helper()
	cmd := host.Command(context.WithoutCancel(w.Context()), program, args...)
	cmd.Env = append(cmd.Env, env...)
	return w.runCommand(name, cmd)
}

// runCommand starts a neighbour. It is killed when the test ends; its output is in a log of its name.
func (w *world) runCommand(name string, cmd *exec.Cmd) *neighbour {
	w.Helper()
	n := &neighbour{T: w.T, cmd: cmd, log: lab.LogFile(w.T, name)}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.must(err)
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	n.ended, err = lab.Start(cmd)
	w.must(err)
	w.Cleanup(func() { n.end(syscall.SIGKILL) })
	return n
}

// end ends it by a signal.
func (n *neighbour) end(signal syscall.Signal) {
	n.Helper()
	_ = n.cmd.Process.Signal(signal) // it may have ended
	select {
	case <-n.ended:
	case <-time.After(soon):
		n.Fatalf("%v does not end on %s", n.cmd.Args, signal)
	}
}

// fixture are the rules of a network plugin, as files in testdata/neighbours. The first lines of each say what sources they were read from.
type fixture struct {
	name  string
	what  string // the rules are
	files []string
	sync  string // what the plugin does again and again, as a script
}

var fixtures = []fixture{
	{"kindnet", "by which it masquerades; not its flow table", []string{"kindnet.nft"}, ""},
	{"Calico with nftables", "by which it marks and masquerades", []string{"calico.nft"}, ""},
	{"Calico with iptables", "by which it marks and masquerades", []string{"calico.iptables", "calico.ip6tables"}, ""},
	{"kube-router", "of its network policies, saved and restored three times, and those by which it masquerades", []string{"kube-router.iptables", "kube-router.ip6tables"}, `
for family in "" 6; do
	ip${family}tables-save -t filter | ip${family}tables-restore -w -T filter
done`},
}

// load gives a node the rules.
func (w *besideWorld) load(m *member, f fixture) {
	w.Helper()
	for _, file := range f.files {
		m.restore(file, w.fixture(file))
	}
}

// fixture is the text of a file.
func (w *besideWorld) fixture(file string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/neighbours", file))
	w.must(err)
	return string(text)
}

// restore gives a node rules that are like those of a file.
func (m *member) restore(file, rules string) {
	if format := filepath.Ext(file)[1:]; format == "nft" {
		m.AsSomebodyElse(rules, "nft", "-f", "-")
	} else {
		m.AsSomebodyElse(rules, format+"-restore", "-w", "--noflush")
	}
}

// remove takes the rules away from a node.
func (w *besideWorld) remove(m *member, f fixture) {
	w.Helper()
	for _, file := range f.files {
		m.restore(file, removal(w.fixture(file)))
	}
}

// removal are the commands that take rules of nft, or of iptables-restore, away.
func removal(rules string) string {
	var away, chains []string
	for line := range strings.Lines(rules) {
		line = strings.TrimSuffix(line, "\n")
		command, rest, _ := strings.Cut(line, " ")
		chain, _, _ := strings.Cut(rest, " ")
		switch {
		case command == "table":
			away = append(away, "delete "+strings.TrimSuffix(line, " {"))
		case strings.HasPrefix(command, "*"):
			away = append(away, command)
		case strings.HasPrefix(command, ":"):
			chains = append(chains, command[1:])
		case (command == "-A" || command == "-I") && !slices.Contains(chains, chain):
			away = append(away, "-D "+rest)
		case command == "COMMIT":
			for _, do := range []string{"-F ", "-X "} {
				for _, chain := range chains {
					away = append(away, do+chain)
				}
			}
			away, chains = append(away, command), nil
		}
	}
	return strings.Join(away, "\n") + "\n"
}

// rightBeside is right while a plugin does what it does again and again, and with no clash found.
func (w *besideWorld) rightBeside(f fixture) {
	w.Helper()
	w.steered()
	for range 3 {
		for _, m := range w.members {
			m.AsSomebodyElse("", "sh", "-ec", f.sync)
		}
		w.answered()
	}
	w.right()
	w.settled()
	w.tellMarks("")
	w.tellEarlierNAT("", 0)
}
