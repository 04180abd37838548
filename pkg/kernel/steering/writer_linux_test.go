package steering

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// update changes what was written last to another steering.
func (n *node) update(s kernel.Steering) {
	n.c.Helper()
	next := n.desired
	next.Steering = s
	n.updateTo(next)
}

// updateTo goes to what is desired next by what differs from what was written last. What goes leaves first.
func (n *node) updateTo(next kernel.Desired) (changed bool) {
	n.c.Helper()
	added, removed := kernel.Diff(n.desired.Bindings, next.Bindings)
	change := kernel.Change{
		Added: added, Removed: removed,
		Networks: next.Networks, NetworksChanged: !next.Networks.Equal(n.desired.Networks),
		Steering: next.Steering, SteeringChanged: !next.Steering.Equal(n.desired.Steering),
	}
	n.inside(func() (err error) {
		if changed, err = n.Update(n.c.Context(), change, removed); err != nil || len(removed) == 0 {
			return err
		}
		_, err = n.Update(n.c.Context(), kernel.Change{Networks: next.Networks, Steering: next.Steering}, nil)
		return err
	})
	n.desired = next
	return changed
}

// recorded are ways that are none. They hold the Writer against what they are promised.
type recorded struct {
	n       *node
	made    map[int]netip.Addr
	glances int
	// failing is how many removals fail.
	failing int
}

func (r *recorded) ensure(_ context.Context, holders map[int]netip.Addr) (changed bool, err error) {
	for number, node := range holders {
		if was, there := r.made[number]; there && was != node {
			return false, fmt.Errorf("number %d is that of %s, and is given to %s", number, was, node)
		}
		r.made[number] = node
	}
	return false, nil
}

func (r *recorded) remove(_ context.Context, number int) error {
	if r.failing > 0 {
		r.failing--
		return errors.New("the kernel is busy")
	}
	if _, there := r.made[number]; !there {
		return fmt.Errorf("number %d is removed twice", number)
	}
	if listed := r.n.nft("list table %s", r.n.name()); strings.Contains(listed, fmt.Sprintf("number %d (", number)) {
		return fmt.Errorf("number %d is removed while packets are marked with it", number)
	}
	delete(r.made, number)
	return nil
}

func (r *recorded) glance(_ context.Context, holders map[int]netip.Addr) (fingerprint string, differences []string, err error) {
	r.glances++
	if !maps.Equal(holders, r.made) {
		differences = []string{fmt.Sprintf("there are ways to %v, and packets for %v", r.made, holders)}
	}
	return fmt.Sprint(r.made), differences, nil
}

func (r *recorded) known(context.Context, []netip.Addr) (numbers, error) {
	return numbersOf(r.made), nil
}

// onNode runs test on a single node for each IP family.
func onNode(t *testing.T, test func(n *node)) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			n := newCluster(t, family, lab.Config{IPv6: true}).nodes[0]
			n.restart(&recorded{n: n, made: map[int]netip.Addr{}})
			test(n)
		})
	}
}

