package portsecurity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// keptNode is a node with a Keeper, whose looks are counted, and fail as long as that is said. Away is a pod of another node.
type keptNode struct {
	*node
	*Keeper
	failing atomic.Bool
	looks   atomic.Int32
	away    netip.Addr
	stop    func()
}

func newKeptNode(t *testing.T) *keptNode {
	n := &keptNode{node: newNode(t), away: netip.MustParseAddr("10.131.0.7")}
	n.start()
	t.Cleanup(func() { n.stop() })
	return n
}

// start begins a new process.
func (n *keptNode) start() {
	n.Helper()
	own := []netip.Addr{n.host.V4, n.host.V6}
	n.Keeper = NewKeeper(Config{
		Own: func() []netip.Addr { return own }, Told: func() []Told { return nil }, Away: func(pod netip.Addr) bool { return pod == n.away }, Period: time.Hour, Changed: func() {},
	})
	n.interfaces = func(pods []netip.Prefix, own []netip.Addr, known func(Link) bool) ([]Interface, error) {
		n.looks.Add(1)
		if n.failing.Load() {
			return nil, errors.New("no interfaces today")
		}
		return Interfaces(pods, own, known)
	}
	ctx, cancel := context.WithCancel(n.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.host.Do(func() error { n.Run(ctx); return nil }); err != nil {
			n.Error(err)
		}
	})
	n.stop = func() { cancel(); running.Wait() }
}

// bindVictim has the victim bound, with or without a change of bindings.
func (n *keptNode) bindVictim(changed bool) {
	for family, address := range map[kernel.Family]netip.Addr{kernel.IPv4: n.victim.V4, kernel.IPv6: n.victim.V6} {
		var added []kernel.Binding
		if changed {
			added = []kernel.Binding{{Pod: address, Protocol: kernel.All, EgressIP: address}}
		}
		n.Keeper.Bind(n.Context(), family, added, nil, []netip.Prefix{map[kernel.Family]netip.Prefix{kernel.IPv4: lab.ClusterV4, kernel.IPv6: lab.ClusterV6}[family]})
	}
}

func (n *keptNode) expectFault(want string) {
	n.Helper()
	got := ""
	if fault := n.Status().Fault; fault != nil {
		got = fault.Error()
	}
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		n.Errorf("the fault is %q, want %q", got, want)
	}
}

// TestKeeper_SaysThatItCannotLook, as long as that is so, whatever it has written meanwhile; and goes on as soon as it can.
func TestKeeper_SaysThatItCannotLook(t *testing.T) {
	n := newKeptNode(t)
	n.failing.Store(true)
	n.bindVictim(true)
	n.expectFault("no interfaces today")
	n.bindVictim(false)
	n.expectFault("no interfaces today")
	n.failing.Store(false)
	n.Check(t.Context())
	n.expectFault("")
	if n.leaves(n.other, n.victim.V4) {
		t.Error("another pod leaves with the bound pod's address")
	}
	n.failing.Store(true)
	n.Check(t.Context())
	n.expectFault("no interfaces today")
	n.bindVictim(false)
	n.expectFault("no interfaces today")
	if n.leaves(n.other, n.victim.V4) {
		t.Error("what was written has gone")
	}
}

// TestKeeper_LeavesWhatItCannotJudge: a process that cannot look leaves what an earlier one has written.
func TestKeeper_LeavesWhatItCannotJudge(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	n.stop()
	n.failing.Store(true)
	n.start()
	n.bindVictim(true)
	n.Check(t.Context())
	n.expectFault("no interfaces today")
	for _, as := range both(n.victim) {
		if n.leaves(n.other, as) {
			t.Errorf("another pod leaves as %s", as)
		}
		if !n.leaves(n.victim, as) {
			t.Errorf("the pod itself does not leave as %s", as)
		}
	}
}

// TestKeeper_CheckIsDone when it returns: a pod whose interface has just been made can forge nothing.
func TestKeeper_CheckIsDone(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	for range 5 {
		if err := n.lab.RemovePod(n.other); err != nil {
			t.Fatal(err)
		}
		var err error
		if n.other, err = n.lab.AddPod(); err != nil {
			t.Fatal(err)
		}
		n.Check(t.Context())
		if got := strings.Count(n.run(n.host, "nft list table netdev "+Table), "hook ingress"); got != 2 {
			t.Errorf("%d chains at interfaces, expected 2", got)
		}
	}
	n.expectFault("")
}

