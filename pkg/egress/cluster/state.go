package cluster

import (
	"net/netip"
	"sync"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// State is what the plans need of the Kubernetes objects, and the plans' makers. Its methods may
// be called by several goroutines at once.
type State struct {
	Config Config

	mu sync.Mutex
	// services has those Services that the outside knows by an address.
	services map[types.NamespacedName]service
	// shadowed are those whose names younger Services have.
	shadowed map[types.NamespacedName]service
	// slices are the EndpointSlices, by Service, which has one mostly. The objects are those that the
	// informer keeps as well; they are read where somebody needs endpoints.
	slices map[types.NamespacedName][]*discovery.EndpointSlice
	// serviceOf has the name of the Service of every EndpointSlice in slices.
	serviceOf map[types.NamespacedName]string
	// unserved has the endpoints of EndpointSlices that the proxier does not serve, headless which of them are a headless Service's.
	unserved map[unservedName]unservedEndpoints
	headless map[types.NamespacedName][]unservedName
	// pods is nil as long as no endpoint of a claim has left its pod's name to others.
	pods podNames
	// attachments are those of this node's pods, with the number of their list; 0: none yet.
	attachments       map[netip.Addr]plan.Attachment
	attachmentsNumber uint64
	nodes             map[string]map[v1.IPFamily]plan.Node
	registered        registrations
	// judged has what JudgedNodes returns, as long as the surroundings do not change.
	judged map[v1.IPFamily]*JudgedNodes
	// foreign has what decides of a single node which address it has, as long as that does not change.
	foreign      map[v1.IPFamily]*plan.Foreign
	serviceCIDRs []netip.Prefix
	network      network
	// served are the IP families that a proxier serves.
	served []v1.IPFamily
	// placement says which endpoints are this node's to bind. The planners know no others. heldRevision is that of what it says of
	// addresses, snapshots that of the last Snapshot.
	placement               placement.Placement
	heldRevision, snapshots uint64
	// byAddress is nil as long as this node has held no egress IP of a claim.
	byAddress addressIndex
	// alternatives are the egress IPs of Services that have several, with the number of these.
	alternatives map[v1.IPFamily]map[netip.Addr]int
	choices      choices

	planners map[v1.IPFamily]*plan.Planner
	homes    map[v1.IPFamily]*homes
	// moved are the families whose planners have to be told their surroundings.
	moved map[v1.IPFamily]bool
}

// New returns a State that knows no objects.
func New(config Config) *State {
	s := &State{
		Config:       config,
		services:     map[types.NamespacedName]service{},
		shadowed:     map[types.NamespacedName]service{},
		slices:       map[types.NamespacedName][]*discovery.EndpointSlice{},
		serviceOf:    map[types.NamespacedName]string{},
		unserved:     map[unservedName]unservedEndpoints{},
		headless:     map[types.NamespacedName][]unservedName{},
		attachments:  map[netip.Addr]plan.Attachment{},
		nodes:        map[string]map[v1.IPFamily]plan.Node{},
		registered:   registrations{nodes: map[string]*registration{}},
		judged:       map[v1.IPFamily]*JudgedNodes{},
		foreign:      map[v1.IPFamily]*plan.Foreign{},
		served:       Families,
		placement:    placement.Placement{Scope: config.Scope, NodeName: config.NodeName},
		alternatives: map[v1.IPFamily]map[netip.Addr]int{},
		planners:     map[v1.IPFamily]*plan.Planner{},
		homes:        map[v1.IPFamily]*homes{},
		moved:        map[v1.IPFamily]bool{},
		choices:      newChoices(),
	}
	for _, family := range Families {
		s.planners[family] = plan.NewPlanner(s.podAt, s.choose)
		s.alternatives[family] = map[netip.Addr]int{}
	}
	s.move()
	return s
}

// SetServed says which IP families a proxier serves; all do as long as it is not said.
func (s *State) SetServed(served []v1.IPFamily) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = served
	s.move()
}

// move notes that what claims are judged by has changed. The lock must be held.
func (s *State) move() {
	clear(s.foreign)
	s.moveNodes()
}

// moveNodes is move for Nodes. The lock must be held.
func (s *State) moveNodes() {
	clear(s.judged)
	for _, family := range Families {
		s.moved[family] = true
	}
}