// random returns what is desired next: bindings of which some were there before, and ways of their egress IPs.
func (n *node) random(r *rand.Rand) kernel.Desired {
	c := n.c
	var bindings []kernel.Binding
	for _, b := range n.desired.Bindings {
		if r.IntN(3) > 0 {
			bindings = append(bindings, b)
		}
	}
	for range r.IntN(20) {
		b := kernel.Binding{
			Pod:      c.of(fmt.Sprintf("10.128.0.%d", r.IntN(30)), fmt.Sprintf("fd00:10:128::%x", r.IntN(30))),
			Protocol: []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.TCP, kernel.UDP, kernel.All}[r.IntN(6)],
			EgressIP: c.of(fmt.Sprintf("203.0.113.%d", r.IntN(8)), fmt.Sprintf("2001:db8:113::%x", r.IntN(8))),
		}
		if !slices.ContainsFunc(bindings, func(o kernel.Binding) bool { return o.Pod == b.Pod && o.Protocol == b.Protocol }) {
			bindings = append(bindings, b)
		}
	}
	if r.IntN(10) == 0 {
		bindings = nil
	}
	d := c.desired(bindings...)
	for range r.IntN(3) {
		addr := c.of(fmt.Sprintf("192.0.2.%d", r.IntN(256)), fmt.Sprintf("2001:db8:0:2::%x", r.IntN(256)))
		d.Exclusions = append(d.Exclusions, netip.PrefixFrom(addr, addr.BitLen()-r.IntN(8)).Masked())
	}
	d.Steering.Ways = map[netip.Addr]kernel.Way{}
	for i := range 6 {
		node := c.of(fmt.Sprintf("192.0.2.%d", 10+i), fmt.Sprintf("2001:db8:0:2::%x", 10+i))
		d.Steering.Nodes = append(d.Steering.Nodes, node)
		egressIP := c.of(fmt.Sprintf("203.0.113.%d", r.IntN(9)), fmt.Sprintf("2001:db8:113::%x", r.IntN(9)))
		d.Steering.Ways[egressIP] = []kernel.Way{{Kind: kernel.ToNode, Node: node}, {Kind: kernel.ToNode, Node: node}, {Kind: kernel.Blackhole}, {Kind: kernel.Prohibit}}[r.IntN(4)]
	}
	return d
}

// TestWriter_UpdateIsWrite goes through random changes: after each the kernel holds what another process would
// write, and nothing differs.
func TestWriter_UpdateIsWrite(t *testing.T) {
	onNode(t, func(n *node) {
		r := rand.New(rand.NewPCG(1, 2))
		n.write(n.random(r))
		for step := range 60 {
			next := n.random(r)
			changed := n.updateTo(next)
			if differences := n.read(); len(differences) > 0 {
				t.Fatalf("step %d: it differs from what was written: %q", step, differences)
			}
			if n.updateTo(next) {
				t.Fatalf("step %d: what was written was written again", step)
			}
			if step%4 > 0 {
				continue
			}
			ways := n.Writer.ways
			n.restart(ways)
			if n.write(next) {
				t.Fatalf("step %d (changed: %v): a write finds something to change", step, changed)
			}
		}
	})
}

// TestWriter_KeepsNumbers: another process goes on with the numbers of the one before.
func TestWriter_KeepsNumbers(t *testing.T) {
	onNode(t, func(n *node) {
		r := rand.New(rand.NewPCG(3, 4))
		for len(n.Writer.ways.(*recorded).made) < 2 {
			n.write(n.random(r))
		}
		before := maps.Clone(n.Writer.ways.(*recorded).made)
		d := n.desired
		n.restart(n.Writer.ways)
		n.write(d)
		if diff := cmp.Diff(before, n.Writer.ways.(*recorded).made, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("the numbers (-before +after):\n%s", diff)
		}
	})
}

// TestWriter_AsNftSeesIt: what nft lists, loaded again, is the same, and nothing to repair.
func TestWriter_AsNftSeesIt(t *testing.T) {
	onNode(t, func(n *node) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 5 {
			n.write(n.random(r))
			listed := n.nft("list ruleset")
			n.nftInput("flush ruleset\n" + listed)
			if diff := cmp.Diff(listed, n.nft("list ruleset")); diff != "" {
				t.Fatalf("loaded again (-before +after):\n%s", diff)
			}
			if differences := n.read(); len(differences) > 0 {
				t.Errorf("loaded again, it differs: %q", differences)
			}
			n.updateTo(n.random(r)) // and goes on with it
		}
	})
}

