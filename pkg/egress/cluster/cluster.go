package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
)

// SetNode takes the newest version of a Node and tells whether plans may change.
func (s *State) SetNode(object *v1.Node) (changed bool) {
	converted := convertNode(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Config.KeptNodes != "" {
		s.registered.note(object, converted)
	}
	if object.Name == s.Config.NodeName {
		changed = s.setPodCIDRs(convertCIDRs(object.Spec.PodCIDRs))
	}
	before := s.nodes[object.Name]
	s.nodes[object.Name] = converted // also if it has no address, and was not known
	if equalNodes(before, converted) {
		return changed
	}
	s.moveNodes()
	return true
}

// setPodCIDRs takes the networks that this node has for its pods, and tells whether plans may change.
func (s *State) setPodCIDRs(cidrs []netip.Prefix) (changed bool) {
	before, now := s.placement, s.placement
	if now.PodCIDRs = cidrs; now.Equal(before) {
		return false
	}
	s.replanSteered(slices.Collect(maps.Keys(s.byAddress)), func() { s.placement = now })
	for name := range s.services {
		for endpoints := range s.endpointsOf(name) {
			had, has := ownEndpoints(before, slices.Clone(endpoints)), ownEndpoints(now, endpoints)
			for _, family := range Families {
				s.planners[family].ReplaceEndpoints(PlanName(name), ofFamily(family, had, endpointAddr), ofFamily(family, has, endpointAddr))
			}
		}
	}
	return true
}

// DeleteNode forgets a Node and tells whether plans may change.
func (s *State) DeleteNode(name string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == s.Config.NodeName {
		changed = s.setPodCIDRs(nil)
	}
	if len(s.nodes[name]) > 0 {
		s.moveNodes()
		changed = true
	}
	delete(s.nodes, name)
	changed = s.forgetChoices(name) || changed
	s.registered.forget(name)
	return changed
}

// SetServiceCIDRs takes all service CIDRs and tells whether plans may change.
func (s *State) SetServiceCIDRs(texts []string) (changed bool) {
	cidrs := convertCIDRs(texts)
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !slices.Equal(s.serviceCIDRs, cidrs)
	s.serviceCIDRs = cidrs
	if changed {
		s.move()
	}
	return changed
}

// setNetwork takes the newest version of the cluster's Network, nil if there is none, and
// tells whether plans may change. What cannot be read is returned in err.
func (s *State) setNetwork(object *configv1.Network) (changed bool, err error) {
	var converted network
	if object != nil {
		converted, err = convertNetwork(object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !s.network.equal(converted)
	s.network = converted
	if changed {
		s.move()
	}
	return changed, err
}

// networkCIDRs returns the cluster CIDRs that OpenShift's Network tells.
func (s *State) networkCIDRs() []netip.Prefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.network.clusterCIDRs
}

// NodeNames returns those of all nodes, sorted.
func (s *State) NodeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.nodes))
}

// HasInternalIP tells whether there is a Node with an address of that type, whether or not it counts.
func (s *State) HasInternalIP(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes[node]) > 0
}

// clusterCIDRs returns those of both IP families: the configured ones, or else the
// cluster's own. The lock must be held.
func (s *State) clusterCIDRs() []netip.Prefix {
	if len(s.Config.ClusterCIDRs) > 0 {
		return s.Config.ClusterCIDRs
	}
	return s.network.clusterCIDRs
}

// PodFamilies returns the IP families that pods have addresses of; both if the networks of the cluster's pods are not known.
func (s *State) PodFamilies() (families []v1.IPFamily) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, family := range Families {
		if slices.ContainsFunc(s.clusterCIDRs(), func(cidr netip.Prefix) bool { return FamilyOf(cidr.Addr()) == family }) {
			families = append(families, family)
		}
	}
	if len(families) == 0 {
		return Families
	}
	return families
}

// Primary returns the primary address of a node; invalid if it has none.
func (s *State) Primary(name string, family v1.IPFamily) netip.Addr {
	return s.Primaries(family)[name]
}

// addressOf is Primary for one Node. It costs the same however many nodes there are.
func (s *State) addressOf(name string, family v1.IPFamily) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign[family] == nil {
		foreign := plan.NewForeign(s.networks(family))
		s.foreign[family] = &foreign
	}
	return s.foreign[family].Primary(s.nodes[name][family])
}

// Primaries returns the primary addresses of all nodes that have one, in an IP family, by their names. The map must not be
// changed. There may be thousands of nodes, and each sync asks several times.
func (s *State) Primaries(family v1.IPFamily) map[string]netip.Addr {
	return s.JudgedNodes(family).Primary
}

// NodeFaults returns what Nodes should not tell, in an IP family. The list must not be changed.
func (s *State) NodeFaults(family v1.IPFamily) []plan.NodeFault { return s.JudgedNodes(family).faults }

