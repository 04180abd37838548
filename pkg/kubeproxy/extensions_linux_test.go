package kubeproxy

import (
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// TestTunnelBackend_IsATable beside each proxier, where the kernel has nftables.
func TestTunnelBackend_IsATable(t *testing.T) {
	l := lab.ForTest(t, lab.Config{IPv6: true})
	for _, proxier := range []reconcile.Backend{reconcile.IPTables, reconcile.NFTables} {
		err := l.Node().Do(func() error {
			backend, err := tunnelBackend(t.Context(), proxier)
			if backend != reconcile.NFTables {
				t.Errorf("beside %s: %s", proxier, backend)
			}
			return err
		})
		if err != nil {
			t.Errorf("beside %s: %v", proxier, err)
		}
	}
}
