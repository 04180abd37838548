package nftables

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

var compareAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// node is one whose kernel a test writes into.
type node struct {
	*testing.T
	lab    *lab.Lab
	family kernel.Family
	*Writer
}

// onNode runs test in a namespace of its own for each IP family, with pods and a host outside.
func onNode(t *testing.T, pods int, test func(n *node)) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Pods: pods, IPv6: true, Masquerade: true})
			test(&node{T: t, lab: l, family: family, Writer: NewWriter(family)})
		})
	}
}

// of returns the address of the node's family.
func (n *node) of(v4, v6 string) netip.Addr {
	if n.family == kernel.IPv4 {
		return netip.MustParseAddr(v4)
	}
	return netip.MustParseAddr(v6)
}

func (n *node) host(h *lab.Host) netip.Addr {
	if n.family == kernel.IPv4 {
		return h.V4
	}
	return h.V6
}

func (n *node) plan(bindings ...kernel.Binding) kernel.Desired {
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}, Bindings: bindings}
	if n.family == kernel.IPv6 {
		p.ClusterCIDRs = []netip.Prefix{lab.ClusterV6}
	}
	return p
}

func (n *node) inside(f func() error) {
	n.Helper()
	if err := n.lab.Node().Do(f); err != nil {
		n.Fatal(err)
	}
}

func (n *node) write(p kernel.Desired, removed ...kernel.Binding) (changed bool) {
	n.Helper()
	n.inside(func() (err error) {
		changed, err = n.Write(n.Context(), p, removed)
		return err
	})
	return changed
}

func (n *node) read() (held Content, differences []string) {
	n.Helper()
	n.inside(func() (err error) {
		held, differences, err = n.Read(n.Context())
		return err
	})
	return held, differences
}

// holds fails unless somebody who has written nothing reads this content.
func (n *node) holds(want Content) {
	n.Helper()
	n.inside(func() error {
		held, _, err := NewWriter(n.family).Read(n.Context())
		for _, c := range []Content{held, want} {
			for name := range c {
				if len(c[name]) == 0 {
					delete(c, name)
				}
			}
		}
		if maps.EqualFunc(held, want, maps.Equal[Elements, Elements]) {
			return err
		}
		if diff := cmp.Diff(want, held, compareAddrs); diff != "" {
			return fmt.Errorf("the kernel holds (-want +got):\n%s", diff)
		}
		return err
	})
}

