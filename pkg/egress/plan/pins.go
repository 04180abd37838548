package plan

import (
	"fmt"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

const pinsArgument = "proxyArguments.egress-snat-namespace-cidrs"

// EveryOther stands, among the names of an Input's NamespaceCIDRs, for all namespaces that are not
// named there.
const EveryOther = "*"

// pins tell which networks are for which namespaces.
type pins struct {
	// of has the networks of each namespace, EveryOther's among them.
	of map[string]kernel.CIDRSet
	// reserved are those of all namespaces that are named.
	reserved kernel.CIDRSet
}

func newPins(cidrs map[string][]netip.Prefix) pins {
	p := pins{of: make(map[string]kernel.CIDRSet, len(cidrs))}
	var reserved []netip.Prefix
	for namespace, networks := range cidrs {
		p.of[namespace] = kernel.NewCIDRSet(networks)
		if namespace != EveryOther {
			reserved = append(reserved, networks...)
		}
	}
	p.reserved = kernel.NewCIDRSet(reserved)
	return p
}

// forbid returns why a namespace may not have an address, or nothing.
func (p pins) forbid(namespace string, ip netip.Addr) (because string) {
	networks, named := p.of[namespace]
	if !named {
		if cidr, found := p.reserved.Find(ip); found {
			return fmt.Sprintf("egress IP %s lies in %s, which %s reserves for other namespaces; use another address, or pin this namespace with %s=%s",
				ip, cidr, pinsArgument, namespace, host(ip))
		}
		if networks, named = p.of[EveryOther]; !named {
			return ""
		}
		namespace = EveryOther
	}
	if _, found := networks.Find(ip); found {
		return ""
	}
	return fmt.Sprintf("egress IP %s lies in none of the networks that %s has for this namespace, as %s=CIDR; use an address in one of them, or add %s=%s",
		ip, pinsArgument, namespace, namespace, host(ip))
}

// permit tells whether a network of a namespace, or of all without one of their own, contains an address. It may be forbidden all the same.
func (p pins) permit(namespace string, ip netip.Addr) bool {
	networks, named := p.of[namespace]
	if !named {
		networks = p.of[EveryOther]
	}
	_, found := networks.Find(ip)
	return found
}

// host returns the network of one address.
func host(ip netip.Addr) netip.Prefix { return netip.PrefixFrom(ip, ip.BitLen()) }
