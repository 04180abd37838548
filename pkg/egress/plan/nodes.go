package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Node is a node of the cluster. Its kubelet writes its addresses, so they are no more than what it says.
type Node struct {
	Name string `json:"name"`
	// Created is the Node's creationTimestamp, which no kubelet writes.
	Created time.Time `json:"created,omitzero"`
	// Zone is that of its label topology.kubernetes.io/zone. It decides nothing in a plan.
	Zone string `json:"zone,omitempty"`
	// InternalIPs are those of the plan's IP family, in the Node's order.
	InternalIPs []netip.Addr `json:"internalIPs"`
	// Registered are those of the plan's IP family that it had when it registered, in its order; nil if that is not known. Then
	// InternalIPs count.
	Registered []netip.Addr `json:"registered"`
}

// Zones returns those of nodes, by name, as far as they are known.
func (in Input) Zones() map[string]string {
	zones := map[string]string{}
	for _, node := range in.Nodes {
		if node.Zone != "" {
			zones[node.Name] = node.Zone
		}
	}
	return zones
}

// mostFaults is how many NodeFaults there are of a Node at most: a kubelet may tell thousands of addresses.
const mostFaults = 5

// NodeFault is an address that a Node should not tell.
type NodeFault struct {
	Node    string
	Address netip.Addr
	// Message says what is wrong and what to do, for people.
	Message string
}

// nodes are what Nodes say of their addresses, and what counts of it.
type nodes struct {
	// primary has the address of each node that has one, by its name.
	primary map[string]netip.Addr
	// names are those of nodes, by primary address; of several the oldest that registered with it, or else the oldest. byAge are these
	// addresses in that order.
	names map[netip.Addr]string
	byAge []netip.Addr
	// added are the addresses of names with which no node registered.
	added map[netip.Addr]bool
	// told are the names of all nodes that tell an address, whether or not it counts.
	told   map[netip.Addr][]string
	faults []NodeFault
	// of counts them by Node.
	of map[string]int
}

// PrimaryAddresses returns the address of each node of in that has one, by its name; the oldest node of each of these addresses; the addresses
// by the age of these nodes, with those first with which nodes registered; and what the Nodes should not tell, sorted, at most a few of each.
// Claims and attachments do not count.
func PrimaryAddresses(in Input) (primary map[string]netip.Addr, oldest map[netip.Addr]string, byAge []netip.Addr, faults []NodeFault) {
	n := newNodes(in)
	return n.primary, n.names, n.byAge, n.faults
}

func newNodes(in Input) *nodes {
	n := &nodes{
		primary: make(map[string]netip.Addr, len(in.Nodes)), names: make(map[netip.Addr]string, len(in.Nodes)), added: map[netip.Addr]bool{},
		told: make(map[netip.Addr][]string, len(in.Nodes)), of: map[string]int{},
	}
	foreign, list := NewForeign(in), oldestNodes(in.Nodes)
	later := map[string]bool{}
	for _, node := range list {
		ip, registered := foreign.primary(node)
		switch {
		case !ip.IsValid():
			continue
		case !registered:
			later[node.Name] = true
		case n.names[ip] == "":
			n.names[ip], n.byAge = node.Name, append(n.byAge, ip)
		}
		n.primary[node.Name] = ip
	}
	for _, node := range list {
		if ip := n.primary[node.Name]; later[node.Name] && n.names[ip] == "" {
			n.names[ip], n.added[ip], n.byAge = node.Name, true, append(n.byAge, ip)
		}
	}
	for _, node := range list {
		n.tell(node, foreign, later[node.Name])
	}
	slices.SortFunc(n.faults, func(a, b NodeFault) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Address.Compare(b.Address), cmp.Compare(a.Message, b.Message))
	})
	return n
}

// tell notes what a Node tells, and what is wrong with it. Whoever lies about another node's address harms nobody else: both have it.
func (n *nodes) tell(node Node, foreign Foreign, added bool) {
	primary := n.primary[node.Name]
	switch owner := n.names[primary]; {
	case primary.IsValid() && owner != node.Name:
		n.fault(node.Name, primary, "InternalIP %s of the node %s is that of another node, %s: if one of the two machines is gone, delete its Node; otherwise correct the address", primary, node.Name, owner)
	case added:
		n.fault(node.Name, primary, "InternalIP %s of the node %s is not the one that it registered with, so it is not excluded from SNAT, and a Service may claim it as an egress IP; "+
			"if the node's address has really changed, register the node again: drain it, delete its Node, restart its kubelet, and restore its labels", primary, node.Name)
	}
	passed := false // what comes behind the primary address matters to nobody
	for _, ip := range node.InternalIPs {
		n.told[ip] = append(n.told[ip], node.Name)
		switch because := foreign.forbid(ip); {
		case because != "":
			n.fault(node.Name, ip, "InternalIP %s of the node %s is ignored because it %s", ip, node.Name, because)
		case !passed && ip != primary:
			n.fault(node.Name, ip, "InternalIP %s of the node %s is ignored because it is not the one that it registered with", ip, node.Name)
		}
		passed = passed || ip == primary
	}
}