func (n *node) nft(command string) string {
	n.Helper()
	out, err := n.lab.Node().Run(n.Context(), "nft", strings.Fields(command)...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// name is that of the table for nft.
func (n *node) name() string {
	if n.family == kernel.IPv4 {
		return "ip " + Table
	}
	return "ip6 " + Table
}

// random returns a plan with about so many bindings.
func (n *node) random(r *rand.Rand, count int) kernel.Desired {
	var bindings []kernel.Binding
	for range count {
		b := kernel.Binding{
			Pod:      n.of(fmt.Sprintf("10.128.%d.%d", r.IntN(4), r.IntN(256)), fmt.Sprintf("fd00:10:128::%x:%x", r.IntN(4), r.IntN(256))),
			Protocol: []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP}[r.IntN(3)],
			EgressIP: n.of(fmt.Sprintf("203.0.113.%d", r.IntN(5)), fmt.Sprintf("2001:db8:113::%x", r.IntN(5))),
		}
		if r.IntN(40) == 0 {
			b.Protocol = kernel.All
		}
		if !slices.ContainsFunc(bindings, func(o kernel.Binding) bool { return o.Pod == b.Pod && o.Protocol == b.Protocol }) {
			bindings = append(bindings, b)
		}
	}
	p := n.plan(bindings...)
	for range r.IntN(4) {
		addr := n.of(fmt.Sprintf("192.0.%d.%d", r.IntN(3), r.IntN(256)), fmt.Sprintf("2001:db8:0:%x::%x", r.IntN(3), r.IntN(256)))
		p.Exclusions = append(p.Exclusions, netip.PrefixFrom(addr, addr.BitLen()-r.IntN(10)).Masked())
	}
	if r.IntN(5) == 0 {
		p.Exclusions = append(p.Exclusions, n.plan().ClusterCIDRs[0], netip.PrefixFrom(n.of("255.0.0.0", "ff00::"), 8))
	}
	return p
}

// TestWriter_FollowsThePlan goes through random plans: whatever was there before, the kernel holds the plan, as
// one process writes them in turn and as another finds them; and nft can list it.
func TestWriter_FollowsThePlan(t *testing.T) {
	onNode(t, 0, func(n *node) {
		r := rand.New(rand.NewPCG(1, 2))
		for step := range 60 {
			p := n.random(r, r.IntN(3)*r.IntN(700))
			var removed []kernel.Binding
			if r.IntN(3) == 0 {
				removed = n.random(r, 3).Bindings
			}
			if r.IntN(10) == 0 {
				n.Writer = NewWriter(n.family) // another process
			}
			if n.write(p, removed...); n.write(p, removed...) {
				t.Fatalf("step %d: what was written was written again", step)
			}
			n.holds(Render(p).Record(removed))
			if _, differences := n.read(); len(differences) > 0 {
				t.Fatalf("step %d: it differs from what was written: %v", step, differences)
			}
		}
		n.write(n.random(r, 5))
		if listed := n.nft("list table " + n.name()); !strings.Contains(listed, "priority -197") {
			t.Errorf("nft lists\n%s", listed)
		}
		n.write(kernel.Desired{})
		if listed := n.nft("list ruleset"); strings.Contains(listed, Table) {
			t.Errorf("with nothing to hold nft lists\n%s", listed)
		}
	})
}

// TestWriter_NothingToDo: a plan that is written already costs no transaction, and looking at it none.
func TestWriter_NothingToDo(t *testing.T) {
	onNode(t, 0, func(n *node) {
		p := n.random(rand.New(rand.NewPCG(3, 4)), 100)
		n.write(p)
		generation := func() (g uint32) {
			n.inside(func() error {
				c, err := nft.Open(t.Context())
				if err != nil {
					return err
				}
				defer c.Close()
				g, err = c.Generation()
				return err
			})
			return g
		}
		before := generation()
		if n.write(p) {
			t.Error("it was written again")
		}
		n.read()
		if after := generation(); after != before {
			t.Errorf("the ruleset went from generation %d to %d", before, after)
		}
	})
}

func TestWriter_Repairs(t *testing.T) {
	for name, test := range map[string]struct{ breaks, says string }{
		"a flushed ruleset":     {"flush ruleset", "lacks the element"},
		"a deleted table":       {"delete table TABLE", "lacks the element"},
		"a flushed map":         {"flush map TABLE bindings", "map TABLE"},
		"a deleted element":     {"delete element TABLE bindings { POD . tcp }", "set bindings of table openshift-egress lacks the element"},
		"an element too much":   {"add element TABLE bindings { OTHER . udp : EGRESS }", "has an unexpected element"},
		"another egress IP":     {"add element TABLE pods { OTHER : EGRESS }", "has an unexpected element"},
		"an exclusion too much": {"add element TABLE exclusions { EGRESS }", "has an unexpected element"},
		"a rule too much":       {"insert rule TABLE postrouting accept", "has other rules than were written"},
		"no rules":              {"flush chain TABLE postrouting", "has other rules than were written"},
		"no chain":              {"delete chain TABLE postrouting", "lacks its chain"},
		"a chain too much":      {"add chain TABLE foreign", "has 9 sets, chains and counters; 8 were written"},
		"another policy":        {"add chain TABLE postrouting { policy drop ; }", "another policy"},
		"a table put to sleep":  {"add table TABLE { flags dormant ; }", "has flags that were not written, 'dormant' perhaps: 0x1"},
		"a set too much":        {"add set TABLE foreign { type inet_service ; }", "has 9 sets, chains and counters; 8 were written"},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, 0, func(n *node) {
				pod, egressIP := n.of("10.128.0.5", "fd00:10:128::5"), n.of("203.0.113.1", "2001:db8:113::1")
				p := n.plan(kernel.Binding{Pod: pod, Protocol: kernel.TCP, EgressIP: egressIP})
				n.write(p)
				command := strings.NewReplacer("TABLE", n.name(), "POD", pod.String(), "EGRESS", egressIP.String(),
					"OTHER", n.of("10.128.0.6", "fd00:10:128::6").String()).Replace(test.breaks)
				if strings.Contains(command, "flush map") {
					test.says = "lacks the element"
				}
				n.nft(command)
				_, differences := n.read()
				if !strings.Contains(strings.Join(differences, "\n"), test.says) {
					t.Errorf("it says %q, want %q", differences, test.says)
				}
				if !n.write(p) {
					t.Error("nothing was repaired")
				}
				n.holds(Render(p))
				if _, differences := n.read(); len(differences) > 0 {
					t.Errorf("after the repair: %v", differences)
				}
			})
		})
	}
}

