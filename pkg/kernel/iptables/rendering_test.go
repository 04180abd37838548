package iptables

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestRendering_FollowsThePlan: what a rendering becomes step by step is what is rendered at once, and no
// chain has changed that it does not name.
func TestRendering_FollowsThePlan(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 8))
			p := nextPlan(r, cidr, desired(cidr, nil))
			rendering := NewRendering(p)
			for step := range 25 {
				next := nextPlan(r, cidr, p)
				removed := follow(t, rendering, p, next)
				want := Render(next)
				want.Record(removed)
				if diff := cmp.Diff(want, rendering.Ruleset()); diff != "" {
					t.Fatalf("seed %d, step %d (-want +got):\n%s", seed, step, diff)
				}
				p = next
			}
		}
	}
}

// follow has the rendering of p become that of next, with a journal of the bindings that are removed, which
// it returns. It fails the test if a chain has changed that the rendering does not name.
func follow(t *testing.T, rendering *Rendering, p, next kernel.Desired) (removed []kernel.Binding) {
	t.Helper()
	added, removed := kernel.Diff(p.Bindings, next.Bindings)
	change := kernel.Change{Added: added, Removed: removed, Networks: next.Networks, NetworksChanged: !p.Networks.Equal(next.Networks)}
	before := maps.Clone(rendering.Ruleset())
	touched := rendering.Follow(change, removed)
	now := rendering.Ruleset()
	for _, name := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(now))) {
		_, was := before[name]
		_, is := now[name]
		if (was != is || !slices.Equal(before[name], now[name])) && !slices.Contains(touched, name) {
			t.Fatalf("%s has changed unsaid", name)
		}
	}
	return removed
}

// nextPlan returns a plan after p: some bindings more or less, in one place or anywhere, few or
// all of them, now and then with other exclusions.
func nextPlan(r *rand.Rand, cidr netip.Prefix, p kernel.Desired) kernel.Desired {
	next := kernel.Desired{Networks: p.Networks}
	keep := []float64{0, 0.5, 0.9, 0.99, 1, 1}[r.IntN(6)]
	type target struct {
		pod      netip.Addr
		protocol kernel.Protocol
	}
	taken := map[target]bool{}
	for _, b := range p.Bindings {
		if r.Float64() < keep {
			next.Bindings = append(next.Bindings, b)
			taken[target{b.Pod, b.Protocol}] = true
		}
	}
	more := randomPlan(r, cidr, []int{0, 1, 1, 5, 100, 700}[r.IntN(6)]).Bindings
	if r.IntN(4) == 0 {
		more = slices.Concat(more, skewedPlan(cidr).Bindings) // trees that would be too deep
	}
	for _, b := range more {
		if !taken[target{b.Pod, b.Protocol}] {
			taken[target{b.Pod, b.Protocol}] = true
			next.Bindings = append(next.Bindings, b)
		}
	}
	slices.SortFunc(next.Bindings, kernel.CompareBindings)
	if r.IntN(5) == 0 {
		next = withNodes(r, next, []int{0, 3, 200}[r.IntN(3)])
	}
	return next
}

// TestRendering_TouchesLittle: one changed binding among many makes few chains anew.
func TestRendering_TouchesLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	p := randomPlan(r, clusterV4, 20_000)
	rendering := NewRendering(p)
	for range 100 {
		b := p.Bindings[r.IntN(len(p.Bindings))]
		rendering.Follow(kernel.Change{Removed: []kernel.Binding{b}, Networks: p.Networks}, nil)
		touched := rendering.Follow(kernel.Change{Added: []kernel.Binding{b}, Networks: p.Networks}, nil)
		if most := 3 + sourceLevels + 1<<levelBits; len(touched) > most {
			t.Fatalf("one binding touches %d chains of %d, want %d at most", len(touched), len(rendering.Ruleset()), most)
		}
	}
	if diff := cmp.Diff(Render(p), rendering.Ruleset()); diff != "" {
		t.Error(diff)
	}
}

// TestRendering_CollidingNames: names of chains are hashes, so two prefixes may have the same. No packet
// takes another's way for that, and no chain changes unsaid.
func TestRendering_CollidingNames(t *testing.T) {
	name := func(prefix netip.Prefix) string {
		hash := fnv.New32a()
		hash.Write([]byte(prefix.String()))
		return fmt.Sprintf("%s%d", ChainPrefix, hash.Sum32()%5)
	}
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 9))
			p := nextPlan(r, cidr, desired(cidr, nil))
			rendering := newRendering(p, name)
			for step := range 10 {
				next := nextPlan(r, cidr, p)
				follow(t, rendering, p, next)
				bound := byPod(next)
				for range min(200, len(next.Bindings)) {
					pod := next.Bindings[r.IntN(len(next.Bindings))].Pod
					for _, destination := range destinations(r, next) {
						packet := Packet{pod, destination, kernel.TCP}
						if _, got := rendering.Ruleset().Trace(packet); got != wantedEgressIP(next, bound, packet) {
							t.Fatalf("%s, seed %d, step %d: %v leaves from %s, want %s", cidr, seed, step, packet, got, wantedEgressIP(next, bound, packet))
						}
					}
				}
				p = next
			}
		}
	}
}
