package egress

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// state is what the plan needs of the Kubernetes objects. Its methods may be called by
// several goroutines at once.
type state struct {
	config Config

	mu sync.Mutex
	// services has those Services that the outside knows by an address.
	services map[types.NamespacedName]service
	// endpoints has those of every EndpointSlice, by Service and slice.
	endpoints map[types.NamespacedName]map[string][]plan.Endpoint
	// serviceOf has the Service of every EndpointSlice in endpoints.
	serviceOf map[types.NamespacedName]types.NamespacedName
	// pods has how often endpoints name each pod of their own namespace, by its address.
	pods map[netip.Addr]map[plan.Pod]int
	// unnamed: a claim's own endpoints did not name their pods, once, so plans depend on
	// pods, and any EndpointSlice may change them.
	unnamed      bool
	nodes        map[string]map[v1.IPFamily]plan.Node
	serviceCIDRs []netip.Prefix
	network      network
}

func newState(config Config) *state {
	return &state{
		config:    config,
		services:  map[types.NamespacedName]service{},
		endpoints: map[types.NamespacedName]map[string][]plan.Endpoint{},
		serviceOf: map[types.NamespacedName]types.NamespacedName{},
		pods:      map[netip.Addr]map[plan.Pod]int{},
		nodes:     map[string]map[v1.IPFamily]plan.Node{},
	}
}

// setService takes the newest version of a Service and tells whether plans may change.
func (s *state) setService(object *v1.Service) (changed bool) {
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	converted := convertService(object, s.config)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(converted.claims)+len(converted.holdings) == 0 {
		return s.removeService(name)
	}
	if old, known := s.services[name]; known && converted.equal(old) {
		return false
	}
	s.services[name] = converted
	return true
}

// deleteService forgets a Service and tells whether plans may change.
func (s *state) deleteService(object *v1.Service) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeService(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
}

func (s *state) removeService(name types.NamespacedName) (changed bool) {
	_, changed = s.services[name]
	delete(s.services, name)
	return changed
}

// uid returns that of a Service with claims, or nothing.
func (s *state) uid(name plan.Service) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services[types.NamespacedName{Namespace: name.Namespace, Name: name.Name}].uid
}

// setSlice takes the newest version of an EndpointSlice and tells whether plans may
// change. Addresses that cannot be parsed are returned in err; the others count.
func (s *state) setSlice(object *discovery.EndpointSlice) (changed bool, err error) {
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	owner := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[discovery.LabelServiceName]}
	endpoints, err := convertSlice(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, known := s.serviceOf[name]; known && old != owner {
		changed = s.removeSlice(name)
	}
	if owner.Name == "" || slices.Equal(s.endpoints[owner][name.Name], endpoints) {
		return changed, err
	}
	if s.endpoints[owner] == nil {
		s.endpoints[owner] = map[string][]plan.Endpoint{}
	}
	s.countPods(owner.Namespace, s.endpoints[owner][name.Name], -1)
	s.countPods(owner.Namespace, endpoints, 1)
	s.endpoints[owner][name.Name] = endpoints
	s.serviceOf[name] = owner
	_, claimed := s.services[owner]
	return changed || claimed || owner == apiServer || s.unnamed, err
}

// deleteSlice forgets an EndpointSlice and tells whether plans may change.
func (s *state) deleteSlice(object *discovery.EndpointSlice) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeSlice(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
}

func (s *state) removeSlice(name types.NamespacedName) (changed bool) {
	owner, known := s.serviceOf[name]
	if !known {
		return false
	}
	s.countPods(owner.Namespace, s.endpoints[owner][name.Name], -1)
	delete(s.serviceOf, name)
	delete(s.endpoints[owner], name.Name)
	if len(s.endpoints[owner]) == 0 {
		delete(s.endpoints, owner)
	}
	_, claimed := s.services[owner]
	return claimed || owner == apiServer || s.unnamed
}

