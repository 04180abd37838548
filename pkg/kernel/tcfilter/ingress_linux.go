package tcfilter

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// Ingress returns the indexes of the interfaces whose filters at the ingress are judged to matter. An interface that cannot be asked is
// judged by its error.
func Ingress(matter func(filters []netlink.Filter, err error) bool) (at map[int]bool, err error) {
	qdiscs, err := changes.Outlast(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(nil) })
	if err != nil {
		return nil, fmt.Errorf("list traffic control: %w", err)
	}
	at = map[int]bool{}
	for _, qdisc := range qdiscs {
		if kind := qdisc.Type(); kind != "ingress" && kind != "clsact" {
			continue
		}
		index := qdisc.Attrs().LinkIndex
		at[index] = matter(netlink.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.HANDLE_MIN_INGRESS))
	}
	return at, nil
}
