package conntrack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// node is a node with entries in its conntrack table.
type node struct {
	*testing.T
	host    *lab.Host
	family  kernel.Family
	network network
	names   map[uint32]string // of the entries, by mark
	table   *Table
}

// onNode runs test on a node of its own for each IP family.
func onNode(t *testing.T, test func(n *node)) {
	for family, network := range networks {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true})
			n := &node{T: t, host: l.Node(), family: family, network: network, names: map[uint32]string{}, table: NewTable(family)}
			t.Cleanup(n.table.Close)
			test(n)
		})
	}
}

// holds creates entries.
func (n *node) holds(entries map[string]entry) {
	n.Helper()
	c := newCreator(n, n.host)
	mark := uint32(len(n.names))
	for name, e := range entries {
		mark++
		e.mark, n.names[mark] = mark, name
		// No two may be alike in one direction.
		e.sourcePort = uint16(10000 + mark)
		if e.Protocol == icmp && n.family == kernel.IPv6 {
			e.Protocol = icmpv6
		}
		if err := c.create(e); err != nil {
			n.Fatalf("%s: %v", name, err)
		}
	}
}

var markColumn = regexp.MustCompile(`(?m)\bmark=(\d+)`)

// left returns the names of the entries that are still there, sorted, as the tool
// conntrack sees them.
func (n *node) left() (names []string) {
	n.Helper()
	// Standard error, where it prints a sum, would break a line of the output in two.
	output, err := n.host.Command(n.Context(), "conntrack", "-L", "-f", strings.ToLower(string(n.family))).Output()
	if err != nil {
		n.Fatal(err)
	}
	for _, match := range markColumn.FindAllStringSubmatch(string(output), -1) {
		mark, err := strconv.ParseUint(match[1], 10, 32)
		if err != nil {
			n.Fatal(err)
		}
		if name := n.names[uint32(mark)]; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (n *node) delete(ctx context.Context, after kernel.Desired, scope Scope) (deleted int, err error) {
	n.Helper()
	doErr := n.host.Do(func() error {
		var done Deleted
		done, err = n.table.Delete(ctx, after, scope)
		deleted = done.Ended
		return nil
	})
	if doErr != nil {
		n.Fatal(doErr)
	}
	return deleted, err
}

// deletes fails the test unless exactly these entries are deleted, and none by a second
// pass.
func (n *node) deletes(after kernel.Desired, scope Scope, want ...string) {
	n.Helper()
	before := n.left()
	deleted, err := n.delete(n.Context(), after, scope)
	if err != nil {
		n.Fatal(err)
	}
	slices.Sort(want)
	left := n.left()
	gone := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(left, name) })
	if diff := cmp.Diff(want, gone, cmpopts.EquateEmpty()); diff != "" {
		n.Errorf("deleted (-want +got):\n%s", diff)
	}
	if deleted != len(want) {
		n.Errorf("it says that it deleted %d entries; want %d", deleted, len(want))
	}
	if again, err := n.delete(n.Context(), after, scope); again != 0 || err != nil {
		n.Errorf("the second pass deleted %d entries, error %v", again, err)
	}
}

