package fastpath

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

var (
	one, two = netip.MustParseAddr("10.128.0.11"), netip.MustParseAddr("10.128.0.12")
	six      = netip.MustParseAddr("fd00::11")
)

// TestNarrowed: what is only in one of two surroundings is not let in, and what either excludes is.
func TestNarrowed(t *testing.T) {
	holder := func(node string) Holder { return Holder{Node: netip.MustParseAddr(node)} }
	before := Surroundings{
		Uplink: Uplink{Index: 2}, Holders: map[int]Holder{1: holder("192.0.2.3"), 2: holder("192.0.2.4")},
		Exclusions: map[netip.Prefix]bool{netip.MustParsePrefix("10.0.0.0/8"): true}, EgressIPs: map[netip.Addr]bool{one: true, two: true},
		Senders: map[netip.Addr]kernel.HardwareAddr{one: {1}, two: {2}},
	}
	after := Surroundings{
		Uplink: Uplink{Index: 2}, Holders: map[int]Holder{1: holder("192.0.2.3"), 2: holder("192.0.2.5"), 3: holder("192.0.2.6")},
		Exclusions: map[netip.Prefix]bool{netip.MustParsePrefix("172.16.0.0/12"): true}, EgressIPs: map[netip.Addr]bool{two: true}, Elsewhere: map[netip.Addr]bool{six: true},
		Senders: map[netip.Addr]kernel.HardwareAddr{one: {1}, two: {3}},
	}
	want := Surroundings{
		Uplink: Uplink{Index: 2}, Holders: map[int]Holder{1: holder("192.0.2.3")},
		Exclusions: map[netip.Prefix]bool{netip.MustParsePrefix("10.0.0.0/8"): true, netip.MustParsePrefix("172.16.0.0/12"): true},
		EgressIPs:  map[netip.Addr]bool{two: true}, Elsewhere: map[netip.Addr]bool{one: true, two: true, six: true},
		Senders: map[netip.Addr]kernel.HardwareAddr{one: {1}},
	}
	if got := before.narrowed(after); !got.Equal(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	after.Uplink.MTU = 1400
	if got := before.narrowed(after); got.Uplink != (Uplink{}) {
		t.Errorf("with another uplink %+v is left", got.Uplink)
	}
	if got := (Surroundings{}).narrowed(after); len(got.Exclusions) != 1 {
		t.Errorf("of nothing, %d exclusions are left, want 1", len(got.Exclusions))
	}
}

// TestChange_Changed: what goes, or gets a way or another one, or is not among all that there are.
func TestChange_Changed(t *testing.T) {
	tcp, udp, other := Pod{one, kernel.TCP}, Pod{one, kernel.UDP}, Pod{two, kernel.All}
	before := map[Pod]int{tcp: 1, udp: 2, other: 3}
	for name, test := range map[string]struct {
		change Change
		want   []Pod
	}{
		"nothing":     {Change{Ways: map[Pod]int{tcp: 1}}, nil},
		"gone":        {Change{Gone: []Pod{udp}}, []Pod{udp}},
		"another way": {Change{Ways: map[Pod]int{tcp: 2}}, []Pod{tcp}},
		"its first":   {Change{Ways: map[Pod]int{{two, kernel.TCP}: 2}}, []Pod{{two, kernel.TCP}}},
		"all":         {Change{Whole: true, Ways: map[Pod]int{tcp: 1, udp: 3}}, []Pod{udp, other}},
	} {
		got := test.change.changed(before)
		slices.SortFunc(got, func(a, b Pod) int { return cmpPods(a, b) })
		if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func cmpPods(a, b Pod) int {
	if c := a.Address.Compare(b.Address); c != 0 {
		return c
	}
	return slices.Index([]kernel.Protocol{kernel.TCP, kernel.UDP, kernel.All}, a.Protocol) - slices.Index([]kernel.Protocol{kernel.TCP, kernel.UDP, kernel.All}, b.Protocol)
}

// TestWayOf: a pod has a way where it is known behind which interface it is, each family its own numbers, and who is led nowhere is unbound.
func TestWayOf(t *testing.T) {
	ways := map[Pod]int{{one, kernel.TCP}: 1, {two, kernel.All}: Here, {six, kernel.UDP}: 1}
	places := map[netip.Addr]int{one: 7, six: 8}
	for address, want := range map[netip.Addr]way{one: {7, 2, unbound + 1}, two: {}, six: {8, unbound + 1, Numbers + 2}} {
		if got := wayOf(ways, nil, places, address); got != want {
			t.Errorf("%s: got %+v, want %+v", address, got, want)
		}
	}
	places[two] = 9
	if got, want := wayOf(ways, nil, places, two), (way{9, 1, 1}); got != want {
		t.Errorf("%s: got %+v, want %+v", two, got, want)
	}
	if got, want := wayOf(ways, map[Pod]bool{{one, kernel.TCP}: true}, places, one), (way{7, 0, unbound + 1}); got != want {
		t.Errorf("%s, limited for TCP: got %+v, want %+v", one, got, want)
	}
	ways[Pod{two, kernel.TCP}] = Nowhere
	if got, want := wayOf(ways, nil, places, two), (way{9, 0, 1}); got != want {
		t.Errorf("%s, which goes nowhere by TCP: got %+v, want %+v", two, got, want)
	}
}
