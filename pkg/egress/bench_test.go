package egress

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// BenchmarkChange is one endpoint that changes, from the EndpointSlice to the change of the plan,
// among so many that are bound.
func BenchmarkChange(b *testing.B) {
	for _, count := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := filled(b, count)
			slices := [2]func() (bool, error){}
			for i := range slices {
				slice := newSlice("web-0", "web", "10.128.255.1", fmt.Sprintf("10.128.255.%d", 2+i))
				slices[i] = func() (bool, error) { return s.setSlice(slice) }
			}
			for i := 0; b.Loop(); i++ {
				if _, err := slices[i%2](); err != nil {
					b.Fatal(err)
				}
				if change := s.update(v1.IPv4Protocol); i > 1 && len(change.Added)+len(change.Removed) != 2 {
					b.Fatalf("changed %+v", change)
				}
			}
		})
	}
}

// BenchmarkAll is the plan of all of them at once.
func BenchmarkAll(b *testing.B) {
	s := filled(b, 100_000)
	for b.Loop() {
		s.move()
		s.update(v1.IPv4Protocol)
	}
}

// filled is a state with so many bound endpoints, a hundred to an EndpointSlice.
func filled(tb testing.TB, count int) *state {
	tb.Helper()
	s := newState(testConfig)
	s.setService(newService("web", nil))
	for n := 0; n < count; n += 100 {
		var addresses []string
		for i := n; i < n+100; i++ {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", 129+i>>16, i>>8&255, i&255))
		}
		if _, err := s.setSlice(newSlice(fmt.Sprintf("web-%d", 1+n), "web", addresses...)); err != nil {
			tb.Fatal(err)
		}
	}
	s.update(v1.IPv4Protocol)
	return s
}
