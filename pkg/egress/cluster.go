package egress

import (
	"maps"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// setNode takes the newest version of a Node and tells whether plans may change.
func (s *state) setNode(object *v1.Node) (changed bool) {
	converted := convertNode(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.KeptNodes != "" {
		s.registered.note(object, converted)
	}
	if object.Name == s.config.NodeName {
		changed = s.setPodCIDRs(convertCIDRs(object.Spec.PodCIDRs))
	}
	if equalNodes(s.nodes[object.Name], converted) {
		return changed
	}
	s.nodes[object.Name] = converted
	s.moveNodes()
	return true
}

// setPodCIDRs takes the networks that this node has for its pods, and tells whether plans may change.
func (s *state) setPodCIDRs(cidrs []netip.Prefix) (changed bool) {
	before, now := s.placement, s.placement
	if now.PodCIDRs = cidrs; now.Equal(before) {
		return false
	}
	s.steer(slices.Collect(maps.Keys(s.byAddress)), func() { s.placement = now })
	for name := range s.services {
		for endpoints := range s.endpointsOf(name) {
			had, has := ownEndpoints(before, slices.Clone(endpoints)), ownEndpoints(now, endpoints)
			for _, family := range families {
				s.planners[family].ReplaceEndpoints(planName(name), ofFamily(family, had, endpointAddr), ofFamily(family, has, endpointAddr))
			}
		}
	}
	return true
}

// deleteNode forgets a Node and tells whether plans may change.
func (s *state) deleteNode(name string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == s.config.NodeName {
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

// setServiceCIDRs takes all service CIDRs and tells whether plans may change.
func (s *state) setServiceCIDRs(texts []string) (changed bool) {
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
func (s *state) setNetwork(object *configv1.Network) (changed bool, err error) {
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
func (s *state) networkCIDRs() []netip.Prefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.network.clusterCIDRs
}

// nodeNames returns those of all nodes, sorted.
func (s *state) nodeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.nodes))
}

// clusterCIDRs returns those of both IP families: the configured ones, or else the
// cluster's own. The lock must be held.
func (s *state) clusterCIDRs() []netip.Prefix {
	if len(s.config.ClusterCIDRs) > 0 {
		return s.config.ClusterCIDRs
	}
	return s.network.clusterCIDRs
}

// primary returns the primary address of a node; invalid if it has none.
func (s *state) primary(name string, family v1.IPFamily) netip.Addr {
	return s.primaries(family)[name]
}

// addressOf is primary for one Node. It costs the same however many nodes there are.
func (s *state) addressOf(name string, family v1.IPFamily) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign[family] == nil {
		foreign := plan.NewForeign(s.networks(family))
		s.foreign[family] = &foreign
	}
	return s.foreign[family].Primary(s.nodes[name][family])
}

// primaries returns the primary addresses of all nodes that have one, in an IP family, by their names. The map must not be
// changed. There may be thousands of nodes, and each sync asks several times.
func (s *state) primaries(family v1.IPFamily) map[string]netip.Addr {
	return s.judgedNodes(family).primary
}

// nodeFaults returns what Nodes should not tell, in an IP family. The list must not be changed.
func (s *state) nodeFaults(family v1.IPFamily) []plan.NodeFault { return s.judgedNodes(family).faults }

// judgedNodes are the nodes' addresses of an IP family as the plan has them.
type judgedNodes struct {
	primary map[string]netip.Addr
	// oldest has the oldest node of each address of primary, of those that registered with it if there are any.
	oldest map[netip.Addr]string
	faults []plan.NodeFault
}

// isPrimary tells whether an address is a node's primary one.
func (s *state) isPrimary(ip netip.Addr) bool { return s.judgedNodes(familyOf(ip)).oldest[ip] != "" }

func (s *state) judgedNodes(family v1.IPFamily) *judgedNodes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.judged[family] == nil {
		primary, oldest, faults := plan.PrimaryAddresses(s.surroundings(family))
		s.judged[family] = &judgedNodes{primary, oldest, faults}
	}
	return s.judged[family]
}
