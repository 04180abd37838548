package steering

import (
	"net/netip"

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
	all := append(append([]kernel.Binding{}, s.Bindings...), s.Given...)
	return kernel.Sorted(append(all, s.Removed...))
}

// standingOf returns what sets have, where these numbers are those of nodes.
func standingOf(sets nft.Content, holders map[int]netip.Addr) (s Standing) {
	for key := range sets[ownSet] {
		s.Bindings = append(s.Bindings, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: key.Other})
	}
	for key := range sets[ownPodsSet] {
		s.Bindings = append(s.Bindings, kernel.Binding{Pod: key.Pod, Protocol: kernel.All, EgressIP: key.Other})
	}
	for key, egressIP := range sets[sourcesMap] {
		s.Given = append(s.Given, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: egressIP})
	}
	for key, egressIP := range sets[podSourcesMap] {
		s.Given = append(s.Given, kernel.Binding{Pod: key.Pod, Protocol: kernel.All, EgressIP: egressIP})
	}
	for key := range sets[removedSet] {
		s.Removed = append(s.Removed, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: key.Other})
	}
	for key, pod := range sets[inwardMap] {
		s.Blocks = append(s.Blocks, kernel.Block{Pod: pod, EgressIP: key.Pod, Ports: key.Ports})
	}
	s.Bindings, s.Given, s.Removed = kernel.Sorted(s.Bindings), kernel.Sorted(s.Given), kernel.Sorted(s.Removed)
	s.Exclusions, s.Ways = nft.Prefixes(sets[exclusionsSet]), waysOf(sets, holders)
	return s
}

func waysOf(sets nft.Content, holders map[int]netip.Addr) map[kernel.Binding]netip.Addr {
	ways := map[kernel.Binding]netip.Addr{}
	add := func(key nft.Key, protocol kernel.Protocol, egressIP, classID netip.Addr) {
		if node := holders[int(nft.NumberOf(classID))]; node.IsValid() {
			ways[kernel.Binding{Pod: key.Pod, Protocol: protocol, EgressIP: egressIP}] = node
		}
	}
	for key, classID := range sets[waysMap] {
		add(key, key.Protocol, sets[sourcesMap][key], classID)
	}
	for key, classID := range sets[podWaysMap] {
		add(key, kernel.All, sets[podSourcesMap][key], classID)
	}
	return ways
}
