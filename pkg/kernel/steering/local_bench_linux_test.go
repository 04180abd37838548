package steering

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// many returns a plan with so many bindings, of which the last has this egress IP.
func many(count int, last string) kernel.Desired {
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}, Bindings: make([]kernel.Binding, count)}
	for i := range p.Bindings {
		p.Bindings[i] = kernel.Binding{
			Pod:      netip.AddrFrom4([4]byte{10, byte(128 + i>>16), byte(i >> 8), byte(i)}),
			Protocol: kernel.TCP, EgressIP: netip.AddrFrom4([4]byte{203, 0, 113, byte(i % 250)}),
		}
	}
	p.Bindings[count-1].EgressIP = netip.MustParseAddr(last)
	return p
}

// BenchmarkLocal writes all of a plan, one change of it, and the same again.
func BenchmarkLocal(b *testing.B) {
	for _, count := range []int{100, 1_000, 10_000, 100_000} {
		l := lab.ForTest(b, lab.Config{})
		w := NewLocalWriter(kernel.IPv4)
		plans := []kernel.Desired{many(count, "198.51.100.1"), many(count, "198.51.100.2")}
		write := func(b *testing.B, p kernel.Desired) {
			if _, err := w.Write(b.Context(), p, nil); err != nil {
				b.Error(err)
			}
		}
		run := func(name string, body func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				err := l.Node().Do(func() error {
					body(b)
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
		run("all", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				write(b, kernel.Desired{})
				b.StartTimer()
				write(b, plans[0])
			}
		})
		run("one change", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				write(b, plans[i%2])
			}
		})
		run("the same", func(b *testing.B) {
			for b.Loop() {
				write(b, plans[0])
			}
		})
	}
}
