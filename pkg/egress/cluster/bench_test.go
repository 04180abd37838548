package cluster

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/openshift/origin-node/hack/clustertest"
)

// BenchmarkChange is one endpoint that changes, from the EndpointSlice to the change of the plan,
// among so many that are bound.
func BenchmarkChange(b *testing.B) {
	for _, count := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := filled(b, count)
			slices := [2]func() (Effect, error){}
			for i := range slices {
				slice := clustertest.NewSlice("web-0", "web", "10.128.255.1", fmt.Sprintf("10.128.255.%d", 2+i))
				slices[i] = func() (Effect, error) { return s.SetSlice(slice) }
			}
			for i := 0; b.Loop(); i++ {
				if _, err := slices[i%2](); err != nil {
					b.Fatal(err)
				}
				if change := s.Update(v1.IPv4Protocol); i > 1 && len(change.Added)+len(change.Removed) != 2 {
					b.Fatalf("changed %+v", change)
				}
			}
		})
	}
}

// BenchmarkState_PodElsewhere is one of a hundred endpoints of an EndpointSlice, all on other nodes, that
// changes. This is what a node does most: it must be no work for its loop.
func BenchmarkState_PodElsewhere(b *testing.B) {
	config := testConfig
	config.NodeName = "here"
	s := New(config)
	s.SetService(clustertest.NewService("web", nil))
	versions := [2]*discovery.EndpointSlice{}
	for i := range versions {
		var endpoints []string
		for n := range 100 {
			endpoints = append(endpoints, fmt.Sprintf("10.128.255.%d@node-%d", n*37%100, n%50))
		}
		endpoints[50] = fmt.Sprintf("10.128.255.%d@node-7", 100+i)
		versions[i] = clustertest.Placed("web-0", "web", endpoints...)
	}
	s.Update(v1.IPv4Protocol)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if changed, err := s.SetSlice(versions[i%2]); err != nil || changed != Elsewhere {
			b.Fatalf("changed %v, %v; want %v", changed, err, Elsewhere)
		}
	}
	if change := s.Update(v1.IPv4Protocol); len(change.Added)+len(change.Removed)+len(change.Refused)+len(change.Lifted) > 0 {
		b.Fatalf("changed %+v", change)
	}
}

// BenchmarkAll is the plan of all of them at once.
func BenchmarkAll(b *testing.B) {
	s := filled(b, 100_000)
	for b.Loop() {
		s.move()
		s.Update(v1.IPv4Protocol)
	}
}

// filled is a state with so many bound endpoints, a hundred to an EndpointSlice.
func filled(tb testing.TB, count int) *State {
	tb.Helper()
	s := New(testConfig)
	s.SetService(clustertest.NewService("web", nil))
	for n := 0; n < count; n += 100 {
		var addresses []string
		for i := n; i < n+100; i++ {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", 129+i>>16, i>>8&255, i&255))
		}
		if _, err := s.SetSlice(clustertest.NewSlice(fmt.Sprintf("web-%d", 1+n), "web", addresses...)); err != nil {
			tb.Fatal(err)
		}
	}
	s.Update(v1.IPv4Protocol)
	return s
}
