package nftables

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestState_FollowsPlans: what a state becomes step by step is what is rendered at once, and what
// it says has changed turns the one content into the other.
func TestState_FollowsPlans(t *testing.T) {
	for seed := range uint64(200) {
		n := &node{T: t, family: []kernel.Family{kernel.IPv4, kernel.IPv6}[seed%2]}
		r := rand.New(rand.NewPCG(seed, 1))
		p := n.some(r)
		s := newState(p, nil)
		for range 20 {
			before := copied(s.content)
			last := p
			p = n.next(r, p)
			var journal []kernel.Binding
			if r.IntN(2) == 0 {
				journal = n.some(r).Bindings
			}
			added, removed := kernel.Diff(last.Bindings, p.Bindings)
			ch := s.follow(kernel.Change{Added: added, Removed: removed, Networks: p.Networks, NetworksChanged: !last.Networks.Equal(p.Networks)}, journal)
			want := Render(p).Record(journal)
			if diff := cmp.Diff(filled(want), filled(s.content), compareAddrs); diff != "" {
				t.Fatalf("seed %d: the content (-want +got):\n%s", seed, diff)
			}
			for set, elements := range ch.Removed {
				for key, value := range elements {
					if was, there := before[set][key]; !there || was != value {
						t.Fatalf("seed %d: %s lacks what is to be removed from it: %v", seed, set, key)
					}
					delete(before[set], key)
				}
			}
			for set, elements := range ch.Added {
				if before[set] == nil {
					before[set] = Elements{}
				}
				for key, value := range elements {
					if _, there := before[set][key]; there {
						t.Fatalf("seed %d: %s has already what is to be added to it: %v", seed, set, key)
					}
					before[set][key] = value
				}
			}
			if diff := cmp.Diff(filled(want), filled(before), compareAddrs); diff != "" {
				t.Fatalf("seed %d: the change leads to (-want +got):\n%s", seed, diff)
			}
		}
	}
}

// some returns a plan that binds something.
func (n *node) some(r *rand.Rand) kernel.Desired {
	return sorted(n.random(r, 1+r.IntN(30)))
}

// next returns a plan that has some of another's bindings, and others.
func (n *node) next(r *rand.Rand, p kernel.Desired) kernel.Desired {
	next := n.some(r)
	if r.IntN(3) > 0 {
		next.Networks = p.Networks
	}
	for _, b := range p.Bindings {
		if r.IntN(4) > 0 && !slices.ContainsFunc(next.Bindings, func(o kernel.Binding) bool { return o.Pod == b.Pod && o.Protocol == b.Protocol }) {
			next.Bindings = append(next.Bindings, b)
		}
	}
	return sorted(next)
}

func sorted(p kernel.Desired) kernel.Desired {
	p.Bindings = slices.SortedFunc(slices.Values(p.Bindings), kernel.CompareBindings)
	return p
}

// filled leaves out empty sets.
func filled(c Content) Content {
	c = maps.Clone(c)
	maps.DeleteFunc(c, func(_ string, elements Elements) bool { return len(elements) == 0 })
	return c
}

func copied(c Content) Content {
	result := Content{}
	for set, elements := range c {
		result[set] = maps.Clone(elements)
	}
	return result
}
