package steering

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

var compareAddresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// localNode is one whose kernel a test writes into.
type localNode struct {
	*testing.T
	lab    *lab.Lab
	family kernel.Family
	*LocalWriter
}

// onLocalNode runs test in a namespace of its own for each IP family, with pods and a host outside.
func onLocalNode(t *testing.T, pods int, test func(n *localNode)) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Pods: pods, IPv6: true, Masquerade: true})
			test(&localNode{T: t, lab: l, family: family, LocalWriter: NewLocalWriter(family)})
		})
	}
}

// of returns the address of the node's family.
func (n *localNode) of(v4, v6 string) netip.Addr { return addrOf(n.family, v4, v6) }

func (n *localNode) host(h *lab.Host) netip.Addr { return addrOfHost(h, n.family) }

func (n *localNode) plan(bindings ...kernel.Binding) kernel.Desired {
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}, Bindings: bindings}
	if n.family == kernel.IPv6 {
		p.ClusterCIDRs = []netip.Prefix{lab.ClusterV6}
	}
	return p
}

func (n *localNode) inside(f func() error) {
	n.Helper()
	if err := n.lab.Node().Do(f); err != nil {
		n.Fatal(err)
	}
}

func (n *localNode) write(p kernel.Desired, removed ...kernel.Binding) (changed bool) {
	n.Helper()
	n.inside(func() (err error) {
		changed, err = n.Write(n.Context(), p, removed)
		return err
	})
	return changed
}

// read returns the bindings that the kernel has, those on record included, and how it differs from what was written.
func (n *localNode) read() (held []kernel.Binding, differences []string) {
	n.Helper()
	n.inside(func() (err error) {
		differences, err = n.Read(n.Context())
		standing, _ := n.Standing()
		held = standing.All()
		return err
	})
	return held, differences
}

// holds fails unless somebody who has written nothing reads what the table should hold.
func (n *localNode) holds(d kernel.Desired, removed ...kernel.Binding) {
	n.Helper()
	n.inside(func() error {
		other := NewLocalWriter(n.family)
		defer other.Close()
		_, err := other.Read(n.Context())
		content := localContent(n.family, d)
		content.sets[removedSet] = journalOf(removed)
		if differences := other.spec.Differences(other.state(content), other.table.Held(), ""); len(differences) > 0 {
			return fmt.Errorf("the kernel does not hold what it should: %s", strings.Join(differences, "\n"))
		}
		return err
	})
}

// text is what an administrator reads of the table, check what nft says of it.
func (n *localNode) text(d kernel.Desired) string {
	n.Helper()
	text, err := LocalText(n.family, d, nil)
	if err != nil {
		n.Fatal(err)
	}
	return text
}

func (n *localNode) check(d kernel.Desired) error { return nft.Check(n.Context(), []byte(n.text(d))) }

