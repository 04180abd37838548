package objects

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

func TestSize_EveryAddressOnce(t *testing.T) {
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
		replaced := s.Replace(slice, i, Node(2)).Endpoints[0]
		note(pods, replaced.Addresses[0])
		if *replaced.NodeName != Node(2) {
			t.Errorf("the new pod is on %s, want %s", *replaced.NodeName, Node(2))
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
}

func TestTypical_250EndpointsOnANodeAndATenthOfThemBound(t *testing.T) {
	s := Typical(10_000)
	here, bound := 0, 0
	for i := range s.Services {
		for _, endpoint := range s.Slice(i).Endpoints {
			if *endpoint.NodeName == Node(0) {
				here++
				bound += len(s.Service(i).Spec.ExternalIPs)
			}
		}
	}
	if s.All() != 100_000 || s.External() != 1_000 || here != 250 || bound < 20 || bound > 30 {
		t.Errorf("of %d endpoints of %d Services with external IPs %d are here, %d of them bound", s.All(), s.External(), here, bound)
	}
	if last := s.Replace(s.Slice(9999), 100_000, Node(0)).Endpoints[0].Addresses[0]; !lab.ClusterV4.Contains(netip.MustParseAddr(last)) {
		t.Errorf("%s is outside of the cluster", last)
	}
}
