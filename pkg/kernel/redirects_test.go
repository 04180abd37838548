package kernel

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRedirects_Without: it has every destination that goes elsewhere by the other redirects.
func TestRedirects_Without(t *testing.T) {
	addr := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }
	to := netip.MustParseAddrPort("192.0.2.10:10263")
	redirects := func(others bool, port uint16, nodes ...byte) Redirects {
		r := Redirects{Others: others, Secure: Target{To: to, Ports: []uint16{10250, port}}}
		for _, n := range nodes {
			r.Nodes = append(r.Nodes, addr(n))
		}
		return r
	}
	ofPods := redirects(false, 10251, 1)
	ofPods.Sources = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	for name, test := range map[string]struct{ r, o, want Redirects }{
		"the same":                  {redirects(false, 10251, 1, 2), redirects(false, 10251, 1, 2), Redirects{}},
		"the same others":           {redirects(true, 10251, 1, 2), redirects(true, 10251, 1, 2), Redirects{}},
		"a node less":               {redirects(false, 10251, 1, 2), redirects(false, 10251, 1, 3), redirects(false, 10251, 2)},
		"another port":              {redirects(false, 10251, 1, 2), redirects(false, 10252, 1, 2), redirects(false, 10251, 1, 2)},
		"others became nodes":       {redirects(true, 10251, 1), redirects(false, 10251, 2), redirects(true, 10251, 1)},
		"pods not any more":         {ofPods, redirects(false, 10251, 1), ofPods},
		"nothing is redirected now": {redirects(false, 10251, 1), Redirects{}, redirects(false, 10251, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.r.Without(test.o)
			if got.Empty() && test.want.Empty() {
				return
			}
			if diff := cmp.Diff(test.want, got, cmp.Comparer(Redirects.Equal)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
