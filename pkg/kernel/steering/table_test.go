package steering

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// texts returns the elements of all sets as nft prints them.
func texts(c nft.Content) map[string][]string {
	all := map[string][]string{}
	for _, set := range sets {
		for key, value := range c[set.Name] {
			all[set.Name] = append(all[set.Name], set.Text(key, value))
		}
		slices.Sort(all[set.Name])
	}
	return all
}

func TestContent_OfBindings(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	v4 := kernel.Desired{
		Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{prefix("10.128.0.0/14")}, Exclusions: []netip.Prefix{prefix("192.0.2.2/32")}},
		Bindings: []kernel.Binding{
			{Pod: addr("10.128.0.11"), Protocol: kernel.TCP, EgressIP: addr("203.0.113.1")},
			{Pod: addr("10.128.0.11"), Protocol: kernel.UDP, EgressIP: addr("203.0.113.2")},
			{Pod: addr("10.128.0.12"), Protocol: kernel.All, EgressIP: addr("203.0.113.1")},
		},
		Steering: kernel.Steering{
			Self:  addr("2001:db8::1"),
			Nodes: []netip.Addr{addr("192.0.2.2"), addr("2001:db8::2")},
			Homes: map[netip.Addr]netip.Addr{addr("10.128.0.11"): addr("2001:db8::1"), addr("10.128.0.12"): addr("192.0.2.2")},
			Ways: map[netip.Addr]kernel.Way{
				addr("203.0.113.1"): {Kind: kernel.ToNode, Node: addr("192.0.2.2")},
				addr("2001:db8::1"): {Kind: kernel.ToNode, Node: addr("2001:db8::2")},
			},
		},
	}
	here, there := HardwareAddrOf(addr("2001:db8::1")), HardwareAddrOf(addr("192.0.2.2"))
	v6 := kernel.Desired{
		Bindings: []kernel.Binding{{Pod: addr("fd00::11"), Protocol: kernel.SCTP, EgressIP: addr("2001:db8::1")}},
		Steering: kernel.Steering{Nodes: v4.Steering.Nodes, Ways: v4.Steering.Ways},
	}
	for name, test := range map[string]struct {
		family  kernel.Family
		self    netip.Addr // the nodes speak IPv6
		desired kernel.Desired
		want    map[string][]string
	}{
		"nothing": {kernel.IPv4, addr("2001:db8::1"), kernel.Desired{}, nil},
		"IPv4": {kernel.IPv4, addr("2001:db8::1"), v4, map[string][]string{
			"cluster":     {"10.128.0.0-10.131.255.255"},
			"exclusions":  {"10.128.0.0-10.131.255.255", "192.0.2.2"},
			"nodes":       {"192.0.2.2"},
			"homes":       {"10.128.0.11 . " + here.String(), "10.128.0.12 . " + there.String()},
			"homed":       {"10.128.0.11", "10.128.0.12"},
			"away":        {"10.128.0.12"},
			"egress-ips":  {"203.0.113.1", "203.0.113.2"},
			"own":         {"10.128.0.11 . tcp . 203.0.113.1", "10.128.0.11 . udp . 203.0.113.2"},
			"own-pods":    {"10.128.0.12 . 203.0.113.1"},
			"bound":       {"10.128.0.11 . tcp", "10.128.0.11 . udp"},
			"bound-pods":  {"10.128.0.12"},
			"sources":     {"10.128.0.11 . tcp : goto from-203.0.113.1", "10.128.0.11 . udp : goto from-203.0.113.2"},
			"pod-sources": {"10.128.0.12 : goto from-203.0.113.1"},
			"ways":        {"10.128.0.11 . tcp : 2:200"},
			"pod-ways":    {"10.128.0.12 : 2:200"},
		}},
		"IPv6": {kernel.IPv6, addr("2001:db8::1"), v6, map[string][]string{
			"nodes":      {"2001:db8::2"},
			"speakers":   {"2001:db8::2 : goto node-2001-db8--2"},
			"egress-ips": {"2001:db8::1"},
			"own":        {"fd00::11 . sctp . 2001:db8::1"},
			"bound":      {"fd00::11 . sctp"},
			"sources":    {"fd00::11 . sctp : goto from-2001-db8--1"},
			"ways":       {"fd00::11 . sctp : 3f:3f00"}, // rejected: it has no number
		}},
	} {
		c := newContent(Config{Family: test.family, NodeIP: test.self, Transport: VXLAN}, test.desired, nil)
		c.point(nft.NewEdit(c.sets), numbers{addr("192.0.2.2"): 2})
		got := texts(c.sets)
		maps.DeleteFunc(got, func(_ string, elements []string) bool { return len(elements) == 0 })
		if test.want == nil {
			test.want = map[string][]string{}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestContent_HomesFollow: whatever changes, the sets are those that a new process would make.
func TestContent_HomesFollow(t *testing.T) {
	nodes := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}
	for _, transport := range []Transport{VXLAN, Direct} {
		for seed := range uint64(50) {
			r := rand.New(rand.NewPCG(seed, 7))
			config := Config{Family: kernel.IPv4, NodeIP: nodes[0], Transport: transport}
			c := newContent(config, kernel.Desired{}, nil)
			now := kernel.Steering{Self: nodes[0]}
			for range 30 {
				homes := map[netip.Addr]netip.Addr{}
				for i := range byte(5) {
					pod := netip.AddrFrom4([4]byte{10, 128, 0, i})
					if before, known := now.Homes[pod]; known && r.IntN(2) == 0 {
						homes[pod] = before
					} else if r.IntN(3) > 0 {
						homes[pod] = nodes[r.IntN(3)]
					}
				}
				now.Homes = homes
				switch r.IntN(8) {
				case 0:
					now.Self = nodes[r.IntN(2)]
				case 1:
					now.Roaming = !now.Roaming
				case 2:
					now.Senders = map[netip.Addr]kernel.HardwareAddr{nodes[r.IntN(3)]: {2, byte(r.IntN(2))}}
				}
				c.follow(kernel.Change{Steering: now, SteeringChanged: true}, nil)
				if diff := cmp.Diff(texts(newContent(config, kernel.Desired{Steering: now}, nil).sets), texts(c.sets), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s, seed %d (-want +got):\n%s", transport, seed, diff)
				}
			}
		}
	}
}

// TestContent_Holders: packets go to nodes that hold the egress IP of a binding.
func TestContent_Holders(t *testing.T) {
	addr := netip.MustParseAddr
	d := kernel.Desired{Steering: kernel.Steering{Ways: map[netip.Addr]kernel.Way{
		addr("203.0.113.1"): {Kind: kernel.ToNode, Node: addr("192.0.2.3")},
		addr("203.0.113.2"): {Kind: kernel.ToNode, Node: addr("192.0.2.2")},
		addr("203.0.113.3"): {Kind: kernel.ToNode, Node: addr("192.0.2.3")},
		addr("203.0.113.4"): {Kind: kernel.ToNode, Node: addr("192.0.2.4")},
		addr("203.0.113.5"): {Kind: kernel.Blackhole},
	}}}
	for _, egressIP := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.5", "203.0.113.6"} {
		d.Bindings = append(d.Bindings, kernel.Binding{Pod: addr("10.128.0.11"), Protocol: kernel.TCP, EgressIP: addr(egressIP)})
	}
	if got, want := fmt.Sprint(newContent(Config{Family: kernel.IPv4, Transport: VXLAN}, d, nil).holders()), "[192.0.2.2 192.0.2.3]"; got != want {
		t.Errorf("the holders are %s, want %s", got, want)
	}
}

