package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// way is how rules are written.
type way struct {
	name     string
	backend  reconcile.Backend
	iptables lab.Backend
}

var ways = []way{
	{"nftables", reconcile.NFTables, lab.NFT},
	{"nftables beside iptables-legacy", reconcile.NFTables, lab.Legacy},
	{"iptables-nft", reconcile.IPTables, lab.NFT},
	{"iptables-legacy", reconcile.IPTables, lab.Legacy},
}

// bed is a node with the tunnel server, and a host that has the addresses of all other nodes: those behind the tunnel, too,
// so that connections that wrongly go directly are seen.
type bed struct {
	*testing.T
	*lab.Lab
	family kernel.Family
	way
	writer *Writer
}

// inAllWays runs a test for each back end and IP family.
func inAllWays(t *testing.T, test func(b *bed)) { inWays(t, ways, test) }

func inWays(t *testing.T, ways []way, test func(b *bed)) {
	for _, w := range ways {
		for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
			t.Run(w.name+"/"+string(family), func(t *testing.T) {
				l := lab.ForTest(t, lab.Config{Pods: 1, IPv6: true, Backend: w.iptables})
				t.Setenv("PATH", l.Path())
				t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
				b := &bed{T: t, Lab: l, family: family, way: w}
				b.writer = b.newWriter()
				for _, port := range []uint16{10263, 10264, 10265} {
					b.must(l.Node().ServeAsked(port))
				}
				for _, port := range []uint16{10250, 10255, 9100, 9443} {
					b.must(l.Outside().ServeAsked(port))
				}
				for _, n := range []int{50, 51, 60} {
					b.must(l.AddAddr(l.Outside(), b.addr(n)))
				}
				test(b)
			})
		}
	}
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) newWriter() *Writer {
	w := NewWriter(b.backend, b.family)
	b.Cleanup(w.Close)
	return w
}

// addr is an address of the nodes' network, by its number.
func (b *bed) addr(n int) netip.Addr {
	if b.family == kernel.IPv4 {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:0:2::%d", n))
}

func (b *bed) self() netip.Addr {
	if b.family == kernel.IPv4 {
		return b.Node().V4
	}
	return b.Node().V6
}

// redirects are those to the tunnel server on the node, for these nodes.
func (b *bed) redirects(nodes ...int) kernel.Redirects {
	r := kernel.Redirects{
		Secure:   kernel.Target{To: netip.AddrPortFrom(b.self(), 10263), Ports: []uint16{9443, 10250}},
		Insecure: kernel.Target{To: netip.AddrPortFrom(b.self(), 10264), Ports: []uint16{9100, 10255}},
	}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, b.addr(n))
	}
	return r
}

func (b *bed) write(want kernel.Redirects) (changed bool) {
	b.Helper()
	b.must(b.Node().Do(func() error {
		result, err := b.writer.Sync(b.Context(), want)
		changed = result.Changed
		return err
	}))
	return changed
}

// goes fails the test unless a connection of a host goes to the tunnel server, or directly.
func (b *bed) goes(from *lab.Host, n int, port uint16, tunnelled bool) *lab.AskedConn {
	b.Helper()
	to, want := netip.AddrPortFrom(b.addr(n), port), b.Outside().Name
	if tunnelled {
		want = b.Node().Name
	}
	c, asked, err := from.DialAsked(b.Context(), to)
	if err != nil {
		b.Errorf("%s: %v", to, err)
		return nil
	}
	b.Cleanup(func() { _ = c.Close() })
	if asked.By != want || asked.For != to {
		b.Errorf("%s is answered by %s for %s; want %s", to, asked.By, asked.For, want)
	}
	return c
}

func (b *bed) agrees(want kernel.Redirects) {
	b.Helper()
	var differences []string
	b.must(b.Node().Do(func() (err error) {
		differences, err = Compare(b.Context(), b.backend, b.family, want)
		return err
	}))
	if len(differences) > 0 {
		b.Errorf("differences: %q", differences)
	}
}