func TestWriter_Repairs(t *testing.T) {
	for name, test := range map[string]struct{ breaks, says string }{
		"a flushed ruleset":       {"flush ruleset", "lacks the element"},
		"a deleted table":         {"delete table TABLE", "lacks the element"},
		"a flushed set":           {"flush set TABLE bound", "set bound of table openshift-egress-steering lacks the element"},
		"a deleted way":           {"delete element TABLE ways { POD . tcp }", "set ways of table openshift-egress-steering lacks the element"},
		"another way of a pod":    {"delete element TABLE ways { POD . tcp } ; add element TABLE ways { POD . tcp : 1:100 }", "has an unexpected element"},
		"a binding too much":      {"add element TABLE sources { OTHER . tcp : goto SOURCE }", "has an unexpected element"},
		"a node too much":         {"add element TABLE nodes { OTHER }", "has an unexpected element"},
		"a rule too much":         {"insert rule TABLE guard accept", "chain guard of table openshift-egress-steering has other rules"},
		"no rules":                {"flush chain TABLE prerouting", "chain prerouting of table openshift-egress-steering has other rules"},
		"no rule of a way":        {"flush chain TABLE way", "chain way of table openshift-egress-steering is missing or empty"},
		"no rule of an egress IP": {"flush chain TABLE SOURCE", "chain SOURCE of table openshift-egress-steering is missing or empty"},
		"another rule of a way":   {"add rule TABLE way accept", "chain way of table openshift-egress-steering has other rules"},
		"no base chain":           {"delete chain TABLE guard", "lacks its chain guard"},
		"a chain too much":        {"add chain TABLE foreign", "sets, chains and counters"},
		"a chain and rule":        {"add chain TABLE foreign ; add rule TABLE foreign accept", "has an unexpected chain: foreign"},
		"another policy":          {"add chain TABLE guard { policy drop ; }", "another policy"},
		"a table put to sleep":    {"add table TABLE { flags dormant ; }", "'dormant' perhaps: 0x1"},
		"a set too much":          {"add set TABLE foreign { type inet_service ; }", "sets, chains and counters"},
		"a counter too much":      {"add counter TABLE another", "sets, chains and counters"},
		"another chain in a hook": {"delete chain TABLE guard ; add chain TABLE guard { type nat hook postrouting priority 97 ; }", "not where it belongs"},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(n *node) {
				c := n.c
				pod, other := c.of("10.128.0.5", "fd00:10:128::5"), c.of("10.128.0.6", "fd00:10:128::6")
				d := c.desired(kernel.Binding{Pod: pod, Protocol: kernel.TCP, EgressIP: c.egressIP}, kernel.Binding{Pod: pod, Protocol: kernel.UDP, EgressIP: c.another})
				d.Steering.Ways = map[netip.Addr]kernel.Way{c.egressIP: {Kind: kernel.Prohibit}}
				n.write(d)
				written := n.nft("list table %s", n.name())
				replace := strings.NewReplacer("TABLE", n.name(), "POD", pod.String(), "OTHER", other.String(), "EGRESS", c.egressIP.String(),
					"SOURCE", c.source())
				n.nftInput(strings.ReplaceAll(replace.Replace(test.breaks), " ; ", "\n"))
				if n.untouched() {
					t.Error("it seems untouched")
				}
				differences := n.read()
				if says := replace.Replace(test.says); !strings.Contains(strings.Join(differences, "\n"), says) {
					t.Errorf("it says %q, want %q", differences, says)
				}
				if !n.write(d) {
					t.Error("nothing was repaired")
				}
				if diff := cmp.Diff(written, n.nft("list table %s", n.name())); diff != "" {
					t.Errorf("after the repair (-before +after):\n%s", diff)
				}
				if differences := n.read(); len(differences) > 0 {
					t.Errorf("after the repair: %q", differences)
				}
			})
		})
	}
}

// source is the chain that gives the egress IP.
func (c *cluster) source() string { return nft.ChainOf(sourceChains, c.egressIP) }

// TestWriter_UntouchedByOthersTables: that others change theirs is no reason to look.
func TestWriter_UntouchedByOthersTables(t *testing.T) {
	onNode(t, func(n *node) {
		if n.untouched() {
			t.Error("it seems untouched before anything is written")
		}
		n.write(n.c.large(1000, 10))
		n.nft("add table ip others")
		if !n.untouched() {
			t.Error("it seems touched")
		}
		n.inside(func() error {
			_, err := n.Writer.ways.ensure(t.Context(), map[int]netip.Addr{60: n.c.egressIP})
			return err
		})
		if n.untouched() {
			t.Error("it seems untouched, with a way that was not written")
		}
	})
}

