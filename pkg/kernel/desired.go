package kernel

import (
	"cmp"
	"net/netip"
	"slices"
)

// Family is an IP family, spelled as Kubernetes does.
type Family string

// The IP families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// FamilyOf returns the IP family of an address. One of IPv4 that is mapped to IPv6 is of IPv6.
func FamilyOf(ip netip.Addr) Family {
	if ip.Is4() {
		return IPv4
	}
	return IPv6
}

// AddrOf returns the address of so many bytes, of IPv4 if it is mapped to IPv6; the zero Addr if they are none.
func AddrOf(bytes []byte) netip.Addr {
	ip, _ := netip.AddrFromSlice(bytes)
	return ip.Unmap()
}

// Protocol is a transport protocol as iptables and nft spell it.
type Protocol string

// The protocols that a Service port can have, and all IP protocols together.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	SCTP Protocol = "sctp"
	All  Protocol = "all"
)

// Binding says that a pod's packets of one protocol leave from an egress IP.
type Binding struct {
	Pod      netip.Addr `json:"pod"`
	Protocol Protocol   `json:"protocol"`
	EgressIP netip.Addr `json:"egressIP"`
}

// CompareBindings is the order of bindings in a [Desired].
func CompareBindings(a, b Binding) int {
	return cmp.Or(
		a.Pod.Compare(b.Pod),
		cmp.Compare(a.Protocol, b.Protocol),
		a.EgressIP.Compare(b.EgressIP),
	)
}

// Networks are destinations that are never SNATed. Both lists are sorted and free of duplicates.
type Networks struct {
	// ClusterCIDRs are the networks of the cluster's pods.
	ClusterCIDRs []netip.Prefix `json:"clusterCIDRs"`
	// Exclusions are further networks, among them the addresses of the cluster's nodes.
	Exclusions []netip.Prefix `json:"exclusions"`
}

// Equal tells whether n and o are the same networks.
func (n Networks) Equal(o Networks) bool {
	return slices.Equal(n.ClusterCIDRs, o.ClusterCIDRs) && slices.Equal(n.Exclusions, o.Exclusions)
}

// Desired is what the kernel should hold of one IP family.
type Desired struct {
	Networks
	// Bindings are sorted and free of duplicates. A packet to a pod's own egress IP is not SNATed:
	// the pod means the Service.
	Bindings []Binding
	// Steering says which packets of the bound pods leave through other nodes.
	Steering Steering
}

// Change is the way from one Desired to the next.
type Change struct {
	// Added and Removed are bindings, sorted. A binding with another egress IP is in both.
	Added, Removed []Binding
	// Networks are those after the change; NetworksChanged tells whether they were others before.
	Networks        Networks
	NetworksChanged bool
	// Steering is that after the change; SteeringChanged tells whether it was another one before.
	Steering        Steering
	SteeringChanged bool
}

// Empty tells whether the kernel stays as it is.
func (c Change) Empty() bool {
	return !c.NetworksChanged && !c.SteeringChanged && len(c.Added)+len(c.Removed) == 0
}

// Diff returns the bindings that only after has, and those that only before has. All lists are in
// the order of [CompareBindings] and free of duplicates.
func Diff(before, after []Binding) (added, removed []Binding) {
	for len(before) > 0 && len(after) > 0 {
		switch c := CompareBindings(before[0], after[0]); {
		case c > 0:
			added, after = append(added, after[0]), after[1:]
		case c < 0:
			removed, before = append(removed, before[0]), before[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return append(added, after...), append(removed, before...)
}

// Sorted returns a copy of bindings in the order of [CompareBindings], without duplicates.
func Sorted(bindings []Binding) []Binding {
	sorted := slices.Clone(bindings)
	slices.SortFunc(sorted, CompareBindings)
	return slices.Compact(sorted)
}
