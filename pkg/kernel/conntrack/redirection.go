package conntrack

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Redirection says which connections to judge after a change of what is redirected.
type Redirection struct {
	// After is what is redirected now.
	After kernel.Redirects
	// Before are what was, or may have been, since the connections were last judged.
	Before []kernel.Redirects

	// local are the node's own addresses.
	local kernel.CIDRSet
}

func (r *Redirection) empty() bool { return r.After.Empty() && len(r.Before) == 0 }

// misdirected tells whether a TCP connection in zone 0 goes elsewhere than it should. It is misdirected if
//
//   - it is to be redirected, by its destination and its source, and does not go there; or
//   - it is not to be redirected, and goes where it was redirected before.
//
// Others may redirect connections, too: what goes elsewhere for another reason is right.
func (r *Redirection) misdirected(t *tracked) bool {
	meant, goes := t.original.destination, t.replying.source
	if t.Protocol != tcp || t.Zone != 0 || !meant.Addr().IsValid() || !goes.Addr().IsValid() || r.local.Contains(meant.Addr()) {
		return false
	}
	if to, redirected := r.After.To(meant); redirected && r.concerns(r.After, t.Source) {
		return goes != to
	}
	if goes == meant {
		return false
	}
	for _, before := range r.Before {
		if to, was := before.To(meant); was && goes == to && r.concerns(before, t.Source) {
			return true
		}
	}
	return false
}

// concerns tells whether redirects are for connections from source.
func (r *Redirection) concerns(redirects kernel.Redirects, source netip.Addr) bool {
	return slices.ContainsFunc(redirects.Sources, func(cidr netip.Prefix) bool { return cidr.Contains(source) }) || r.local.Contains(source)
}