// TestWriter_GlancesOnce: what carries packets is read once for a fingerprint and the comparison that follows, and again for the
// next one, or after a change.
func TestWriter_GlancesOnce(t *testing.T) {
	onNode(t, func(n *node) {
		ways := n.Writer.ways.(*recorded)
		n.write(n.c.large(10, 10))
		glances := 0
		for _, step := range []struct {
			name string
			do   func()
			more int
		}{
			{"a fingerprint", func() { n.print() }, 1},
			{"a comparison behind it", func() { n.untouched() }, 0},
			{"another comparison", func() { n.untouched() }, 1},
			{"another fingerprint", func() { n.print() }, 1},
			{"a change, and a comparison", func() { n.updateTo(desired(n.desired).moved(n.c.largeEgressIP(7))); n.untouched() }, 1},
		} {
			step.do()
			if glances += step.more; ways.glances != glances {
				t.Fatalf("%s: it was read %d times, want %d", step.name, ways.glances, glances)
			}
		}
		made := maps.Clone(ways.made)
		n.print()
		ways.made[60] = n.c.egressIP
		if before := n.print(); n.untouched() {
			t.Errorf("it seems untouched, with another fingerprint %q", before)
		}
		ways.made = made
	})
}

// large binds this many pods to this many egress IPs, a quarter of which are on each of three other nodes.
func (c *cluster) large(pods, egressIPs int) kernel.Desired {
	var bindings []kernel.Binding
	for i := range pods {
		bindings = append(bindings, kernel.Binding{
			Pod:      c.of(fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255), fmt.Sprintf("fd00:10:128::%x:%x", i>>16, i&0xffff)),
			Protocol: kernel.TCP, EgressIP: c.largeEgressIP(i % egressIPs),
		})
	}
	d := c.desired(bindings...)
	d.Steering.Ways = map[netip.Addr]kernel.Way{}
	for i := range 3 {
		d.Steering.Nodes = append(d.Steering.Nodes, c.of(fmt.Sprintf("192.0.2.%d", 10+i), fmt.Sprintf("2001:db8:0:2::%x", 10+i)))
	}
	for i := range egressIPs {
		if i%4 > 0 {
			d.Steering.Ways[c.largeEgressIP(i)] = kernel.Way{Kind: kernel.ToNode, Node: d.Steering.Nodes[i%4-1]}
		}
	}
	return d
}

func (c *cluster) largeEgressIP(i int) netip.Addr {
	return c.of(fmt.Sprintf("203.0.%d.%d", 100+i>>8, i&255), fmt.Sprintf("2001:db8:113::%x", i))
}

// moved gives an egress IP to the next node.
func (d desired) moved(egressIP netip.Addr) kernel.Desired {
	next := kernel.Desired(d)
	next.Steering.Ways = maps.Clone(d.Steering.Ways)
	at := slices.Index(d.Steering.Nodes, d.Steering.Ways[egressIP].Node)
	next.Steering.Ways[egressIP] = kernel.Way{Kind: kernel.ToNode, Node: d.Steering.Nodes[(at+1)%len(d.Steering.Nodes)]}
	return next
}

type desired kernel.Desired

// TestWriter_LargePlan writes as much as a large node has, in one transaction.
func TestWriter_LargePlan(t *testing.T) {
	onNode(t, func(n *node) {
		d := n.c.large(30_000, 1000)
		began := time.Now()
		n.write(d)
		t.Logf("write: %v", time.Since(began))
		n.restart(n.Writer.ways)
		began = time.Now()
		if n.write(d) {
			t.Error("it was written again")
		}
		t.Logf("look: %v", time.Since(began))
		began = time.Now()
		n.updateTo(desired(d).moved(n.c.largeEgressIP(7)))
		t.Logf("move: %v", time.Since(began))
		d = n.c.large(15_000, 700)
		began = time.Now()
		n.write(d)
		t.Logf("half: %v", time.Since(began))
		if differences := n.read(); len(differences) > 0 {
			t.Errorf("it differs: %d differences, among them %s", len(differences), differences[0])
		}
	})
}

