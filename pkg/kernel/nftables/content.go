package nftables

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Table is the name of the table, in either family. Changing it orphans what earlier
// versions have written.
const Table = "openshift-egress"

// SourceNATPriority is in front of everybody else's source NAT: others are at 100, or a little lower (kindnet: 90). The lowest that the
// kernel allows is -199. Package steering has that, and the one behind it.
const SourceNATPriority = -197

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
type Content nft.Content

// Elements are those of a set: the values, invalid but in maps, by their keys.
type Elements = nft.Elements

// Key is that of an element. Pod is the pod's address; the first address of an exclusion; an egress IP in
// egress-ips. Other is the egress IP, or the last address of an exclusion.
type Key = nft.Key

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
	return nft.Ranges(slices.Concat(n.ClusterCIDRs, n.Exclusions))
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

// sets are those of the table. The protocol of all is in the journal alone.
var sets = []nft.Set{
	{Name: exclusionsSet, Ranges: true},
	{Name: egressIPsSet},
	{Name: ownSet, Protocol: true, Other: true},
	{Name: ownPodsSet, Other: true},
	{Name: bindingsMap, Protocol: true, Map: true},
	{Name: podsMap, Map: true},
	{Name: removedSet, Protocol: true, Other: true, Journal: true},
}

// text is an element as nft prints it.
func text(set string, key Key, value netip.Addr) string {
	return sets[slices.IndexFunc(sets, func(s nft.Set) bool { return s.Name == set })].Text(key, value)
}