// run runs a program on the node.
func (b *bed) run(name string, args ...string) string {
	b.Helper()
	var output []byte
	b.must(b.Node().Do(func() (err error) {
		output, err = exec.CommandContext(b.Context(), name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %q: %w: %s", name, args, err, output)
		}
		return err
	}))
	return string(output)
}

func (b *bed) iptablesName() string {
	if b.family == kernel.IPv6 {
		return "ip6tables"
	}
	return "iptables"
}

// TestWriter_Packets: connections go where the redirects say, as these change, and nothing else changes its way.
func TestWriter_Packets(t *testing.T) {
	inAllWays(t, func(b *bed) {
		r := b.redirects(50, 51)
		for _, step := range []struct {
			what   string
			change func()
			// tunnelled are the nodes and ports whose connections go to the tunnel server.
			nodes []int
			ports []uint16
		}{
			{"two nodes", func() {}, []int{50, 51}, []uint16{9100, 9443, 10250, 10255}},
			{"one more", func() { r.Nodes = append(r.Nodes, b.addr(60)) }, []int{50, 51, 60}, []uint16{9100, 9443, 10250, 10255}},
			{"one left", func() { r.Nodes = r.Nodes[:1] }, []int{50}, []uint16{9100, 9443, 10250, 10255}},
			{"a port goes", func() { r.Insecure.Ports = []uint16{10255} }, []int{50}, []uint16{9443, 10250, 10255}},
			{"a port moves", func() { r.Secure.Ports, r.Insecure.Ports = []uint16{10250}, []uint16{9443, 10255} }, []int{50}, []uint16{9443, 10250, 10255}},
			{"no insecure ones", func() { r.Insecure = kernel.Target{} }, []int{50}, []uint16{10250}},
			{"all but some", func() { r.Others, r.Nodes = true, []netip.Addr{b.addr(50), b.addr(51)} }, []int{60}, []uint16{10250}},
			{"nodes again", func() { r = b.redirects(51) }, []int{51}, []uint16{9100, 9443, 10250, 10255}},
		} {
			step.change()
			slices.Sort(r.Insecure.Ports)
			if !b.write(r) || b.write(r) {
				b.Errorf("%s: want a change, and then none", step.what)
			}
			b.agrees(r)
			for _, n := range []int{50, 51, 60} {
				for _, port := range []uint16{9100, 9443, 10250, 10255} {
					b.goes(b.Node(), n, port, slices.Contains(step.nodes, n) && slices.Contains(step.ports, port))
				}
			}
			b.goes(b.Pod(1), 51, 10250, false)
			if b.Failed() {
				b.Fatalf("after: %s", step.what)
			}
		}
		r.Sources = []netip.Prefix{lab.ClusterV4, netip.MustParsePrefix("172.16.0.0/12")}
		if b.family == kernel.IPv6 {
			r.Sources = []netip.Prefix{netip.MustParsePrefix("2001:db8:ffff::/48"), lab.ClusterV6}
		}
		if !b.write(r) || b.write(r) {
			b.Error("pods: want a change, and then none")
		}
		b.agrees(r)
		through := b.goes(b.Pod(1), 51, 10250, true)
		b.goes(b.Pod(1), 60, 10250, false)
		r.Sources = nil
		b.write(r)
		b.end(through)
		b.goes(b.Pod(1), 51, 10250, false)
		b.write(kernel.Redirects{})
		b.agrees(kernel.Redirects{})
		b.goes(b.Pod(1), 51, 10250, false)
		b.goes(b.Node(), 51, 10250, false)
		b.nothingIsLeft()
	})
}

