package steering

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// journalOf returns the elements that keep bindings on record.
func journalOf(removed []kernel.Binding) nft.Elements {
	elements := make(nft.Elements, len(removed))
	for _, b := range removed {
		elements[nft.Key{Pod: b.Pod, Protocol: b.Protocol, Other: b.EgressIP}] = netip.Addr{}
	}
	return elements
}

// Standing is what the table of an IP family has, whoever wrote it. All bindings are sorted and free of duplicates.
type Standing struct {
	// Bindings are those whose pods are guarded. Given are those that give flows an egress IP: all of them, but for those that are on
	// their way out, and none after [Halt]. Removed are those that are on record.
	Bindings, Given, Removed []kernel.Binding
	// Ways are the nodes that packets of bindings are sent to, as far as they can be told.
	Ways map[kernel.Binding]netip.Addr
	// Blocks are those ports of bound pods to which first packets of far sides are led.
	Blocks []kernel.Block
	// Exclusions are all networks that are never SNATed.
	Exclusions []netip.Prefix
	// Unread: nobody can tell what there is.
	Unread bool
}

// All returns the bindings whose packets may be leaving, or may have left until lately, from an egress IP.
func (s Standing) All() []kernel.Binding {
	return kernel.Sorted(slices.Concat(s.Bindings, s.Given, s.Removed))
}

// standingOf returns what sets have, where these numbers are those of nodes.
func standingOf(sets nft.Content, holders map[int]netip.Addr) (s Standing) {
	s.Bindings = bindingsIn(sets[ownSet], sets[ownPodsSet])
	s.Given = bindingsIn(sets[sourcesMap], sets[podSourcesMap])
	s.Removed = bindingsIn(sets[removedSet])
	for key, pod := range sets[inwardMap] {
		s.Blocks = append(s.Blocks, kernel.Block{Pod: pod, EgressIP: key.Pod, Ports: key.Ports})
	}
	s.Exclusions, s.Ways = nft.Prefixes(sets[exclusionsSet]), waysOf(sets, holders)
	return s
}

// bindingOf returns the binding that an element is of. The egress IP is its value, or in its key.
func bindingOf(key nft.Key, value netip.Addr) kernel.Binding {
	return kernel.Binding{Pod: key.Pod, Protocol: cmp.Or(key.Protocol, kernel.All), EgressIP: cmp.Or(value, key.Other)}
}

// bindingsIn returns the bindings that sets have elements of.
func bindingsIn(sets ...nft.Elements) (found []kernel.Binding) {
	for _, set := range sets {
		for key, value := range set {
			found = append(found, bindingOf(key, value))
		}
	}
	return kernel.Sorted(found)
}

func waysOf(sets nft.Content, holders map[int]netip.Addr) map[kernel.Binding]netip.Addr {
	ways := map[kernel.Binding]netip.Addr{}
	for of, sources := range sourcesByWays {
		for key, classID := range sets[of] {
			if node := holders[int(nft.NumberOf(classID))]; node.IsValid() {
				ways[bindingOf(key, sets[sources][key])] = node
			}
		}
	}
	return ways
}
