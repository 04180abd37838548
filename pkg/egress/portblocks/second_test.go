package portblocks

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// second expects that a pod has a second block of so many egress IPs.
func (b *bookTest) second(id string, ips int) Given {
	b.Helper()
	b.AddSecond(id, b.now)
	b.settled()
	return b.of(Second(id), ips)
}

// TestBook_SecondBeside: a pod gets the block behind its own one, or that in front of it, or any one, and no other pod's. It gets one
// once. What is not decided, or shares, gets none.
func TestBook_SecondBeside(t *testing.T) {
	b := newBookTest(t)
	both := []netip.Addr{egressIP, egressIP6}
	b.AddSecond("nobody", b.now)
	b.Add("pod-0", both, 512, b.now)
	b.AddSecond("pod-0", b.now) // it has none yet
	if len(b.tenants) != 1 {
		t.Fatalf("%v", b.tenants)
	}
	b.settled()
	b.Add("pod-1", both, 512, b.now)
	b.settled()
	first, next := b.of("pod-0", 2).Ports, b.of("pod-1", 2).Ports
	if next.First != first.Last+1+512 {
		t.Fatalf("%s, and then %s; want that the neighbour stays free", first, next)
	}
	behind := b.second("pod-0", 2).Ports
	if behind.First != first.Last+1 || Widened(first, behind) != (kernel.Ports{First: first.First, Last: behind.Last}) {
		t.Errorf("%s has %s besides, and uses %s", first, behind, Widened(first, behind))
	}
	if again := b.second("pod-0", 2).Ports; again != behind {
		t.Errorf("it had %s, and has %s", behind, again)
	}
	b.Add("pod-2", both, 512, b.now)
	b.settled()
	b.second("pod-1", 2) // in front of pod-2's
	last := b.of("pod-2", 2).Ports
	v := b.leases[egressIP]
	v.claims[kernel.Ports{First: last.Last + 1, Last: last.Last + 512}] = Claim{Node: "node-b"}
	b.Seen(egressIP, v.number, v.claims, false, b.now)
	b.Remove("pod-1", b.now)
	b.Remove(Second("pod-1"), b.now)
	b.now = b.now.Add(Quiet)
	front := b.second("pod-2", 2).Ports
	if front.Last != last.First-1 || Widened(last, front) != (kernel.Ports{First: front.First, Last: last.Last}) {
		t.Errorf("%s has %s besides, and uses %s", last, front, Widened(last, front))
	}
	for i := range 8 {
		id := fmt.Sprint("other-", i)
		b.Add(id, both, 512, b.now)
		b.settled()
		b.of(id, 2)
	}
	for range 2 {
		has := map[kernel.Ports]string{}
		for id, tenant := range b.tenants {
			if has[tenant.ports] != "" {
				t.Errorf("%s and %s have %s", id, has[tenant.ports], tenant.ports)
			}
			has[tenant.ports] = id
		}
		b.second("other-3", 2) // between others
	}
}

// TestBook_SecondNone: where few are free, which are for pods to come, the pod has none, and gets one later. When it ends both are quiet.
func TestBook_SecondNone(t *testing.T) {
	b := newBookTest(t)
	for i := range 6 { // all that there are
		b.Add(fmt.Sprint("pod-", i), []netip.Addr{egressIP}, 8192, b.now)
		b.settled()
		b.of(fmt.Sprint("pod-", i), 1)
	}
	b.second("pod-0", 0)
	b.Remove("pod-1", b.now)
	b.Remove("pod-2", b.now)
	b.second("pod-0", 0) // they are quiet
	b.now = b.now.Add(Quiet)
	b.settled() // one is spare, for a pod to come
	b.now = b.now.Add(keepIdle)
	b.settled()
	had := b.second("pod-0", 1).Ports
	first := b.of("pod-0", 1).Ports
	b.Remove("pod-0", b.now)
	b.Remove(Second("pod-0"), b.now)
	for _, ports := range []kernel.Ports{first, had} {
		if !b.ledgers[egressIP].quiet[ports].After(b.now) {
			t.Errorf("%s is not quiet", ports)
		}
	}
}

// TestBook_SecondRestored: a process that starts knows both, and gives the pod no third one.
func TestBook_SecondRestored(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	first, second := b.of("pod", 1), b.second("pod", 1)
	other := &bookTest{T: t, Book: NewBook("node-a"), now: b.now, leases: b.leases}
	other.Restore("pod", []netip.Addr{egressIP}, 512, first, other.now)
	other.Restore(Second("pod"), []netip.Addr{egressIP}, 512, second, other.now)
	v := b.leases[egressIP]
	other.Seen(egressIP, v.number, v.claims, true, other.now)
	other.Listed(other.now)
	if got := other.second("pod", 1); got.Ports != second.Ports || other.of("pod", 1).Ports != first.Ports {
		t.Errorf("it had %v and %v, and has %v", first, second, got)
	}
	if lost := other.Lost(); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}

// TestWidened: what a pod uses is in a row, has its first block, and none of the ports that pods share.
func TestWidened(t *testing.T) {
	for ports := range blocksOf(512) {
		for _, second := range []kernel.Ports{{First: 1024, Last: 1535}, {First: 60928, Last: 61439}, {First: 40960, Last: 41471}} {
			if second == ports {
				continue
			}
			got := Widened(ports, second)
			if sizeOf(got) != 1024 || got.First > ports.First || got.Last < ports.Last || got.Last >= Shared.First || got.First < FirstPort {
				t.Errorf("%s and %s: %s", ports, second, got)
			}
		}
	}
}

// TestAssigned_Second: what a node's Lease says of a second block is read as that.
func TestAssigned_Second(t *testing.T) {
	pod := Pod{Namespace: "shop", Name: "web-0", IP: netip.MustParseAddr("10.128.0.11")}
	text := FormatAssigned([]Assignment{
		{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 2559}},
		{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: 1024, Last: 1535}, Second: true},
	})
	for _, text := range []string{text, WithoutNames(text)} {
		blocks, err := ParseBlocks(text)
		if err != nil || len(blocks) != 2 || blocks[0].Second || !blocks[1].Second {
			t.Errorf("%s: %v, %v", text, blocks, err)
		}
	}
}