// TestWriter_OwnAddress: a connection to an address of the node itself is never redirected, whatever nodes claim.
func TestWriter_OwnAddress(t *testing.T) {
	inAllWays(t, func(b *bed) {
		b.must(b.Node().ServeAsked(10250))
		r := b.redirects(50)
		r.Nodes = append(r.Nodes, b.self())
		slices.SortFunc(r.Nodes, netip.Addr.Compare)
		b.write(r)
		to := netip.AddrPortFrom(b.self(), 10250)
		c, asked, err := b.Node().DialAsked(b.Context(), to)
		b.must(err)
		b.Cleanup(func() { _ = c.Close() })
		if asked.At != to {
			b.Errorf("%s is answered at %s", to, asked.At)
		}
	})
}

// TestWriter_LoopbackTarget: the tunnel server may listen on loopback alone.
func TestWriter_LoopbackTarget(t *testing.T) {
	inAllWays(t, func(b *bed) {
		r := b.redirects(50)
		r.Secure.To = netip.AddrPortFrom(netip.IPv6Loopback(), 10263)
		if b.family == kernel.IPv4 {
			r.Secure.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10263)
		}
		b.write(r)
		b.agrees(r)
		b.goes(b.Node(), 50, 10250, true)
	})
}

// TestWriter_Repairs: whatever somebody else does to the rules is found, and in front is where the jump is.
func TestWriter_Repairs(t *testing.T) {
	inAllWays(t, func(b *bed) {
		r := b.redirects(50, 51)
		b.write(r)
		ipt := b.iptablesName()
		harm := map[string][]string{"nft flush": {"nft", "flush", "ruleset"}}
		if b.backend == reconcile.IPTables {
			harm = map[string][]string{
				"flush":      {ipt, "-w", "-t", "nat", "-F"},
				"in front":   {ipt, "-w", "-t", "nat", "-I", "OUTPUT", "1", "-p", "tcp", "--dport", "10250", "-j", "ACCEPT"},
				"jump gone":  {ipt, "-w", "-t", "nat", "-D", "OUTPUT", "1"},
				"rule added": {ipt, "-w", "-t", "nat", "-I", nodesChain, "1", "-j", "RETURN"},
			}
		}
		for what, command := range harm {
			b.run(command[0], command[1:]...)
			if !b.write(r) {
				b.Errorf("%s: not noticed", what)
			}
			b.agrees(r)
			b.goes(b.Node(), 50, 10250, true)
			b.goes(b.Node(), 60, 10250, false)
		}
	})
}

// TestWriter_TakesOver: a process that starts anew finds what the one before has left, by whatever means, and leaves
// nothing of it when it writes by other ones. Connections that go the wrong way then end.
func TestWriter_TakesOver(t *testing.T) {
	inAllWays(t, func(b *bed) {
		before := b.redirects(50, 51)
		b.write(before)
		through := b.goes(b.Node(), 50, 9100, true)
		other := b.way
		other.backend = reconcile.NFTables
		if b.backend == reconcile.NFTables {
			other.backend = reconcile.IPTables
		}
		b.way = other
		b.writer = b.newWriter()
		after := b.redirects(60)
		b.write(after)
		b.agrees(after)
		b.end(through)
		b.goes(b.Node(), 60, 10250, true)
		b.goes(b.Node(), 50, 10250, false)
	})
}

// TestWriter_OtherFlavour: what a run with the other iptables has written goes.
func TestWriter_OtherFlavour(t *testing.T) {
	inAllWays(t, func(b *bed) {
		if b.backend == reconcile.NFTables {
			b.Skip("a back end of its own")
		}
		folder, path := b.otherFlavour(), os.Getenv("PATH")
		for _, after := range []kernel.Redirects{b.redirects(60), {}} {
			b.Setenv("PATH", path)
			b.writer = b.newWriter()
			before := b.redirects(50)
			b.write(before)
			before.Secure.To = netip.AddrPortFrom(b.self(), 10265)
			b.write(before)
			b.Setenv("PATH", folder+":"+path)
			b.writer = b.newWriter()
			b.write(after)
			b.agrees(after)
			b.goes(b.Node(), 50, 10250, false)
			b.Setenv("PATH", path)
			if left := b.run("iptables-save") + b.run("ip6tables-save"); strings.Contains(left, "OPENSHIFT-TUNNEL") {
				b.Errorf("the other iptables still has rules:\n%s", left)
			}
			b.Setenv("PATH", folder+":"+path)
			b.write(kernel.Redirects{})
		}
	})
}

