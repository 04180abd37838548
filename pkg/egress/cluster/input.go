package cluster

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Input returns all that the cluster's plan of family depends on, and which part of it is this node's.
func (s *State) Input(family v1.IPFamily) (plan.Input, placement.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wholeInput(family), s.placement
}

// wholeInput is [State.Input] with the lock held.
func (s *State) wholeInput(family v1.IPFamily) plan.Input {
	in := s.surroundings(family)
	for addr, a := range s.attachments {
		if FamilyOf(addr) == family {
			in.Attachments = append(in.Attachments, a)
		}
	}
	in.Choices = s.choicesOf(family)
	pods := s.pods // of the whole cluster, which this node's plan may never need
	for name, svc := range s.services {
		part := svc.parts[family]
		if part == nil {
			continue
		}
		in.Holdings = append(in.Holdings, part.holding)
		if part.claim == nil {
			continue
		}
		claim := *part.claim
		for endpoints := range s.endpointsOf(name) {
			for _, e := range ofFamily(family, endpoints, endpointAddr) {
				if a, attached := s.attachments[e.Addr]; e.Pod.Namespace == "" && (!attached || a.Released) { // leaving the name out binds no pod of another namespace either
					if pods == nil {
						pods = s.countPods()
					}
					e.Pod = pods.at(name.Namespace, e.Addr)
				}
				claim.Endpoints = append(claim.Endpoints, e)
			}
		}
		in.Claims = append(in.Claims, claim)
	}
	return in
}

// surroundings returns what the plan of family depends on beside Services and their endpoints.
// The lock must be held.
func (s *State) surroundings(family v1.IPFamily) plan.Input {
	in := s.networks(family)
	for endpoints := range s.endpointsOf(apiServer) {
		for _, e := range ofFamily(family, endpoints, endpointAddr) {
			in.APIServers = append(in.APIServers, e.Addr)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if node, ok := s.nodes[name][family]; ok {
			in.Nodes = append(in.Nodes, node)
		}
	}
	return in
}

// networks returns surroundings without nodes and API servers. The lock must be held.
func (s *State) networks(family v1.IPFamily) plan.Input {
	of := func(cidrs []netip.Prefix) []netip.Prefix { return ofFamily(family, cidrs, netip.Prefix.Addr) }
	return plan.Input{
		ClusterCIDRs:   of(s.clusterCIDRs()),
		ServiceCIDRs:   of(slices.Concat(s.serviceCIDRs, s.network.serviceCIDRs)),
		Exclusions:     of(s.Config.Exclusions),
		AssignCIDRs:    of(s.Config.Pool.Networks),
		ExcludeNodes:   s.Config.ExcludeNodes,
		AllowNodeIPs:   s.Config.AllowNodeIPs,
		Policies:       s.policies(),
		NamespaceCIDRs: s.Config.NamespaceCIDRs,
		NoProxier:      !slices.Contains(s.served, family),
	}
}

// apiServer is the Service whose endpoints are the API servers.
var apiServer = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// policies returns those that hold for every namespace.
func (s *State) policies() []plan.Policy {
	var policies []plan.Policy
	if s.Config.AllowedCIDRs != nil {
		policies = append(policies, plan.Policy{Source: allowedCIDRsSource, Allowed: s.Config.AllowedCIDRs})
	}
	if s.network.policy != nil {
		policies = append(policies, *s.network.policy)
	}
	return policies
}

// allowedCIDRsSource names the configured policy in messages.
const allowedCIDRsSource = "proxyArguments.egress-snat-allowed-cidrs"

// Objects are all that a plan is made from.
type Objects struct {
	Services       []*v1.Service
	EndpointSlices []*discovery.EndpointSlice
	Nodes          []*v1.Node
	ServiceCIDRs   []string
	// Network is OpenShift's; nil if there is none.
	Network *configv1.Network
	// Held are the addresses that this node holds, as in [placement.Placement]. Announced are those of them that are on none of its
	// interfaces, but a load balancer announces them from here, and Balanced those that it may announce from here next.
	Held      map[netip.Addr]bool
	Announced []netip.Addr
	Balanced  map[netip.Addr]bool
	// Attachments are those of this node's pods, at most one of an address.
	Attachments []plan.Attachment
	// Leases are those in which nodes announce theirs.
	Leases []*coordinationv1.Lease
	// Hardware are the hardware addresses of hosts on this node's networks, as far as its kernel knows them.
	Hardware map[netip.Addr]kernel.HardwareAddr
}

// PlanFor returns this node's plan of family for these objects. What of them cannot be read is in
// err; the plan is complete without it.
func PlanFor(family v1.IPFamily, config Config, objects Objects) (plan.Plan, error) {
	s, _, err := StateFor(config, objects)
	in, place := s.Input(family)
	return plan.Build(place.Of(in)), err
}

// StateFor returns the state for these objects, and the addresses that may come to this node at any moment. What of the
// objects cannot be read is in err.
func StateFor(config Config, objects Objects) (s *State, comes map[netip.Addr]bool, err error) {
	s = New(config)
	errs := []error{s.loadRegistrations()} // see CheckKeptNodes
	for _, lease := range objects.Leases {
		told, err := holders.Choosing(lease)
		errs = append(errs, err)
		s.SetChoices(lease.Name, told)
	}
	for _, object := range objects.Services {
		s.SetService(object)
	}
	for _, object := range objects.EndpointSlices {
		if _, err := s.SetSlice(object); err != nil {
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", object.Namespace, object.Name, err))
		}
	}
	for _, object := range objects.Nodes {
		s.SetNode(object)
	}
	for _, a := range objects.Attachments {
		s.SetAttachment(a)
	}
	s.SetServiceCIDRs(objects.ServiceCIDRs)
	_, err = s.setNetwork(objects.Network)
	comes = s.assignable(objects.Nodes)
	maps.Copy(comes, objects.Balanced)
	held := maps.Clone(comes)
	maps.Copy(held, objects.Held)
	s.SetHeld(held, 0)
	for _, family := range Families {
		s.Update(family) // it chooses for this node's pods
	}
	return s, comes, errors.Join(append(errs, err)...)
}

// assignable returns the egress IPs that this node may get at any moment; none unless it is in the pool.
func (s *State) assignable(nodes []*v1.Node) map[netip.Addr]bool {
	assignable, pool := map[netip.Addr]bool{}, s.Config.Pool
	if len(pool.Networks) == 0 || !slices.ContainsFunc(nodes, func(n *v1.Node) bool { return n.Name == s.Config.NodeName && pool.Selects(n.Labels) }) {
		return assignable
	}
	for _, family := range Families {
		s.Update(family)
		maps.Copy(assignable, s.Granted(family, pool.Networks, 0).Addresses)
	}
	return assignable
}
