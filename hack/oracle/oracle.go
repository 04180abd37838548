package oracle

import (
	"cmp"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is all that decides which address a pod leaves from: the objects in the API server, and the nodes'
// arguments.
type Cluster struct {
	Services       []*v1.Service
	EndpointSlices []*discovery.EndpointSlice
	Nodes          []*v1.Node
	ServiceCIDRs   []*networkingv1.ServiceCIDR
	// Network is OpenShift's; nil if there is none.
	Network *configv1.Network
	// Held are the addresses on nodes' interfaces, by the names of the nodes, without those on loopback and on
	// interfaces that do not answer ARP.
	Held map[string][]netip.Addr
	// Chosen are the egress IPs that nodes have chosen for their pods, by the names of the nodes, the Service (namespace/name) and the pods'
	// addresses, as Leases say.
	Chosen map[string]map[string]map[netip.Addr]netip.Addr
	// Attached are the addresses of pods on nodes, by the names of the nodes, as the nodes' network plugins told.
	Attached map[string][]Attachment
	Arguments
}

// Binding says that a pod's packets of a protocol leave from an egress IP.
type Binding struct {
	Pod netip.Addr
	// Protocol is tcp, udp or sctp, or all.
	Protocol string
	EgressIP netip.Addr
	// Service is the oldest that gives the pod the address.
	Service types.NamespacedName
}

// Source returns the address that the first packet of a pod's flow leaves from; invalid if it leaves
// as without egress SNAT. The protocol is tcp, udp, sctp, or any other text for another one. The
// destination is the one behind the proxier, which has replaced a Service's address with an endpoint's.
func (c Cluster) Source(pod netip.Addr, protocol string, destination netip.Addr) netip.Addr {
	for _, b := range c.Bindings() {
		if b.Pod == pod && (b.Protocol == protocol || b.Protocol == everyProtocol) && !c.neverSNATed(destination, b.EgressIP) {
			return b.EgressIP
		}
	}
	return netip.Addr{}
}

// Bindings returns all bindings of the cluster that follow from its objects, sorted by pod and protocol.
func (c Cluster) Bindings() []Binding {
	return c.bindings("", everything)
}

func everything(endpoint) bool { return true }

// BindingsOn returns those that a node writes rules for. With egress-snat-scope: node these are the bindings
// that follow from the endpoints that an EndpointSlice places on this node, or on none, and from those in its
// Node's spec.podCIDRs; and, unless egress-snat-steering is off, from all endpoints of the pods that are steered to it.
func (c Cluster) BindingsOn(node string) []Binding {
	if !c.NodeScope {
		return c.bindings(node, everything)
	}
	podCIDRs := c.podCIDRs(node)
	isHere := func(e endpoint) bool { return e.node == node || contain(podCIDRs, e.addr) }
	steered := c.steeredTo(node, isHere)
	return c.bindings(node, func(e endpoint) bool { return e.node == "" || isHere(e) || steered[e.addr] })
}

// "All endpoints of the claims on" egress IPs that the node holds; "at the address of an endpoint that is
// steered here and may be on another node, the endpoints of all claims count."
func (c Cluster) steeredTo(node string, isHere func(endpoint) bool) map[netip.Addr]bool {
	steered := map[netip.Addr]bool{}
	if c.SteeringOff {
		return steered
	}
	endpoints := c.endpoints()
	for _, svc := range c.Services {
		for _, claim := range c.claims(svc) {
			for _, e := range endpoints {
				may := !c.hasSeveral(svc, claim.v6) || e.node == "" || c.Chosen[e.node][nameOf(svc).String()][e.addr] == claim.ip
				if slices.Contains(c.Held[node], claim.ip) && may && e.isOf(svc) && e.addr.Is4() == claim.ip.Is4() && !isHere(e) {
					steered[e.addr] = true
				}
			}
		}
	}
	return steered
}

// bindings returns those that follow from some of the endpoints that a node knows; without a node, from those of the
// objects alone.
func (c Cluster) bindings(node string, counts func(endpoint) bool) []Binding {
	type target struct {
		pod      netip.Addr
		protocol string
	}
	bound, boundBy := map[target]Binding{}, map[netip.Addr]string{}
	endpoints := c.endpointsOn(node)
	named, picks := podNamespaces(c.endpoints()), c.newPicks(node)
	for _, svc := range c.oldestFirst() {
		for _, claim := range c.granted(svc) {
			for _, e := range endpoints {
				if !counts(e) || !e.isOf(svc) || e.addr.Is4() != claim.ip.Is4() || !c.isPod(e) || e.isOfAnotherNamespace(named) || c.hasAnotherPod(node, e) {
					continue
				}
				if c.hasSeveral(svc, claim.v6) && picks.of(nameOf(svc).String(), e, c.granted(svc)) != claim.ip {
					continue
				}
				// "A pod is of one namespace: that of the oldest has it alone."
				if by, is := boundBy[e.addr]; is && by != svc.Namespace {
					continue
				}
				for _, protocol := range c.protocolsOf(svc) {
					boundBy[e.addr] = svc.Namespace
					// "Where two Services give one pod different addresses for a protocol, the older wins."
					if _, taken := bound[target{e.addr, protocol}]; !taken {
						bound[target{e.addr, protocol}] = Binding{e.addr, protocol, claim.ip, nameOf(svc)}
					}
				}
			}
		}
	}
	bindings := make([]Binding, 0, len(bound))
	for _, b := range bound {
		bindings = append(bindings, b)
	}
	return sorted(bindings)
}

func sorted(bindings []Binding) []Binding {
	slices.SortFunc(bindings, func(a, b Binding) int {
		return cmp.Or(a.Pod.Compare(b.Pod), cmp.Compare(a.Protocol, b.Protocol))
	})
	return bindings
}

func (c Cluster) podCIDRs(node string) (cidrs []netip.Prefix) {
	for _, object := range c.Nodes {
		if object.Name == node {
			cidrs = append(cidrs, parsePrefixes(object.Spec.PodCIDRs)...)
		}
	}
	return cidrs
}

func contain(cidrs []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(cidrs, func(cidr netip.Prefix) bool { return cidr.Contains(ip) })
}

func nameOf(svc *v1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}
