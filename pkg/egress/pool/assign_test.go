package pool

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func candidates(loads ...int) (list []Candidate) {
	for i, load := range loads {
		list = append(list, Candidate{
			Name: fmt.Sprint(i), Load: load, Objects: func(netip.Addr) Objection { return "" }, Has: func(netip.Addr) bool { return false },
		})
	}
	return list
}

func TestAssign_FillsUpThoseWithFewest(t *testing.T) {
	loads := []int{10, 0, 4, 9}
	for _, name := range Assign(addresses(20), nil, candidates(loads...)) {
		loads[name[0]-'0']++
	}
	if slices.Sort(loads); !slices.Equal(loads, []int{10, 11, 11, 11}) {
		t.Errorf("the loads are %v, want 10 and three times 11", loads)
	}
}

func TestAssign_PassesOverWhoCannot(t *testing.T) {
	list := candidates(0, 100)
	list[0].Objects = func(ip netip.Addr) Objection {
		if ip == ip1 {
			return LinkDown
		}
		return ""
	}
	got := Assign([]netip.Addr{ip1, ip2}, nil, list)
	if want := map[netip.Addr]string{ip1: "1", ip2: "0"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	list[1].Objects = func(netip.Addr) Objection { return Draining }
	if got := Assign([]netip.Addr{ip1}, nil, list); len(got) != 0 {
		t.Errorf("got %v, want nothing: nobody can hold it", got)
	}
}

// among returns siblings of each of these addresses: all others.
func among(ips []netip.Addr) map[netip.Addr][]netip.Addr {
	siblings := map[netip.Addr][]netip.Addr{}
	for i, ip := range ips {
		siblings[ip] = slices.Concat(ips[:i], ips[i+1:])
	}
	return siblings
}

// TestAssign_SpreadsSiblings over zones, then over nodes, whatever else these have; those that are held count.
func TestAssign_SpreadsSiblings(t *testing.T) {
	all := addresses(7)
	for name, test := range map[string]struct {
		loads []int
		zones []string
		held  map[string]netip.Addr
		want  []int // how many each candidate gets
	}{
		"a node each":                  {loads: []int{5, 0, 9}, want: []int{1, 1, 1}},
		"a zone each":                  {loads: []int{0, 0, 9, 9}, zones: []string{"a", "a", "b", "c"}, want: []int{1, 0, 1, 1}},
		"two zones":                    {loads: []int{0, 1, 9}, zones: []string{"a", "a", "b"}, want: []int{1, 1, 1}},
		"one is there":                 {loads: []int{0, 9, 9, 9}, held: map[string]netip.Addr{"0": all[6]}, want: []int{0, 1, 1, 1}},
		"one is in the zone":           {loads: []int{0, 0, 9, 9}, zones: []string{"a", "a", "b", "b"}, held: map[string]netip.Addr{"0": all[6]}, want: []int{0, 1, 1, 1}},
		"a node of no zone is its own": {loads: []int{0, 0, 9, 9}, zones: []string{"a", "a", "", ""}, want: []int{1, 0, 1, 1}},
	} {
		list := candidates(test.loads...)
		for i := range list {
			list[i].Has = func(ip netip.Addr) bool { return test.held[list[i].Name] == ip }
			if test.zones != nil {
				list[i].Zone = test.zones[i]
			}
		}
		got := make([]int, len(list))
		for _, name := range Assign(all[:3], among(all), list) {
			got[name[0]-'0']++
		}
		if test.zones != nil && test.loads[0] == test.loads[1] && got[0]+got[1] == 1 && test.held == nil {
			got[0], got[1] = 1, 0 // whichever of two alike
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: they get %v, want %v", name, got, test.want)
		}
	}
}

// TestAssign_OthersGetTheSameWhenOneHasItsShare: a member that looks later sees the claims of others.
func TestAssign_OthersGetTheSameWhenOneHasItsShare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		list := candidates(random.IntN(5), random.IntN(5), random.IntN(5), random.IntN(5))
		all := addresses(1 + random.IntN(30))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var siblings map[netip.Addr][]netip.Addr
		if random.IntN(2) == 0 {
			siblings = among(all[:random.IntN(len(all)+1)])
		}
		whole := Assign(all, siblings, list)
		first := &list[0]
		first.Has = func(ip netip.Addr) bool { return whole[ip] == first.Name }
		rest := slices.DeleteFunc(all, func(ip netip.Addr) bool {
			if whole[ip] == first.Name {
				first.Load++
				return true
			}
			return false
		})
		want := maps.Clone(whole)
		maps.DeleteFunc(want, func(_ netip.Addr, name string) bool { return name == first.Name })
		if diff := cmp.Diff(want, Assign(rest, siblings, list), compare); diff != "" {
			t.Fatalf("with the share of %s taken (-want +got):\n%s", first.Name, diff)
		}
	}
}
