package objects

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

// TestSize: every address is a pod's or a Service's alone, and what Bindings says is so.
func TestSize(t *testing.T) {
	s := Size{Services: 25, Endpoints: 4, Every: 10, Nodes: 3}
	pods, external := map[string]bool{}, map[string]bool{}
	bindings := 0
	note := func(seen map[string]bool, address string) {
		if seen[address] {
			t.Errorf("%s twice", address)
		}
		seen[address] = true
	}
	for i := range s.Services {
		slice := s.Slice(i)
		for _, ip := range s.Service(i).Spec.ExternalIPs {
			note(external, ip)
			bindings += len(slice.Endpoints)
		}
		for _, endpoint := range slice.Endpoints {
			note(pods, endpoint.Addresses[0])
		}
		replaced := s.Replace(slice, i)
		note(pods, replaced.Endpoints[0].Addresses[0])
		if got, want := *replaced.Endpoints[0].NodeName, *slice.Endpoints[0].NodeName; got != want {
			t.Errorf("the new pod is on %s, want %s", got, want)
		}
	}
	if len(external) != s.External() || bindings != s.Bindings() || bindings != 12 {
		t.Errorf("%d external IPs and %d bindings, want %d and %d", len(external), bindings, s.External(), s.Bindings())
	}
	for address := range pods {
		if !lab.ClusterV4.Contains(netip.MustParseAddr(address)) {
			t.Errorf("%s is outside of the cluster", address)
		}
	}
	largest := Size{Services: 10_000, Endpoints: 10, Every: 10, Nodes: 1000}
	if last := largest.Replace(largest.Slice(9999), 100_000).Endpoints[0].Addresses[0]; !lab.ClusterV4.Contains(netip.MustParseAddr(last)) {
		t.Errorf("%s is outside of the cluster", last)
	}
}
