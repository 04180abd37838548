package tell

import (
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Listed lists addresses, as many as an Event has room for.
func Listed(addresses []netip.Addr) string { return kernel.Listed(addresses, 20, "more") }
