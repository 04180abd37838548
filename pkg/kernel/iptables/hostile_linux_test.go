package iptables

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestTransaction_HostilePlansInTheKernel: what FuzzHostilePlan's own reading of iptables-restore says, the
// real one says too, and iptables-save prints it as it was written.
func TestTransaction_HostilePlansInTheKernel(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		written := 0
		for seed := range uint64(12) {
			p, comments := (&hostile{data: randomBytes(seed, 6000), v4: n.family == kernel.IPv4}).plan()
			if payload := Payload(p, comments); payload != nil {
				n.run(func() error { return n.writer.Check(n.Context(), payload) })
				written++
			}
			n.write(p)
			n.holds(p)
			if diff := cmp.Diff(said(p.Bindings), n.look().Bindings(), addresses); diff != "" {
				t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
			}
		}
		if written < 6 {
			t.Errorf("%d plans of 12 bind anything; that is no test", written)
		}
		n.write(kernel.Desired{})
		n.holds(kernel.Desired{})
	})
}
