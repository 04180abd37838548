package desk

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
)

// This file tells how egress SNAT stands by the API's objects alone, without a node: for 'kubectl egress'.

// FromAPI returns how egress SNAT stands in the whole cluster, as far as these objects tell: the plan, and which nodes
// announce which egress IPs in their Leases. What only nodes know is missing: what their kernels hold, their direct
// announcements, the pods that their CNI plugin told of, and with which addresses Nodes registered: what they tell now counts.
// Nil Nodes or Leases are not known; an empty list says that there are none. What of the objects cannot be read is in err, and the rest is complete without it.
func FromAPI(config egress.Config, objects cluster.Objects, now time.Time) (result status.Snapshot, err error) {
	config.NodeName, config.Scope = "", placement.Node // no node: then the planners keep no endpoints
	s, _, err := cluster.StateFor(config.Config, objects)
	result = status.Snapshot{FromAPI: true, Time: now, Steering: config.Transport(), HoldersUnread: objects.Leases == nil}
	directory, fresh, leaseErr := directoryOf(s, objects, now)
	for _, name := range cluster.Families {
		in, _ := s.Input(name)
		f := status.Family{Family: string(name), Input: in, Plan: plan.Build(in), Scope: string(placement.Cluster)}
		result.Families = append(result.Families, f)
		if objects.Leases != nil && !config.Steering.Off() {
			result.Addresses = append(result.Addresses, announced(directory, fresh, config.Steering.Mode, f, s.EgressIPs(name), now)...)
		}
	}
	return result, errors.Join(err, leaseErr)
}

// directoryOf returns who holds which address by the Leases, at a time. A sign of life counts from when its Lease was
// renewed, by the clock of its node. Fresh are the nodes that list each address in Leases that are so: those of others may be of nodes that
// have failed, whose addresses other nodes have taken.
func directoryOf(s *cluster.State, objects cluster.Objects, now time.Time) (directory *holders.Directory, fresh map[netip.Addr][]string, err error) {
	outer := v1.IPv4Protocol
	if len(objects.Nodes) > 0 {
		outer = cluster.OuterOf(objects.Nodes[0].Name, objects.Nodes)
	}
	directory, fresh = holders.NewDirectory(holders.Config{Outer: kernel.Family(outer)}), map[netip.Addr][]string{}
	exists := map[string]bool{}
	for _, node := range objects.Nodes {
		exists[node.Name] = true
		directory.Apply(s.NodeSeen(node, outer), time.Time{}) // so that a node is silent since its Lease has not been renewed
	}
	var errs []error
	for _, lease := range oldestLeaseFirst(objects.Leases) {
		event, err := holders.Announcing(lease)
		errs = append(errs, err)
		at := event.Renewed
		if at.After(now) {
			at = now
		}
		if objects.Nodes == nil { // it is taken for one that is there and Ready
			directory.Apply(holders.NodeSeen{Name: lease.Name, Ready: true, InternalIPs: []netip.Addr{netip.IPv4Unspecified()}}, at)
		}
		directory.Apply(event, at)
		if isFresh(lease, now) && (exists[lease.Name] || objects.Nodes == nil) {
			for ip := range event.Addresses {
				fresh[ip] = append(fresh[ip], lease.Name)
			}
		}
	}
	directory.Apply(holders.LeasesKnown{}, now)
	return directory, fresh, errors.Join(errs...)
}

func oldestLeaseFirst(leases []*coordinationv1.Lease) []*coordinationv1.Lease {
	return slices.SortedFunc(slices.Values(leases), func(a, b *coordinationv1.Lease) int {
		return cmp.Or(renewed(a).Compare(renewed(b)), cmp.Compare(a.Name, b.Name))
	})
}

// renewed returns when a Lease was renewed; zero if it does not say.
func renewed(lease *coordinationv1.Lease) time.Time {
	return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
}