// TestWriter_TamperingIsNotHidden: a change that is written on top of what somebody else has done does
// not keep the next look from seeing that; and one that cannot be written is an error.
func TestWriter_TamperingIsNotHidden(t *testing.T) {
	onNode(t, 0, func(n *node) {
		bindings := func(pods ...int) (list []kernel.Binding) {
			for _, pod := range pods {
				list = append(list, kernel.Binding{
					Pod: n.of(fmt.Sprintf("10.128.0.%d", pod), fmt.Sprintf("fd00:10:128::%x", pod)), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1"),
				})
			}
			return list
		}
		update := func(pod int) (err error) {
			n.inside(func() error {
				_, err = n.Update(t.Context(), kernel.Change{Added: bindings(pod), Networks: n.plan().Networks}, nil)
				return nil
			})
			return err
		}
		n.write(n.plan(bindings(1, 2)...))
		n.nft("flush map " + n.name() + " bindings")
		if err := update(3); err != nil {
			t.Fatal(err)
		}
		if _, differences := n.read(); len(differences) != 2 {
			t.Errorf("after a flush and a change: %q, want the two elements that are lacking", differences)
		}
		n.write(n.plan(bindings(1, 2, 3)...))
		n.holds(Render(n.plan(bindings(1, 2, 3)...)))
		n.nft("flush ruleset")
		if err := update(4); err == nil {
			t.Error("a change of a table that is not there was written")
		}
		n.write(n.plan(bindings(1, 2, 3, 4)...))
		n.holds(Render(n.plan(bindings(1, 2, 3, 4)...)))
	})
}

// TestWriter_Update goes through random plans by their differences alone.
func TestWriter_Update(t *testing.T) {
	onNode(t, 0, func(n *node) {
		r := rand.New(rand.NewPCG(7, 8))
		p := sorted(n.random(r, 100))
		n.write(p)
		for step := range 60 {
			next, journal := n.next(r, p), []kernel.Binding(nil)
			if r.IntN(8) == 0 {
				next.Bindings = nil
			}
			added, removed := kernel.Diff(p.Bindings, next.Bindings)
			if r.IntN(2) == 0 {
				journal = removed
			}
			change := kernel.Change{
				Added: added, Removed: removed,
				Networks: next.Networks, NetworksChanged: !p.Networks.Equal(next.Networks),
			}
			n.inside(func() error {
				_, err := n.Update(t.Context(), change, journal)
				return err
			})
			n.holds(Render(next).Record(journal))
			if _, differences := n.read(); len(differences) > 0 {
				t.Fatalf("step %d: it differs from what was written: %v", step, differences)
			}
			p = next
		}
	})
}

func TestAvailable_LeavesNothing(t *testing.T) {
	onNode(t, 0, func(n *node) {
		n.inside(func() error { return Available(t.Context()) })
		if listed := n.nft("list ruleset"); strings.Contains(listed, Table) {
			t.Errorf("it leaves\n%s", listed)
		}
	})
}

