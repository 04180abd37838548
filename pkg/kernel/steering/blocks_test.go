package steering

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// textOf is the table as nft reads it.
func textOf(t *testing.T, config Config, d kernel.Desired) string {
	t.Helper()
	l := newLayout(config)
	text, err := l.spec.Text(l.stateOf(newContent(config, d, nil), nil, links{uplink: "eth0", mss: 1390}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestBlocks_Off: without port blocks the table has nothing of them, whatever is desired.
func TestBlocks_Off(t *testing.T) {
	addr := netip.MustParseAddr
	for _, transport := range []Transport{VXLAN, Direct} {
		config := Config{Family: kernel.IPv4, NodeIP: addr("192.0.2.2"), Transport: transport, Port: 4799, AnnouncePort: 4798, AssignPort: 7947, MarkMask: 0x7e}
		d := kernel.Desired{
			Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}},
			Bindings: []kernel.Binding{{Pod: addr("10.128.0.11"), Protocol: kernel.TCP, EgressIP: addr("203.0.113.1")}, {Pod: addr("10.128.0.12"), Protocol: kernel.All, EgressIP: addr("203.0.113.1")}},
			Steering: kernel.Steering{Self: addr("192.0.2.2"), Held: map[netip.Addr]bool{addr("203.0.113.1"): true}},
		}
		without := textOf(t, config, d)
		d.Steering.Blocks = []kernel.Block{{Pod: addr("10.128.0.11"), EgressIP: addr("203.0.113.1"), Ports: kernel.Ports{First: 1024, Last: 1535}}}
		d.Steering.Shared = map[netip.Addr]kernel.Ports{addr("203.0.113.1"): {First: 61440, Last: 65535}}
		if diff := cmp.Diff(without, textOf(t, config, d)); diff != "" {
			t.Errorf("%s: it is off (-without blocks +with):\n%s", transport, diff)
		}
		for _, set := range blockSets {
			if strings.Contains(without, " "+set.Name+" {") {
				t.Errorf("%s: it is off, and there is the set %s", transport, set.Name)
			}
		}
		config.PortBlocks = true
		if with := textOf(t, config, d); !strings.Contains(with, " : 203.0.113.1 . 1024-1535") || !strings.Contains(with, "203.0.113.1 . 1024-1535 : 10.128.0.11") {
			t.Errorf("%s: the block is missing:\n%s", transport, with)
		}
	}
}

// TestBlocks_Second: what a pod with two blocks has a port of the first for keeps it, and all else gets one of the second.
func TestBlocks_Second(t *testing.T) {
	addr := netip.MustParseAddr
	config := Config{Family: kernel.IPv4, Transport: VXLAN, Port: 4799, MarkMask: 0x7e, PortBlocks: true}
	first, second := kernel.Ports{First: 33024, Last: 33279}, kernel.Ports{First: 32000, Last: 32255}
	d := kernel.Desired{
		Bindings: []kernel.Binding{{Pod: addr("10.128.0.11"), Protocol: kernel.TCP, EgressIP: addr("203.0.113.1")}, {Pod: addr("10.128.0.12"), Protocol: kernel.TCP, EgressIP: addr("203.0.113.1")}},
		Steering: kernel.Steering{Blocks: []kernel.Block{
			{Pod: addr("10.128.0.11"), EgressIP: addr("203.0.113.1"), Ports: second, Second: true},
			{Pod: addr("10.128.0.12"), EgressIP: addr("203.0.113.1"), Ports: kernel.Ports{First: 32256, Last: 32511}},
			{Pod: addr("10.128.0.11"), EgressIP: addr("203.0.113.1"), Ports: first},
		}},
	}
	text := textOf(t, config, d)
	for _, want := range []string{
		"10.128.0.11 . tcp : 203.0.113.1 . 32000-32255", "10.128.0.12 . tcp : 203.0.113.1 . 32256-32511", "10.128.0.11 . tcp . 33024-33279 : 203.0.113.1 . 33024-33279",
		"203.0.113.1 . 32000-32255 : 10.128.0.11", "203.0.113.1 . 33024-33279 : 10.128.0.11", "10.128.0.11 . 32000-32255",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	_, chain, _ := strings.Cut(text, "chain pod-ports {")
	if of, other := strings.Index(chain, "tcp meta mark set meta mark & 0xffffff81 snat ip to ip saddr . meta l4proto . th sport map @full-blocks"),
		strings.Index(chain, "snat ip to ip saddr . meta l4proto map @blocks"); of < 0 || other < of {
		t.Errorf("the first block's rule is to be in front:\n%s", chain)
	}
}

// TestBlocks_ContentFollows goes through random bindings and blocks: what follows each change is what all of it makes.
func TestBlocks_ContentFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	config := Config{Family: kernel.IPv4, Transport: VXLAN, PortBlocks: true}
	var d kernel.Desired
	c := newContent(config, d, nil)
	for step := range 300 {
		next := randomBlocks(r)
		change := kernel.Change{Steering: next.Steering, SteeringChanged: r.IntN(3) > 0}
		if !change.SteeringChanged {
			next.Steering = d.Steering
		}
		change.Added, change.Removed = kernel.Diff(d.Bindings, next.Bindings)
		var leaving []kernel.Binding
		if r.IntN(2) == 0 {
			leaving = change.Removed
		}
		c.follow(change, leaving)
		c.follow(kernel.Change{Steering: next.Steering}, nil)
		d = next
		want := newContent(config, d, nil)
		for _, set := range setsOf(config) {
			if diff := cmp.Diff(elements(set, want.sets), elements(set, c.sets)); diff != "" {
				t.Fatalf("step %d: %s (-want +got):\n%s", step, set.Name, diff)
			}
		}
		if want.blocks.full != c.blocks.full {
			t.Fatalf("step %d: %d bindings have two blocks, want %d", step, c.blocks.full, want.blocks.full)
		}
	}
}

func elements(set nft.Set, content nft.Content) (texts []string) {
	for key, value := range content[set.Name] {
		texts = append(texts, set.Text(key, value))
	}
	slices.Sort(texts)
	return texts
}

// randomBlocks are bindings of a few pods, and blocks of them and of others.
func randomBlocks(r *rand.Rand) (d kernel.Desired) {
	for pod := range 4 {
		for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.All} {
			if r.IntN(2) == 0 {
				d.Bindings = append(d.Bindings, kernel.Binding{Pod: numbered(10, pod), Protocol: protocol, EgressIP: numbered(203, r.IntN(2))})
			}
		}
	}
	for range r.IntN(6) {
		size := uint16(64) << r.IntN(3)
		first := 1024 + size*uint16(r.IntN(4))
		d.Steering.Blocks = append(d.Steering.Blocks, kernel.Block{
			Pod: numbered(10, r.IntN(5)), EgressIP: numbered(203, r.IntN(2)), Ports: kernel.Ports{First: first, Last: first + size - 1}, Second: r.IntN(2) == 0,
		})
	}
	d.Bindings = kernel.Sorted(d.Bindings)
	slices.SortFunc(d.Steering.Blocks, kernel.CompareBlocks)
	return d
}

func numbered(network, number int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("%d.0.113.%d", network, number+1))
}