// announced returns where the egress IPs of a family are, by the Leases. The way is that of packets from a node that does not
// have the address.
func announced(directory *holders.Directory, fresh map[netip.Addr][]string, mode holders.Mode, f status.Family, claimed []netip.Addr, now time.Time) (result []status.Address) {
	explainer := plan.NewExplainer(f.Input, f.Plan)
	pods := map[netip.Addr]map[netip.Addr]bool{}
	for _, b := range f.Plan.Bindings {
		kernel.Put(pods, b.EgressIP, b.Pod, true)
	}
	ways := directory.Ways(claimed, mode, now)
	for _, ip := range claimed {
		h := directory.Holder(ip, now)
		a := status.Address{
			IP: ip, Owner: explainer.Owner(ip), State: string(h.State), Holder: h.Node, Epoch: h.Epoch, Known: string(h.Known),
			Why: string(h.Why), Way: "here", Pods: len(pods[ip]),
		}
		if way, elsewhere := ways[ip]; elsewhere {
			a.Way = string(way.Kind)
		}
		if h.State == holders.Remote {
			a.Conflict = slices.DeleteFunc(slices.Sorted(slices.Values(fresh[ip])), func(name string) bool { return name == h.Node })
		}
		result = append(result, a)
	}
	return result
}

// PoolFromAPI returns the nodes that egress IPs are put on, as far as these objects tell: their subnets, drains and votes
// are told from node to node alone. The snapshot is that of [FromAPI] for the same objects.
func PoolFromAPI(config egress.Config, objects cluster.Objects, snapshot status.Snapshot) (status.Pool, error) {
	pool := config.Pool
	switch {
	case len(pool.Networks) == 0:
		return status.Pool{}, errors.New("the program puts no egress IPs on nodes: proxyArguments.egress-snat-assign-cidrs is not set")
	case objects.Nodes == nil || objects.Leases == nil:
		return status.Pool{}, errors.New("the nodes that egress IPs are put on are not known without Nodes and Leases")
	}
	result := status.Pool{FromAPI: true, LeftOut: snapshot.LeftOut, Members: []status.PoolMember{}, Unheld: []status.UnheldAddress{}}
	held := map[netip.Addr]bool{}
	for _, node := range objects.Nodes {
		i := slices.IndexFunc(objects.Leases, func(l *coordinationv1.Lease) bool { return l.Name == node.Name })
		m := status.PoolMember{Name: node.Name}
		var fresh bool
		if i >= 0 {
			m.Held, fresh = assignedTo(pool, objects.Leases[i]), isFresh(objects.Leases[i], snapshot.Time)
		}
		m.State = memberState(pool.Selects(node.Labels), fresh, extension.IsReady(node), len(m.Held) > 0)
		if m.State == "" {
			continue
		}
		result.Members = append(result.Members, m)
		for _, ip := range m.Held {
			held[ip] = held[ip] || m.State != status.Dead
		}
	}
	slices.SortFunc(result.Members, func(a, b status.PoolMember) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range snapshot.Families {
		for _, ip := range f.Granted() {
			if !held[ip] && pool.Has(ip) {
				result.Unheld = append(result.Unheld, status.UnheldAddress{IP: ip})
			}
		}
	}
	return result, nil
}

// memberState returns the state of a node as [status.PoolMember] has it; empty if it has no part in the pool. Only a node
// that has addresses renews its Lease.
func memberState(selected, fresh, ready, has bool) string {
	switch {
	case !selected && !has:
		return ""
	case has && !fresh, !has && !ready:
		return status.Dead
	case !selected:
		return status.Leaving
	case fresh:
		return status.Live
	}
	return status.Unknown
}

// assignedTo returns the pool's addresses that a Lease announces, sorted.
func assignedTo(pool cluster.Pool, lease *coordinationv1.Lease) (result []netip.Addr) {
	said, _ := holders.Announcing(lease) // its error is told by FromAPI
	for ip := range said.Addresses {
		if pool.Has(ip) {
			result = append(result, ip)
		}
	}
	slices.SortFunc(result, netip.Addr.Compare)
	return result
}

// isFresh tells whether the node of a Lease was alive a moment ago.
func isFresh(lease *coordinationv1.Lease, now time.Time) bool {
	seconds := lease.Spec.LeaseDurationSeconds
	return seconds != nil && now.Before(renewed(lease).Add(time.Duration(*seconds)*time.Second))
}
