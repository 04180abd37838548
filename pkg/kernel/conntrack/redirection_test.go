package conntrack

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestRedirection_Misdirected: a connection is misdirected if it should go to the tunnel server and does not, or goes there only
// because it was sent there before.
func TestRedirection_Misdirected(t *testing.T) {
	const node, pod, edge, once, tunnel, oldTunnel = "192.0.2.1", "10.128.0.11", "192.0.2.50:10250", "192.0.2.51:10250", "192.0.2.10:10263", "192.0.2.11:10263"
	redirects := func(to string, sources []netip.Prefix, nodes ...string) kernel.Redirects {
		r := kernel.Redirects{Sources: sources, Secure: kernel.Target{To: netip.MustParseAddrPort(to), Ports: []uint16{10250}}}
		for _, n := range nodes {
			r.Nodes = append(r.Nodes, netip.MustParseAddrPort(n).Addr())
		}
		return r
	}
	ofPods := prefixes("10.128.0.0/14")
	now, nowOfPods := redirects(tunnel, nil, edge), redirects(tunnel, ofPods, edge)
	before := []kernel.Redirects{redirects(oldTunnel, nil, edge, once)}
	beforeOfPods := []kernel.Redirects{redirects(oldTunnel, ofPods, edge, once), nowOfPods}
	for name, test := range map[string]struct {
		after               kernel.Redirects
		before              []kernel.Redirects
		source, meant, goes string
		want                bool
	}{
		"by the tunnel":                       {now, nil, node, edge, tunnel, false},
		"directly":                            {now, nil, node, edge, edge, true},
		"elsewhere":                           {now, nil, node, edge, oldTunnel, true},
		"another port":                        {now, nil, node, "192.0.2.50:22", "192.0.2.50:22", false},
		"to the node itself":                  {redirects(tunnel, nil, "192.0.2.1:1"), nil, node, "192.0.2.1:10250", "192.0.2.1:10250", false},
		"redirected before, and goes on":      {now, before, node, once, oldTunnel, true},
		"redirected before, goes directly":    {now, before, node, once, once, false},
		"redirected before, by somebody else": {now, before, node, once, "192.0.2.99:1", false},
		"a pod's, directly":                   {now, nil, pod, edge, edge, false},
		"a pod's, redirected by others":       {now, before, pod, edge, tunnel, false},
		"a pod's, by the tunnel":              {nowOfPods, nil, pod, edge, tunnel, false},
		"a pod's, directly, but should not":   {nowOfPods, nil, pod, edge, edge, true},
		"a pod's, by the tunnel as before":    {now, beforeOfPods, pod, edge, tunnel, true},
		"somebody else's":                     {nowOfPods, beforeOfPods, "198.51.100.7", edge, edge, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Redirection{After: test.after, Before: test.before, local: kernel.NewCIDRSet(prefixes("192.0.2.1/32"))}
			f := &tracked{Flow: flow(tcp, test.source, test.goes, test.source)}
			f.original.destination, f.replying.source = netip.MustParseAddrPort(test.meant), netip.MustParseAddrPort(test.goes)
			if got := r.misdirected(f); got != test.want {
				t.Errorf("misdirected: %v, want %v", got, test.want)
			}
		})
	}
}