func (n *localNode) nft(command string) string {
	n.Helper()
	out, err := n.lab.Node().Run(n.Context(), "nft", strings.Fields(command)...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// name is that of the table for nft.
func (n *localNode) name() string {
	if n.family == kernel.IPv4 {
		return "ip " + LocalTable
	}
	return "ip6 " + LocalTable
}

// random returns a plan with about so many bindings.
func (n *localNode) random(r *rand.Rand, count int) kernel.Desired {
	var bindings []kernel.Binding
	for range count {
		b := kernel.Binding{
			Pod:      n.of(fmt.Sprintf("10.128.%d.%d", r.IntN(4), r.IntN(256)), fmt.Sprintf("fd00:10:128::%x:%x", r.IntN(4), r.IntN(256))),
			Protocol: []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP}[r.IntN(3)],
			EgressIP: n.of(fmt.Sprintf("203.0.113.%d", r.IntN(5)), fmt.Sprintf("2001:db8:113::%x", r.IntN(5))),
		}
		if r.IntN(1000) == 0 {
			b.EgressIP = n.of("203.0.112.1", "2001:db8::1")
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

// TestLocal_FollowsThePlan goes through random plans: whatever was there before, the kernel holds the plan, as
// one process writes them in turn and as another finds them; and nft can list it.
func TestLocal_FollowsThePlan(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		r := rand.New(rand.NewPCG(1, 2))
		for step := range 60 {
			p := n.random(r, r.IntN(3)*r.IntN(700))
			var removed []kernel.Binding
			if r.IntN(3) == 0 {
				removed = n.random(r, 3).Bindings
			}
			if r.IntN(10) == 0 {
				n.LocalWriter = NewLocalWriter(n.family) // another process
			}
			if n.write(p, removed...); n.write(p, removed...) {
				t.Fatalf("step %d: what was written was written again", step)
			}
			n.holds(p, removed...)
			if _, differences := n.read(); len(differences) > 0 {
				t.Fatalf("step %d: it differs from what was written: %v", step, differences)
			}
		}
		n.write(n.random(r, 5))
		if listed := n.nft("list table " + n.name()); !strings.Contains(listed, "priority -197") {
			t.Errorf("nft lists\n%s", listed)
		}
		n.write(kernel.Desired{})
		if listed := n.nft("list ruleset"); strings.Contains(listed, LocalTable) {
			t.Errorf("with nothing to hold nft lists\n%s", listed)
		}
	})
}

// TestLocal_NothingToDo: a plan that is written already costs no transaction, and looking at it none.
func TestLocal_NothingToDo(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
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

func TestLocal_Repairs(t *testing.T) {
	for name, test := range map[string]struct{ breaks, says string }{
		"a flushed ruleset":         {"flush ruleset", "lacks the element"},
		"a deleted table":           {"delete table TABLE", "lacks the element"},
		"a flushed map":             {"flush map TABLE sources", "lacks the element"},
		"a deleted element":         {"delete element TABLE sources { POD . tcp }", "set sources of table openshift-egress lacks the element"},
		"an element too much":       {"add element TABLE sources { OTHER . udp : EGRESS }", "has an unexpected element"},
		"another egress IP":         {"add element TABLE pod-sources { OTHER : EGRESS }", "has an unexpected element"},
		"an exclusion too much":     {"add element TABLE exclusions { EGRESS }", "has an unexpected element"},
		"a rule too much":           {"insert rule TABLE postrouting accept", "has other rules than were written"},
		"no rules":                  {"flush chain TABLE postrouting", "has other rules than were written"},
		"no chain":                  {"delete chain TABLE postrouting", "lacks its chain"},
		"a chain too much":          {"add chain TABLE foreign", "has 9 sets, chains and counters instead of 8"},
		"no rules for what is near": {"flush chain TABLE near", "chain near of table openshift-egress is missing or empty"},
		"another policy":            {"add chain TABLE postrouting { policy drop ; }", "another policy"},
		"a table put to sleep":      {"add table TABLE { flags dormant ; }", "has flags that were not written, 'dormant' perhaps: 0x1"},
		"a set too much":            {"add set TABLE foreign { type inet_service ; }", "has 9 sets, chains and counters instead of 8"},
	} {
		t.Run(name, func(t *testing.T) {
			onLocalNode(t, 0, func(n *localNode) {
				pod, egressIP := n.of("10.128.0.5", "fd00:10:128::5"), n.of("203.0.113.1", "2001:db8:113::1")
				p := n.plan(kernel.Binding{Pod: pod, Protocol: kernel.TCP, EgressIP: egressIP})
				n.write(p)
				command := strings.NewReplacer("TABLE", n.name(), "POD", pod.String(), "EGRESS", egressIP.String(),
					"OTHER", n.of("10.128.0.6", "fd00:10:128::6").String()).Replace(test.breaks)
				n.nft(command)
				_, differences := n.read()
				if !strings.Contains(strings.Join(differences, "\n"), test.says) {
					t.Errorf("it says %q, want %q", differences, test.says)
				}
				if !n.write(p) {
					t.Error("nothing was repaired")
				}
				n.holds(p)
				if _, differences := n.read(); len(differences) > 0 {
					t.Errorf("after the repair: %v", differences)
				}
			})
		})
	}
}

// TestLocal_TamperingIsNotHidden: a change that is written on top of what somebody else has done does
// not keep the next look from seeing that; and one that cannot be written is an error.
func TestLocal_TamperingIsNotHidden(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
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
		n.nft("flush map " + n.name() + " sources")
		if err := update(3); err != nil {
			t.Fatal(err)
		}
		if _, differences := n.read(); len(differences) != 2 {
			t.Errorf("after a flush and a change: %q, want the two elements that are lacking", differences)
		}
		n.write(n.plan(bindings(1, 2, 3)...))
		n.holds(n.plan(bindings(1, 2, 3)...))
		n.nft("flush ruleset")
		if err := update(4); err == nil {
			t.Error("a change of a table that is not there was written")
		}
		n.write(n.plan(bindings(1, 2, 3, 4)...))
		n.holds(n.plan(bindings(1, 2, 3, 4)...))
	})
}

// TestLocal_Update goes through random plans by their differences alone.
func TestLocal_Update(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
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
			n.holds(next, journal...)
			if _, differences := n.read(); len(differences) > 0 {
				t.Fatalf("step %d: it differs from what was written: %v", step, differences)
			}
			p = next
		}
	})
}

