package egress

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// state is what the plans need of the Kubernetes objects, and the plans' makers. Its methods may
// be called by several goroutines at once.
type state struct {
	config Config

	mu sync.Mutex
	// services has those Services that the outside knows by an address.
	services map[types.NamespacedName]service
	// slices are the EndpointSlices, by Service, which has one mostly. The objects are those that the
	// informer keeps as well; they are read where somebody needs endpoints.
	slices map[types.NamespacedName][]*discovery.EndpointSlice
	// serviceOf has the name of the Service of every EndpointSlice in slices.
	serviceOf map[types.NamespacedName]string
	// unserved has the pods that EndpointSlices name which the proxier does not serve.
	unserved map[unservedName][]plan.Endpoint
	// pods is nil as long as no endpoint of a claim has left its pod's name to others.
	pods         podNames
	nodes        map[string]map[v1.IPFamily]plan.Node
	serviceCIDRs []netip.Prefix
	network      network
	// served are the IP families that a proxier serves.
	served []v1.IPFamily
	// placement says which endpoints are this node's to bind. The planners know no others.
	placement placement.Placement
	// byAddress is nil as long as this node has held no egress IP of a claim.
	byAddress addressIndex
	// claimed are the egress IPs that Services claim.
	claimed map[v1.IPFamily]*claimedIPs

	planners map[v1.IPFamily]*plan.Planner
	// moved are the families whose planners have to be told their surroundings.
	moved map[v1.IPFamily]bool
}

func newState(config Config) *state {
	s := &state{
		config:    config,
		services:  map[types.NamespacedName]service{},
		slices:    map[types.NamespacedName][]*discovery.EndpointSlice{},
		serviceOf: map[types.NamespacedName]string{},
		unserved:  map[unservedName][]plan.Endpoint{},
		nodes:     map[string]map[v1.IPFamily]plan.Node{},
		served:    families,
		placement: placement.Placement{Scope: config.Scope, NodeName: config.NodeName},
		claimed:   map[v1.IPFamily]*claimedIPs{},
		planners:  map[v1.IPFamily]*plan.Planner{},
		moved:     map[v1.IPFamily]bool{},
	}
	for _, family := range families {
		s.planners[family] = plan.NewPlanner(s.podAt)
		s.claimed[family] = &claimedIPs{claims: map[netip.Addr]int{}}
	}
	s.move()
	return s
}

// setServed says which IP families a proxier serves; all do as long as it is not said.
func (s *state) setServed(served []v1.IPFamily) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = served
	s.move()
}

// move notes that what claims are judged by has changed. The lock must be held.
func (s *state) move() {
	for _, family := range families {
		s.moved[family] = true
	}
}

// setService takes the newest version of a Service and tells whether plans may change.
func (s *state) setService(object *v1.Service) (changed bool) {
	name := nameOf(object)
	converted := convertService(object, s.config)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(converted.parts) == 0 {
		return s.removeService(name)
	}
	old, known := s.services[name]
	if known && converted.equal(old) {
		return false
	}
	s.countClaims(old, converted)
	if converted.claims(func(ip netip.Addr) bool { return s.placement.Held[ip] }) {
		s.index()
	}
	s.steer(s.indexedAddresses(name), func() {
		s.services[name] = converted
		for _, family := range families {
			s.planService(family, name, old.parts[family] != nil)
		}
		if !known {
			s.indexService(name, 1)
		}
	})
	return true
}

// planService tells a planner of a Service. If it was not known there, it is told its endpoints, too.
func (s *state) planService(family v1.IPFamily, name types.NamespacedName, known bool) {
	part, planner := s.services[name].parts[family], s.planners[family]
	if part == nil {
		planner.DeleteService(planName(name))
		return
	}
	planner.SetService(part.holding, part.claim)
	if known {
		return
	}
	for endpoints := range s.endpointsOf(name) {
		planner.ReplaceEndpoints(planName(name), nil, ofFamily(family, ownEndpoints(s.placement, endpoints), endpointAddr))
	}
}

// ownEndpoints returns those of an EndpointSlice that are a node's to bind, as a Planner takes them:
// sorted and without duplicates, in the same memory. Those elsewhere, which are most, cost no sorting.
func ownEndpoints(place placement.Placement, endpoints []plan.Endpoint) []plan.Endpoint {
	own := place.Only(endpoints)
	slices.SortFunc(own, plan.Endpoint.Compare)
	return slices.Compact(own)
}

