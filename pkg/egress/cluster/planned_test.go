package cluster

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestPlanned_Tells: of a refused endpoint its node tells, and one that has the egress IP, but not each that may get it.
func TestPlanned_Tells(t *testing.T) {
	ip := netip.MustParseAddr("203.0.113.1")
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.SetHeld(map[netip.Addr]bool{ip: true}, 1)
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@here", "10.128.0.6@there", "10.128.0.7"))
	s.Update(v1.IPv4Protocol)
	here, there := netip.MustParseAddr("10.128.0.5"), netip.MustParseAddr("10.128.0.6")
	refusals := []plan.Refusal{{}, {Pod: here}, {Pod: there}, {Pod: netip.MustParseAddr("10.128.0.7")}}
	for has, want := range map[netip.Addr]map[netip.Addr]bool{
		netip.MustParseAddr("192.0.2.1"): {here: true},
		ip:                               {here: true, there: true},
	} {
		got := Planned{State: s.State, Family: v1.IPv4Protocol}.Tells(plan.Service{Namespace: "ns", Name: "web"}, refusals, map[netip.Addr]bool{has: true})
		if !maps.Equal(got, want) {
			t.Errorf("with %s it tells of %v, want %v", has, got, want)
		}
	}
}

// TestState_HomesFollowThePlanAndTheNodes, and are the same map as long as both stay.
func TestState_HomesFollowThePlanAndTheNodes(t *testing.T) {
	config := testConfig
	config.Scope = placement.Cluster
	s := New(config)
	s.SetService(clustertest.NewService("web", nil))
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.1")
	slice.Endpoints[0].NodeName = ptr.To("node-1")
	if _, err := s.SetSlice(slice); err != nil {
		t.Fatal(err)
	}
	pod, one, other := netip.MustParseAddr("10.128.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	expect := func(when string, primary map[string]netip.Addr, want map[netip.Addr]netip.Addr) {
		t.Helper()
		nodes := &JudgedNodes{Primary: primary}
		for range 2 {
			if diff := cmp.Diff(want, s.HomesAt(v1.IPv4Protocol, nodes, netip.Addr{}), compareNetip); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
	}
	expect("before there is a plan", map[string]netip.Addr{"node-1": one}, nil)
	s.Update(v1.IPv4Protocol)
	expect("a pod", map[string]netip.Addr{"node-1": one}, map[netip.Addr]netip.Addr{pod: one})
	expect("its node has another address", map[string]netip.Addr{"node-1": other}, map[netip.Addr]netip.Addr{pod: other})
	expect("its node has none", map[string]netip.Addr{"node-2": other}, nil)
	if homes := s.Homes(v1.IPv4Protocol); len(homes) != 1 || homes[pod] != "node-1" {
		t.Errorf("homes %v", homes)
	}
	s.DeleteSlice(slice)
	s.Update(v1.IPv4Protocol)
	expect("it is gone", map[string]netip.Addr{"node-1": one}, nil)
}