func TestLocal_AvailableLeavesNothing(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		n.inside(func() error { return LocalAvailable(t.Context()) })
		if listed := n.nft("list ruleset"); strings.Contains(listed, LocalTable) {
			t.Errorf("it leaves\n%s", listed)
		}
	})
}

// TestLocal_Packets sends what the doc's rules are about, and holds what is seen against what Trace says.
func TestLocal_Packets(t *testing.T) {
	const port = 8080
	onLocalNode(t, 2, func(n *localNode) {
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
		third := n.of("203.0.113.3", "2001:db8:113::3")
		apart := func(p kernel.Desired, ip netip.Addr) kernel.Desired { // one that has another pod's egress IP elsewhere
			p.Bindings = append(p.Bindings, kernel.Binding{Pod: pod.Next().Next(), Protocol: kernel.TCP, EgressIP: ip})
			return p
		}
		beside, far := n.of("203.0.112.1", "2001:db8:112::1"), n.of("100.64.0.1", "fd00:113::1")
		both := func(tcp, all netip.Addr) kernel.Desired {
			return n.plan(kernel.Binding{Pod: pod, Protocol: kernel.All, EgressIP: all}, kernel.Binding{Pod: pod, Protocol: kernel.TCP, EgressIP: tcp})
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
			"bound for TCP and for all":    {both(egressIP, third), "tcp", outside, egressIP},
			"of all, and of TCP otherwise": {both(egressIP, third), "udp", outside, third},
			"to that of its protocol":      {both(another, third), "tcp", another, node},
			"to its own one, two networks": {apart(bind(kernel.TCP, another), beside), "tcp", another, node},
			"to its own one, far apart":    {apart(bind(kernel.TCP, another), far), "tcp", another, node},
			"to an exclusion, far apart":   {apart(bind(kernel.TCP, another), far), "tcp", excluded, node},
			"bound, far apart":             {apart(bind(kernel.TCP, egressIP), far), "tcp", outside, egressIP},
		} {
			n.write(test.plan)
			seen, err := l.Pod(1).Ask(t.Context(), test.protocol+suffix, netip.AddrPortFrom(test.to, port), lab.FreshPort())
			if err != nil || seen != test.want {
				t.Errorf("%s: seen as %s (%v), want %s", name, seen, err, test.want)
			}
			want := test.want
			if want != egressIP && want != third {
				want = netip.Addr{}
			}
			_, snat := NewLocalTracer(n.family, test.plan).Trace(Packet{Source: pod, Destination: test.to, Protocol: kernel.Protocol(test.protocol)})
			if snat != want {
				t.Errorf("%s: Trace says %s, want %s", name, snat, want)
			}
		}
	})
}

