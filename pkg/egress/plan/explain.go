package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// OtherProtocols stands, in a Packet, for the IP protocols that no Service port can have,
// such as ICMP. Only a binding of All is for them.
const OtherProtocols Protocol = "others"

// Packet is the first packet of a new flow from a pod.
type Packet struct {
	Pod netip.Addr `json:"pod"`
	// Protocol is any IP protocol's name, or OtherProtocols.
	Protocol Protocol `json:"protocol"`
	// Destination is what the pod addresses; zero for anywhere outside.
	Destination netip.Addr `json:"destination,omitzero"`
}

// Outcome is what egress SNAT does to a packet.
type Outcome string

// The outcomes.
const (
	// EgressIP: the packet leaves as the binding's egress IP.
	EgressIP Outcome = "EgressIP"
	// Unchanged: the packet goes its way as without egress SNAT; when it leaves the
	// cluster the network plugin decides as what, usually as the node's address.
	Unchanged Outcome = "Unchanged"
	// EndpointDecides: the destination is a Service's address. The proxier sends what is for a
	// port of the Service to an endpoint, and the endpoint's address decides.
	EndpointDecides Outcome = "EndpointDecides"
)

// DestinationKind is what a plan makes of a destination.
type DestinationKind string

// The kinds of destinations.
const (
	// Outside: none of the others.
	Outside DestinationKind = "Outside"
	// InClusterCIDR: a pod's address, or one that may become a pod's.
	InClusterCIDR DestinationKind = "InClusterCIDR"
	// InServiceCIDR: a Service's cluster IP.
	InServiceCIDR DestinationKind = "InServiceCIDR"
	// InExclusion: in a network that the configuration excludes.
	InExclusion DestinationKind = "InExclusion"
	// OfNode: an address of a node, and the nodes are excluded.
	OfNode DestinationKind = "OfNode"
	// OwnEgressIP: the pod's own egress IP.
	OwnEgressIP DestinationKind = "OwnEgressIP"
	// ExternalIP: an address at which the proxier serves a Service.
	ExternalIP DestinationKind = "ExternalIP"
)

// Destination says what a destination is.
type Destination struct {
	Addr netip.Addr      `json:"addr"`
	Kind DestinationKind `json:"kind"`
	// CIDR is the network that Kind speaks of.
	CIDR netip.Prefix `json:"cidr,omitzero"`
	// Node is whose address it is, if it is a node's, also where nodes are not excluded.
	Node string `json:"node,omitempty"`
	// Service is whose address it is, with ExternalIP and OwnEgressIP.
	Service Service `json:"service,omitzero"`
	// Excluded: what arrives in POSTROUTING with this destination is not SNATed.
	Excluded bool `json:"excluded"`
}

// String says it for people, without the address.
func (d Destination) String() string {
	text := ""
	switch d.Kind {
	case InClusterCIDR:
		text = fmt.Sprintf("in the cluster CIDR %s, so never SNATed", d.CIDR)
	case InServiceCIDR:
		text = fmt.Sprintf("in the service CIDR %s: the proxier sends it to an endpoint, whose address decides", d.CIDR)
	case InExclusion:
		text = fmt.Sprintf("in %s, which is excluded, so never SNATed", d.CIDR)
	case OfNode:
		return fmt.Sprintf("an address of the node %s, and nodes are excluded, so never SNATed", d.Node)
	case OwnEgressIP:
		text = "the pod's own egress IP, so never SNATed"
	case ExternalIP:
		text = fmt.Sprintf("an address of the Service %s: the proxier sends packets for its ports to an endpoint, whose address decides", d.Service)
	default:
		text = "outside: in no cluster CIDR, service CIDR or exclusion"
	}
	if d.Node != "" {
		text += fmt.Sprintf(" (it is also an address of the node %s)", d.Node)
	}
	return text
}

