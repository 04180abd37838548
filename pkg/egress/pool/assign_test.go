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
		list = append(list, Candidate{Name: fmt.Sprint(i), Load: load, Objects: func(netip.Addr) Objection { return "" }})
	}
	return list
}

func TestAssign_FillsUpThoseWithFewest(t *testing.T) {
	loads := []int{10, 0, 4, 9}
	for _, name := range Assign(addresses(20), candidates(loads...)) {
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
	got := Assign([]netip.Addr{ip1, ip2}, list)
	if want := map[netip.Addr]string{ip1: "1", ip2: "0"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	list[1].Objects = func(netip.Addr) Objection { return Draining }
	if got := Assign([]netip.Addr{ip1}, list); len(got) != 0 {
		t.Errorf("got %v, want nothing: nobody can hold it", got)
	}
}

// TestAssign_OthersGetTheSameWhenOneHasItsShare: a member that looks later sees the claims of others.
func TestAssign_OthersGetTheSameWhenOneHasItsShare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		list := candidates(random.IntN(5), random.IntN(5), random.IntN(5), random.IntN(5))
		all := addresses(1 + random.IntN(30))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		whole := Assign(all, list)
		first := &list[0]
		rest := slices.DeleteFunc(all, func(ip netip.Addr) bool {
			if whole[ip] == first.Name {
				first.Load++
				return true
			}
			return false
		})
		want := maps.Clone(whole)
		maps.DeleteFunc(want, func(_ netip.Addr, name string) bool { return name == first.Name })
		if diff := cmp.Diff(want, Assign(rest, list), compare); diff != "" {
			t.Fatalf("with the share of %s taken (-want +got):\n%s", first.Name, diff)
		}
	}
}
