//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RouteVia has the outside host send what is for a prefix to a node, as of now:
// new flows and those that it began itself. A flow that a node began is answered
// by that node all the same. At first everything goes to the first node, but what
// belongs to the pods of another.
func (l *Lab) RouteVia(prefix netip.Prefix, node *Host) error {
	if node == nil || !slices.Contains(l.nodes, node) {
		return fmt.Errorf("lab: route %s: not a node of lab %s", prefix, l.cfg.Prefix)
	}
	if !prefix.IsValid() || !l.has(prefix.Addr()) {
		return fmt.Errorf("lab: route %s: lab %s is without its family", prefix, l.cfg.Prefix)
	}
	return l.outside.routeVia(prefix.Masked(), node)
}

// The routing tables of the outside host by which it answers the nodes, and the
// marks that lead there: plus a node's index.
const (
	firstMark  = 1
	firstTable = 1001
)

// replyTo makes the outside host answer a flow by the node that it came from,
// like a router that keeps state (reply-to in pf.conf(5)): the egress IP that a
// node uses may be routed to another. Nodes that use the same one choose the same port
// now and then, so each has its own conntrack zone; of two such flows the servers see
// one at another port. One node needs none of this.
func (l *Lab) replyTo(ctx context.Context) error {
	if len(l.nodes) == 1 {
		return nil
	}
	var sources []string
	for _, node := range l.nodes {
		link, err := node.nl.LinkByName("eth0")
		if err != nil {
			return fmt.Errorf("%s: find eth0: %w", node.Name, err)
		}
		sources = append(sources, fmt.Sprintf("%s : %d", link.Attrs().HardwareAddr, firstMark+node.index))
		if err := l.answerBy(node); err != nil {
			return err
		}
	}
	return l.outside.Feed(ctx, fmt.Sprintf(remember, strings.Join(sources, ", "), l.answeredByARP()), "nft", "-f", "-")
}

// answeredByARP is the start of the chains that remember nodes.
func (l *Lab) answeredByARP() string {
	if !l.cfg.AnswersByARP {
		return ""
	}
	v4, v6 := lan.host(0)
	return fmt.Sprintf("ip saddr %s return; ip6 saddr %s return", v4, v6)
}

// remember has conntrack remember by which node a flow came, and routes what the
// outside host answers accordingly. The chain differ is empty: that there is one has
// conntrack find a free port where the answers of two zones would be the same.
const remember = `table inet reply-to {
	map nodes {
		type ether_addr : mark
		elements = { %[1]s }
	}
	chain apart {
		type filter hook prerouting priority raw
		%[2]s
		iifname "lan0" ct original zone set ether saddr map { %[1]s }
	}
	chain differ {
		type nat hook input priority 100
	}
	chain arrive {
		type filter hook prerouting priority mangle
		%[2]s
		iifname "lan0" ct direction original ct mark set ether saddr map @nodes
	}
	chain answer {
		type route hook output priority mangle
		ct direction reply meta mark set ct mark
	}
}
`

// answerBy adds the routing table for what a node is to be answered.
func (l *Lab) answerBy(node *Host) error {
	lan0, err := l.outside.nl.LinkByName("lan0")
	if err != nil {
		return fmt.Errorf("%s: find lan0: %w", l.outside.Name, err)
	}
	for _, dst := range l.families(netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)) {
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table = unix.AF_INET, firstMark+uint32(node.index), firstTable+node.index
		if dst.Addr().Is6() {
			rule.Family = unix.AF_INET6
		}
		if err := l.outside.nl.RuleAdd(rule); err != nil {
			return fmt.Errorf("%s: rule for answers to %s: %w", l.outside.Name, node.Name, err)
		}
		err := l.outside.nl.RouteAdd(&netlink.Route{
			Dst: ipNet(dst), Gw: node.sameFamily(dst.Addr()).AsSlice(), LinkIndex: lan0.Attrs().Index, Table: rule.Table,
		})
		if err != nil {
			return fmt.Errorf("%s: route for answers to %s: %w", l.outside.Name, node.Name, err)
		}
	}
	return nil
}