// otherFlavour returns a folder with the programs of the other iptables.
func (b *bed) otherFlavour() string {
	b.Helper()
	other := map[lab.Backend]string{lab.NFT: "xtables-legacy-multi", lab.Legacy: "xtables-nft-multi"}[b.iptables]
	program, err := exec.LookPath(other)
	b.must(err)
	folder := b.TempDir()
	for _, name := range []string{"iptables", "ip6tables", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore"} {
		b.must(os.Symlink(program, filepath.Join(folder, name)))
	}
	return folder
}

// TestWriter_FlavourChanges: when another iptables comes to PATH while a process runs, what that has written through the former one goes, whether
// it is the next change that fails, or somebody has changed chains that it jumps from.
func TestWriter_FlavourChanges(t *testing.T) {
	inAllWays(t, func(b *bed) {
		if b.backend == reconcile.NFTables {
			b.Skip("a back end of its own")
		}
		folder, path := b.otherFlavour(), os.Getenv("PATH")
		for what, touch := range map[string]bool{"the next change": false, "the chains were changed": true} {
			b.Setenv("PATH", path)
			b.writer = b.newWriter()
			b.write(b.redirects(50))
			b.write(b.redirects(50, 51))
			if touch {
				b.run(b.iptablesName(), "-t", "nat", "-I", "OUTPUT", "-d", b.addr(99).String(), "-j", "RETURN")
			}
			b.Setenv("PATH", folder+":"+path)
			after := b.redirects(60)
			after.Secure.To = netip.AddrPortFrom(b.self(), 10265)
			b.must(b.Node().Do(func() error {
				if _, err := b.writer.Sync(b.Context(), after); err == nil {
					return nil
				}
				_, err := b.writer.Sync(b.Context(), after)
				return err
			}))
			b.agrees(after)
			b.Setenv("PATH", path)
			if left := b.run("iptables-save") + b.run("ip6tables-save"); strings.Contains(left, "OPENSHIFT-TUNNEL") {
				b.Errorf("%s: the former iptables still has rules:\n%s", what, left)
			}
			b.Setenv("PATH", folder+":"+path)
			b.write(kernel.Redirects{})
		}
	})
}

// TestWriter_NotJudged: a process died between a write and the judgement of connections, or could not judge them. The next
// sync ends those that go the wrong way since, also those to a node and a port of which nobody but the record knows any more.
func TestWriter_NotJudged(t *testing.T) {
	for name, next := range map[string]func(b *bed) *Writer{
		"it died": (*bed).newWriter, "it failed": func(b *bed) *Writer { return b.writer },
	} {
		t.Run(name, func(t *testing.T) { testNotJudged(t, next) })
	}
}

func testNotJudged(t *testing.T, next func(*bed) *Writer) {
	inAllWays(t, func(b *bed) {
		before := b.redirects(50, 51)
		b.write(before)
		ends := []*lab.AskedConn{b.goes(b.Node(), 50, 9100, true), b.goes(b.Node(), 51, 9100, true), b.goes(b.Node(), 60, 10250, false)}
		stays := b.goes(b.Node(), 51, 10250, true)
		after := b.redirects(51, 60)
		after.Insecure.Ports = []uint16{10255}
		after.Insecure.To = netip.AddrPortFrom(b.self(), 10265)
		b.must(b.Node().Do(func() error {
			was, err := b.writer.before(b.Context(), after)
			if err == nil {
				_, err = b.writer.write(b.Context(), after, encode(was))
			}
			return err
		}))
		b.writer.judged = false // as after a failure
		b.writer = next(b)
		if b.write(after) {
			b.Error("changed once more")
		}
		b.end(ends...)
		if _, err := stays.Ask(b.Context()); err != nil {
			b.Errorf("a connection that goes the right way: %v", err)
		}
		b.agrees(after)
		if left := b.run("iptables-save") + b.run("ip6tables-save") + b.run("nft", "list", "ruleset"); strings.Contains(strings.ToLower(left), "record") {
			b.Errorf("the record is left:\n%s", left)
		}
	})
}