// entries are some of every kind; those whose names begin with "wrong" are seen as a wrong
// identity under n.rebound().
func (n *node) entries() map[string]entry {
	w := n.network
	port := func(ip string, port uint16) string { return netip.AddrPortFrom(addr(ip), port).String() }
	plain := func(f Flow) entry { return entry{Flow: f} }
	asked := func(ip string, number uint16, f Flow) entry {
		return entry{Flow: f, dialled: netip.AddrPortFrom(addr(ip), number)}
	}
	// The node has these itself, see package lab.
	gateway := map[kernel.Family]string{kernel.IPv4: "127.0.0.2", kernel.IPv6: "::1"}[n.family]
	return map[string]entry{
		"wrong: TCP as the pod":             plain(flow(tcp, w.pod, port(w.outside, 443), w.pod)),
		"wrong: TCP as the node":            plain(flow(tcp, w.pod, port(w.outside, 443), w.node)),
		"wrong: TCP as another":             plain(flow(tcp, w.pod, port(w.outside, 443), w.otherEgressIP)),
		"wrong: TCP, DNATed, as the node":   asked(w.otherEgressIP, 80, flow(tcp, w.pod, port(w.outside, 8080), w.node)),
		"wrong: UDP as the node":            plain(flow(udp, w.other, port(w.outside, 53), w.node)),
		"wrong: ICMP as the node":           plain(flow(icmp, w.other, w.outside, w.node)),
		"wrong: ESP as the node":            plain(flow(esp, w.other, w.outside, w.node)),
		"wrong: SCTP as the node":           plain(flow(sctp, w.other, port(w.outside, 99), w.node)),
		"right: TCP":                        plain(flow(tcp, w.pod, port(w.outside, 443), w.egressIP)),
		"right: TCP, DNATed":                asked(w.otherEgressIP, 80, flow(tcp, w.pod, port(w.outside, 8080), w.egressIP)),
		"right: ICMP":                       plain(flow(icmp, w.other, w.outside, w.otherEgressIP)),
		"right: UDP":                        plain(flow(udp, w.other, port(w.outside, 53), w.otherEgressIP)),
		"not bound: UDP":                    plain(flow(udp, w.pod, port(w.outside, 53), w.node)),
		"not bound: ICMP":                   plain(flow(icmp, w.pod, w.outside, w.node)),
		"not bound: another pod":            plain(flow(tcp, w.unbound, port(w.outside, 443), w.node)),
		"inside: to a pod":                  plain(flow(tcp, w.pod, port(w.unbound, 80), w.pod)),
		"inside: to a pod, DNATed":          asked(w.otherEgressIP, 80, flow(tcp, w.pod, port(w.unbound, 8080), w.node)),
		"inside: to an exclusion":           plain(flow(tcp, w.pod, port(w.excluded, 80), w.pod)),
		"inside: to another node":           plain(flow(tcp, w.pod, port(w.secondNode, 6443), w.node)),
		"inside: to its own egress IP":      plain(flow(tcp, w.pod, port(w.egressIP, 80), w.pod)),
		"local: TCP":                        plain(flow(tcp, w.pod, port(w.node, 10250), w.pod)),
		"local: UDP":                        plain(flow(udp, w.other, port(w.node, 53), w.other)),
		"local: ICMP":                       plain(flow(icmp, w.other, w.node, w.other)),
		"local: DNATed to loopback":         asked(w.otherEgressIP, 53, flow(udp, w.other, port(gateway, 53), w.other)),
		"inbound: TCP":                      plain(flow(tcp, w.outside, port(w.pod, 80), w.outside)),
		"inbound: DNATed, masqueraded":      asked(w.egressIP, 80, flow(tcp, w.outside, port(w.pod, 8080), w.node)),
		"inbound: ICMP":                     plain(flow(icmp, w.outside, w.other, w.outside)),
		"zone 1: TCP as the node":           {Flow: inZone(1, flow(tcp, w.pod, port(w.outside, 443), w.node))},
		"zone 1: TCP as the egress IP":      {Flow: inZone(1, flow(tcp, w.pod, port(w.outside, 443), w.egressIP))},
		"zone 1, as it asks: as the node":   {Flow: inZone(1, flow(tcp, w.pod, port(w.outside, 443), w.node)), halfZone: true},
		"the node's own: as the egress IP":  plain(flow(tcp, w.egressIP, port(w.outside, 443), w.egressIP)),
		"the node's own: as itself, to DNS": plain(flow(udp, w.node, port(w.outside, 53), w.node)),
	}
}

// bound binds pod for TCP to the egress IP and other for everything to the other one.
func (n *node) bound() kernel.Desired {
	w := n.network
	return w.plan(binding(w.pod, kernel.TCP, w.egressIP), binding(w.other, kernel.All, w.otherEgressIP))
}

func (n *node) namesWith(prefix string) (names []string) {
	for name := range n.entries() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

func TestDelete_WrongIdentitiesOnly(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.entries())
		if got := len(n.left()); got != len(n.entries()) {
			n.Fatalf("%d of %d entries are there", got, len(n.entries()))
		}
		w := n.network
		n.deletes(n.bound(), Scope{})
		n.deletes(n.bound(), Scope{Pods: pods(w.unbound)})
		n.deletes(n.bound(), Scope{All: true}, n.namesWith("wrong")...)
		// The identities are taken away one by one.
		bindings := n.bound().Bindings
		n.deletes(w.plan(bindings[1]), Scope{Removed: bindings[:1]}, n.namesWith("right: TCP")...)
		n.deletes(w.plan(), Scope{Removed: bindings[1:]}, "right: ICMP", "right: UDP")
	})
}

