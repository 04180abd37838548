package nft

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRanges_Merge(t *testing.T) {
	for _, test := range []struct {
		prefixes []string
		want     []string
	}{
		{nil, nil},
		{[]string{"10.128.0.0/14"}, []string{"10.128.0.0-10.131.255.255"}},
		{[]string{"192.0.2.2/32", "192.0.2.1/32", "192.0.2.4/32"}, []string{"192.0.2.1-192.0.2.2", "192.0.2.4-192.0.2.4"}},
		{[]string{"10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/16"}, []string{"10.0.0.0-11.0.255.255"}},
		{[]string{"255.255.255.255/32", "240.0.0.0/4", "255.0.0.0/8"}, []string{"240.0.0.0-255.255.255.255"}},
		{[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"0.0.0.0-255.255.255.255"}},
		{[]string{"ff00::/8", "fe80::/10", "fec0::/10"}, []string{"fe80::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}},
	} {
		var prefixes []netip.Prefix
		for _, text := range test.prefixes {
			prefixes = append(prefixes, netip.MustParsePrefix(text))
		}
		var got []string
		for r := range Ranges(prefixes) {
			got = append(got, r.Pod.String()+"-"+r.Other.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.prefixes, diff)
		}
	}
}

// TestPrefixes_ReverseOfRanges: the networks of ranges cover what the ranges cover.
func TestPrefixes_ReverseOfRanges(t *testing.T) {
	for _, test := range []struct{ prefixes, want []string }{
		{nil, nil},
		{[]string{"10.128.0.0/14", "192.0.2.2/32"}, []string{"10.128.0.0/14", "192.0.2.2/32"}},
		{[]string{"192.0.2.1/32", "192.0.2.2/31", "192.0.2.4/32"}, []string{"192.0.2.1/32", "192.0.2.2/31", "192.0.2.4/32"}},
		{[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"0.0.0.0/0"}},
		{[]string{"ff00::/8", "fe80::/10"}, []string{"fe80::/10", "ff00::/8"}},
	} {
		var prefixes []netip.Prefix
		for _, text := range test.prefixes {
			prefixes = append(prefixes, netip.MustParsePrefix(text))
		}
		var got []string
		for _, prefix := range Prefixes(Ranges(prefixes)) {
			got = append(got, prefix.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.prefixes, diff)
		}
	}
}

// TestDigest_IsOfTheElements, whatever their order: neither one told twice nor another value gets by.
func TestDigest_IsOfTheElements(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	of := func(elements ...[2]netip.Addr) (d digest) {
		for _, e := range elements {
			d.add(Key{Pod: e[0]}, e[1])
		}
		return d
	}
	want := of([2]netip.Addr{one, one}, [2]netip.Addr{two, two})
	if got := of([2]netip.Addr{two, two}, [2]netip.Addr{one, one}); got != want {
		t.Errorf("in another order: %v, want %v", got, want)
	}
	for name, got := range map[string]digest{
		"one told twice": of([2]netip.Addr{one, one}, [2]netip.Addr{one, one}),
		"another value":  of([2]netip.Addr{one, two}, [2]netip.Addr{two, two}),
		"values swapped": of([2]netip.Addr{one, two}, [2]netip.Addr{two, one}),
		"one missing":    of([2]netip.Addr{one, one}),
	} {
		if got == want {
			t.Errorf("%s has the same digest", name)
		}
	}
}
