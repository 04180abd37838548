package portsecurity

import (
	"cmp"
	"net/netip"
	"slices"
)

// Link names a network interface for as long as it exists. One that comes later may have the same number, or the same name.
type Link struct {
	Index int
	Name  string
}

// Interface is a network interface of this node that leads to a pod.
type Interface struct {
	Link
	// Behind are the addresses of pods at its other end, as the kernel tells them, in its order; none if it tells none.
	Behind []netip.Addr
	// Redirected: a tc filter takes its packets, or some of them, past the table.
	Redirected bool
}

// Told is what the CNI plugin told of a pod.
type Told struct {
	// Interfaces are the names of those on the node that were made for it.
	Interfaces []string
	Addresses  []netip.Addr
}

// Grants are the addresses that interfaces have: those that the CNI plugin has told of, or one of each IP family at most.
type Grants map[Link][]netip.Addr

// Refusal is an address that is behind an interface without belonging to it.
type Refusal struct {
	Address   netip.Addr
	Interface string
	// Owner is the interface that has the address; empty if none has it, and Interface has another one.
	Owner string
}

// Assign returns which addresses belong to which interface, and what was refused, sorted. before is what it returned last.
func Assign(before Grants, interfaces []Interface, told []Told) (Grants, []Refusal) {
	a := assignment{grants: Grants{}, owners: map[netip.Addr]string{}}
	sorted := slices.SortedFunc(slices.Values(interfaces), func(a, b Interface) int { return cmp.Compare(a.Index, b.Index) })
	byName := make(map[string]Interface, len(sorted))
	for _, i := range sorted {
		byName[i.Name] = i
	}
	for _, t := range told {
		for _, name := range t.Interfaces {
			if i, exists := byName[name]; exists {
				a.grant(i, t.Addresses)
			}
		}
	}
	for _, i := range sorted {
		a.grant(i, a.lacking(i, before[i.Link]))
	}
	for _, i := range sorted {
		for _, address := range i.Behind {
			a.grant(i, a.lacking(i, []netip.Addr{address}))
		}
	}
	return a.grants, a.refusals(sorted)
}

// assignment is an Assign under way.
type assignment struct {
	grants Grants
	owners map[netip.Addr]string // the names of the interfaces that have addresses
}

// lacking returns those of addresses of whose family an interface has none.
func (a *assignment) lacking(i Interface, addresses []netip.Addr) (lacking []netip.Addr) {
	for _, address := range addresses {
		sameFamily := func(other netip.Addr) bool { return other.Is4() == address.Is4() }
		if !slices.ContainsFunc(a.grants[i.Link], sameFamily) {
			lacking = append(lacking, address)
		}
	}
	return lacking
}

// grant gives an interface those addresses that nobody has.
func (a *assignment) grant(i Interface, addresses []netip.Addr) {
	for _, address := range addresses {
		if a.owners[address] == "" {
			a.grants[i.Link] = append(a.grants[i.Link], address)
			a.owners[address] = i.Name
		}
	}
}

func (a *assignment) refusals(interfaces []Interface) (refusals []Refusal) {
	for _, i := range interfaces {
		for _, address := range i.Behind {
			if owner := a.owners[address]; owner != i.Name {
				refusals = append(refusals, Refusal{Address: address, Interface: i.Name, Owner: owner})
			}
		}
	}
	slices.SortFunc(refusals, func(a, b Refusal) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Interface, b.Interface))
	})
	return refusals
}
