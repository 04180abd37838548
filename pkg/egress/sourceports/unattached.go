package sourceports

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// unattached returns the bound pods of this node of which the CNI plugin has told nothing: they started without it, and share ports. Each
// address is an attachment, sorted. They have no UID and no time, which EndpointSlices do not tell, so neither the journal nor the node's
// Lease has them.
func (al *Allocator) unattached() (pods []attachments.Attachment) {
	if al.config.BlockSize == 0 {
		return nil
	}
	var addrs []netip.Addr
	for _, family := range cluster.Families {
		for addr, home := range al.state.Homes(family) {
			if home == al.state.Config.NodeName {
				addrs = append(addrs, addr)
			}
		}
	}
	attached := cluster.AddressSet{} // after the homes: the plugin tells of a pod before anything is bound by that
	attached.Add(al.state.AttachedAddresses())
	addrs = slices.DeleteFunc(addrs, func(addr netip.Addr) bool { return attached[addr] })
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, addr := range addrs {
		bindings := al.state.BindingsOf(addr)
		if len(bindings) == 0 {
			continue // since a moment
		}
		pod := al.state.PodOf(bindings[0].Service, addr)
		pods = append(pods, attachments.Attachment{
			Pod: attachments.Pod{Namespace: pod.Namespace, Name: pod.Name}, IPs: []netip.Addr{addr},
			Ports: portsFor(nil, bindings, portblocks.Given{}, time.Time{}), BlockSize: al.sizeFor(bindings),
		})
	}
	return pods
}
