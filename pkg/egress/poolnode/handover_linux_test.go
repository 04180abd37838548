package poolnode

import (
	"context"
	"net/netip"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestPart_HandoversOfThePoolsFamilies: what the kernel lacks in another family does not count.
func TestPart_HandoversOfThePoolsFamilies(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		for name, networks := range map[v1.IPFamily][]netip.Prefix{
			v1.IPv4Protocol: {netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("198.51.100.0/28")},
			v1.IPv6Protocol: {netip.MustParsePrefix("2001:db8::/120")},
		} {
			ctx, stop := context.WithCancel(t.Context())
			p := newPoolTest(t)
			p.state.Config.Pool.Networks, p.ctx = networks, ctx
			h, err := p.startHandovers()
			if len(h) != 1 || h[name] == nil || err != nil {
				t.Errorf("a pool of %s: %v, %v", name, h, err)
			}
			stop()
			p.config.Running.Wait()
		}
	})
}
