package nftables

import (
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// chainName is that of the only chain.
const chainName = "postrouting"

// specOf returns what never changes of a family's table.
func specOf(family kernel.Family) nft.Spec {
	return nft.Spec{Name: Table, Family: family, Sets: sets, Chains: []nft.Chain{{
		Name: chainName, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPostrouting, Priority: SourceNATPriority,
	}}}
}

// layout is what the rules of a family are made of.
type layout struct{ nft.Family }

func newLayout(family kernel.Family) layout { return layout{nft.FamilyOf(family)} }

// stateOf returns what the table should hold for a content.
func (l layout) stateOf(c Content) nft.State {
	return nft.State{Sets: nft.Content(c), Chains: map[string][]nft.Rule{chainName: l.rules(c)}}
}

// The rules' marks. One that is changed needs another mark: the number is the version.
const (
	bindingMark       = "openshift-egress 2 binding"
	bindingAmongMark  = "openshift-egress 2 binding, to an egress IP"
	podMark           = "openshift-egress 2 pod"
	podAmongMark      = "openshift-egress 2 pod, to an egress IP"
	firstRegister     = unix.NFT_REG_1 // where keys begin, as nft.Family has it
	egressIPRegister  = unix.NFT_REG_3
	recipientRegister = unix.NFT_REG_4 // the destination
)

// rules returns those of the chain for a content. Whether the source is bound is asked first: who is
// not is through with one look at the map, and one at the egress IPs.
func (l layout) rules(c Content) []nft.Rule {
	source, destination := l.Source(l.First), l.Destination(recipientRegister)
	protocol := []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: l.Second}}
	var rules []nft.Rule
	if len(c[bindingsMap]) > 0 {
		key, own := slices.Concat(source, protocol), l.Destination(l.Third)
		rules = append(rules,
			nft.Rule{Mark: bindingMark, Exprs: slices.Concat(key, egressIP(bindingsMap), destination, outside(exclusionsSet, egressIPsSet), l.snat())},
			nft.Rule{Mark: bindingAmongMark, Exprs: slices.Concat(destination, inside(egressIPsSet), outside(exclusionsSet), key, own, notOwn(ownSet), egressIP(bindingsMap), l.snat())})
	}
	if len(c[podsMap]) > 0 {
		key, own := source, l.Destination(l.Second)
		rules = append(rules,
			nft.Rule{Mark: podMark, Exprs: slices.Concat(key, egressIP(podsMap), destination, outside(exclusionsSet, egressIPsSet), l.snat())},
			nft.Rule{Mark: podAmongMark, Exprs: slices.Concat(destination, inside(egressIPsSet), outside(exclusionsSet), key, own, notOwn(ownPodsSet), egressIP(podsMap), l.snat())})
	}
	return rules
}

// inside lets packets pass whose destination is in a set, outside those whose is in none of them.
func inside(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: recipientRegister, SetName: set}}
}

func outside(sets ...string) []expr.Any {
	var exprs []expr.Any
	for _, set := range sets {
		exprs = append(exprs, &expr.Lookup{SourceRegister: recipientRegister, SetName: set, Invert: true})
	}
	return exprs
}

// notOwn lets packets pass that are not to their source's own egress IP.
func notOwn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: firstRegister, SetName: set, Invert: true}}
}

// egressIP lets packets pass whose key is in a map, and loads what that has for it.
func egressIP(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: firstRegister, DestRegister: egressIPRegister, IsDestRegSet: true, SetName: set}}
}

// snat gives the packet the address that was loaded.
func (l layout) snat() []expr.Any {
	return []expr.Any{&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.NAT, RegAddrMin: egressIPRegister, FullyRandom: true}}
}