// JudgedNodes are the nodes' addresses of an IP family as the plan has them.
type JudgedNodes struct {
	Primary map[string]netip.Addr
	// Addresses are those of Primary, sorted, each once, and ByAge the same by the age of the nodes that registered with them, then of the others.
	Addresses, ByAge []netip.Addr
	// Oldest has the oldest node of each address of primary, of those that registered with it if there are any.
	Oldest map[netip.Addr]string
	faults []plan.NodeFault
}

// IsPrimary tells whether an address is a node's primary one.
func (s *State) IsPrimary(ip netip.Addr) bool { return s.JudgedNodes(FamilyOf(ip)).Oldest[ip] != "" }

// JudgedNodes returns what the plan makes of the addresses that Nodes tell. It must not be changed, and is the same until they change.
func (s *State) JudgedNodes(family v1.IPFamily) *JudgedNodes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judgedNodes(family)
}

// judgedNodes is JudgedNodes with the lock held.
func (s *State) judgedNodes(family v1.IPFamily) *JudgedNodes {
	if s.judged[family] == nil {
		primary, oldest, byAge, faults := plan.PrimaryAddresses(s.surroundings(family))
		s.judged[family] = &JudgedNodes{primary, slices.SortedFunc(slices.Values(byAge), netip.Addr.Compare), byAge, oldest, faults}
	}
	return s.judged[family]
}

// Snapshot is what the objects say at a moment, for who has to know it while it holds a lock of its own. It must not be changed.
type Snapshot struct {
	// Revision is that of the moment: a later one has a greater one.
	Revision uint64
	Judged   map[v1.IPFamily]*JudgedNodes
	// EgressIPs are those of [State.EgressIPs].
	EgressIPs map[v1.IPFamily][]netip.Addr
}

// IsPrimary is that of the State.
func (s Snapshot) IsPrimary(ip netip.Addr) bool { return s.Judged[FamilyOf(ip)].Oldest[ip] != "" }

// Snapshot returns that of this moment. It costs little if nothing has changed.
func (s *State) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots++
	now := Snapshot{s.snapshots, map[v1.IPFamily]*JudgedNodes{}, map[v1.IPFamily][]netip.Addr{}}
	for _, family := range Families {
		now.Judged[family], now.EgressIPs[family] = s.judgedNodes(family), s.egressIPs(family)
	}
	return now
}

// ZonesOf returns those of nodes, as far as they are known.
func (s *State) ZonesOf(nodes []string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	zones := map[string]string{}
	for _, name := range nodes {
		if zone := s.zone(name); zone != "" {
			zones[name] = zone
		}
	}
	return zones
}

// Inside returns in words which networks overlap those of the cluster.
func (s *State) Inside(networks []netip.Prefix) (overlaps []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cidr := range slices.Concat(s.Config.ClusterCIDRs, s.network.clusterCIDRs, s.serviceCIDRs, s.network.serviceCIDRs) {
		for _, network := range networks {
			if text := fmt.Sprintf("%s overlaps %s", network, cidr); network.Overlaps(cidr) && !slices.Contains(overlaps, text) {
				overlaps = append(overlaps, text)
			}
		}
	}
	return overlaps
}

// NodeSeen returns what a Node says that SetNode has taken, with the address of this IP family that counts.
func (s *State) NodeSeen(node *v1.Node, outer v1.IPFamily) holders.NodeSeen {
	return holders.NodeSeen{Name: node.Name, Ready: extension.IsReady(node), InternalIPs: valid(s.addressOf(node.Name, outer))}
}

// valid returns a list of an address; an empty one if it is invalid.
func valid(ip netip.Addr) []netip.Addr {
	if !ip.IsValid() {
		return nil
	}
	return []netip.Addr{ip}
}

// OuterOf returns the IP family of a node's first address; IPv4 if there is no such node.
func OuterOf(name string, nodes []*v1.Node) v1.IPFamily {
	for _, node := range nodes {
		if ips := internalIPs(node); node.Name == name && len(ips) > 0 {
			return FamilyOf(ips[0])
		}
	}
	return v1.IPv4Protocol
}

// The kinds of objects that plans depend on.
const (
	Services     = "Services"
	SlicesKind   = "EndpointSlices"
	serviceCIDRs = "ServiceCIDRs"
	Nodes        = "Nodes"
	networks     = networkSource

	LeasesKind       = "Leases"
	Balancers        = "objects of MetalLB"
	headlessServices = "headless Services"
	headlessSlices   = "EndpointSlices of headless Services"
	otherProxySlices = "EndpointSlices for other proxies"
)

// Kinds are those that every plan depends on.
var Kinds = []string{Services, SlicesKind, headlessServices, headlessSlices, otherProxySlices, serviceCIDRs, Nodes, networks}
