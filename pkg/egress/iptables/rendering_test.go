package iptables

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestRenderingFollows: what a rendering becomes step by step is what is rendered at once, and no
// chain has changed that it does not name.
func TestRenderingFollows(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 8))
			p := nextPlan(r, cidr, plan.Plan{ClusterCIDRs: []netip.Prefix{cidr}})
			rendering := NewRendering(p)
			for step := range 25 {
				next := nextPlan(r, cidr, p)
				added, removed := plan.Diff(p, next)
				change := plan.Change{Added: added, Removed: removed, Networks: !slices.Equal(p.Exclusions, next.Exclusions)}
				before := maps.Clone(rendering.Ruleset())
				touched := rendering.Follow(change, plan.Plan{ClusterCIDRs: next.ClusterCIDRs, Exclusions: next.Exclusions}, removed)
				want := Render(next)
				want.Record(removed)
				if diff := cmp.Diff(want, rendering.Ruleset()); diff != "" {
					t.Fatalf("seed %d, step %d (-want +got):\n%s", seed, step, diff)
				}
				for name := range want {
					if !slices.Equal(before[name], want[name]) && !slices.Contains(touched, name) {
						t.Fatalf("seed %d, step %d: %s has changed unsaid", seed, step, name)
					}
				}
				for name := range before {
					if _, still := want[name]; !still && !slices.Contains(touched, name) {
						t.Fatalf("seed %d, step %d: %s is gone unsaid", seed, step, name)
					}
				}
				p = next
			}
		}
	}
}

// nextPlan returns a plan after p: some bindings more or less, in one place or anywhere, few or
// all of them, now and then with other exclusions.
func nextPlan(r *rand.Rand, cidr netip.Prefix, p plan.Plan) plan.Plan {
	next := plan.Plan{ClusterCIDRs: p.ClusterCIDRs, Exclusions: p.Exclusions}
	keep := []float64{0, 0.5, 0.9, 0.99, 1, 1}[r.IntN(6)]
	type target struct {
		pod      netip.Addr
		protocol plan.Protocol
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
	slices.SortFunc(next.Bindings, plan.CompareBindings)
	if r.IntN(5) == 0 {
		next = withNodes(r, next, []int{0, 3, 200}[r.IntN(3)])
	}
	return next
}

// TestFollowTouchesLittle: one changed binding among many makes few chains anew.
func TestFollowTouchesLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	p := randomPlan(r, clusterV4, 20_000)
	rendering := NewRendering(p)
	networks := plan.Plan{ClusterCIDRs: p.ClusterCIDRs, Exclusions: p.Exclusions}
	for range 100 {
		b := p.Bindings[r.IntN(len(p.Bindings))]
		rendering.Follow(plan.Change{Removed: []plan.Binding{b}}, networks, nil)
		touched := rendering.Follow(plan.Change{Added: []plan.Binding{b}}, networks, nil)
		if most := 3 + sourceLevels + 1<<levelBits; len(touched) > most {
			t.Fatalf("one binding touches %d chains of %d, want %d at most", len(touched), len(rendering.Ruleset()), most)
		}
	}
	if diff := cmp.Diff(Render(p), rendering.Ruleset()); diff != "" {
		t.Error(diff)
	}
}