// heldBy is desired of so many pods, each with an egress IP that a node of its own holds.
func (c *cluster) heldBy(nodes int) kernel.Desired {
	d := c.desired()
	d.Steering.Ways = map[netip.Addr]kernel.Way{}
	for i := range nodes {
		egressIP := c.of(fmt.Sprintf("203.0.113.%d", i), fmt.Sprintf("2001:db8:113::%x", i))
		node := c.of(fmt.Sprintf("192.0.2.%d", 10+i), fmt.Sprintf("2001:db8:0:2::%x", 10+i))
		d.Bindings = append(d.Bindings, kernel.Binding{Pod: c.of(fmt.Sprintf("10.128.0.%d", i), fmt.Sprintf("fd00:10:128::%x", i)), Protocol: kernel.TCP, EgressIP: egressIP})
		d.Steering.Nodes = append(d.Steering.Nodes, node)
		d.Steering.Ways[egressIP] = kernel.Way{Kind: kernel.ToNode, Node: node}
	}
	return d
}

// TestWriter_TooManyHolders: the packets for those that have no number are rejected, and an error says so.
func TestWriter_TooManyHolders(t *testing.T) {
	onNode(t, func(n *node) {
		c := n.c
		d := c.heldBy(61)
		n.inside(func() error {
			_, err := n.Write(t.Context(), d, nil)
			if want := c.of("192.0.2.69", "2001:db8:0:2::45").String(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want it to name %s", err, want)
			}
			return nil
		})
		listed := n.nft("list map %s ways", n.name())
		if steered, rejected := len(regexp.MustCompile(": ([12]?[0-9a-f]|3[0-9ab]):").FindAllString(listed, -1)), strings.Count(listed, "3f:3f00"); steered != 59 || rejected != 2 {
			t.Errorf("pods of %d egress IPs are steered and of %d rejected, want 59 and 2:\n%s", steered, rejected, listed)
		}
		// The numbers of those that hold none any more are free after a write.
		d.Bindings = d.Bindings[2:]
		n.inside(func() error {
			_, _ = n.Write(t.Context(), d, nil)
			_, err := n.Write(t.Context(), d, nil)
			return err
		})
	})
}

// TestWriter_RemovesInTheEnd: a way that could not be removed makes nobody forget the others.
func TestWriter_RemovesInTheEnd(t *testing.T) {
	onNode(t, func(n *node) {
		c := n.c
		d := c.heldBy(4)
		n.write(d)
		ways := n.Writer.ways.(*recorded)
		ways.failing = 2
		d.Bindings = d.Bindings[:1]
		n.inside(func() error {
			if _, err := n.Write(t.Context(), d, nil); err == nil {
				t.Error("two ways could not be removed, and that is no error")
			}
			return nil
		})
		n.write(d)
		if len(ways.made) != 1 || !n.untouched() {
			t.Errorf("there are ways to %v, want one", ways.made)
		}
	})
}

