package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Node is what a plan needs of a Node object.
type Node struct {
	Name string `json:"name"`
	// Addresses are its InternalIPs and ExternalIPs, of both IP families.
	Addresses []netip.Addr `json:"addresses"`
	// Agent: it has the tunnel's agent. Ready: its kubelet says so, and is heard.
	Agent bool `json:"agent"`
	Ready bool `json:"ready"`
}

// Input is all that a plan depends on.
type Input struct {
	// Self is the name of this node.
	Self string
	// Nodes are in any order.
	Nodes []Node
	// Ports is what [ReadPorts] returned.
	Ports Ports
	// Secure and Insecure are the tunnel server's addresses, one of each IP family at most.
	Secure, Insecure []netip.AddrPort
	// Sources are the networks of pods whose connections are redirected, too. They are sorted, and neither overlap nor touch.
	Sources []netip.Prefix
	// AnyDestination: whatever is not the address of a node that is reached directly.
	AnyDestination bool
}

// Plan is what is to be done in one IP family.
type Plan struct {
	Redirects kernel.Redirects
	// Problems are sorted.
	Problems []Problem
}

// Problem is something that cannot be done.
type Problem struct {
	Reason Reason `json:"reason"`
	// Node or ConfigMap has it; neither, if it is the configuration of this node.
	Node      string `json:"node,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	// Message says what is wrong and what follows.
	Message string `json:"message"`
}

// String says of what the problem is, and what it is, for people.
func (p Problem) String() string {
	about := "this node's configuration"
	switch {
	case p.ConfigMap != "":
		about = "ConfigMap " + p.ConfigMap
	case p.Node != "":
		about = "Node " + p.Node
	}
	return fmt.Sprintf("%s: %s: %s", about, p.Reason, p.Message)
}

// Reason is a word for a kind of problem.
type Reason string

// The reasons.
const (
	MissingConfigMap    Reason = "MissingConfigMap"
	MissingKey          Reason = "MissingKey"
	InvalidPort         Reason = "InvalidPort"
	InvalidPair         Reason = "InvalidPair"
	PortGivenTwice      Reason = "PortGivenTwice"
	NoTunnelAddress     Reason = "NoTunnelAddress"
	AddressOfDirectNode Reason = "AddressOfDirectNode"
	AddressOfTunnel     Reason = "AddressOfTunnel"
)

// Reasons has all of them.
var Reasons = []Reason{MissingConfigMap, MissingKey, InvalidPort, InvalidPair, PortGivenTwice, NoTunnelAddress, AddressOfDirectNode, AddressOfTunnel}

// Way is how connections to a node go.
type Way string

// The ways.
const (
	Tunnel Way = "tunnel"
	Direct Way = "direct"
)

// WayTo returns how connections to a node's ports go, and why.
func (in Input) WayTo(n Node) (way Way, why string) {
	switch {
	case n.Name == in.Self:
		return Direct, "this node"
	case n.Agent:
		return Tunnel, "it has a label of the tunnel's agent"
	case !n.Ready:
		return Tunnel, "it is not Ready"
	}
	return Direct, "it is Ready and has no label of the tunnel's agent"
}

// Build returns the plan of an IP family.
func Build(family kernel.Family, in Input) Plan {
	b := builder{family: family, in: in, direct: map[netip.Addr]string{}}
	secure, insecure := b.address(in.Secure), b.address(in.Insecure)
	nodes := b.nodes(secure.Addr(), insecure.Addr())
	r := kernel.Redirects{Nodes: nodes, Others: in.AnyDestination, Sources: b.sources()}
	r.Secure = b.target(secure, in.Ports.Secure, "tunnel-secure-address")
	r.Insecure = b.target(insecure, in.Ports.Insecure, "tunnel-insecure-address")
	if r.Empty() {
		r = kernel.Redirects{}
	}
	slices.SortFunc(b.problems, compareProblems)
	return Plan{Redirects: r, Problems: slices.Compact(b.problems)}
}

// builder builds the plan of an IP family.
type builder struct {
	family kernel.Family
	in     Input
	// direct has the addresses of nodes that are reached directly, with the node.
	direct map[netip.Addr]string
	// tunnelled: a node of the family is not reached directly.
	tunnelled bool
	problems  []Problem
}

func (b *builder) of(addr netip.Addr) bool { return addr.Is4() == (b.family == kernel.IPv4) }

// address returns the tunnel server's of the family; invalid if it has none.
func (b *builder) address(addresses []netip.AddrPort) netip.AddrPort {
	for _, a := range addresses {
		if b.of(a.Addr()) {
			return a
		}
	}
	return netip.AddrPort{}
}

// nodes returns the addresses that are redirected; with AnyDestination those that are not.
func (b *builder) nodes(tunnel ...netip.Addr) (nodes []netip.Addr) {
	for _, n := range b.in.Nodes {
		if way, _ := b.in.WayTo(n); way == Direct {
			for _, addr := range n.Addresses {
				if b.of(addr) {
					b.direct[addr] = n.Name
				}
			}
		}
	}
	for _, n := range b.in.Nodes {
		if way, _ := b.in.WayTo(n); way == Tunnel {
			nodes = append(nodes, b.tunnelledOf(n, tunnel)...)
		}
	}
	if b.in.AnyDestination {
		nodes = slices.DeleteFunc(slices.Clone(tunnel), func(addr netip.Addr) bool { return !addr.IsValid() })
		nodes = slices.AppendSeq(nodes, maps.Keys(b.direct))
	}
	slices.SortFunc(nodes, netip.Addr.Compare)
	return slices.Compact(nodes)
}

// tunnelledOf returns the addresses of a node that are redirected.
func (b *builder) tunnelledOf(n Node, tunnel []netip.Addr) (addresses []netip.Addr) {
	for _, addr := range n.Addresses {
		if !b.of(addr) {
			continue
		}
		b.tunnelled = true
		switch other, direct := b.direct[addr]; {
		case direct:
			b.problems = append(b.problems, Problem{Reason: AddressOfDirectNode, Node: n.Name,
				Message: fmt.Sprintf("its address %s is also one of the node %s, which is reached directly; connections to it are not redirected", addr, other)})
		case slices.Contains(tunnel, addr):
			b.problems = append(b.problems, Problem{Reason: AddressOfTunnel, Node: n.Name,
				Message: fmt.Sprintf("its address %s is the tunnel server's; connections to it are not redirected", addr)})
		default:
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

// target returns where connections to some ports go.
func (b *builder) target(to netip.AddrPort, ports []uint16, argument string) kernel.Target {
	switch {
	case len(ports) == 0:
		return kernel.Target{}
	case !to.IsValid() && b.tunnelled:
		b.problems = append(b.problems, Problem{Reason: NoTunnelAddress,
			Message: fmt.Sprintf("proxyArguments.%s has no %s address, so connections to such addresses of nodes behind the tunnel are not redirected for its ports", argument, b.family)})
		fallthrough
	case !to.IsValid():
		return kernel.Target{}
	}
	return kernel.Target{To: to, Ports: ports}
}

func (b *builder) sources() (sources []netip.Prefix) {
	for _, s := range b.in.Sources {
		if b.of(s.Addr()) {
			sources = append(sources, s)
		}
	}
	return sources
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Message, b.Message))
}
