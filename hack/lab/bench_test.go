//go:build linux

package lab

import (
	"fmt"
	"testing"
)

// BenchmarkScale is a Deployment that goes from 0 pods to 50 on three nodes and
// back.
func BenchmarkScale(b *testing.B) {
	const scale = 50
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprint("parallel=", parallel), func(b *testing.B) {
			l := ForTest(b, Config{Nodes: 3, IPv6: true})
			for b.Loop() {
				var pods [scale]*Host
				each(b, parallel, scale, func(i int) (err error) {
					pods[i], err = l.AddPodOn(l.Nodes()[i%3])
					return err
				})
				each(b, parallel, scale, func(i int) error { return l.RemovePod(pods[i]) })
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*scale), "ms/pod")
		})
	}
}

// each calls do for 0 to n-1, parallel at a time.
func each(t testing.TB, parallel, n int, do func(int) error) {
	t.Helper()
	errs := make(chan error)
	for worker := range parallel {
		go func() {
			var err error
			for i := worker; i < n && err == nil; i += parallel {
				err = do(i)
			}
			errs <- err
		}()
	}
	for range parallel {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}