// TestLocal_Network: the network in which destinations may be an egress IP.
func TestLocal_Network(t *testing.T) {
	for _, test := range []struct {
		family    kernel.Family
		egressIPs string
		want      string
	}{
		{kernel.IPv4, "", "0.0.0.0/0"},
		{kernel.IPv4, "203.0.113.200", "203.0.113.0/24"},
		{kernel.IPv4, "203.0.113.1 203.0.113.255", "203.0.113.0/24"},
		{kernel.IPv4, "203.0.113.1 203.0.112.255", "203.0.112.0/23"},
		{kernel.IPv4, "203.0.113.1 203.0.114.1", "203.0.112.0/22"},
		{kernel.IPv4, "203.0.113.1 10.0.0.1 203.0.113.2", "0.0.0.0/0"},
		{kernel.IPv6, "2001:db8:113::1 2001:db8:113::ffff:1", "2001:db8:113::/64"},
		{kernel.IPv6, "2001:db8:113::1 2001:db8:112::1", "2001:db8:112::/47"},
		{kernel.IPv6, "", "::/0"},
	} {
		var d kernel.Desired
		for i, text := range strings.Fields(test.egressIPs) {
			d.Bindings = append(d.Bindings, kernel.Binding{Pod: netip.AddrFrom4([4]byte{10, 128, 0, byte(i)}), Protocol: kernel.TCP, EgressIP: netip.MustParseAddr(text)})
		}
		if got := localContent(test.family, d).network(); got.String() != test.want {
			t.Errorf("of %s: %s, want %s", test.egressIPs, got, test.want)
		}
	}
}

// TestLocal_HiddenProtocol: a bound pod leaves under its egress IP, too, if it puts an Authentication Header in front of its datagrams.
func TestLocal_HiddenProtocol(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kernel.IPv6, lab.Config{Pods: 1, IPv6: true, Masquerade: true})
			n := &localNode{T: t, lab: c.lab, family: kernel.IPv6, LocalWriter: NewLocalWriter(kernel.IPv6)}
			c.holdsOn(0, c.egressIP)
			n.write(n.plan(c.bind(1, protocol, c.egressIP)))
			right := c.count(c.lab.Outside(), "prerouting", -400, "meta l4proto 51 ip6 saddr "+c.egressIP.String())
			wrong := c.count(c.lab.Outside(), "prerouting", -400, "meta l4proto 51 ip6 saddr != "+c.egressIP.String())
			pod := c.lab.Pod(1)
			err := pod.Do(func() error {
				return pod.SendBehindAH(netip.AddrPortFrom(c.addr(pod), 9000), netip.AddrPortFrom(c.outside(), 8079), "who?")
			})
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); right.packets()+wrong.packets() == 0 && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			if right.packets() != 1 || wrong.packets() > 0 {
				t.Errorf("%d packets have left from the egress IP, and %d from elsewhere", right.packets(), wrong.packets())
			}
		})
	}
}

// TestLocal_TextIsAccepted: what is printed for readers is what is written.
func TestLocal_TextIsAccepted(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 10 {
			p := n.random(r, 50)
			file := filepath.Join(t.TempDir(), "payload")
			if err := os.WriteFile(file, []byte(n.text(p)), 0o600); err != nil {
				t.Fatal(err)
			}
			n.inside(func() error { return n.check(p) })
			n.nft("-f " + file)
			n.holds(p)
			n.LocalWriter = NewLocalWriter(n.family)
			n.write(p)
			// A node may be asked what it would write while it runs.
			n.inside(func() error { return n.check(n.random(r, 50)) })
			n.holds(p)
			chains := func() string {
				return n.nft("list chain "+n.name()+" postrouting") + n.nft("list chain "+n.name()+" near")
			}
			printed := chains()
			n.nft("delete table " + n.name())
			n.nft("-f " + file)
			if diff := cmp.Diff(chains(), printed); diff != "" {
				t.Errorf("the chains as nft makes them of the payload (-), and as they are written (+):\n%s", diff)
			}
			n.nft("delete table " + n.name())
		}
		if text := n.text(kernel.Desired{}); text != "" {
			t.Errorf("nothing to bind gives\n%s", text)
		}
		n.inside(func() error { return n.check(kernel.Desired{}) })
	})
}

