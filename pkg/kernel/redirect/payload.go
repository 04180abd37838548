package redirect

import (
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// Payload returns, for readers, what a [Writer] makes of want in a kernel that has nothing of it: input of nft -f, or
// of ipset restore and iptables-restore --noflush; nil if nothing is redirected.
func Payload(backend reconcile.Backend, family kernel.Family, want kernel.Redirects) ([]byte, error) {
	if want.Empty() {
		return nil, nil
	}
	if backend == reconcile.NFTables {
		d := newTableDriver(family)
		text, err := d.spec.Text(d.stateOf(want, nil))
		return []byte(text), err
	}
	g := generationsOf(family)[0]
	text := "# ipset restore\n"
	for _, set := range g.all() {
		text += set.Payload(g.contents(want)[set])
	}
	return append([]byte(text+"# iptables-restore --noflush\n"), Owner.Payload(renderSets(want, g))...), nil
}

func each[T, U any](list []T, convert func(T) U) (result []U) {
	for _, element := range list {
		result = append(result, convert(element))
	}
	return result
}