// TestWriter_WithoutNFTables: a kernel that lacks nftables gets chains, which the next process finds as they are, and removes.
func TestWriter_WithoutNFTables(t *testing.T) {
	lab.NeedsLack(t, "nf_tables")
	inWays(t, []way{{"iptables-legacy", reconcile.IPTables, lab.Legacy}}, func(b *bed) {
		if err := b.Node().Do(func() error { return Available(b.Context(), b.family) }); !errors.Is(err, nft.ErrNone) {
			b.Errorf("nftables: %v", err)
		}
		want := b.redirects(50)
		b.write(want)
		b.goes(b.Node(), 50, 10250, true)
		b.writer = b.newWriter()
		if b.write(want) {
			b.Error("the next process changes the rules")
		}
		b.must(b.Node().Do(func() error { return Withdraw(b.Context()) }))
		b.goes(b.Node(), 50, 10250, false)
		b.agrees(kernel.Redirects{})
		if left := b.run("iptables-save") + b.run("ip6tables-save"); strings.Contains(left, "OPENSHIFT-TUNNEL") {
			b.Errorf("left behind:\n%s", left)
		}
	})
}

// TestAvailable_LeavesNothing of the table by which it finds out.
func TestAvailable_LeavesNothing(t *testing.T) {
	inWays(t, ways[:1], func(b *bed) {
		b.must(b.Node().Do(func() error { return Available(b.Context(), kernel.IPv4, kernel.IPv6) }))
		b.nothingIsLeft()
	})
}

// formerSetsOf and formerRules are what former versions made of redirects of two nodes: FAMILY is 4 or 6.
const (
	formerSetsOf = `create openshift-tunnel-FAMILYa-nodes hash:ip INET maxelem 1048576
add openshift-tunnel-FAMILYa-nodes NODE
add openshift-tunnel-FAMILYa-nodes OTHER
create openshift-tunnel-FAMILYa-secure bitmap:port range 0-65535
add openshift-tunnel-FAMILYa-secure 9443
add openshift-tunnel-FAMILYa-secure 10250
create openshift-tunnel-FAMILYa-insecure bitmap:port range 0-65535
add openshift-tunnel-FAMILYa-insecure 9100
create openshift-tunnel-FAMILYb-nodes hash:ip INET maxelem 1048576
`
	formerRules = `*nat
:OPENSHIFT-TUNNEL-NODES - [0:0]
:OPENSHIFT-TUNNEL-TO - [0:0]
-I OUTPUT 1 -p tcp -m comment --comment "OpenShift tunnel ports" -j OPENSHIFT-TUNNEL-NODES
-A OPENSHIFT-TUNNEL-NODES -m set --match-set openshift-tunnel-FAMILYa-nodes dst -m addrtype ! --dst-type LOCAL -g OPENSHIFT-TUNNEL-TO
-A OPENSHIFT-TUNNEL-TO -p tcp -m set --match-set openshift-tunnel-FAMILYa-secure dst -j DNAT --to-destination SECURE
-A OPENSHIFT-TUNNEL-TO -p tcp -m set --match-set openshift-tunnel-FAMILYa-insecure dst -j DNAT --to-destination PLAIN
COMMIT
`
)

