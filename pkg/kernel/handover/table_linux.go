package handover

import (
	"context"
	"time"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Names in the kernel.
const (
	tableName  = "openshift-egress-handover"
	formerMap  = "former"
	passedSet  = "passed"
	leftSet    = "left"
	hookChain  = "prerouting"
	keepChain  = "keep"
	straysName = "strays"
)

// netlinkTime bounds each write.
const netlinkTime = 5 * time.Second

// content is what the table has, by the keys of its sets: the nodes that had addresses, and the addresses that this node had.
type content struct{ former, left map[nft.Key]nft.Passing }

func (c content) empty() bool { return len(c.former)+len(c.left) == 0 }

// pause is how long all of it counts.
func (c content) pause() time.Duration {
	least := time.Hour
	for _, passing := range []map[nft.Key]nft.Passing{c.former, c.left} {
		for _, p := range passing {
			least = min(least, time.Until(p.Until))
		}
	}
	return max(least, 0)
}

// specOf returns what never changes of the table, as doc.go shows it. keep is behind kube-proxy's DNAT, and in front of that of source
// ports (package steering): the kernel translates a destination once.
func specOf(family kernel.Family) nft.Spec {
	return nft.Spec{
		Name: tableName, Family: family,
		Sets: []nft.Set{
			{Name: formerMap, Map: true, Timeout: Time, Passing: true},
			{Name: passedSet, Timeout: Time, Passing: true},
			{Name: leftSet, Timeout: remembered, Passing: true},
		},
		Chains: []nft.Chain{
			{Name: hookChain, Type: nftables.ChainTypeFilter, Hook: nftables.ChainHookPrerouting, Priority: *nftables.ChainPriorityNATDest + 2},
			{Name: keepChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPrerouting, Priority: *nftables.ChainPriorityNATDest + 1},
		},
	}
}

// mayGoOn matches a packet that a router would forward.
var mayGoOn = map[kernel.Family]string{kernel.IPv4: "ip ttl > 1", kernel.IPv6: "ip6 hoplimit > 1"}

// stateOf returns what the table should hold for a content, also if that is empty.
func stateOf(family kernel.Family, c content) nft.State {
	spec := specOf(family)
	passed := map[nft.Key]nft.Passing{}
	for ip, h := range c.former {
		if _, has := c.left[ip]; !has {
			passed[ip] = nft.Passing{Until: h.Until}
		}
	}
	return nft.State{
		Sets:    nft.Content{},
		Passing: map[string]map[nft.Key]nft.Passing{formerMap: c.former, passedSet: passed, leftSet: c.left},
		Chains: map[string][]nft.Rule{
			keepChain: {
				spec.Commented("begins a connection", "tcp flags & (syn | rst | ack) == syn accept"),
				spec.Commented("to be passed on, and to nobody else", "meta l4proto tcp IP daddr @"+passedSet+" dnat to IP daddr"),
			},
			hookChain: {
				spec.Commented("TCP in the middle of a connection", "ct state invalid,new tcp flags & (syn | rst | ack) != syn goto "+straysName),
				spec.Commented("UDP, which may be an answer", "ct state invalid,new meta l4proto udp goto "+straysName),
			},
			straysName: {
				spec.Commented("another node has passed it on, or should have had it", "IP daddr @"+leftSet+" drop"),
				spec.Commented("the former holder may track it", mayGoOn[family]+" dup to IP daddr map @"+formerMap+" drop"),
			},
		},
	}
}

// write makes the kernel have the table; none if the content is empty.
func write(table *nft.Writer, family kernel.Family, c content) error {
	ctx, cancel := context.WithTimeout(context.Background(), netlinkTime)
	defer cancel()
	var want nft.State
	if !c.empty() {
		want = stateOf(family, c)
	}
	if _, _, err := table.Read(ctx); err != nil { // so that a table, chains and rules that somebody has removed are written again
		return err
	}
	_, err := table.Write(ctx, want)
	return err
}