// TestDelete_OddDestinations: the kernel tracks flows to port 0, and to IPv4-mapped addresses of IPv6. None of them keeps others from being
// ended.
func TestDelete_OddDestinations(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		at := func(ip string, port uint16) string { return netip.AddrPortFrom(addr(ip), port).String() }
		entries := map[string]entry{
			"TCP to port 0 as the pod":  {Flow: flow(tcp, w.pod, at(w.outside, 0), w.pod)},
			"TCP to port 0 as the node": {Flow: flow(tcp, w.pod, at(w.outside, 0), w.node)},
			"UDP to port 0 as the pod":  {Flow: flow(udp, w.other, at(w.outside, 0), w.other)},
			"TCP":                       {Flow: flow(tcp, w.pod, at(w.outside, 443), w.pod)},
		}
		if n.family == kernel.IPv6 {
			entries["TCP to an IPv4-mapped address"] = entry{Flow: flow(tcp, w.pod, at("::ffff:198.51.100.7", 443), w.pod)}
		}
		n.holds(entries)
		n.deletes(n.bound(), Scope{All: true}, slices.Collect(maps.Keys(entries))...)
	})
}

// TestTable_OpensItsSocketsOnce, and again after an error.
func TestTable_OpensItsSocketsOnce(t *testing.T) {
	onNode(t, func(n *node) {
		n.deleteOne()
		first := *n.table.handle
		n.deleteOne()
		if now := *n.table.handle; now.table != first.table || now.deletions != first.deletions || now.barrier != first.barrier {
			n.Errorf("the second deletion used %+v, want the sockets of the first: %+v", now, first)
		}
		first.deletions.close()
		first.deletions.fd = -1
		n.holds(n.numbered(1))
		if _, err := n.delete(n.Context(), n.bound(), Scope{All: true}); !errors.Is(err, unix.EBADF) {
			n.Errorf("a socket that is closed: %v, want EBADF", err)
		}
		n.deletes(n.bound(), Scope{All: true}, n.left()...)
	})
}

// TestDelete_InScopeOnly: of two changed pods only the one in scope is judged, and a rebinding
// to the same address touches nothing.
func TestDelete_InScopeOnly(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.entries())
		w := n.network
		var wrong []string
		for _, name := range n.namesWith("wrong") {
			if n.entries()[name].Source == addr(w.other) {
				wrong = append(wrong, name)
			}
		}
		n.deletes(n.bound(), Scope{Pods: pods(w.other), Removed: n.bound().Bindings[:1]}, wrong...)
	})
}

func TestDelete_UntilTheContextEnds(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.entries())
		ended, end := context.WithCancel(n.Context())
		end()
		if deleted, err := n.delete(ended, n.bound(), Scope{All: true}); deleted != 0 || !errors.Is(err, context.Canceled) {
			n.Errorf("context ended before: deleted %d, error %v", deleted, err)
		}
		// With nothing to judge the kernel is not asked, so nothing can end early.
		if deleted, err := n.delete(ended, n.bound(), Scope{}); deleted != 0 || err != nil {
			n.Errorf("nothing to judge: deleted %d, error %v", deleted, err)
		}
		ctx, end := context.WithCancel(n.Context())
		defer end()
		log := textlogger.NewConfig(textlogger.Verbosity(4), textlogger.Output(writer(end)))
		deleted, err := n.delete(klog.NewContext(ctx, textlogger.NewLogger(log)), n.bound(), Scope{All: true})
		if deleted != 1 || !errors.Is(err, context.Canceled) {
			n.Errorf("context ended with the first deletion: deleted %d, error %v", deleted, err)
		}
		if got, want := len(n.left()), len(n.entries())-1; got != want {
			n.Errorf("%d entries are left; want %d", got, want)
		}
	})
}

// writer calls a function on each write.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func TestOpen_RefusesUnknownFamilies(t *testing.T) {
	n := networks[kernel.IPv4]
	p := n.plan(binding(n.pod, kernel.TCP, n.egressIP))
	if _, err := Delete(t.Context(), "IPv5", p, Scope{All: true}); err == nil || !strings.Contains(err.Error(), "IPv5") {
		t.Errorf("Delete: %v", err)
	}
	if _, err := NewTable("IPv5").Count(t.Context(), p); err == nil || !strings.Contains(err.Error(), "IPv5") {
		t.Errorf("Count: %v", err)
	}
}

