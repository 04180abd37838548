package poolnode

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// later has something logged when the lock, which must be held, is released by [Part.unlock]: nobody logs under it.
func (p *Part) later(log func()) { p.unlogged = append(p.unlogged, log) }

// unlock releases the lock, and logs what there is to log.
func (p *Part) unlock() {
	unlogged := p.unlogged
	p.unlogged = nil
	p.mu.Unlock()
	for _, log := range unlogged {
		log()
	}
}

// warn logs what keeps addresses from this node, or from all, when that changes. The lock must be held.
func (p *Part) warn(wanted map[netip.Addr]bool, inside []string, status pool.Status) {
	p.warnOf(&p.warned.networks, inside,
		"Networks of proxyArguments.egress-snat-assign-cidrs overlap networks of the cluster, so no node gets egress IPs in them; correct the argument", "All networks of the pool are outside of the cluster now")
	var unable []string
	if p.nodes[p.state.Config.NodeName] && len(status.Members) > 0 {
		unable = cannotHold(status.Members[0].Networks, slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare))
	}
	p.warnOf(&p.warned.unable, unable,
		"This node cannot hold egress IPs of the pool, so other nodes get them", "This node can hold all egress IPs of the pool now")
}

// warnOfLabels logs which nodes are in the pool by its former label alone, when that changes. The lock must be held.
func (p *Part) warnOfLabels() {
	p.warnOf(&p.warned.labels, slices.Sorted(maps.Keys(p.former)),
		"Nodes get egress IPs by the label "+cluster.FormerPoolLabel+", which their kubelets may write; give them the label "+cluster.PoolLabel+" instead", "All nodes of the pool have the label "+cluster.PoolLabel+" now")
}

// warnOfShared logs which nodes of the pool are not spoken with because another one owns their address, when that changes. The lock
// must be held.
func (p *Part) warnOfShared(primary map[string]netip.Addr, owners map[netip.Addr]string) {
	var shared []string
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if owner := owners[primary[name]]; owner != name && owner != "" {
			shared = append(shared, fmt.Sprintf("%s has %s, which is the address of %s", name, primary[name], owner))
		}
	}
	p.warnOf(&p.warned.shared, shared,
		"Nodes have no part in the pool, because their InternalIP is that of another Node; correct the addresses of both", "Each node of the pool has an address of its own now")
}

// warnOf logs reasons that differ from those that it has logged.
func (p *Part) warnOf(before *[]string, now []string, warning, over string) {
	switch {
	case slices.Equal(*before, now):
	case len(now) > 0:
		p.later(func() { p.logger.Error(nil, warning, "reasons", strings.Join(now, "; ")) })
	default:
		p.later(func() { p.logger.Info(over) })
	}
	*before = now
}

// noteLeft notes which addresses the pool leaves to a load balancer although no node has them.
func (p *Part) noteLeft(now time.Time) {
	reserved, unclaimed := p.config.Reserved(), map[netip.Addr]time.Time{}
	p.mu.Lock()
	for _, of := range p.wanted {
		for ip := range of.Addresses {
			if reserved[ip] {
				unclaimed[ip] = now
			}
		}
	}
	p.mu.Unlock()
	maps.DeleteFunc(unclaimed, func(ip netip.Addr, _ time.Time) bool { return p.steerer.Holder(ip).State != holders.Unclaimed })
	p.mu.Lock()
	defer p.mu.Unlock()
	for ip := range unclaimed {
		if since, before := p.leftToBalancer[ip]; before {
			unclaimed[ip] = since
		}
	}
	p.leftToBalancer = unclaimed
}

// LeftTroubles are those of addresses that are left to a load balancer, which does not announce them. All nodes of the cluster know.
func (p *Part) LeftTroubles(now time.Time) map[netip.Addr]tell.Trouble {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	troubles := map[netip.Addr]tell.Trouble{}
	for ip, since := range p.leftToBalancer {
		if now.Sub(since) > tell.Lasting {
			troubles[ip] = tell.Trouble{Reason: addressUnplaced, Note: fmt.Sprintf("%s is on no node: the pool leaves it to MetalLB, since an L2Advertisement or a BGPAdvertisement is for it, but no node announces it. Start MetalLB's speakers, or remove the advertisement.", ip)}
		}
	}
	return troubles
}

// cannotHold returns in words which addresses a node with these subnets cannot hold.
func cannotHold(subnets []pool.Network, addresses []netip.Addr) (reasons []string) {
	var without, down []netip.Addr
	for _, ip := range addresses {
		switch subnet, has := pool.SubnetOf(subnets, ip); {
		case !has:
			without = append(without, ip)
		case !subnet.Up:
			down = append(down, ip)
		}
	}
	if len(without) > 0 {
		reasons = append(reasons, "no interface has a subnet with "+tell.Listed(without))
	}
	if len(down) > 0 {
		reasons = append(reasons, "the link is down of the interface for "+tell.Listed(down))
	}
	return reasons
}
