package poolnode

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// The reasons of Events about the pool.
const (
	addressInUse    plan.Reason = "AddressInUse"
	addressUnplaced plan.Reason = "EgressIPNotPlaced"
)

// Troubles returns what is wrong with addresses of the pool that this node has to tell of.
func (p *Part) Troubles() map[netip.Addr]tell.Trouble {
	if wanted := p.empty(); wanted != nil {
		return p.emptyTroubles(wanted)
	}
	status, known := p.status()
	if !known || len(status.Members) == 0 {
		return nil
	}
	troubles, now := map[netip.Addr]tell.Trouble{}, time.Now()
	for ip, other := range status.Members[0].Claims {
		if since, unheld := status.Unheld[ip]; other != "" && unheld && status.Lost[ip] == "" && now.Sub(since) > time.Second {
			troubles[ip] = tell.Trouble{Reason: addressInUse, Own: true, Note: fmt.Sprintf("%s is in use by another host, %s, so it is on no node, and pods that use it get no answers. Remove it there; a node takes it then.", ip, other)}
		}
	}
	if !status.Tells {
		return troubles
	}
	for ip, since := range status.Unheld {
		if now.Sub(since) <= tell.Lasting {
			continue
		}
		if able, why := status.Objections(ip).Able(); !able {
			troubles[ip] = tell.Trouble{Reason: addressUnplaced, Own: true, Note: fmt.Sprintf("%s is on no node, since no node of the pool can hold it: %s.", ip, why)}
		} else if !status.Majority {
			troubles[ip] = tell.Trouble{Reason: addressUnplaced, Own: true, Note: fmt.Sprintf("%s is on no node, since %s sees only %d of the %d nodes of the pool, which is no majority. Bring nodes back, or remove those that are gone for good from the pool.", ip, p.state.Config.NodeName, status.Votes, status.Of)}
		}
	}
	return troubles
}

// empty returns the addresses that the pool is to hold if it has no nodes; nil if it has some, or that is not known yet.
func (p *Part) empty() (wanted map[netip.Addr]bool) {
	if p == nil {
		return nil
	}
	reserved := p.config.Reserved()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wanted) < len(cluster.Families) || len(p.nodes) > 0 {
		return nil
	}
	wanted, _ = p.allWanted(reserved)
	return wanted
}

// emptyTroubles are those of addresses for which there is no node. All nodes of the cluster know.
func (p *Part) emptyTroubles(wanted map[netip.Addr]bool) map[netip.Addr]tell.Trouble {
	troubles := map[netip.Addr]tell.Trouble{}
	for ip := range wanted {
		troubles[ip] = tell.Trouble{Reason: addressUnplaced, Note: fmt.Sprintf("%s is on no node, since no Node matches %q (proxyArguments.egress-snat-assign-nodes). Give nodes this label.", ip, p.state.Config.Pool.Nodes)}
	}
	return troubles
}