// TestKeeper_PodsElsewhere: for pods of other nodes, which the node of an egress IP binds, too, nobody looks for an interface.
func TestKeeper_PodsElsewhere(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	before := n.looks.Load()
	bind := func(pod netip.Addr) {
		n.Keeper.Bind(t.Context(), kernel.IPv4, []kernel.Binding{{Pod: pod, Protocol: kernel.All, EgressIP: pod}}, nil, []netip.Prefix{lab.ClusterV4})
	}
	if bind(n.away); n.looks.Load() != before {
		t.Error("the interfaces were looked at for a pod of another node")
	}
	if bind(n.away.Next()); n.looks.Load() == before {
		t.Error("the interfaces were not looked at for a pod that may be here")
	}
}

// TestKeeper_RenewedAddress: when the lifetime of an address is renewed, nobody looks at all interfaces.
func TestKeeper_RenewedAddress(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	n.Check(t.Context()) // what is to be done at the start is done
	looked := func(command string) {
		t.Helper()
		before := n.looks.Load()
		n.run(n.host, command)
		for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); n.looks.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("nobody looks after %s", command)
			}
		}
	}
	const address = "203.0.113.77/32 dev eth0 valid_lft 30 preferred_lft 0"
	looked("ip addr add " + address)
	before := int32(-1)
	for n.looks.Load() != before { // a look that still follows is no look at what comes next
		before = n.looks.Load()
		time.Sleep(lab.Stretch(200 * time.Millisecond))
	}
	n.run(n.host, "ip addr replace "+address)
	time.Sleep(200 * time.Millisecond) // forty times as long as changes are gathered: nothing tells that nobody looks
	if looks := n.looks.Load() - before; looks > 0 {
		t.Errorf("%d looks at a renewed address", looks)
	}
	looked("ip addr del 203.0.113.77/32 dev eth0")
}