// Decision is what a plan says about a packet, and why.
type Decision struct {
	Packet
	Outcome Outcome `json:"outcome"`
	// LeavesAs is the egress IP of a packet that is SNATed. With EndpointDecides that
	// is one which the proxier sends to nothing inside. Zero if none is SNATed.
	LeavesAs netip.Addr `json:"leavesAs,omitzero"`
	// Binding is the one for the packet's pod and protocol, also where the destination
	// keeps it from being used; nil if there is none.
	Binding *Binding `json:"binding,omitempty"`
	// Field and Owner are, with a binding, where in the Service the egress IP comes
	// from, and the Service whose claim makes its namespace the address's owner.
	Field string  `json:"field,omitempty"`
	Owner Service `json:"owner,omitzero"`
	// Alternatives are, with a binding, all egress IPs of the Service if it has several: the pod's node chose one of them.
	Alternatives []netip.Addr `json:"alternatives,omitempty"`
	// Refusals are what other claims on the pod and protocol met, or all if none was
	// granted.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Because says for people why the pod is bound or why not. The destination has no
	// part in it.
	Because string `json:"because"`
	// To says what the destination is; nil if the packet has none.
	To *Destination `json:"to,omitempty"`
}

// EndpointState is what a plan makes of one protocol of one endpoint of a claim.
type EndpointState struct {
	Endpoint Endpoint `json:"endpoint"`
	Decision Decision `json:"decision"`
	// Refusal is why this claim does not bind it; nil if it does, or if an older one
	// binds it to the same egress IP.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// ClaimState is what a plan makes of a Service's claim on one egress IP.
type ClaimState struct {
	Service      Service    `json:"service"`
	Created      time.Time  `json:"created"`
	EgressIP     netip.Addr `json:"egressIP,omitzero"`
	Field        string     `json:"field"`
	LoadBalancer bool       `json:"loadBalancer,omitempty"`
	Annotated    bool       `json:"annotated,omitempty"`
	Protocols    []Protocol `json:"protocols"`
	// Refusal is why the claim as a whole is refused; nil if it is not.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Owner is the Service whose claim makes its namespace the address's owner; zero if
	// nobody owns it.
	Owner Service `json:"owner,omitzero"`
	// Endpoints are sorted by endpoint and protocol. If the Service has several egress IPs, an endpoint that leaves from none of them
	// is in the state of the first one.
	Endpoints []EndpointState `json:"endpoints"`
}

// Explainer says why a plan is as it is. Its methods may be called by several goroutines.
type Explainer struct {
	in   Input
	plan Plan
	// claims are those of in, oldest first; what follows has indexes into them.
	claims    []Claim
	byService map[Service]int
	byPod     map[netip.Addr][]int
	byIP      map[netip.Addr]Service // the oldest Service that is served at the address
	refusals  map[Service][]Refusal
	owners    map[netip.Addr]Service
	// named are the endpoints of EndpointSlices alone.
	named map[Service][]Endpoint

	clusterCIDRs, serviceCIDRs, exclusions kernel.CIDRSet
	nodes                                  map[netip.Addr]string
	attachments                            map[netip.Addr]Attachment
}

// NewExplainer returns an Explainer of p, which was built from in. It keeps both and
// changes neither.
func NewExplainer(in Input, p Plan) *Explainer {
	e := &Explainer{
		in: in, plan: p,
		claims:       oldestFirst(withAttachments(in)),
		byService:    make(map[Service]int, len(in.Claims)),
		byIP:         make(map[netip.Addr]Service, len(in.Holdings)),
		byPod:        make(map[netip.Addr][]int),
		refusals:     make(map[Service][]Refusal),
		named:        make(map[Service][]Endpoint, len(in.Claims)),
		clusterCIDRs: kernel.NewCIDRSet(p.ClusterCIDRs),
		serviceCIDRs: kernel.NewCIDRSet(in.ServiceCIDRs),
		exclusions:   kernel.NewCIDRSet(p.Exclusions),
		attachments:  byAddress(in.Attachments),
	}
	for _, claim := range in.Claims {
		e.named[claim.Service] = claim.Endpoints
	}
	for i := range e.claims {
		claim := &e.claims[i] // of our own list; only its endpoints are in's
		claim.Endpoints = slices.Compact(slices.SortedFunc(slices.Values(claim.Endpoints), Endpoint.Compare))
		e.byService[claim.Service] = i
		for _, endpoint := range claim.Endpoints {
			if of := e.byPod[endpoint.Addr]; len(of) == 0 || of[len(of)-1] != i {
				e.byPod[endpoint.Addr] = append(of, i)
			}
		}
	}
	for _, holding := range oldestHoldings(in) {
		for _, address := range holding.Addresses {
			if _, known := e.byIP[address.IP]; !known && address.IP.IsValid() && !address.Annotated {
				e.byIP[address.IP] = holding.Service
			}
		}
	}
	for _, r := range p.Refusals {
		e.refusals[r.Service] = append(e.refusals[r.Service], r)
	}
	s := newSurroundings(in)
	e.nodes, e.owners = s.nodes.names, findOwners(s, in)
	return e
}

// Owner returns the Service that makes its namespace the owner of ip; zero if nobody owns
// it.
func (e *Explainer) Owner(ip netip.Addr) Service { return e.owners[ip] }

// Field returns where in the Service its egress IP comes from; nothing if it claims none.
func (e *Explainer) Field(service Service) string {
	if i, ok := e.byService[service]; ok {
		return e.claims[i].Field
	}
	return ""
}

// Endpoint returns what a claim's EndpointSlices say about an address, of several entries
// the one with a pod of the claim's own namespace that has the address. ok is false if they do not have it.
func (e *Explainer) Endpoint(service Service, pod netip.Addr) (found Endpoint, ok bool) {
	i, known := e.byService[service]
	if !known {
		return Endpoint{}, false
	}
	entries := endpointsAt(e.claims[i].Endpoints, pod)
	if len(entries) == 0 {
		return Endpoint{}, false
	}
	own := slices.IndexFunc(entries, func(endpoint Endpoint) bool {
		return endpoint.Pod.Namespace == service.Namespace && e.attachments[pod].contradicts(endpoint) == ""
	})
	return entries[max(own, 0)], true
}

// Predicted tells whether a claim has a pod by its labels alone: no EndpointSlice of the Service names it yet.
func (e *Explainer) Predicted(service Service, pod netip.Addr) bool {
	i, known := e.byService[service]
	a := e.attachments[pod]
	return known && e.claims[i].predicts(a) && !slices.ContainsFunc(e.named[service], func(endpoint Endpoint) bool {
		return endpoint.Addr == pod && a.contradicts(endpoint) == ""
	})
}

// endpointsAt returns the part of a sorted list that has an address.
func endpointsAt(endpoints []Endpoint, addr netip.Addr) []Endpoint {
	from, _ := slices.BinarySearchFunc(endpoints, addr, func(e Endpoint, addr netip.Addr) int { return e.Addr.Compare(addr) })
	to := from
	for to < len(endpoints) && endpoints[to].Addr == addr {
		to++
	}
	return endpoints[from:to]
}

// Endpoints returns all entries that any claim has for an address, sorted, without
// duplicates.
func (e *Explainer) Endpoints(pod netip.Addr) []Endpoint {
	var result []Endpoint
	for _, i := range e.byPod[pod] {
		result = append(result, endpointsAt(e.claims[i].Endpoints, pod)...)
	}
	slices.SortFunc(result, Endpoint.Compare)
	return slices.Compact(result)
}

// Protocols returns those that a pod is bound for or that a claim on it names, sorted, and
// then OtherProtocols, unless a binding or claim of All makes it one of them.
func (e *Explainer) Protocols(pod netip.Addr) []Protocol {
	var result []Protocol
	for _, b := range e.bindings(pod) {
		result = append(result, b.Protocol)
	}
	for _, i := range e.byPod[pod] {
		result = append(result, e.claims[i].Protocols...)
	}
	slices.Sort(result)
	result = slices.Compact(result)
	if slices.Contains(result, All) {
		return result
	}
	return append(result, OtherProtocols)
}

// Explain says what becomes of a packet. Addresses must be of the plan's IP family; what
// is not is outside of everything and bound to nothing.
func (e *Explainer) Explain(packet Packet) Decision {
	d := Decision{Packet: packet, Outcome: Unchanged, Refusals: e.refusalsOf(packet)}
	if b, bound := e.binding(packet); bound {
		d.Binding, d.Field, d.Owner = &b, e.Field(b.Service), e.owners[b.EgressIP]
		d.Because = fmt.Sprintf("the Service %s gives it %s (%s) for %s, an address that belongs to the namespace %s",
			b.Service, b.EgressIP, d.Field, b.Protocol, d.Owner.Namespace)
		if claim := &e.claims[e.byService[b.Service]]; claim.Several() {
			d.Alternatives = claim.EgressIPs()
			d.Because += fmt.Sprintf("; it is one of the Service's %d egress IPs", len(d.Alternatives))
			if at, _ := e.Endpoint(b.Service, b.Pod); at.Node != "" {
				d.Because += ", chosen by the pod's node"
			}
		}
		if e.Predicted(b.Service, b.Pod) {
			d.Because += "; the Service selects the pod, which no EndpointSlice names yet (until one does, another node that holds the egress IP drops packets of the pod)"
		}
	} else {
		d.Because = e.whyNot(packet, d.Refusals)
	}
	if packet.Destination.IsValid() {
		to := e.destination(packet.Destination, d.Binding)
		d.To = &to
	}
	switch {
	case d.Binding == nil:
	case d.To == nil || d.To.Kind == Outside:
		d.Outcome, d.LeavesAs = EgressIP, d.Binding.EgressIP
	case d.To.Kind == InServiceCIDR || d.To.Kind == ExternalIP:
		d.Outcome = EndpointDecides
		if !d.To.Excluded {
			d.LeavesAs = d.Binding.EgressIP
		}
	}
	return d
}

// bindings returns those of a pod, in the plan's order, which is that of the rules.
func (e *Explainer) bindings(pod netip.Addr) []Binding {
	byPod := func(b Binding, pod netip.Addr) int { return b.Pod.Compare(pod) }
	from, _ := slices.BinarySearchFunc(e.plan.Bindings, pod, byPod)
	to := from
	for to < len(e.plan.Bindings) && e.plan.Bindings[to].Pod == pod {
		to++
	}
	return e.plan.Bindings[from:to]
}

func (e *Explainer) binding(packet Packet) (Binding, bool) {
	bindings := e.bindings(packet.Pod)
	i := slices.IndexFunc(bindings, func(b Binding) bool { return covers(b.Protocol, packet.Protocol) })
	if i < 0 {
		return Binding{}, false
	}
	return bindings[i], true
}

// covers tells whether what is said of one protocol holds for packets of another.
func covers(said, of Protocol) bool { return said == All || said == of }

func (c Claim) covers(protocol Protocol) bool {
	return len(c.Protocols) == 0 || slices.ContainsFunc(c.Protocols, func(p Protocol) bool { return covers(p, protocol) })
}

// refusalsOf returns the refusals that keep a claim from giving the packet an egress IP.
func (e *Explainer) refusalsOf(packet Packet) []Refusal {
	var result []Refusal
	for _, i := range e.byPod[packet.Pod] {
		if e.claims[i].covers(packet.Protocol) {
			result = append(result, e.refusalsOfClaim(e.claims[i].Service, packet)...)
		}
	}
	return result
}

func (e *Explainer) refusalsOfClaim(service Service, packet Packet) []Refusal {
	var result []Refusal
	for _, r := range e.refusals[service] {
		if (!r.Pod.IsValid() || r.Pod == packet.Pod) && (r.Protocol == "" || covers(r.Protocol, packet.Protocol)) {
			result = append(result, r)
		}
	}
	return result
}

// whyNot says why a packet's pod is not bound for its protocol.
func (e *Explainer) whyNot(packet Packet, refusals []Refusal) string {
	var reasons []string
	for _, r := range refusals {
		reasons = append(reasons, fmt.Sprintf("the claim of the Service %s is refused (%s): %s", r.Service, r.Reason, r.Message))
	}
	for _, i := range e.byPod[packet.Pod] {
		if claim := e.claims[i]; !claim.covers(packet.Protocol) {
			reasons = append(reasons, fmt.Sprintf("the Service %s claims %s for %s only", claim.Service, claim.names(), JoinProtocols(claim.Protocols)))
		}
	}
	if len(reasons) > 0 {
		return strings.Join(reasons, "; ")
	}
	text := fmt.Sprintf("no Service that claims an egress IP has the endpoint %s", packet.Pod)
	if _, inside := e.clusterCIDRs.Find(packet.Pod); !inside {
		text += ", which lies in no cluster CIDR"
	}
	if service, known := e.byIP[packet.Pod]; known {
		text += fmt.Sprintf(" (it is an external address of the Service %s)", service)
	}
	if node := e.nodes[packet.Pod]; node != "" {
		text += fmt.Sprintf(" (it is an address of the node %s)", node)
	}
	return text
}

// destination says what ip is for a pod with this binding, which may be nil.
func (e *Explainer) destination(ip netip.Addr, binding *Binding) Destination {
	d := Destination{Addr: ip, Kind: Outside, Node: e.nodes[ip]}
	cluster, inCluster := e.clusterCIDRs.Find(ip)
	exclusion, inExclusion := e.exclusions.Find(ip)
	service, inService := e.serviceCIDRs.Find(ip)
	holder, held := e.byIP[ip]
	d.Excluded = inCluster || inExclusion
	switch {
	case binding != nil && binding.EgressIP == ip:
		d.Kind, d.Service, d.Excluded = OwnEgressIP, binding.Service, true
	case inService:
		d.Kind, d.CIDR = InServiceCIDR, service
	case held:
		d.Kind, d.Service = ExternalIP, holder
	case inCluster:
		d.Kind, d.CIDR = InClusterCIDR, cluster
	case inExclusion && d.Node != "" && exclusion.IsSingleIP():
		d.Kind, d.CIDR = OfNode, exclusion
	case inExclusion:
		d.Kind, d.CIDR = InExclusion, exclusion
	}
	return d
}

// ExplainService says what became of a Service's claim on each of its egress IPs, for packets to destination, which
// may be zero. There is nothing if the Service claims nothing in the plan's IP family.
func (e *Explainer) ExplainService(service Service, destination netip.Addr) (states []ClaimState) {
	i, known := e.byService[service]
	if !known {
		return nil
	}
	claim := &e.claims[i]
	granted := []netip.Addr{}
	for _, address := range claim.Addresses() {
		state := ClaimState{
			Service: service, Created: claim.Created, EgressIP: address.IP, Field: claim.Field,
			LoadBalancer: address.LoadBalancer, Annotated: address.Annotated, Protocols: sortedProtocols(claim.Protocols),
			Owner: e.owners[address.IP], Endpoints: []EndpointState{},
		}
		for _, r := range e.refusals[service] {
			if !r.Pod.IsValid() && r.EgressIP == address.IP && state.Refusal == nil {
				state.Refusal = &r
			}
		}
		if state.Refusal == nil {
			granted = append(granted, address.IP)
		}
		states = append(states, state)
	}
	for _, endpoint := range claim.Endpoints {
		chosen, _ := e.in.Choices.Of(service, endpoint, granted)
		state := &states[max(0, slices.IndexFunc(states, func(s ClaimState) bool { return s.EgressIP == chosen }))]
		for _, protocol := range state.Protocols {
			packet := Packet{Pod: endpoint.Addr, Protocol: protocol, Destination: destination}
			state.Endpoints = append(state.Endpoints, EndpointState{
				Endpoint: endpoint,
				Decision: e.Explain(packet),
				Refusal:  e.refusalOfEndpoint(service, endpoint, packet),
			})
		}
	}
	return states
}

// refusalOfEndpoint returns the refusal of one endpoint, of several with its address that
// of the entry that names a foreign pod, or one that does not have the address; nil if there is none.
func (e *Explainer) refusalOfEndpoint(service Service, endpoint Endpoint, packet Packet) *Refusal {
	foreign := endpoint.Pod.Namespace != "" && endpoint.Pod.Namespace != service.Namespace
	contradicted := e.attachments[endpoint.Addr].contradicts(endpoint) != ""
	for _, r := range e.refusalsOfClaim(service, packet) {
		if !r.Pod.IsValid() && e.grantsSome(service) {
			continue
		}
		if (r.Reason != PodOfOtherNamespace || foreign) && (r.Reason != AddressOfOtherPod || contradicted && !foreign) {
			return &r
		}
	}
	return nil
}

// grantsSome tells whether an egress IP of a Service is granted.
func (e *Explainer) grantsSome(service Service) bool {
	refused := 0
	for _, r := range e.refusals[service] {
		if !r.Pod.IsValid() {
			refused++
		}
	}
	return refused <= len(e.claims[e.byService[service]].Others)
}

func sortedProtocols(protocols []Protocol) []Protocol {
	sorted := append([]Protocol{}, protocols...)
	slices.SortFunc(sorted, cmp.Compare[Protocol])
	return slices.Compact(sorted)
}

// JoinProtocols returns them sorted, with commas between.
func JoinProtocols(protocols []Protocol) string {
	var names []string
	for _, p := range sortedProtocols(protocols) {
		names = append(names, string(p))
	}
	return strings.Join(names, ",")
}