// former feeds a program with what a former version has written.
func (b *bed) former(text, program string, args ...string) {
	b.Helper()
	family, inet := "4", "family inet"
	if b.family == kernel.IPv6 {
		family, inet = "6", "family inet6"
	}
	r := b.redirects()
	b.feed(strings.NewReplacer("FAMILY", family, "INET", inet, "NODE\n", b.addr(50).String()+"\n", "OTHER", b.addr(51).String(),
		"SECURE", r.Secure.To.String(), "PLAIN", r.Insecure.To.String()).Replace(text), program, args...)
}

// feed runs a program on the node with this input.
func (b *bed) feed(input, name string, args ...string) {
	b.Helper()
	b.must(b.Node().Feed(b.Context(), input, name, args...))
}

// TestWriter_TakesOverSets: rules of a former version, which name IP sets, are replaced together with these. Connections that they have led to
// the tunnel server, and that should not go there any more, end.
func TestWriter_TakesOverSets(t *testing.T) {
	for name, restore := range map[string]string{"of this iptables": "", "of the other one": "other"} {
		t.Run(name, func(t *testing.T) { inAllWays(t, func(b *bed) { b.takesOverSets(restore != "") }) })
	}
}

func (b *bed) takesOverSets(fromOther bool) {
	b.Helper()
	b.former(formerSetsOf, "ipset", "restore")
	restore := b.iptablesName() + "-restore"
	if fromOther {
		restore = filepath.Join(b.otherFlavour(), restore)
	}
	b.former(formerRules, restore, "--noflush")
	ends, stays := b.goes(b.Node(), 50, 9100, true), b.goes(b.Node(), 51, 10250, true)
	want := b.redirects(51, 60)
	if !b.write(want) || b.write(want) {
		b.Error("want a change, and then none")
	}
	b.agrees(want)
	b.end(ends)
	if _, err := stays.Ask(b.Context()); err != nil {
		b.Errorf("a connection that goes the right way: %v", err)
	}
	b.goes(b.Node(), 50, 10250, false)
	b.goes(b.Node(), 60, 10250, true)
	if left := b.run("ipset", "list", "-name"); strings.Contains(left, "openshift-tunnel") {
		b.Errorf("there are these sets: %s", left)
	}
}

// TestWriter_SetInUse: a set of a former version that somebody else's rule names keeps nothing else from being done, and goes after the rule.
func TestWriter_SetInUse(t *testing.T) {
	inAllWays(t, func(b *bed) {
		b.former(formerSetsOf, "ipset", "restore")
		b.former(formerRules, b.iptablesName()+"-restore", "--noflush")
		rule := []string{"POSTROUTING", "-m", "set", "--match-set", formerSets(b.family)[0], "dst", "-j", "RETURN"}
		b.run(b.iptablesName(), append([]string{"-w", "-t", "nat", "-A"}, rule...)...)
		ends := b.goes(b.Node(), 50, 9100, true)
		want := b.redirects(51, 60)
		b.write(want)
		b.end(ends)
		b.agrees(want)
		if left := b.run("ipset", "list", "-name"); strings.Count(left, "openshift-tunnel") != 1 {
			b.Errorf("there are these sets: %s", left)
		}
		b.run(b.iptablesName(), append([]string{"-w", "-t", "nat", "-D"}, rule...)...)
		b.write(want)
		if left := b.run("ipset", "list", "-name"); strings.Contains(left, "openshift-tunnel") {
			b.Errorf("there are these sets: %s", left)
		}
	})
}

// TestWithdraw_FormerSets: what a former version has left goes, with rules that name the sets, and if it died before it wrote these.
func TestWithdraw_FormerSets(t *testing.T) {
	inAllWays(t, func(b *bed) {
		for _, rules := range []bool{false, true} {
			b.former(formerSetsOf, "ipset", "restore")
			if rules {
				b.former(formerRules, b.iptablesName()+"-restore", "--noflush")
			}
			b.must(b.Node().Do(func() error { return Withdraw(b.Context()) }))
			b.nothingIsLeft()
		}
	})
}