func (n *nodes) fault(node string, ip netip.Addr, format string, args ...any) {
	if n.of[node] >= mostFaults {
		return // before the message is made: a Node may tell tens of thousands
	}
	f := NodeFault{Node: node, Address: ip, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(n.faults[len(n.faults)-n.of[node]:], f) {
		n.of[node]++
		n.faults = append(n.faults, f)
	}
}

// has returns the node whose address an endpoint has: its own node, whose word counts for its own pods, or one whose address
// it is. The latter lies in no cluster CIDR, so it is no other node's pod.
func (n *nodes) has(e Endpoint) (name string, is bool) {
	if e.Node != "" && slices.Contains(n.told[e.Addr], e.Node) {
		return e.Node, true
	}
	name, is = n.names[e.Addr]
	return name, is
}

// of an address, kept returns the node that keeps it from being an egress IP and has it excluded from SNAT.
func (n *nodes) kept(ip netip.Addr) (name string, is bool) {
	name, is = n.names[ip]
	return name, is && !n.added[ip]
}

func oldestNodes(list []Node) []Node {
	return slices.SortedFunc(slices.Values(list), func(a, b Node) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

// Foreign are the networks in which no node's address lies.
type Foreign struct {
	pods, services, assigned, pinned kernel.CIDRSet
}

// NewForeign returns those of in. Nodes, claims and attachments do not count.
func NewForeign(in Input) Foreign {
	f := Foreign{pods: kernel.NewCIDRSet(in.ClusterCIDRs), services: kernel.NewCIDRSet(in.ServiceCIDRs)}
	if in.AllowNodeIPs {
		return f // an address may be a node's and an egress IP
	}
	var pinned []netip.Prefix
	for namespace, networks := range in.NamespaceCIDRs {
		if namespace != EveryOther {
			pinned = append(pinned, networks...)
		}
	}
	f.assigned, f.pinned = kernel.NewCIDRSet(in.AssignCIDRs), kernel.NewCIDRSet(sortedPrefixes(pinned))
	return f
}

// Primary returns the address of a node: the one with which it registered, if it still tells that, else the first one that is not
// ignored; invalid if there is none. Other nodes have no part in it.
func (f Foreign) Primary(node Node) netip.Addr {
	ip, _ := f.primary(node)
	return ip
}

// primary is Primary, and tells whether the node registered with the address.
func (f Foreign) primary(node Node) (ip netip.Addr, registered bool) {
	first := f.first(node.InternalIPs)
	if node.Registered == nil {
		return first, true
	}
	if ip = f.first(node.Registered); ip.IsValid() && slices.Contains(node.InternalIPs, ip) {
		return ip, true
	}
	return first, false
}

// first returns the first address that can be a node's; invalid if there is none.
func (f Foreign) first(list []netip.Addr) netip.Addr {
	for _, ip := range list {
		if f.forbid(ip) == "" {
			return ip
		}
	}
	return netip.Addr{}
}

// forbid returns why an address cannot be a node's, or nothing.
func (f Foreign) forbid(ip netip.Addr) (because string) {
	if !usable(ip) {
		return "is not a unicast address that packets can come from"
	}
	for _, of := range []struct {
		networks kernel.CIDRSet
		because  string
	}{
		{f.pods, "lies in the cluster CIDR %s, so it is a pod's address"},
		{f.services, "lies in the service CIDR %s, so it is a Service's cluster IP"},
		{f.assigned, "lies in %s of proxyArguments.egress-snat-assign-cidrs, where egress IPs lie: the networks there must not have nodes' addresses"},
		{f.pinned, "lies in %s of proxyArguments.egress-snat-namespace-cidrs, where egress IPs lie: the networks there must not have nodes' addresses"},
	} {
		if cidr, inside := of.networks.Find(ip); inside {
			return fmt.Sprintf(of.because, cidr)
		}
	}
	return ""
}