// endpointsOf returns the endpoints of each of a Service's EndpointSlices. Addresses that cannot be
// parsed are left out.
func (s *state) endpointsOf(name types.NamespacedName) iter.Seq[[]plan.Endpoint] {
	return func(yield func([]plan.Endpoint) bool) {
		for _, object := range s.slices[name] {
			if endpoints, _ := convertSlice(object); !yield(endpoints) {
				return
			}
		}
	}
}

func planName(name types.NamespacedName) plan.Service {
	return plan.Service{Namespace: name.Namespace, Name: name.Name}
}

// deleteService forgets a Service and tells whether plans may change.
func (s *state) deleteService(object *v1.Service) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeService(nameOf(object))
}

func (s *state) removeService(name types.NamespacedName) (changed bool) {
	old, known := s.services[name]
	if !known {
		return false
	}
	s.countClaims(old, service{})
	s.steer(s.indexedAddresses(name), func() {
		s.indexService(name, -1)
		delete(s.services, name)
		for _, planner := range s.planners {
			planner.DeleteService(planName(name))
		}
	})
	return true
}

// uid returns that of a Service with claims, or nothing.
func (s *state) uid(name plan.Service) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services[types.NamespacedName{Namespace: name.Namespace, Name: name.Name}].uid
}

// effect is what a change of an object may mean.
type effect int

const (
	// nothing: no plan changes.
	nothing effect = iota
	// elsewhere: the plans of other nodes may change.
	elsewhere
	// here: the plans of this node may change.
	here
)

// setSlice takes the newest version of an EndpointSlice and tells what that may mean. Addresses that
// cannot be parsed are returned in err; the others count.
func (s *state) setSlice(object *discovery.EndpointSlice) (changed effect, err error) {
	name := nameOf(object)
	owner := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[discovery.LabelServiceName]}
	s.mu.Lock()
	defer s.mu.Unlock()
	if unserved(object) {
		return max(s.removeSlice(name), s.replaceUnserved(slicesKind, name, namedPods(object))), nil
	}
	changed = s.replaceUnserved(slicesKind, name, nil)
	if old, known := s.serviceOf[name]; known && old != owner.Name {
		changed = max(changed, s.removeSlice(name))
	}
	if owner.Name == "" {
		return changed, nil
	}
	before := s.takeSlice(owner, name.Name)
	s.slices[owner], s.serviceOf[name] = append(s.slices[owner], object), owner.Name
	replaced, err := s.replaceEndpoints(owner, before, object)
	return max(changed, replaced), err
}

// takeSlice takes an EndpointSlice away from a Service; it returns nil if there is none.
func (s *state) takeSlice(owner types.NamespacedName, name string) *discovery.EndpointSlice {
	list := s.slices[owner]
	i := slices.IndexFunc(list, func(held *discovery.EndpointSlice) bool { return held.Name == name })
	if i < 0 {
		return nil
	}
	taken := list[i]
	s.slices[owner] = slices.Delete(list, i, i+1)
	return taken
}

// needsEndpoints tells whether plans depend on the endpoints of a Service.
func (s *state) needsEndpoints(name types.NamespacedName) bool {
	_, known := s.services[name]
	return known || name == apiServer || s.pods != nil
}

// deleteSlice forgets an EndpointSlice and tells what that may mean.
func (s *state) deleteSlice(object *discovery.EndpointSlice) (changed effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	return max(s.removeSlice(name), s.replaceUnserved(slicesKind, name, nil))
}

func (s *state) removeSlice(name types.NamespacedName) (changed effect) {
	service, known := s.serviceOf[name]
	if !known {
		return nothing
	}
	owner := types.NamespacedName{Namespace: name.Namespace, Name: service}
	before := s.takeSlice(owner, name.Name)
	delete(s.serviceOf, name)
	if len(s.slices[owner]) == 0 {
		delete(s.slices, owner)
	}
	changed, _ = s.replaceEndpoints(owner, before, nil)
	return changed
}

