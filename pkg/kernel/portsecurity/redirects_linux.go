package portsecurity

import (
	"slices"

	"github.com/vishvananda/netlink"
)

// redirected returns the interfaces that redirect packets by a tc filter, before nftables sees them. An ifb device gives them back as if
// the interface had received them, past nftables. What a filter of BPF does is not known. An interface that cannot be asked redirects
// nothing: no look must fail for somebody's traffic control as long as it can tell who is behind which interface.
func redirected() map[int]bool {
	qdiscs, err := netlink.QdiscList(nil)
	if err != nil {
		return nil
	}
	redirected := map[int]bool{}
	for _, qdisc := range qdiscs {
		if kind := qdisc.Type(); kind != "ingress" && kind != "clsact" {
			continue
		}
		index := qdisc.Attrs().LinkIndex
		filters, err := netlink.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.HANDLE_MIN_INGRESS)
		redirected[index] = err == nil && slices.ContainsFunc(filters, redirects)
	}
	return redirected
}

func redirects(filter netlink.Filter) bool {
	var actions []netlink.Action
	switch f := filter.(type) {
	case *netlink.U32:
		actions = f.Actions
	case *netlink.MatchAll:
		actions = f.Actions
	case *netlink.Flower:
		actions = f.Actions
	case *netlink.FwFilter:
		actions = f.Actions
	}
	return slices.ContainsFunc(actions, func(action netlink.Action) bool {
		mirred, is := action.(*netlink.MirredAction)
		return is && (mirred.MirredAction == netlink.TCA_EGRESS_REDIR || mirred.MirredAction == netlink.TCA_INGRESS_REDIR)
	})
}
