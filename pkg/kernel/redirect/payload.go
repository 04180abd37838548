package redirect

import (
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// Payload returns, for readers, what a [Writer] makes of want in a kernel that has nothing of it: input of nft -f, or
// of iptables-restore --noflush; nil if nothing is redirected.
func Payload(backend reconcile.Backend, family kernel.Family, want kernel.Redirects) ([]byte, error) {
	if want.Empty() {
		return nil, nil
	}
	if backend == reconcile.NFTables {
		d := newTableDriver(family)
		text, err := d.spec.Text(d.stateOf(want, nil))
		return []byte(text), err
	}
	return Owner.Payload(render(want)), nil
}