// TestWriter_NoMomentIsWrong: whatever changes, connections whose way stays the same never go another one.
func TestWriter_NoMomentIsWrong(t *testing.T) {
	inAllWays(t, func(b *bed) {
		alike := func(r kernel.Redirects) kernel.Redirects { return r }
		steps := []func(r kernel.Redirects) kernel.Redirects{
			alike,
			func(r kernel.Redirects) kernel.Redirects {
				r.Nodes = append(slices.Clone(r.Nodes), b.addr(52))
				return r
			},
			func(r kernel.Redirects) kernel.Redirects {
				r.Nodes = append(slices.Clone(r.Nodes), b.addr(53))
				return r
			},
			func(r kernel.Redirects) kernel.Redirects { r.Secure.Ports = []uint16{10250}; return r },
			func(r kernel.Redirects) kernel.Redirects {
				r.Secure.Ports, r.Insecure.Ports = []uint16{10250}, []uint16{9100, 9443, 10255}
				return r
			},
			func(r kernel.Redirects) kernel.Redirects { r.Insecure = kernel.Target{}; return r },
			func(r kernel.Redirects) kernel.Redirects { r.Insecure.To = r.Secure.To; return r },
			func(r kernel.Redirects) kernel.Redirects {
				r.Others, r.Nodes = true, []netip.Addr{b.addr(51), b.addr(60)}
				return r
			},
			func(r kernel.Redirects) kernel.Redirects {
				r.Sources = []netip.Prefix{netip.PrefixFrom(b.addr(60), b.addr(60).BitLen())}
				return r
			},
		}
		b.write(b.redirects(50))
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		var asked atomic.Int64
		for n, by := range map[int]string{50: b.Node().Name, 60: b.Outside().Name} {
			running.Go(func() {
				for ctx.Err() == nil {
					to := netip.AddrPortFrom(b.addr(n), 10250)
					c, got, err := b.Node().DialAsked(b.Context(), to)
					if err != nil || got.By != by || got.For != to {
						b.Errorf("%s is answered by %q for %s; want %s (%v)", to, got.By, got.For, by, err)
						return
					}
					_ = c.Close() // it has said what it had to
					asked.Add(1)
					time.Sleep(time.Millisecond) // so that there are not more connections than a node has
				}
			})
		}
		for round := range 2 {
			for i := range steps {
				b.write(steps[(i*(round+2))%len(steps)](b.redirects(50)))
			}
		}
		stop()
		running.Wait()
		if b.Logf("%d connections", asked.Load()); asked.Load() == 0 {
			b.Error("no connection was made; the test shows nothing")
		}
	})
}

// TestWithdraw_LeavesNothing, neither rules nor connections that go where they said.
func TestWithdraw_LeavesNothing(t *testing.T) {
	inAllWays(t, func(b *bed) {
		b.write(b.redirects(50))
		through := b.goes(b.Node(), 50, 10250, true)
		for range 2 { // the second time there is nothing
			b.must(b.Node().Do(func() error { return Withdraw(b.Context()) }))
		}
		b.end(through)
		b.agrees(kernel.Redirects{})
		b.goes(b.Node(), 50, 10250, false)
		b.nothingIsLeft()
	})
}

// end fails the test unless connections end on which nobody sends anything.
func (b *bed) end(connections ...*lab.AskedConn) {
	b.Helper()
	for _, c := range connections {
		if c == nil {
			continue // said already
		}
		if err := c.Ends(lab.Stretch(10 * time.Second)); err != nil {
			b.Errorf("a connection that goes the wrong way: %v", err)
		}
	}
}