// TestNumbers_Assign goes through random holders: nobody's number changes, and none is given away while it is in use.
func TestNumbers_Assign(t *testing.T) {
	node := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	r := rand.New(rand.NewPCG(7, 8))
	n := numbers{}
	for step := range 500 {
		var nodes []netip.Addr
		for i := range 70 {
			if r.IntN(70) < step%70 {
				nodes = append(nodes, node(i))
			}
		}
		assigned, left := n.assign(nodes)
		taken := n.holders()
		for _, node := range nodes {
			number, given := assigned[node]
			was, had := n[node]
			switch {
			case given == slices.Contains(left, node):
				t.Fatalf("step %d: %s has the number %d and is left out", step, node, number)
			case had && was != number:
				t.Fatalf("step %d: %s had the number %d and has %d", step, node, was, number)
			case given && (number < 1 || number >= numberDropped):
				t.Fatalf("step %d: %s has the number %d", step, node, number)
			case given && taken[number].IsValid() && taken[number] != node:
				t.Fatalf("step %d: %s has the number %d, which is that of %s", step, node, number, taken[number])
			}
			if given {
				taken[number] = node
			}
		}
		if len(assigned)+len(left) != len(nodes) {
			t.Fatalf("step %d: %d nodes have a number and %d have none, of %d", step, len(assigned), len(left), len(nodes))
		}
		if len(left) > 0 && len(taken) < numberDropped-1 {
			t.Fatalf("step %d: %v are left out while there are numbers", step, left)
		}
		n = assigned
	}
}
