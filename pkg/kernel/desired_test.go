package kernel

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareNetip = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

func binding(pod string, protocol Protocol, egressIP string) Binding {
	return Binding{Pod: netip.MustParseAddr(pod), Protocol: protocol, EgressIP: netip.MustParseAddr(egressIP)}
}

func prefixes(list ...string) (result []netip.Prefix) {
	for _, s := range list {
		result = append(result, netip.MustParsePrefix(s))
	}
	return result
}

func TestDiff_OfTwoLists(t *testing.T) {
	web, db := binding("10.128.0.5", TCP, "203.0.113.1"), binding("10.128.0.6", All, "203.0.113.2")
	moved, udp := binding("10.128.0.5", TCP, "203.0.113.2"), binding("10.128.0.5", UDP, "203.0.113.1")
	type changed struct{ Added, Removed []Binding }
	for name, test := range map[string]struct {
		before, after []Binding
		want          changed
	}{
		"nothing":                 {},
		"the same":                {[]Binding{web, db}, []Binding{web, db}, changed{}},
		"all are new":             {nil, []Binding{web, db}, changed{Added: []Binding{web, db}}},
		"all are gone":            {[]Binding{web, db}, nil, changed{Removed: []Binding{web, db}}},
		"the first is gone":       {[]Binding{web, db}, []Binding{db}, changed{Removed: []Binding{web}}},
		"the last is new":         {[]Binding{web}, []Binding{web, db}, changed{Added: []Binding{db}}},
		"one protocol more":       {[]Binding{web, db}, []Binding{web, udp, db}, changed{Added: []Binding{udp}}},
		"another egress IP":       {[]Binding{web, db}, []Binding{moved, db}, changed{Added: []Binding{moved}, Removed: []Binding{web}}},
		"one goes, another comes": {[]Binding{web}, []Binding{db}, changed{Added: []Binding{db}, Removed: []Binding{web}}},
	} {
		added, removed := Diff(test.before, test.after)
		if diff := cmp.Diff(test.want, changed{added, removed}, compareNetip); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// randomBindings returns some of few, so that most lists have some in common.
func randomBindings(r *rand.Rand) (bindings []Binding) {
	for range r.IntN(12) {
		bindings = append(bindings, Binding{
			Pod:      netip.AddrFrom4([4]byte{10, 128, 0, byte(r.IntN(4))}),
			Protocol: []Protocol{TCP, UDP, SCTP, All}[r.IntN(4)],
			EgressIP: netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(2))}),
		})
	}
	return bindings
}

func TestDiff_LeadsFromBeforeToAfter(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := Sorted(randomBindings(r)), Sorted(randomBindings(r))
		added, removed := Diff(before, after)
		for _, b := range removed {
			if !slices.Contains(before, b) || slices.Contains(after, b) {
				t.Fatalf("seed %d: %v is removed", seed, b)
			}
		}
		for _, b := range added {
			if slices.Contains(before, b) || !slices.Contains(after, b) {
				t.Fatalf("seed %d: %v is added", seed, b)
			}
		}
		if !slices.IsSortedFunc(added, CompareBindings) || !slices.IsSortedFunc(removed, CompareBindings) {
			t.Fatalf("seed %d: not sorted: added %v, removed %v", seed, added, removed)
		}
		kept := slices.DeleteFunc(slices.Clone(before), func(b Binding) bool { return slices.Contains(removed, b) })
		if diff := cmp.Diff(after, Sorted(slices.Concat(kept, added)), compareNetip); diff != "" {
			t.Fatalf("seed %d: before - removed + added is not after (-want +got):\n%s", seed, diff)
		}
	}
}

func TestSorted_CopiesAndCompacts(t *testing.T) {
	first, second := binding("10.128.0.5", TCP, "203.0.113.2"), binding("10.128.0.5", UDP, "203.0.113.1")
	third, last := binding("10.128.0.5", UDP, "203.0.113.2"), binding("10.128.0.6", All, "203.0.113.1")
	bindings := []Binding{last, third, first, last, second}
	if diff := cmp.Diff([]Binding{first, second, third, last}, Sorted(bindings), compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Binding{last, third, first, last, second}, bindings, compareNetip); diff != "" {
		t.Errorf("what was given is changed (-want +got):\n%s", diff)
	}
}

