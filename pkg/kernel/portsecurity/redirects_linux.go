package portsecurity

import (
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/pkg/kernel/tcfilter"
)

// redirected returns the interfaces that redirect packets by a tc filter, before nftables sees them. An ifb device gives them back as if
// the interface had received them, past nftables. What a filter of BPF does is not known. An interface that cannot be asked redirects
// nothing: no look must fail for somebody's traffic control as long as it can tell who is behind which interface.
func redirected() map[int]bool {
	at, err := tcfilter.Ingress(func(filters []netlink.Filter, err error) bool {
		return err == nil && slices.ContainsFunc(filters, redirects)
	})
	if err != nil {
		return nil
	}
	return at
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
