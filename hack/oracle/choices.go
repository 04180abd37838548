package oracle

import (
	"cmp"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// granted returns the claims of a Service that it gets, sorted by address.
func (c Cluster) granted(svc *v1.Service) []address {
	claims := slices.DeleteFunc(slices.Clone(c.claims(svc)), func(a address) bool {
		return !c.mayHave(svc.Namespace, a) || c.ownerOf(a.ip) != svc.Namespace
	})
	slices.SortFunc(claims, func(a, b address) int { return a.ip.Compare(b.ip) })
	return claims
}

// hasSeveral tells whether a Service names several egress IPs of an IP family, whether or not it gets them.
func (c Cluster) hasSeveral(svc *v1.Service, v6 bool) bool {
	var ips []netip.Addr
	for _, claim := range c.claims(svc) {
		if claim.v6 == v6 && !slices.Contains(ips, claim.ip) {
			ips = append(ips, claim.ip)
		}
	}
	return len(ips) > 1
}

// picks are the egress IPs that a node knows to be chosen.
type picks struct {
	node   string
	chosen map[choice]netip.Addr
}

// choice is what a node chooses for.
type choice struct {
	node, service string
	pod           netip.Addr
}

func (c Cluster) newPicks(node string) picks {
	p := picks{node, map[choice]netip.Addr{}}
	for of, services := range c.Chosen {
		for service, pods := range services {
			for pod, ip := range pods {
				p.chosen[choice{of, service, pod}] = ip
			}
		}
	}
	return p
}

// of returns which of a Service's claims an endpoint gets; invalid if nobody has chosen.
//
// "A pod's node chooses when it first sees the pod, and abides by it. First comes an address that it has chosen for the pod already, for
// another Service. Of addresses that are alike [here: nobody holds any], the pod's UID decides. Where no node is known, its address
// decides alone."
func (p picks) of(service string, e endpoint, claims []address) netip.Addr {
	among := slices.DeleteFunc(slices.Clone(claims), func(a address) bool { return a.ip.Is4() != e.addr.Is4() })
	mine := choice{e.node, service, e.addr}
	if ip := p.chosen[mine]; e.node != "" && slices.ContainsFunc(among, func(a address) bool { return a.ip == ip }) {
		return ip
	}
	if e.node != "" && e.node != p.node || len(among) == 0 {
		return netip.Addr{}
	}
	if e.node == "" {
		return slices.MaxFunc(among, func(a, b address) int { return cmp.Compare(score(e.addr.String(), a), score(e.addr.String(), b)) }).ip
	}
	name := cmp.Or(e.podUID, e.addr.String())
	isChosen := func(a address) int {
		for of, ip := range p.chosen {
			if of.node == e.node && of.pod == e.addr && ip == a.ip {
				return 1
			}
		}
		return 0
	}
	p.chosen[mine] = slices.MaxFunc(among, func(a, b address) int {
		return cmp.Or(cmp.Compare(isChosen(a), isChosen(b)), cmp.Compare(score(name, a), score(name, b)))
	}).ip
	return p.chosen[mine]
}

// score is the 64-bit FNV-1a of the address's bytes and a name, finished as MurmurHash3 does.
func score(name string, a address) uint64 {
	h := uint64(14695981039346656037)
	for _, octet := range append(a.ip.AsSlice(), name...) {
		h = (h ^ uint64(octet)) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