// replaceEndpoints tells the planners what became of an EndpointSlice, and returns what that may
// mean. What cannot be parsed of the one that is now is in err.
func (s *state) replaceEndpoints(owner types.NamespacedName, old, now *discovery.EndpointSlice) (changed effect, err error) {
	if !s.needsEndpoints(owner) {
		return nothing, nil
	}
	before, _ := convertSlice(old) // it was said when it came
	after, err := convertSlice(now)
	if slices.Equal(before, after) {
		return nothing, err
	}
	if _, claimed := s.services[owner]; claimed {
		changed = elsewhere
	}
	changed = max(changed, s.renamePods(owner.Namespace, before, after))
	if owner == apiServer {
		s.move()
		changed = here
	}
	if s.steerSlice(owner, before, after) {
		changed = here
	}
	if before, after = ownEndpoints(s.placement, before), ownEndpoints(s.placement, after); changed == nothing || slices.Equal(before, after) {
		return changed, err
	}
	for _, family := range families {
		s.planners[family].ReplaceEndpoints(planName(owner), ofFamily(family, before, endpointAddr), ofFamily(family, after, endpointAddr))
	}
	return here, err
}

// podAt returns the pod at an address for an endpoint of a namespace that does not name it. The first
// time that somebody asks, the pods that all EndpointSlices name are counted.
func (s *state) podAt(namespace string, addr netip.Addr) plan.Pod {
	if s.pods == nil {
		s.pods = s.countPods()
	}
	return s.pods.at(namespace, addr)
}

// countPods returns the pods that all EndpointSlices name.
func (s *state) countPods() podNames {
	pods := podNames{}
	for owner := range s.slices {
		for endpoints := range s.endpointsOf(owner) {
			pods.count(owner.Namespace, endpoints, 1)
		}
	}
	for name, endpoints := range s.unserved {
		pods.count(name.slice.Namespace, endpoints, 1)
	}
	return pods
}

// setNode takes the newest version of a Node and tells whether plans may change.
func (s *state) setNode(object *v1.Node) (changed bool) {
	converted := convertNode(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.Name == s.config.NodeName {
		changed = s.setPodCIDRs(convertCIDRs(object.Spec.PodCIDRs))
	}
	if equalNodes(s.nodes[object.Name], converted) {
		return changed
	}
	s.nodes[object.Name] = converted
	s.move()
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
		s.move()
		changed = true
	}
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

// input returns all that the cluster's plan of family depends on, and which part of it is this node's.
func (s *state) input(family v1.IPFamily) (plan.Input, placement.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wholeInput(family), s.placement
}

// wholeInput is input with the lock held.
func (s *state) wholeInput(family v1.IPFamily) plan.Input {
	in := s.surroundings(family)
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
				if e.Pod.Namespace == "" { // leaving the name out binds no pod of another namespace either
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
func (s *state) surroundings(family v1.IPFamily) plan.Input {
	of := func(cidrs []netip.Prefix) []netip.Prefix { return ofFamily(family, cidrs, netip.Prefix.Addr) }
	in := plan.Input{
		ClusterCIDRs:   of(s.clusterCIDRs()),
		ServiceCIDRs:   of(slices.Concat(s.serviceCIDRs, s.network.serviceCIDRs)),
		Exclusions:     of(s.config.Exclusions),
		ExcludeNodes:   s.config.ExcludeNodes,
		AllowNodeIPs:   s.config.AllowNodeIPs,
		Policies:       s.policies(),
		NamespaceCIDRs: s.config.NamespaceCIDRs,
		NoProxier:      !slices.Contains(s.served, family),
	}
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

// primary returns the primary address of a node; invalid if it has none.
func (s *state) primary(name string, family v1.IPFamily) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[name][family].Primary
}

// update brings the plan of family up to date and returns what that changed, at a cost that
// follows from the changes.
func (s *state) update(family v1.IPFamily) plan.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updatePlanner(family)
}

func (s *state) updatePlanner(family v1.IPFamily) plan.Change {
	planner := s.planners[family]
	if s.moved[family] {
		s.moved[family] = false
		planner.SetSurroundings(s.surroundings(family))
	}
	return planner.Update()
}

// audit is update, and tells whether the plan that followed the changes is the one that is made of all
// objects at once. It costs as much as there are objects.
func (s *state) audit(family v1.IPFamily) (change plan.Change, right bool) {
	s.mu.Lock()
	change = s.updatePlanner(family)
	followed, in := s.planners[family].Plan(), s.placement.Of(s.wholeInput(family))
	s.mu.Unlock() // building keeps no object waiting
	return change, followed.Equal(plan.Build(in))
}

// planned is the plan of one IP family as of the last update, and which ways its packets take.
type planned struct {
	state    *state
	family   v1.IPFamily
	steering kernel.Steering
}

// ask calls f with the planner, which must not be kept.
func (p planned) ask(f func(*plan.Planner)) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	f(p.state.planners[p.family])
}

// Desired is that of [reconcile.Wanted].
func (p planned) Desired(pods map[netip.Addr]bool) (result kernel.Desired) {
	p.ask(func(planner *plan.Planner) { result = planner.Desired(pods) })
	result.Steering = p.steering
	return result
}

func (p planned) RefusalsOf(service plan.Service) (result []plan.Refusal) {
	p.ask(func(planner *plan.Planner) { result = planner.RefusalsOf(service) })
	return result
}

func (p planned) Placed(service plan.Service, pod netip.Addr) (result bool) {
	p.ask(func(planner *plan.Planner) { result = planner.Placed(service, pod) })
	return result
}

// homes returns the names of the nodes on which bound pods run.
func (s *state) homes(family v1.IPFamily) map[netip.Addr]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planners[family].Homes()
}

