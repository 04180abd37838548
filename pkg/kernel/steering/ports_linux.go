package steering

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// tunnelInput picks out packets to the nodes' ports: all others that this node gets pass here, too.
func (l layout) tunnelInput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose, to(port), goToChain(portChain(port))))
	}
	return rules
}

// toPort lets packets to a port of this node in that come from where another node is, and tracks none of them but those of
// ports that have flows.
func (l layout) toPort(port nodesPort) []table.Rule {
	toUs := destinationIs(expr.CmpOpEq, unix.RTN_LOCAL)
	fromNode := slices.Concat(in(nodesSet), notrack(), verdict(expr.VerdictAccept))
	if port.tunnel {
		fromNode = goToChainIn(speakersMap)
	} else if port.tracked {
		fromNode = slices.Concat(in(nodesSet), verdict(expr.VerdictAccept))
	}
	return []table.Rule{
		l.rule(port.purpose+", from another node", toUs, cameWhereRouted(), l.Source(l.First), fromNode),
		l.rule(port.purpose+", as if from another node", toUs, l.Source(l.First), in(nodesSet), drop(foreignCounter)),
	}
}

func portChain(port nodesPort) string {
	protocol := "udp"
	if port.protocol == unix.IPPROTO_TCP {
		protocol = "tcp"
	}
	return fmt.Sprintf("%s%s-%d", portChains, protocol, port.number)
}

// portsInput keeps everybody else from the nodes' ports. It is behind conntrack: an answer to a pod that has been masqueraded
// with such a port is not for this node.
func (l layout) portsInput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose+", from anybody else", to(port), l.Source(l.First), notIn(nodesSet), drop(foreignCounter)))
	}
	return rules
}

// speaker lets packets of a node into the tunnel that have its hardware address inside: by that they are told from other nodes'
// behind the tunnel.
func (l layout) speaker(node netip.Addr) []table.Rule {
	if l.speakers[node] == nil {
		l.speakers[node] = []table.Rule{
			l.rule("as itself", innerHardwareSourceIs(hardwareAddrOf(node)), notrack(), verdict(expr.VerdictAccept)),
			l.rule("as another node", drop(forgedCounter)),
		}
	}
	return l.speakers[node]
}

// tunnelOutput tracks none of the packets that this node sends to the nodes' ports.
func (l layout) tunnelOutput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		if !port.tracked {
			rules = append(rules, l.rule(port.purpose+", to another node", to(port), l.Destination(l.First), in(nodesSet), notrack()))
		}
	}
	return rules
}

// innerHardwareSourceIs compares the hardware address of who has sent what is in a packet of the tunnel.
func innerHardwareSourceIs(addr hardwareAddr) []expr.Any {
	const offset = 8 + 8 + 6 // the headers of UDP and VXLAN (RFC 7348), and the inner destination
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 6},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: addr[:]},
	}
}

// to lets packets pass to a port of the nodes.
func to(port nodesPort) []expr.Any {
	return append(protocolIs(port.protocol),
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, port.number)})
}

// cameWhereRouted lets packets pass that came in by the interface by which this node reaches their source.
func cameWhereRouted() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true, ResultOIF: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: native(1)},
	}
}

func notrack() []expr.Any { return []expr.Any{&expr.Notrack{}} }