// TestWriter_Packets sends what the doc's rules are about, and holds what is seen against what Trace says.
func TestWriter_Packets(t *testing.T) {
	const port = 8080
	onNode(t, 2, func(n *node) {
		l, outside := n.lab, n.host(n.lab.Outside())
		suffix := map[kernel.Family]string{kernel.IPv4: "4", kernel.IPv6: "6"}[n.family]
		excluded, egressIP := n.of("192.0.2.77", "2001:db8:0:2::77"), n.of("203.0.113.1", "2001:db8:113::1")
		another := n.of("203.0.113.2", "2001:db8:113::2")
		for _, addr := range []netip.Addr{excluded, another} {
			if err := l.AddAddr(l.Outside(), addr); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range []*lab.Host{l.Outside(), l.Pod(2)} {
			for _, protocol := range []string{"tcp", "udp"} {
				if _, err := h.ServeWhoami(protocol+suffix, port); err != nil {
					t.Fatal(err)
				}
			}
		}
		pod, node := n.host(l.Pod(1)), n.host(l.Node())
		bind := func(protocol kernel.Protocol, ip netip.Addr) kernel.Desired {
			p := n.plan(kernel.Binding{Pod: pod, Protocol: protocol, EgressIP: ip})
			p.Exclusions = []netip.Prefix{netip.PrefixFrom(excluded, excluded.BitLen())}
			return p
		}
		for name, test := range map[string]struct {
			plan     kernel.Desired
			protocol string
			to       netip.Addr
			want     netip.Addr
		}{
			"unbound":                      {n.plan(), "tcp", outside, node},
			"bound":                        {bind(kernel.TCP, egressIP), "tcp", outside, egressIP},
			"bound for another protocol":   {bind(kernel.UDP, egressIP), "tcp", outside, node},
			"bound for UDP":                {bind(kernel.UDP, egressIP), "udp", outside, egressIP},
			"bound for all":                {bind(kernel.All, egressIP), "udp", outside, egressIP},
			"to an exclusion":              {bind(kernel.TCP, egressIP), "tcp", excluded, node},
			"to a pod":                     {bind(kernel.All, egressIP), "tcp", n.host(l.Pod(2)), pod},
			"to its own egress IP":         {bind(kernel.TCP, another), "tcp", another, node},
			"to somebody else's egress IP": {bind(kernel.TCP, egressIP), "tcp", another, egressIP},
		} {
			n.write(test.plan)
			seen, err := l.Pod(1).Ask(t.Context(), test.protocol+suffix, netip.AddrPortFrom(test.to, port), 0)
			if err != nil || seen != test.want {
				t.Errorf("%s: seen as %s (%v), want %s", name, seen, err, test.want)
			}
			_, snat := Render(test.plan).Trace(Packet{Source: pod, Destination: test.to, Protocol: kernel.Protocol(test.protocol)})
			if snat.IsValid() != (test.want == egressIP) {
				t.Errorf("%s: Trace says %s, want %s", name, snat, test.want)
			}
		}
	})
}

// TestPayload_IsAccepted: what is printed for readers is what is written.
func TestPayload_IsAccepted(t *testing.T) {
	onNode(t, 0, func(n *node) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 10 {
			p := n.random(r, 50)
			file := filepath.Join(t.TempDir(), "payload")
			if err := os.WriteFile(file, Payload(p, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			n.inside(func() error { return Check(t.Context(), Payload(p, nil)) })
			n.nft("-f " + file)
			n.holds(Render(p))
			n.Writer = NewWriter(n.family)
			n.write(p)
			// A node may be asked what it would write while it runs.
			n.inside(func() error { return Check(t.Context(), Payload(n.random(r, 50), nil)) })
			n.holds(Render(p))
			printed := n.nft("list chain " + n.name() + " postrouting")
			n.nft("delete table " + n.name())
			n.nft("-f " + file)
			if diff := cmp.Diff(n.nft("list chain "+n.name()+" postrouting"), printed); diff != "" {
				t.Errorf("the chain as nft makes it of the payload (-), and as it is written (+):\n%s", diff)
			}
			n.nft("delete table " + n.name())
		}
		if payload := Payload(kernel.Desired{}, nil); payload != nil {
			t.Errorf("nothing to bind gives\n%s", payload)
		}
		n.inside(func() error { return Check(t.Context(), nil) })
	})
}

// TestWriter_Journal: who comes after a process that died finds what that one removed.
func TestWriter_Journal(t *testing.T) {
	onNode(t, 0, func(n *node) {
		gone := kernel.Binding{Pod: n.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1")}
		all := kernel.Binding{Pod: gone.Pod, Protocol: kernel.All, EgressIP: n.of("203.0.113.2", "2001:db8:113::2")}
		n.write(n.plan(gone))
		n.write(n.plan(all), gone)
		n.Writer = NewWriter(n.family)
		held, _ := n.read()
		if diff := cmp.Diff(kernel.Sorted([]kernel.Binding{gone, all}), held.Bindings(), compareAddrs); diff != "" {
			t.Errorf("the bindings (-want +got):\n%s", diff)
		}
		n.write(kernel.Desired{}, all)
		held, _ = n.read()
		if diff := cmp.Diff([]kernel.Binding{all}, held.Bindings(), compareAddrs); diff != "" {
			t.Errorf("the bindings (-want +got):\n%s", diff)
		}
		n.write(kernel.Desired{})
		n.holds(nil)
	})
}

func TestCleanup_RemovesTheTables(t *testing.T) {
	onNode(t, 0, func(n *node) {
		b := kernel.Binding{Pod: n.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1")}
		n.write(n.plan(b))
		n.nft("insert rule " + n.name() + " postrouting accept") // whatever became of it
		n.inside(func() error {
			for range 2 { // the second finds the journal of the first, which died
				withdrawn, err := Withdraw(t.Context())
				if diff := cmp.Diff([]kernel.Binding{b}, withdrawn[n.family], compareAddrs); diff != "" || err != nil {
					t.Errorf("withdrew, %v (-want +got):\n%s", err, diff)
				}
				n.holds(Content{}.Record([]kernel.Binding{b}))
			}
			return Cleanup(t.Context())
		})
		if listed := n.nft("list ruleset"); strings.Contains(listed, Table) {
			t.Errorf("nft lists\n%s", listed)
		}
	})
}

// TestWriter_LargePlan writes as much as a large node has, in one transaction.
func TestWriter_LargePlan(t *testing.T) {
	onNode(t, 0, func(n *node) {
		var bindings []kernel.Binding
		for i := range 30_000 {
			bindings = append(bindings, kernel.Binding{
				Pod:      n.of(fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255), fmt.Sprintf("fd00:10:128::%x:%x", i>>16, i&0xffff)),
				Protocol: kernel.TCP, EgressIP: n.of(fmt.Sprintf("203.0.113.%d", i%250), fmt.Sprintf("2001:db8:113::%x", i%250)),
			})
		}
		n.write(n.plan(bindings...))
		n.holds(Render(n.plan(bindings...)))
		n.write(n.plan(bindings[:15_000]...), bindings[15_000:]...)
		n.holds(Render(n.plan(bindings[:15_000]...)).Record(bindings[15_000:]))
	})
}