func (p planned) Numbers() (result plan.Numbers) {
	p.ask(func(planner *plan.Planner) { result = planner.Numbers() })
	return result
}

// podNames has the pods at addresses, as EndpointSlices of the pods' own namespaces have them.
type podNames map[netip.Addr][]namings

// namings is how many endpoints name a pod.
type namings struct {
	pod  plan.Pod
	many int
}

// at returns the pod at an address; zero if there is none. Of several it is one of the namespace that asks, if
// there is one: what others say takes no pod away from it. Then the first by name counts.
func (n podNames) at(namespace string, addr netip.Addr) plan.Pod {
	var found plan.Pod
	for _, naming := range n[addr] {
		own, foundOwn := naming.pod.Namespace == namespace, found.Namespace == namespace
		if found == (plan.Pod{}) || own && !foundOwn || own == foundOwn && naming.pod.String() < found.String() {
			found = naming.pod
		}
	}
	return found
}

// count takes note when endpoints of a namespace come (by is 1) or go (-1).
func (n podNames) count(namespace string, endpoints []plan.Endpoint, by int) {
	for _, e := range endpoints {
		if e.Pod.Namespace != namespace || namespace == "" {
			continue
		}
		list := n[e.Addr]
		i := slices.IndexFunc(list, func(naming namings) bool { return naming.pod == e.Pod })
		if i < 0 {
			i, list = len(list), append(list, namings{pod: e.Pod})
		}
		if list[i].many += by; list[i].many == 0 {
			list = slices.Delete(list, i, i+1)
		}
		if n[e.Addr] = list; len(list) == 0 {
			delete(n, e.Addr)
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
	// Held are the addresses that this node holds, as in [placement.Placement].
	Held map[netip.Addr]bool
	// Leases are those in which nodes announce theirs.
	Leases []*coordinationv1.Lease
}

// PlanFor returns this node's plan of family for these objects. What of them cannot be read is in
// err; the plan is complete without it.
func PlanFor(family v1.IPFamily, config Config, objects Objects) (plan.Plan, error) {
	in, place, err := inputFor(family, config, objects)
	return plan.Build(place.Of(in)), err
}

// InputFor returns what the cluster's plan of family is made from.
func InputFor(family v1.IPFamily, config Config, objects Objects) (plan.Input, error) {
	in, _, err := inputFor(family, config, objects)
	return in, err
}

// inputFor is InputFor, and tells which part of it is this node's.
func inputFor(family v1.IPFamily, config Config, objects Objects) (plan.Input, placement.Placement, error) {
	s, err := stateFor(config, objects)
	in, place := s.input(family)
	return in, place, err
}

// stateFor returns the state for these objects. What of them cannot be read is in err.
func stateFor(config Config, objects Objects) (s *state, err error) {
	s = newState(config)
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
	s.setHeld(objects.Held)
	_, err = s.setNetwork(objects.Network)
	return s, errors.Join(append(errs, err)...)
}