// setNode takes the newest version of a Node and tells whether plans may change.
func (s *state) setNode(object *v1.Node) (changed bool) {
	converted := convertNode(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if equalNodes(s.nodes[object.Name], converted) {
		return false
	}
	s.nodes[object.Name] = converted
	return true
}

// deleteNode forgets a Node and tells whether plans may change.
func (s *state) deleteNode(name string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = len(s.nodes[name]) > 0
	delete(s.nodes, name)
	return changed
}

// setServiceCIDRs takes all service CIDRs and tells whether plans may change.
func (s *state) setServiceCIDRs(texts []string) (changed bool) {
	cidrs := convertCIDRs(texts)
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !slices.Equal(s.serviceCIDRs, cidrs)
	s.serviceCIDRs = cidrs
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

// input returns what the plan of family depends on.
func (s *state) input(family v1.IPFamily) plan.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(cidrs []netip.Prefix) []netip.Prefix { return ofFamily(family, cidrs, netip.Prefix.Addr) }
	in := plan.Input{
		ClusterCIDRs:      of(s.clusterCIDRs()),
		ServiceCIDRs:      of(slices.Concat(s.serviceCIDRs, s.network.serviceCIDRs)),
		Exclusions:        of(s.config.Exclusions),
		ExcludeNodes:      s.config.ExcludeNodes,
		AllowNodeIPs:      s.config.AllowNodeIPs,
		Policies:          s.policies(),
		NamespacePolicies: s.config.NamespacePolicies,
	}
	for _, endpoints := range s.endpoints[apiServer] {
		for _, e := range ofFamily(family, endpoints, endpointAddr) {
			in.APIServers = append(in.APIServers, e.Addr)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if node, ok := s.nodes[name][family]; ok {
			in.Nodes = append(in.Nodes, node)
		}
	}
	for name, svc := range s.services {
		if holding, ok := svc.holdings[family]; ok {
			in.Holdings = append(in.Holdings, holding)
		}
		claim, ok := svc.claims[family]
		if !ok {
			continue
		}
		for _, endpoints := range s.endpoints[name] {
			claim.Endpoints = append(claim.Endpoints, ofFamily(family, endpoints, endpointAddr)...)
		}
		s.namePods(claim.Endpoints)
		in.Claims = append(in.Claims, claim)
	}
	return in
}

// namePods fills in the pods that these EndpointSlices do not name and others do: who
// leaves the name out binds no pod of another namespace either.
func (s *state) namePods(endpoints []plan.Endpoint) {
	for i, e := range endpoints {
		if e.Pod.Namespace == "" {
			s.unnamed = true
			endpoints[i].Pod = s.podAt(e.Addr)
		}
	}
}

// podAt returns the pod at an address, as an EndpointSlice of the pod's own namespace has
// it, of several the first by name; zero if none does.
func (s *state) podAt(addr netip.Addr) plan.Pod {
	var found plan.Pod
	for name := range s.pods[addr] {
		if found == (plan.Pod{}) || name.String() < found.String() {
			found = name
		}
	}
	return found
}

// countPods keeps pods up to date when endpoints of a namespace come (by is 1) or go (-1).
func (s *state) countPods(namespace string, endpoints []plan.Endpoint, by int) {
	for _, e := range endpoints {
		if e.Pod.Namespace != namespace || namespace == "" {
			continue
		}
		if s.pods[e.Addr] == nil {
			s.pods[e.Addr] = map[plan.Pod]int{}
		}
		if s.pods[e.Addr][e.Pod] += by; s.pods[e.Addr][e.Pod] == 0 {
			delete(s.pods[e.Addr], e.Pod)
		}
		if len(s.pods[e.Addr]) == 0 {
			delete(s.pods, e.Addr)
		}
	}
}

// apiServer is the Service whose endpoints are the API servers.
var apiServer = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

func endpointAddr(e plan.Endpoint) netip.Addr { return e.Addr }

// policies returns those that hold for every namespace.
func (s *state) policies() []plan.Policy {
	var policies []plan.Policy
	if s.config.AllowedCIDRs != nil {
		policies = append(policies, plan.Policy{Source: allowedCIDRsSource, Allowed: s.config.AllowedCIDRs})
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
}

// PlanFor returns the plan of family for these objects. What of them cannot be read is in
// err; the plan is complete without it.
func PlanFor(family v1.IPFamily, config Config, objects Objects) (plan.Plan, error) {
	in, err := InputFor(family, config, objects)
	return plan.Build(in), err
}

// InputFor returns what PlanFor's plan is made from.
func InputFor(family v1.IPFamily, config Config, objects Objects) (plan.Input, error) {
	s := newState(config)
	var errs []error
	for _, object := range objects.Services {
		s.setService(object)
	}
	for _, object := range objects.EndpointSlices {
		if _, err := s.setSlice(object); err != nil {
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", object.Namespace, object.Name, err))
		}
	}
	for _, object := range objects.Nodes {
		s.setNode(object)
	}
	s.setServiceCIDRs(objects.ServiceCIDRs)
	_, err := s.setNetwork(objects.Network)
	return s.input(family), errors.Join(append(errs, err)...)
}