func (b *bed) nothingIsLeft() {
	b.Helper()
	left := b.run("iptables-save") + b.run("ip6tables-save") + b.run("nft", "list", "ruleset")
	if _, err := os.Stat("/sys/module/ip_set"); err == nil {
		left += b.run("ipset", "list")
	}
	if strings.Contains(strings.ToLower(left), "openshift-tunnel") {
		b.Errorf("left behind:\n%s", left)
	}
}

// TestWriter_Connections: those that go the wrong way after a change end on both sides, although nobody sends
// anything, and all others go on.
func TestWriter_Connections(t *testing.T) {
	inAllWays(t, func(b *bed) {
		b.write(b.redirects(50))
		ends := []*lab.AskedConn{
			b.goes(b.Node(), 50, 10250, true), b.goes(b.Node(), 50, 10255, true), // to a node that is direct now
			b.goes(b.Node(), 51, 10250, false), b.goes(b.Node(), 51, 9100, false), // to one behind the tunnel now
		}
		b.must(b.Outside().ServeAsked(8080))
		stay := map[string]*lab.AskedConn{
			"to a node that stays direct":     b.goes(b.Node(), 60, 10250, false),
			"to another port":                 b.goes(b.Node(), 51, 8080, false),
			"of a pod":                        b.goes(b.Pod(1), 51, 10250, false),
			"to the tunnel server, by itself": b.self8080(),
		}
		var result Result
		b.must(b.Node().Do(func() (err error) {
			result, err = b.writer.Sync(b.Context(), b.redirects(51))
			return err
		}))
		if result.Ended != len(ends) {
			b.Errorf("%d connections ended; want %d", result.Ended, len(ends))
		}
		b.end(ends...)
		for what, c := range stay {
			if c == nil {
				continue
			}
			if _, err := c.Ask(b.Context()); err != nil {
				b.Errorf("%s: %v", what, err)
			}
		}
		b.goes(b.Node(), 50, 10250, false)
		b.goes(b.Node(), 51, 10250, true)
	})
}

// self8080 is a connection to the tunnel server that nobody redirected.
func (b *bed) self8080() *lab.AskedConn {
	b.Helper()
	c, _, err := b.Node().DialAsked(b.Context(), netip.AddrPortFrom(b.self(), 10263))
	b.must(err)
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// TestPayload_Accepted: what a dry run prints is accepted by nft, or by iptables-restore.
func TestPayload_Accepted(t *testing.T) {
	inAllWays(t, func(b *bed) {
		r := b.redirects(50)
		r.Sources = []netip.Prefix{netip.PrefixFrom(b.addr(50), b.addr(50).BitLen())}
		payload, err := Payload(b.backend, b.family, r)
		if err != nil {
			b.Fatal(err)
		}
		if b.backend == reconcile.NFTables {
			b.feed(string(payload), "nft", "--file", "-")
		} else {
			b.feed(string(payload), b.iptablesName()+"-restore", "--noflush")
		}
		b.goes(b.Node(), 50, 10250, true)
		b.goes(b.Node(), 60, 10250, false)
	})
}

// TestWriter_BesideATableOfOthers: a table nat that iptables-nft cannot show keeps the redirects from nothing but iptables-nft's own rules.
func TestWriter_BesideATableOfOthers(t *testing.T) {
	inAllWays(t, func(b *bed) {
		if b.backend != reconcile.NFTables && b.iptables == lab.NFT {
			b.Skip("that is where the rules are")
		}
		table := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[b.family]
		b.run("nft", "table "+table+" nat { chain POSTROUTING { type nat hook postrouting priority 100; meta mark set numgen random mod 3; }; }")
		for _, n := range []int{50, 60} {
			b.writer = b.newWriter()
			want := b.redirects(n)
			b.write(want)
			b.agrees(want)
			b.goes(b.Node(), n, 10250, true)
		}
		b.must(b.Node().Do(func() error { return Withdraw(b.Context()) }))
		b.goes(b.Node(), 60, 10250, false)
	})
}
