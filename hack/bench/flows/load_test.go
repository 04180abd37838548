package flows

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

func TestPlanOf_SortedAndUnique(t *testing.T) {
	for _, size := range sizes {
		p := planOf(size.bindings, size.nodes)
		if len(p.Bindings) != size.bindings || !slices.IsSortedFunc(p.Bindings, kernel.CompareBindings) {
			t.Errorf("%+v: %d bindings, or they are not sorted", size, len(p.Bindings))
		}
		if !slices.IsSortedFunc(p.Exclusions, netip.Prefix.Compare) {
			t.Errorf("%+v: exclusions are not sorted", size)
		}
		bound := map[netip.Addr]bool{}
		for _, b := range p.Bindings {
			if bound[b.Pod] || !lab.ClusterV4.Contains(b.Pod) {
				t.Fatalf("%+v: %s is bound twice, or outside of %s", size, b.Pod, lab.ClusterV4)
			}
			bound[b.Pod] = true
		}
		for _, f := range append(unbound.of(p, 1000), oneUnbound.of(p, 1)...) {
			if bound[f.pod] || !lab.ClusterV4.Contains(f.pod) {
				t.Fatalf("%+v: unbound %s is bound, or outside of %s", size, f.pod, lab.ClusterV4)
			}
		}
	}
}

func TestSegment_FrameRoundTrip(t *testing.T) {
	want := segment{
		from: macGenerator, to: macFrom, source: netip.MustParseAddrPort("10.128.2.3:1024"),
		destination: netip.MustParseAddrPort("198.18.0.1:443"), sequence: 7, acks: 8, flags: syn | ack,
	}
	frame := make([]byte, frameSize)
	want.put(frame)
	got, ok := parse(frame)
	if !ok {
		t.Fatal("the frame cannot be parsed")
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(segment{}), cmpopts.IgnoreFields(segment{}, "from", "to"), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The sum over data with its own checksum is 0 (RFC 1071).
	if sum := checksum(frame[14:34], 0); sum != 0 {
		t.Errorf("the IPv4 checksum is wrong by %#x", sum)
	}
	if sum := checksum(frame[26:54], 26); sum != 0 {
		t.Errorf("the TCP checksum is wrong by %#x", sum)
	}
}

func TestHostCheck_FindsRulesThatDifferFromThePlan(t *testing.T) {
	lab.ForTest(t, lab.Config{}) // skips without root
	p := planOf(10, fewNodes)
	broken := nftablesMap
	broken.write = func(ctx context.Context, h *host, p kernel.Desired) error {
		p.Bindings = slices.Clone(p.Bindings)
		p.Bindings[3].EgressIP = singleIP
		return nftablesMap.write(ctx, h, p)
	}
	for _, test := range []struct {
		structure
		right bool
	}{{nftablesMap, true}, {broken, false}, {legacyTree, true}} {
		h, err := newHost(t.Context(), test.structure, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.check(randomPods.of(p, 200)); (err == nil) != test.right {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}
}