func TestLocalAddresses_AreWhatTheNodeTakesForItself(t *testing.T) {
	onNode(t, func(n *node) {
		mine := map[kernel.Family][]netip.Addr{
			kernel.IPv4: {addr("192.0.2.2"), addr("10.128.0.1"), addr("127.0.0.1"), addr("127.9.9.9"), addr("192.0.2.255"), addr(n.network.egressIP)},
			kernel.IPv6: {addr("2001:db8:0:2::2"), addr("fd00:10:128::1"), addr("::1"), addr(n.network.egressIP)},
		}
		if _, err := n.host.Run(n.Context(), "ip", "address", "add", n.network.egressIP, "dev", "eth0"); err != nil {
			n.Fatal(err)
		}
		local := n.localAddressesWith(addr(n.network.egressIP))
		for _, ip := range mine[n.family] {
			if cidr, found := local.Find(ip); !found || cidr.Addr().Is4() != (n.family == kernel.IPv4) {
				n.Errorf("%s is not local: %v, %v", ip, cidr, found)
			}
		}
		for _, ip := range []string{n.network.outside, n.network.secondNode, n.network.pod, n.network.otherEgressIP} {
			if cidr, found := local.Find(addr(ip)); found {
				n.Errorf("%s is local, by %s", ip, cidr)
			}
		}
	})
}

// localAddressesWith waits for a new address to be among them: IPv6 adds its route a
// moment later.
func (n *node) localAddressesWith(ip netip.Addr) kernel.CIDRSet {
	n.Helper()
	deadline := time.After(lab.Stretch(10 * time.Second))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var local kernel.CIDRSet
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			local, err = k.localAddresses()
			return err
		})
		if err != nil {
			n.Fatal(err)
		}
		if _, found := local.Find(ip); found {
			return local
		}
		select {
		case <-deadline:
			n.Fatalf("%s does not become local", ip)
		case <-tick.C:
		}
	}
}

func TestCount_TellsTheBusiestDestination(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		n.holds(n.entries())
		more := map[string]entry{}
		for i := range 7 {
			more[fmt.Sprint("busy: ", i)] = entry{Flow: flow(udp, w.unbound, netip.AddrPortFrom(addr(w.outside), 123).String(), w.otherEgressIP)}
		}
		n.holds(more)
		written := w.plan(binding(w.pod, kernel.TCP, w.egressIP), binding(w.pod, kernel.UDP, w.otherEgressIP), binding(w.other, kernel.TCP, w.secondNode))
		want := map[netip.Addr]Usage{
			addr(w.egressIP):      {Flows: 2, Busiest: netip.AddrPortFrom(addr(w.outside), 443), Protocol: tcp, Ports: 1, PortSpace: 64512},
			addr(w.otherEgressIP): {Flows: 3 + len(more), Busiest: netip.AddrPortFrom(addr(w.outside), 123), Protocol: udp, Ports: len(more), PortSpace: 64512},
			addr(w.secondNode):    {PortSpace: 64512},
		}
		var got map[netip.Addr]Usage
		err := n.host.Do(func() (err error) {
			got, err = n.table.Count(n.Context(), written)
			return err
		})
		if err != nil {
			n.Fatal(err)
		}
		if diff := cmp.Diff(want, got, compareNetip); diff != "" {
			n.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestLook_TellsNewFlows(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		written := w.plan(binding(w.pod, kernel.TCP, w.egressIP), binding(w.pod, kernel.UDP, w.otherEgressIP))
		more := map[string]entry{}
		for i := range 7 {
			more[fmt.Sprint("new: ", i)] = entry{Flow: flow(udp, w.unbound, netip.AddrPortFrom(addr(w.outside), 123).String(), w.otherEgressIP)}
		}
		var seen Seen
		for i, step := range []struct {
			comes map[string]entry
			want  int
		}{{n.entries(), 0}, {more, len(more)}, {nil, 0}} {
			n.holds(step.comes)
			var got map[netip.Addr]Usage
			err := n.host.Do(func() (err error) {
				got, seen, err = n.table.CountNew(n.Context(), written, seen)
				return err
			})
			if err != nil {
				n.Fatal(err)
			}
			if other, first := got[addr(w.otherEgressIP)], got[addr(w.egressIP)]; other.New != step.want || first.New != 0 || first.Flows == 0 {
				n.Errorf("look %d: %+v and %+v, want %d new flows and none", i, other, first, step.want)
			}
		}
	})
}

