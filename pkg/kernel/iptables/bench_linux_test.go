package iptables

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// BenchmarkNodes tells what thousands of excluded nodes cost beside 5,000 bindings: the time
// of a write as a multiple of the same without them, in one run. Once for all rules, once
// for one changed binding.
func BenchmarkNodes(b *testing.B) {
	for _, backend := range lab.Backends() {
		for _, nodes := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", backend, nodes), func(b *testing.B) {
				l := lab.ForTest(b, lab.Config{Backend: backend})
				b.Setenv("PATH", l.Path())
				b.Setenv("XTABLES_LOCKFILE", filepath.Join(b.TempDir(), "lock"))
				r := rand.New(rand.NewPCG(16, 16))
				none := randomPlan(r, clusterV4, 5000)
				plans := []kernel.Desired{none, withNodes(r, none, nodes)}
				// The fastest, for the machine has other work.
				all, one := [2]time.Duration{time.Hour, time.Hour}, [2]time.Duration{time.Hour, time.Hour}
				order := []int{0, 1}
				for b.Loop() {
					slices.Reverse(order)
					for _, i := range order {
						p := plans[i]
						changed := p
						changed.Bindings = slices.Clone(p.Bindings)
						changed.Bindings[0].EgressIP = changed.Bindings[0].EgressIP.Next()
						w := NewWriter(kernel.IPv4)
						timedWrite(b, l, w, kernel.Desired{})
						all[i] = min(all[i], timedWrite(b, l, w, p))
						one[i] = min(one[i], timedWrite(b, l, w, changed))
						timedWrite(b, l, w, kernel.Desired{})
					}
				}
				b.ReportMetric(float64(all[1])/float64(all[0]), "all/none")
				b.ReportMetric(float64(one[1])/float64(one[0]), "one/none")
				b.ReportMetric(float64(all[0].Microseconds())/1000, "none-ms")
				b.ReportMetric(0, "ns/op") // of nothing that anybody does
			})
		}
	}
}

func timedWrite(b *testing.B, l *lab.Lab, w *Writer, p kernel.Desired) (elapsed time.Duration) {
	rules := Render(p)
	err := l.Node().Do(func() error {
		start := time.Now()
		_, err := w.Write(b.Context(), rules)
		elapsed = time.Since(start)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return elapsed
}