func TestChange_Empty(t *testing.T) {
	web := []Binding{binding("10.128.0.5", TCP, "203.0.113.1")}
	networks := Networks{ClusterCIDRs: prefixes("10.128.0.0/14")}
	for name, test := range map[string]struct {
		change Change
		want   bool
	}{
		"nothing":              {Change{}, true},
		"networks as before":   {Change{Networks: networks}, true},
		"other networks":       {Change{Networks: networks, NetworksChanged: true}, false},
		"no networks any more": {Change{NetworksChanged: true}, false},
		"a binding is added":   {Change{Added: web}, false},
		"a binding is removed": {Change{Removed: web}, false},
	} {
		if got := test.change.Empty(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestNetworks_Equal(t *testing.T) {
	n := Networks{ClusterCIDRs: prefixes("10.128.0.0/14"), Exclusions: prefixes("192.0.2.2/32")}
	for name, test := range map[string]struct {
		other Networks
		want  bool
	}{
		"the same":            {Networks{ClusterCIDRs: prefixes("10.128.0.0/14"), Exclusions: prefixes("192.0.2.2/32")}, true},
		"other cluster CIDRs": {Networks{ClusterCIDRs: prefixes("10.128.0.0/15"), Exclusions: n.Exclusions}, false},
		"other exclusions":    {Networks{ClusterCIDRs: n.ClusterCIDRs}, false},
		"the other way round": {Networks{ClusterCIDRs: n.Exclusions, Exclusions: n.ClusterCIDRs}, false},
	} {
		if got := n.Equal(test.other); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if !(Networks{}).Equal(Networks{Exclusions: []netip.Prefix{}}) {
		t.Error("an empty list is another than none")
	}
}

func TestCIDRSet_FindsTheSmallestNetwork(t *testing.T) {
	s := NewCIDRSet(prefixes("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "10.1.0.0/16", "fd00::/8"))
	for ip, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "10.1.2.4": "10.1.0.0/16", "10.2.0.0": "10.0.0.0/8", "fd00::1": "fd00::/8",
		"11.0.0.0": "", "fe00::": "",
	} {
		got, found := s.Find(netip.MustParseAddr(ip))
		if found != (want != "") || found && got.String() != want {
			t.Errorf("%s lies in %v, %v; want %q", ip, got, found, want)
		}
	}
}

func TestCIDRSet_Empty(t *testing.T) {
	if NewCIDRSet(prefixes("0.0.0.0/0")).Empty() {
		t.Error("a set with a network is empty")
	}
	for name, s := range map[string]CIDRSet{"without networks": NewCIDRSet(nil), "zero": {}} {
		if _, found := s.Find(netip.MustParseAddr("10.0.0.1")); found || !s.Empty() {
			t.Errorf("%s: found %v, empty %v", name, found, s.Empty())
		}
	}
}

func TestAddrOf(t *testing.T) {
	for _, test := range []struct {
		bytes  []byte
		want   string
		family Family
	}{
		{net.ParseIP("192.0.2.1").To4(), "192.0.2.1", IPv4},
		{net.ParseIP("192.0.2.1").To16(), "192.0.2.1", IPv4},
		{net.ParseIP("2001:db8::1"), "2001:db8::1", IPv6},
	} {
		if ip := AddrOf(test.bytes); ip.String() != test.want || FamilyOf(ip) != test.family {
			t.Errorf("%v: %s of %s", test.bytes, ip, FamilyOf(ip))
		}
	}
	for _, bytes := range [][]byte{nil, {1, 2, 3}} {
		if ip := AddrOf(bytes); ip.IsValid() {
			t.Errorf("%v: %s", bytes, ip)
		}
	}
	if family := FamilyOf(netip.MustParseAddr("::ffff:192.0.2.1")); family != IPv6 {
		t.Errorf("a mapped one is of %s", family)
	}
}
