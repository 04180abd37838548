package nftables

import (
	"maps"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
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

// change is what differs between two contents, by set: elements that are to be removed first,
// and those that are to be added then.
type change struct {
	removed, added map[string]Elements
	// rules: other rules are needed, too; whole: the whole table is to be replaced.
	rules, whole bool
}

func (c change) empty() bool { return len(c.removed) == 0 && len(c.added) == 0 && !c.rules && !c.whole }

// between returns the change from one content to another.
func between(from, to Content) change {
	c := change{removed: map[string]Elements{}, added: map[string]Elements{}}
	for _, set := range setNames {
		added, removed := diff(from[set], to[set])
		for _, key := range removed {
			note(c.removed, set, key, from[set][key])
		}
		for _, key := range added {
			note(c.added, set, key, to[set][key])
		}
	}
	return c
}

func note(where map[string]Elements, set string, key Key, value netip.Addr) {
	if where[set] == nil {
		where[set] = Elements{}
	}
	where[set][key] = value
}

// follow turns s into the state that c leads to, with another journal, and returns what changes.
// There are bindings before and after.
func (s *state) follow(c kernel.Change, removed []kernel.Binding) change {
	t := touched{s.content, map[string]map[Key]former{}}
	for _, b := range c.Removed {
		s.unbind(t, b)
	}
	for _, b := range c.Added {
		s.bind(t, b)
	}
	if c.NetworksChanged {
		t.replace(exclusionsSet, exclusions(c.Networks))
	}
	t.replace(removedSet, Content(nil).Record(removed)[removedSet])
	s.bindings += len(c.Added) - len(c.Removed)
	return t.change()
}

func (s *state) bind(t touched, b kernel.Binding) {
	s.uses[b.EgressIP]++
	t.set(egressIPsSet, Key{Pod: b.EgressIP}, netip.Addr{})
	own, ownKey, set, key := places(b)
	t.set(own, ownKey, netip.Addr{})
	t.set(set, key, b.EgressIP)
}

func (s *state) unbind(t touched, b kernel.Binding) {
	if s.uses[b.EgressIP]--; s.uses[b.EgressIP] == 0 {
		delete(s.uses, b.EgressIP)
		t.remove(egressIPsSet, Key{Pod: b.EgressIP})
	}
	own, ownKey, set, key := places(b)
	t.remove(own, ownKey)
	t.remove(set, key)
}

// touched is a content with what some of its elements were before.
type touched struct {
	content Content
	before  map[string]map[Key]former
}

// former is what an element was.
type former struct {
	value netip.Addr
	there bool
}

func (t touched) touch(set string, key Key) {
	if t.before[set] == nil {
		t.before[set] = map[Key]former{}
	}
	if _, known := t.before[set][key]; !known {
		value, there := t.content[set][key]
		t.before[set][key] = former{value, there}
	}
}

func (t touched) set(set string, key Key, value netip.Addr) {
	t.touch(set, key)
	t.content[set][key] = value
}

func (t touched) remove(set string, key Key) {
	t.touch(set, key)
	delete(t.content[set], key)
}

// replace makes a set hold these elements and no others.
func (t touched) replace(set string, elements Elements) {
	for key := range maps.Clone(t.content[set]) {
		if _, stays := elements[key]; !stays {
			t.remove(set, key)
		}
	}
	if t.content[set] == nil {
		t.content[set] = Elements{}
	}
	for key, value := range elements {
		t.set(set, key, value)
	}
}

// change returns how the content differs from what it was.
func (t touched) change() change {
	c := change{removed: map[string]Elements{}, added: map[string]Elements{}}
	for set, keys := range t.before {
		for key, was := range keys {
			value, there := t.content[set][key]
			if was.there && (!there || value != was.value) {
				note(c.removed, set, key, was.value)
			}
			if there && (!was.there || value != was.value) {
				note(c.added, set, key, value)
			}
		}
	}
	return c
}
