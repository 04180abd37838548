package steering

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// portsChains are the chains of the nodes' ports.
func (l layout) portsChains() map[string][]nft.Rule {
	ports := l.config.ports()
	if len(ports) == 0 {
		return nil
	}
	chains := map[string][]nft.Rule{portsInputChain: l.portsInput()}
	if !l.config.spoken() {
		return chains
	}
	chains[tunnelInputChain], chains[tunnelOutputChain] = l.tunnelInput(), l.tunnelOutput()
	for _, port := range ports {
		chains[port.chain(portChains)], chains[port.chain(deliverChains)], chains[port.chain(speakChains)] = l.toPort(port), l.delivered(port), l.fromHere(port)
	}
	return chains
}

// chain is the name of the port's chain of a kind.
func (p nodesPort) chain(kind string) string {
	return fmt.Sprintf("%s%s-%d", kind, p.protocolName(), p.number)
}

func (p nodesPort) protocolName() string {
	if p.protocol == unix.IPPROTO_TCP {
		return "tcp"
	}
	return "udp"
}

// to lets packets pass to the port.
func (p nodesPort) to() string { return fmt.Sprintf("%s dport %d", p.protocolName(), p.number) }

// tunnelInput picks out packets to the nodes' ports of this node: all others that it gets pass here, too. What is for another
// address is judged in portsInput, for a Service may have that address and port.
func (l layout) tunnelInput() (rules []nft.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose, port.to()+" IP daddr "+l.self()+" goto "+port.chain(portChains)))
	}
	return rules
}

// self is the address by which the other nodes know this one.
func (l layout) self() string { return l.config.NodeIP.String() }

// toPort lets packets to a port of this node in that come from where another node is, and tracks none of them but those of
// ports that have flows.
func (l layout) toPort(port nodesPort) []nft.Rule {
	enter := fromNode + " notrack accept"
	if port.tunnel {
		enter = "IP saddr vmap @" + speakersMap
	} else if port.tracked {
		enter = fromNode + " accept"
	}
	return []nft.Rule{
		l.rule(port.purpose+", from another node", "fib saddr . iif oif exists "+enter),
		l.rule(port.purpose+", as if from another node", fromNode+drop(foreignCounter)),
	}
}

// portsInput picks out what is delivered to the nodes' ports of this node. In the other family no node speaks.
func (l layout) portsInput() (rules []nft.Rule) {
	for _, port := range l.config.ports() {
		if l.config.spoken() {
			rules = append(rules, l.rule(port.purpose, port.to()+" goto "+port.chain(deliverChains)))
		} else {
			rules = append(rules, l.rule(port.purpose+", in another family than the nodes'", port.to()+drop(foreignCounter)))
		}
	}
	return rules
}

// delivered keeps everything else from a port than what toPort has let in. It is behind conntrack: an answer to a pod that has
// been masqueraded with such a port is not for this node. The kernel's socket of the tunnel is bound to no address: it gets
// what is for another address of this node, for a broadcast, multicast or anycast address, and what a Service leads here, too.
func (l layout) delivered(port nodesPort) []nft.Rule {
	return []nft.Rule{
		l.rule(port.purpose+", from anybody else", "IP saddr != @"+nodesSet+drop(foreignCounter)),
		l.rule(port.purpose+", to another address than the node's", "IP daddr != "+l.self()+drop(foreignCounter)),
		l.rule(port.purpose+", by a Service, or not let in", port.unjudged()+drop(foreignCounter)),
	}
}

// unjudged lets packets pass that had another port or address when toPort, or fromHere, could have met them: a Service has led
// them to this one. What those let pass is not tracked, but of ports that have flows.
func (p nodesPort) unjudged() string {
	if p.tracked {
		return "ct status dnat"
	}
	return "ct state & untracked == 0"
}

// speaker lets packets of a node into the tunnel that have its hardware address inside: by that they are told from other nodes'
// behind the tunnel.
func (l layout) speaker(node netip.Addr) []nft.Rule {
	const innerSource = (8 + 8 + 6) * 8 // behind the headers of UDP and VXLAN (RFC 7348), and the inner destination
	if l.speakers[node] == nil {
		addr := HardwareAddrOf(node)
		l.speakers[node] = []nft.Rule{
			l.rule("as itself", fmt.Sprintf("@th,%d,48 %#x notrack accept", innerSource, addr[:])),
			l.rule("as another node", drop(forgedCounter)),
		}
	}
	return l.speakers[node]
}

// tunnelOutput picks out what this node sends to the nodes' ports, of whatever host.
func (l layout) tunnelOutput() (rules []nft.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose, port.to()+" goto "+port.chain(speakChains)))
	}
	return rules
}

// fromHere lets this node speak to a port of other nodes as itself, and tracks nothing but flows. A process of the node's own
// network can send from another node's address in IPv6, without any right (IPV6_FREEBIND). Packets that the kernel itself has
// wrapped have no socket, but those that a process sends by steer0: their source may be as false. A process is also kept from
// this node's own end of the tunnel, and from all ends at once.
func (l layout) fromHere(port nodesPort) (rules []nft.Rule) {
	if port.tunnel {
		rules = append(rules, l.rule(port.purpose+", to no single host, by a process", byAProcess+" fib daddr type != unicast"+drop(forgedCounter)))
	}
	rules = append(rules,
		l.rule(port.purpose+", to no node", "IP daddr != @"+nodesSet+" accept"),
		l.rule(port.purpose+", as another node", "IP saddr != "+l.self()+drop(forgedCounter)))
	if port.tunnel {
		rules = append(rules, l.rule(port.purpose+", by a process", byAProcess+drop(forgedCounter)))
	}
	if !port.tracked {
		rules = append(rules, l.rule(port.purpose+", to another node", "notrack"))
	}
	return rules
}