// TestLocal_Journal: who comes after a process that died finds what that one removed.
func TestLocal_Journal(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		gone := kernel.Binding{Pod: n.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1")}
		all := kernel.Binding{Pod: gone.Pod, Protocol: kernel.All, EgressIP: n.of("203.0.113.2", "2001:db8:113::2")}
		n.write(n.plan(gone))
		n.write(n.plan(all), gone)
		n.LocalWriter = NewLocalWriter(n.family)
		held, _ := n.read()
		if diff := cmp.Diff(kernel.Sorted([]kernel.Binding{gone, all}), held, compareAddresses); diff != "" {
			t.Errorf("the bindings (-want +got):\n%s", diff)
		}
		n.write(kernel.Desired{}, all)
		held, _ = n.read()
		if diff := cmp.Diff([]kernel.Binding{all}, held, compareAddresses); diff != "" {
			t.Errorf("the bindings (-want +got):\n%s", diff)
		}
		nothing := n.plan()
		n.write(n.plan(all))
		n.write(nothing, all)
		n.inside(func() error {
			differences, err := CompareLocal(t.Context(), n.family, nothing)
			if len(differences) > 0 {
				t.Errorf("with a binding on record it is said that %q", differences)
			}
			return err
		})
		n.write(kernel.Desired{})
		n.holds(kernel.Desired{})
	})
}

// TestLocal_TracerNamesRulesOfTheTable: what is said to decide about a packet is part of a rule, by the element that it names.
func TestLocal_CleanupRemovesTheTables(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		b := kernel.Binding{Pod: n.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1")}
		n.write(n.plan(b))
		n.nft("insert rule " + n.name() + " postrouting accept") // whatever became of it
		n.inside(func() error {
			for range 2 { // the second finds the journal of the first, which died
				withdrawn, err := WithdrawLocal(t.Context())
				if diff := cmp.Diff([]kernel.Binding{b}, withdrawn[n.family], compareAddresses); diff != "" || err != nil {
					t.Errorf("withdrew, %v (-want +got):\n%s", err, diff)
				}
				n.holds(kernel.Desired{}, b)
			}
			return CleanupLocal(t.Context())
		})
		if listed := n.nft("list ruleset"); strings.Contains(listed, LocalTable) {
			t.Errorf("nft lists\n%s", listed)
		}
	})
}

// TestLocal_LargePlan writes as much as a large node has, in one transaction.
func TestLocal_LargePlan(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		var bindings []kernel.Binding
		for i := range 30_000 {
			bindings = append(bindings, kernel.Binding{
				Pod:      n.of(fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255), fmt.Sprintf("fd00:10:128::%x:%x", i>>16, i&0xffff)),
				Protocol: kernel.TCP, EgressIP: n.of(fmt.Sprintf("203.0.113.%d", i%250), fmt.Sprintf("2001:db8:113::%x", i%250)),
			})
		}
		n.write(n.plan(bindings...))
		n.holds(n.plan(bindings...))
		n.write(n.plan(bindings[:15_000]...), bindings[15_000:]...)
		n.holds(n.plan(bindings[:15_000]...), bindings[15_000:]...)
	})
}

// next returns a plan that has some of another's bindings, and others.
func (n *localNode) next(r *rand.Rand, p kernel.Desired) kernel.Desired {
	next := n.random(r, 1+r.IntN(30))
	if r.IntN(3) > 0 {
		next.Networks = p.Networks
	}
	for _, b := range p.Bindings {
		if r.IntN(4) > 0 && !slices.ContainsFunc(next.Bindings, func(o kernel.Binding) bool { return o.Pod == b.Pod && o.Protocol == b.Protocol }) {
			next.Bindings = append(next.Bindings, b)
		}
	}
	return sorted(next)
}

func sorted(p kernel.Desired) kernel.Desired {
	p.Bindings = slices.SortedFunc(slices.Values(p.Bindings), kernel.CompareBindings)
	return p
}