func TestCount_NoBindingsNoLook(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if got, err := NewTable(kernel.IPv4).Count(ended, kernel.Desired{}); len(got) != 0 || err != nil {
		t.Errorf("no bindings: got %v, %v; want no dump", got, err)
	}
}

// TestDelete_LivingFlows has real connections outlive a change of the rules, as long as they are
// right.
func TestDelete_LivingFlows(t *testing.T) {
	for family, network := range networks {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true, Pods: 1, Masquerade: true})
			testLivingFlows(t, l, family, network)
		})
	}
}

func testLivingFlows(t *testing.T, l *lab.Lab, family kernel.Family, network network) {
	suffix, iptables, cluster := "4", "iptables", lab.ClusterV4
	address := func(h *lab.Host) netip.Addr { return h.V4 }
	if family == kernel.IPv6 {
		suffix, iptables, cluster = "6", "ip6tables", lab.ClusterV6
		address = func(h *lab.Host) netip.Addr { return h.V6 }
	}
	pod, node, outside, egressIP := l.Pod(1), l.Node(), l.Outside(), addr(network.egressIP)
	for _, h := range []*lab.Host{pod, node, outside} {
		for _, protocol := range []string{"tcp", "udp"} {
			if _, err := h.ServeWhoami(protocol+suffix, 8080); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(h *lab.Host) netip.AddrPort { return netip.AddrPortFrom(address(h), 8080) }
	dial := func(from, to *lab.Host) *lab.Flow {
		t.Helper()
		f, err := from.Dial(t.Context(), "tcp"+suffix, at(to), 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	askUDP := func(to *lab.Host, want netip.Addr) {
		t.Helper()
		if got, err := pod.Ask(t.Context(), "udp"+suffix, at(to), 5000); got != want {
			t.Errorf("UDP to %s: seen as %v, %v; want %s", to.Name, got, err, want)
		}
	}
	old, toNode, inbound := dial(pod, outside), dial(pod, node), dial(outside, pod)
	askUDP(outside, address(node))
	askUDP(node, address(pod))

	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{cluster}}}
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP} {
		p.Bindings = append(p.Bindings, kernel.Binding{Pod: address(pod), Protocol: protocol, EgressIP: egressIP})
		if _, err := node.Run(t.Context(), iptables, "-w", "-t", "nat", "-I", "POSTROUTING", "-s", address(pod).String(),
			"-p", string(protocol), "!", "-d", cluster.String(), "-j", "SNAT", "--to-source", egressIP.String()); err != nil {
			t.Fatal(err)
		}
	}
	askUDP(outside, address(node)) // which is why this package exists
	right := dial(pod, outside)
	deletes := func(after kernel.Desired, scope Scope, want int) {
		t.Helper()
		err := node.Do(func() error {
			if deleted, err := Delete(t.Context(), family, after, scope); deleted != (Deleted{Ended: want}) || err != nil {
				return fmt.Errorf("deleted %+v, error %w; want %d", deleted, err, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	deletes(p, Scope{All: true}, 2)
	deletes(p, Scope{All: true}, 0)
	askUDP(outside, egressIP)
	askUDP(node, address(pod))
	if seen, err := old.Ask(t.Context()); err == nil {
		t.Errorf("the connection from before is still answered, as %s", seen)
	}
	for name, kept := range map[string]*lab.Flow{"to the node": toNode, "from outside": inbound, "right": right} {
		if _, err := kept.Ask(t.Context()); err != nil {
			t.Errorf("the connection that is %s broke: %v", name, err)
		}
	}
}

func TestExplain_SaysWhatIsMissing(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.EINVAL: "nf_conntrack_netlink", unix.EPROTONOSUPPORT: "nf_conntrack_netlink", unix.EPERM: "NET_ADMIN",
	} {
		if err := explain(fmt.Errorf("dump: %w", errno)); !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q does not name %s", errno, err, want)
		}
	}
	if err := explain(nil); err != nil {
		t.Error(err)
	}
}
