package nftables

import (
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// state is a content that follows plans, without making all of it anew for each.
type state struct {
	bindings int
	content  Content
	// uses counts the bindings of an egress IP.
	uses map[netip.Addr]int
}

func newState(p kernel.Desired, removed []kernel.Binding) *state {
	s := &state{bindings: len(p.Bindings), content: Render(p).Record(removed), uses: map[netip.Addr]int{}}
	for _, b := range p.Bindings {
		s.uses[b.EgressIP]++
	}
	return s
}

// follow turns s into the state that c leads to, with another journal, and returns what changes.
// There are bindings before and after.
func (s *state) follow(c kernel.Change, removed []kernel.Binding) nft.Change {
	edit := nft.NewEdit(nft.Content(s.content))
	for _, b := range c.Removed {
		s.unbind(edit, b)
	}
	for _, b := range c.Added {
		s.bind(edit, b)
	}
	if c.NetworksChanged {
		edit.Replace(exclusionsSet, exclusions(c.Networks))
	}
	edit.Replace(removedSet, Content(nil).Record(removed)[removedSet])
	s.bindings += len(c.Added) - len(c.Removed)
	return edit.Change()
}

func (s *state) bind(edit nft.Edit, b kernel.Binding) {
	s.uses[b.EgressIP]++
	edit.Set(egressIPsSet, Key{Pod: b.EgressIP}, netip.Addr{})
	own, ownKey, set, key := places(b)
	edit.Set(own, ownKey, netip.Addr{})
	edit.Set(set, key, b.EgressIP)
}

func (s *state) unbind(edit nft.Edit, b kernel.Binding) {
	if s.uses[b.EgressIP]--; s.uses[b.EgressIP] == 0 {
		delete(s.uses, b.EgressIP)
		edit.Remove(egressIPsSet, Key{Pod: b.EgressIP})
	}
	own, ownKey, set, key := places(b)
	edit.Remove(own, ownKey)
	edit.Remove(set, key)
}