// TestWriter_CountersGoOn: a table that is written anew has counted as many packets as the one before.
func TestWriter_CountersGoOn(t *testing.T) {
	onNode(t, func(n *node) {
		d := n.c.desired()
		n.write(d)
		conn, err := n.c.lab.Outside().DialContext(t.Context(), n.c.network("udp"), netip.AddrPortFrom(n.ip, tunnelPort).String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		before := n.drops()
		if _, err := conn.Write([]byte("a packet for the tunnel")); err != nil {
			t.Fatal(err)
		}
		n.dropped(before, foreignCounter)
		counted := n.drops()
		n.nft("add chain %s foreign", n.name())
		n.restart(n.Writer.ways)
		if !n.write(d) {
			t.Fatal("nothing was repaired")
		}
		if diff := cmp.Diff(counted, n.drops()); diff != "" {
			t.Errorf("the counters (-before +after):\n%s", diff)
		}
	})
}

// TestWriter_TamperingIsNotHidden: a change that is written on top of what somebody else has done does not keep the
// next look from seeing that; and one that cannot be written is an error, which a write mends.
func TestWriter_TamperingIsNotHidden(t *testing.T) {
	onNode(t, func(n *node) {
		c := n.c
		bound := func(pods ...int) kernel.Desired {
			var bindings []kernel.Binding
			for _, pod := range pods {
				bindings = append(bindings, kernel.Binding{Pod: c.of(fmt.Sprintf("10.128.0.%d", pod), fmt.Sprintf("fd00:10:128::%x", pod)), Protocol: kernel.TCP, EgressIP: c.egressIP})
			}
			return c.desired(bindings...)
		}
		n.write(bound(1, 2))
		n.nft("flush set %s bound", n.name())
		n.updateTo(bound(1, 2, 3))
		if differences := n.read(); len(differences) != 2 {
			t.Errorf("after a flush and a change: %q, want the two elements that are lacking", differences)
		}
		n.write(bound(1, 2, 3))
		n.nft("flush ruleset")
		n.inside(func() error {
			if _, err := n.Update(t.Context(), kernel.Change{Added: bound(4).Bindings}, nil); err == nil {
				t.Error("a change of a table that is not there was written")
			}
			if _, err := n.Update(t.Context(), kernel.Change{Added: bound(5).Bindings}, nil); err == nil {
				t.Error("a change was written after an error")
			}
			return nil
		})
		n.inside(func() error {
			_, err := n.Write(t.Context(), bound(1, 2, 3, 4), nil)
			return err
		})
		if differences := n.read(); len(differences) > 0 {
			t.Errorf("after the repair: %q", differences)
		}
	})
}

// TestWriter_TunnelOfTheOtherFamily: what lets packets of the tunnel in is in the table of their family. The other one keeps all
// from the port.
func TestWriter_TunnelOfTheOtherFamily(t *testing.T) {
	onNode(t, func(n *node) {
		d, dport := n.c.desired(), fmt.Sprintf("udp dport %d", tunnelPort)
		n.write(d)
		if listed := n.nft("list table %s", n.name()); !strings.Contains(listed, "chain tunnel-input") || !strings.Contains(listed, dport) {
			t.Errorf("nothing is about packets of the tunnel:\n%s", listed)
		}
		n.ip = netip.MustParseAddr("2001:db8:0:2::2")
		if n.c.family == kernel.IPv6 {
			n.ip = netip.MustParseAddr("192.0.2.2")
		}
		n.restart(n.Writer.ways)
		n.write(d)
		if listed := n.nft("list table %s", n.name()); strings.Contains(listed, "chain tunnel") || !strings.Contains(listed, dport+` counter name "foreign" drop`) {
			t.Errorf("something lets packets of the tunnel in, or nothing keeps others out:\n%s", listed)
		}
	})
}

func TestAvailable_LeavesNothing(t *testing.T) {
	onNode(t, func(n *node) {
		n.inside(func() error { return Available(t.Context(), n.config()) })
		if listed := n.nft("list ruleset"); strings.Contains(listed, Table) {
			t.Errorf("it leaves\n%s", listed)
		}
	})
}

// TestAvailable_WhilePodsBegin: interfaces that come and go meanwhile are no reason to steer nothing.
func TestAvailable_WhilePodsBegin(t *testing.T) {
	onNode(t, func(n *node) {
		asking, end := context.WithCancel(t.Context())
		defer end()
		begin := func() error {
			for asking.Err() == nil {
				veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "begins-0"}, PeerName: "begins-1"}
				if err := errors.Join(netlink.LinkAdd(veth), netlink.LinkDel(veth)); err != nil {
					return err
				}
			}
			return nil
		}
		ended := make(chan error, 1)
		go func() { ended <- n.host.Do(begin) }()
		n.inside(func() error {
			for range 100 {
				if err := pathAvailable(t.Context(), n.config()); err != nil {
					return err
				}
			}
			return nil
		})
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestCleanup_RemovesTheTables(t *testing.T) {
	onNode(t, func(n *node) {
		n.write(n.c.desired(kernel.Binding{Pod: n.c.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.c.egressIP}))
		n.nft("insert rule %s guard accept", n.name()) // whatever became of it
		n.inside(func() error { return Cleanup(t.Context()) })
		n.inside(func() error { return Cleanup(t.Context()) })
		if listed := n.nft("list ruleset"); strings.Contains(listed, Table) {
			t.Errorf("nft lists\n%s", listed)
		}
	})
}

// TestStanding_IsWhatWasWritten: a process that cleans up learns whose connections to end, and what stays inside.
func TestStanding_IsWhatWasWritten(t *testing.T) {
	onNode(t, func(n *node) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 10 {
			d := n.random(r)
			n.write(d)
			var got Standing
			n.inside(func() (err error) {
				got, err = Stands(t.Context(), n.c.family)
				return err
			})
			if !slices.Equal(got.Bindings, d.Bindings) || !slices.Equal(got.Given, d.Bindings) {
				t.Errorf("bindings %v, and %v give egress IPs; want %v", got.Bindings, got.Given, d.Bindings)
			}
			inside := kernel.NewCIDRSet(got.Exclusions)
			for _, prefix := range slices.Concat(d.ClusterCIDRs, d.Exclusions) {
				if _, found := inside.Find(prefix.Addr()); !found {
					t.Errorf("%s is not among the exclusions %v", prefix, got.Exclusions)
				}
			}
		}
		n.inside(func() error {
			if err := Cleanup(t.Context()); err != nil {
				return err
			}
			got, err := Stands(t.Context(), n.c.family)
			if len(got.Bindings)+len(got.Exclusions) > 0 {
				t.Errorf("without a table: %v", got)
			}
			return err
		})
	})
}

// TestStanding_Ways: the next process learns to which nodes packets are sent.
func TestStanding_Ways(t *testing.T) {
	for _, transport := range []Transport{VXLAN, Direct} {
		onCluster(t, func(c *cluster) {
			c.transport = transport
			n, toSecond := c.nodes[0], c.toNode(1)
			n.anew()
			one, other := c.bind(1, kernel.TCP, c.egressIP), c.bind(2, kernel.All, c.egressIP)
			d := c.desired(one, other, c.bind(1, kernel.All, c.another))
			d.Steering = n.steering(map[netip.Addr]kernel.Way{c.egressIP: toSecond, c.another: {Kind: kernel.Prohibit}})
			n.write(d)
			want := map[kernel.Binding]netip.Addr{one: toSecond.Node, other: toSecond.Node}
			n.inside(func() error {
				stands, err := Stands(t.Context(), c.family)
				if written := n.Standing().Ways; !maps.Equal(stands.Ways, want) || !maps.Equal(written, want) {
					c.Errorf("%s: packets are sent to %v, and were written to be to %v, not %v", transport, stands.Ways, written, want)
				}
				return err
			})
		})
	}
}

// BenchmarkWriter_Move is about a change of the way of one egress IP of many.
func BenchmarkWriter_Move(b *testing.B) {
	for _, egressIPs := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d egress IPs", egressIPs), func(b *testing.B) {
			n := newCluster(b, kernel.IPv4, lab.Config{}).nodes[0]
			n.restart(&recorded{n: n, made: map[int]netip.Addr{}})
			d := n.c.large(10*egressIPs, egressIPs)
			n.write(d)
			for b.Loop() {
				d = desired(d).moved(n.c.largeEgressIP(7))
				n.updateTo(d)
			}
		})
	}
}

// BenchmarkWriter_Untouched is about a glance after somebody else has changed a table of theirs.
func BenchmarkWriter_Untouched(b *testing.B) {
	for _, bindings := range []int{250, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d bindings", bindings), func(b *testing.B) {
			n := newCluster(b, kernel.IPv4, lab.Config{}).nodes[0]
			n.restart(&recorded{n: n, made: map[int]netip.Addr{}})
			n.write(n.c.large(bindings, bindings/100+1))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				n.nft("add table ip others")
				n.nft("delete table ip others")
				b.StartTimer()
				if !n.untouched() {
					b.Error("it seems touched")
				}
			}
		})
	}
}
