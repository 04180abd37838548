package nftables

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Table is the name of the table, in either family. Changing it orphans what earlier
// versions have written.
const Table = "openshift-egress"

// The sets of the table. The values of maps are egress IPs.
const (
	exclusionsSet = "exclusions" // from address . to address
	egressIPsSet  = "egress-ips"
	ownSet        = "own"      // pod . protocol . its egress IP
	ownPodsSet    = "own-pods" // pod . its egress IP
	bindingsMap   = "bindings" // pod . protocol
	podsMap       = "pods"     // pod
	removedSet    = "removed"  // pod . protocol . egress IP
)

// Content is what the sets of a table hold, by their names. An empty set may be missing. A
// plan that binds nothing has no content, and needs no table.
type Content map[string]Elements

// Elements are those of a set: the values, invalid but in maps, by their keys.
type Elements map[Key]netip.Addr

// Key is that of an element. Each set has a use for some of the fields.
type Key struct {
	// Pod is the pod's address; the first address of an exclusion; an egress IP in egress-ips.
	Pod netip.Addr
	// Protocol is that of a binding; empty for all in removed.
	Protocol kernel.Protocol
	// Other is the egress IP, or the last address of an exclusion.
	Other netip.Addr
}

// Render returns the content for p: nil if p binds nothing.
func Render(p kernel.Desired) Content {
	if len(p.Bindings) == 0 {
		return nil
	}
	pods := 0 // those bound for all protocols
	for _, b := range p.Bindings {
		if b.Protocol == kernel.All {
			pods++
		}
	}
	ports := len(p.Bindings) - pods
	c := Content{
		exclusionsSet: exclusions(p.Networks), egressIPsSet: {},
		ownSet: make(Elements, ports), ownPodsSet: make(Elements, pods), bindingsMap: make(Elements, ports), podsMap: make(Elements, pods),
	}
	for _, b := range p.Bindings {
		c[egressIPsSet][Key{Pod: b.EgressIP}] = netip.Addr{}
		own, ownKey, set, key := places(b)
		c[own][ownKey] = netip.Addr{}
		c[set][key] = b.EgressIP
	}
	return c
}

func exclusions(n kernel.Networks) Elements {
	elements := Elements{}
	for _, r := range ranges(slices.Concat(n.ClusterCIDRs, n.Exclusions)) {
		elements[Key{Pod: r.first, Other: r.last}] = netip.Addr{}
	}
	return elements
}

// places returns where a binding is: as a pair with its own egress IP, and in a map.
func places(b kernel.Binding) (own string, ownKey Key, set string, key Key) {
	if b.Protocol == kernel.All {
		return ownPodsSet, Key{Pod: b.Pod, Other: b.EgressIP}, podsMap, Key{Pod: b.Pod}
	}
	return ownSet, Key{Pod: b.Pod, Protocol: b.Protocol, Other: b.EgressIP}, bindingsMap, Key{Pod: b.Pod, Protocol: b.Protocol}
}

// Record returns c with the journal of bindings that the write of c takes away: in a set that
// no packet meets. It comes and the bindings go in one transaction; the next write of a
// content without it deletes it. Services, order and duplicates do not matter.
func (c Content) Record(removed []kernel.Binding) Content {
	if len(removed) == 0 {
		return c
	}
	recorded := maps.Clone(c)
	if recorded == nil {
		recorded = Content{}
	}
	recorded[removedSet] = Elements{}
	for _, b := range removed {
		recorded[removedSet][Key{Pod: b.Pod, Protocol: b.Protocol, Other: b.EgressIP}] = netip.Addr{}
	}
	return recorded
}

// Bindings returns the bindings that the content stands for, the journal's included: whose
// packets may be leaving, or may have left until lately, from an egress IP. They are
// sorted and free of duplicates, and have no Service.
func (c Content) Bindings() []kernel.Binding {
	var bindings []kernel.Binding
	for key, egressIP := range c[bindingsMap] {
		bindings = append(bindings, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: egressIP})
	}
	for key, egressIP := range c[podsMap] {
		bindings = append(bindings, kernel.Binding{Pod: key.Pod, Protocol: kernel.All, EgressIP: egressIP})
	}
	for key := range c[removedSet] {
		bindings = append(bindings, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: key.Other})
	}
	return kernel.Sorted(bindings)
}

// Elements returns the number of elements in all sets.
func (c Content) Elements() int {
	n := 0
	for _, elements := range c {
		n += len(elements)
	}
	return n
}

// Differences says, for an operator and in a line each, how have differs from want; nothing
// if the sets hold what they should. The journal is no difference.
func Differences(want, have Content) []string {
	var differences []string
	for _, set := range setNames {
		if set == removedSet {
			continue
		}
		added, removed := diff(have[set], want[set])
		for _, key := range added {
			differences = append(differences, fmt.Sprintf("set %s of table %s lacks the element %s", set, Table, text(set, key, want[set][key])))
		}
		for _, key := range removed {
			differences = append(differences, fmt.Sprintf("set %s of table %s has an unexpected element: %s", set, Table, text(set, key, have[set][key])))
		}
	}
	slices.Sort(differences)
	return differences
}

// setNames are those of all sets.
var setNames = []string{exclusionsSet, egressIPsSet, ownSet, ownPodsSet, bindingsMap, podsMap, removedSet}

// diff returns what has to be added and what to be removed to go from one set to another. A key
// that has another value is among both.
func diff(from, to Elements) (added, removed []Key) {
	for key, value := range to {
		if had, there := from[key]; !there || had != value {
			added = append(added, key)
		}
	}
	for key, value := range from {
		if has, there := to[key]; !there || has != value {
			removed = append(removed, key)
		}
	}
	return added, removed
}

// text is an element as nft prints it.
func text(set string, key Key, value netip.Addr) string {
	switch set {
	case exclusionsSet:
		return key.Pod.String() + "-" + key.Other.String()
	case ownSet:
		return fmt.Sprintf("%s . %s . %s", key.Pod, key.Protocol, key.Other)
	case ownPodsSet:
		return key.Pod.String() + " . " + key.Other.String()
	case bindingsMap:
		return fmt.Sprintf("%s . %s : %s", key.Pod, key.Protocol, value)
	case podsMap:
		return fmt.Sprintf("%s : %s", key.Pod, value)
	}
	return key.Pod.String()
}

// addresses are all from first to last.
type addresses struct{ first, last netip.Addr }

// ranges returns the ranges of addresses that prefixes cover, merged where they overlap or
// touch: the kernel wants them apart. They are sorted.
func ranges(prefixes []netip.Prefix) []addresses {
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int { return a.Masked().Addr().Compare(b.Masked().Addr()) })
	var merged []addresses
	for _, prefix := range sorted {
		r := addresses{prefix.Masked().Addr(), lastOf(prefix)}
		if n := len(merged); n > 0 && !merged[n-1].last.Next().Less(r.first) && merged[n-1].last.Next().IsValid() {
			if merged[n-1].last.Less(r.last) {
				merged[n-1].last = r.last
			}
			continue
		} else if n > 0 && !merged[n-1].last.Next().IsValid() {
			continue // the one before goes up to the last address that there is
		}
		merged = append(merged, r)
	}
	return merged
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes) // as long as an address is
	return last
}