// TestKeeper_RestsAfterMissedChanges: no more than half of the time is spent on looks, also if all the time more changes come than can be heard of.
func TestKeeper_RestsAfterMissedChanges(t *testing.T) {
	const took, most = 20 * time.Millisecond, 10
	k := NewKeeper(Config{Own: func() []netip.Addr { return nil }, Told: func() []Told { return nil }, Period: time.Hour, Changed: func() {}})
	k.known, k.pods[kernel.IPv4] = true, []netip.Prefix{lab.ClusterV4}
	k.subscribe = func() (*changes.Subscription, error) {
		s, err := changes.Subscribe()
		if err == nil {
			s.Failed <- unix.ENOBUFS
		}
		return s, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	k.interfaces = func([]netip.Prefix, []netip.Addr, func(Link) bool) ([]Interface, error) {
		time.Sleep(took)
		if looks++; looks == most {
			cancel()
		}
		return nil, nil
	}
	began := time.Now()
	k.Run(ctx)
	if spent := time.Since(began); looks != most || spent < (2*most-1)*took {
		t.Errorf("%d looks of %s in %s", looks, took, spent)
	}
}

// TestKeeper_SaysWhatIsRedirected, as long as that is so, and a pod is bound.
func TestKeeper_SaysWhatIsRedirected(t *testing.T) {
	n := newKeptNode(t)
	expect := func(want ...string) {
		t.Helper()
		n.Check(t.Context())
		if got := n.Status().Redirected; !slices.Equal(got, want) {
			t.Errorf("redirected are %v, want %v", got, want)
		}
	}
	n.run(n.host, "ip link add ifb7 type ifb", "ip link set ifb7 up")
	for _, name := range []string{"pod2", "pod1"} {
		n.run(n.host, "tc qdisc add dev "+name+" ingress",
			"tc filter add dev "+name+" parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb7")
	}
	expect()
	n.bindVictim(true)
	expect("pod1", "pod2")
	n.run(n.host, "tc qdisc del dev pod1 ingress")
	expect("pod2")
	n.run(n.host, "tc qdisc del dev pod2 ingress")
	expect()
	n.expectFault("")
}

// TestKeeper_NamesBoundPodsBehindNoKnownInterface: those behind macvlan and ipvlan interfaces send by no interface of the node that leads
// to a pod. They are named, and a bound pod behind a veth is not.
func TestKeeper_NamesBoundPodsBehindNoKnownInterface(t *testing.T) {
	for _, kind := range []string{"macvlan", "ipvlan"} {
		t.Run(kind, func(t *testing.T) {
			n := newKeptNode(t)
			n.bindVictim(true)
			n.Keeper.Bind(t.Context(), kernel.IPv4, []kernel.Binding{{Pod: n.other.V4, Protocol: kernel.All, EgressIP: n.other.V4}}, nil, []netip.Prefix{lab.ClusterV4})
			if got := n.Keeper.Unplaced(t.Context()); len(got) > 0 {
				t.Fatalf("of pods behind veths it is not known where they are: %v", got)
			}
			n.moveVictim(kind)
			n.Check(t.Context())
			if got := n.Keeper.Unplaced(t.Context()); !slices.Equal(got, both(n.victim)) {
				t.Errorf("behind no known interface are %v, expected the pod behind %s, %v", got, kind, both(n.victim))
			}
			n.expectFault("")
		})
	}
}

// moveVictim puts the victim, with its addresses, behind an interface of a kind that shares the node's uplink.
func (n *keptNode) moveVictim(kind string) {
	n.Helper()
	if out, err := n.host.Run(n.Context(), "ip", "link", "add", "link", "eth0", "name", "shared0", "type", kind); err != nil {
		if strings.Contains(err.Error(), "Unknown device type") {
			n.Skipf("this kernel has no %s: hack/kernels has some that do", kind)
		}
		n.Fatalf("%v\n%s", err, out)
	}
	n.run(n.host, "ip link del pod1", "ip link set shared0 netns "+n.victim.Name)
	n.run(n.victim, "ip link set shared0 name eth0 up",
		fmt.Sprintf("ip addr add %s/24 dev eth0", n.victim.V4), fmt.Sprintf("ip addr add %s/64 dev eth0 nodad", n.victim.V6))
}

// TestKeeper_Repair: a question changes nothing, and what somebody wants repaired is repaired at once, however long it is until the next
// regular look.
func TestKeeper_Repair(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	n.run(n.host, "nft flush set netdev "+Table+" bound-ipv4")
	differ := func(want bool) {
		if differences, err := n.Keeper.Compare(t.Context()); err != nil || (len(differences) > 0) != want {
			t.Errorf("differences %q, %v; want some: %v", differences, err, want)
		}
	}
	differ(true)
	differ(true)
	n.Keeper.Repair(t.Context())
	differ(false)
	if n.leaves(n.other, n.victim.V4) {
		t.Error("another pod leaves with the bound pod's address")
	}
}

// TestKeeper_GuardsUntilTheLastBinding: a pod with bindings of several protocols is guarded until the last one of them is removed.
func TestKeeper_GuardsUntilTheLastBinding(t *testing.T) {
	n := newKeptNode(t)
	of := func(p kernel.Protocol) []kernel.Binding {
		return []kernel.Binding{{Pod: n.victim.V4, Protocol: p, EgressIP: n.victim.V4}}
	}
	n.Keeper.Bind(t.Context(), kernel.IPv4, append(of(kernel.TCP), of(kernel.UDP)...), nil, []netip.Prefix{lab.ClusterV4})
	if n.leaves(n.other, n.victim.V4) {
		t.Fatal("another pod leaves with the address of a pod with two bindings")
	}
	n.Keeper.Unbind(t.Context(), of(kernel.TCP))
	if n.leaves(n.other, n.victim.V4) {
		t.Error("another pod leaves with the address of a pod that has a binding left")
	}
	n.Keeper.Unbind(t.Context(), of(kernel.UDP))
	if !n.leaves(n.other, n.victim.V4) {
		t.Error("the address of a pod without bindings is guarded")
	}
	n.expectFault("")
}

// TestKeeper_NoPodIsAnEgressIP: where pods are bound, no pod sends from an egress IP, bound or not, also when a process begins that knows of
// none yet; and any may when no Service claims the address any more.
func TestKeeper_NoPodIsAnEgressIP(t *testing.T) {
	n := newKeptNode(t)
	n.bindVictim(true)
	egressIPs := map[kernel.Family]netip.Addr{kernel.IPv4: netip.MustParseAddr("203.0.113.10"), kernel.IPv6: netip.MustParseAddr("2001:db8:113::10")}
	pods := map[kernel.Family][]netip.Prefix{kernel.IPv4: {lab.ClusterV4}, kernel.IPv6: {lab.ClusterV6}}
	for _, claimed := range []bool{true, false} {
		for family, ip := range egressIPs {
			var list []netip.Addr
			if claimed {
				list = append(list, ip)
			}
			n.Keeper.Bind(t.Context(), family, nil, list, pods[family])
			for what, from := range map[string]*lab.Host{"the bound pod": n.victim, "another pod": n.other} {
				if n.leaves(from, ip) == claimed {
					t.Errorf("%s from %s leaves: %t, and the address is claimed: %t", what, ip, !claimed, claimed)
				}
			}
		}
	}
	n.expectFault("")
}
