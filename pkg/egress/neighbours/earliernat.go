package neighbours

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/natorder"
)

// notFirst is the reason of Events about a Node on which source NAT of other software comes before egress SNAT.
const notFirst plan.Reason = "EgressSNATNotFirst"

var earlierChains = tell.Metrics.Gauge("earlier_nat_chains",
	"Base chains of source NAT of other software that come before egress SNAT's, so that bound pods may be dropped or leave from another address, by IP family.", "ip_family")

// earlierNAT has the chains of other software that come before egress SNAT, as they were found last.
type earlierNAT struct {
	mu    sync.Mutex
	found map[v1.IPFamily][]natorder.Chain
}

// set notes what was found, and returns what of it is new, and whether anything has changed.
func (n *earlierNAT) set(family v1.IPFamily, found []natorder.Chain) (added []natorder.Chain, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.found[family]
	if n.found == nil {
		n.found = map[v1.IPFamily][]natorder.Chain{}
	}
	n.found[family] = found
	for _, chain := range found {
		if !slices.Contains(before, chain) {
			added = append(added, chain)
		}
	}
	return added, !slices.Equal(before, found)
}

// troubles returns what was found, for people.
func (n *earlierNAT) troubles() (troubles []tell.Trouble) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, family := range cluster.Families {
		found := n.found[family]
		for _, chain := range found[:min(len(found), mostNamed)] {
			troubles = append(troubles, tell.Trouble{Reason: notFirst, Note: describeEarlier(family, chain)})
		}
		if more := len(found) - mostNamed; more > 0 {
			troubles = append(troubles, tell.Trouble{Reason: notFirst, Note: fmt.Sprintf("%d more chains give %s packets a source address before egress SNAT does", more, family)})
		}
	}
	return troubles
}

func describeEarlier(family v1.IPFamily, chain natorder.Chain) string {
	return fmt.Sprintf("the %s gives %s packets a source address before egress SNAT does: packets of bound pods that it matches are dropped, or leave from another address. %s, or exclude the pods", chain, family, advice(chain))
}

// advice is what to do about a chain.
func advice(chain natorder.Chain) string {
	if chain.Priority < iptables.SourceNATPriority {
		return "Give the chain a higher priority, 100 for example"
	}
	return "Have all software of this node use the same iptables, legacy or nft, or set egress-snat-backend to nftables"
}

func (w *Watcher) natFinder(name v1.IPFamily) *natorder.Finder {
	return natorder.NewFinder(kernel.Family(name), w.config.SourceNATPriority(name))
}

// findEarlierNAT tells people of what is new.
func (w *Watcher) findEarlierNAT(ctx context.Context, name v1.IPFamily, finder *natorder.Finder) {
	found, err := finder.Find(ctx)
	if err != nil {
		w.logger.V(2).Info("Cannot look everywhere for source NAT of other software that comes before egress SNAT; will retry", "ipFamily", name, "err", err)
	}
	earlierChains.WithLabelValues(string(name)).Set(float64(len(found)))
	added, changed := w.earlier.set(name, found)
	for _, chain := range added[:min(len(added), mostNamed)] {
		w.logger.Error(nil, "Source NAT of other software comes before egress SNAT: packets of bound pods that it matches are dropped, or leave from another address", "ipFamily", name, "chain", chain.String(), "chains", len(found))
	}
	if changed {
		w.config.ChangedNAT()
	}
}

// Troubles returns which chains come first, for people.
func (w *Watcher) Troubles() []tell.Trouble { return w.earlier.troubles() }

// Warnings returns what a verification says of an IP family's chains that come first, by a look of its own.
func (w *Watcher) Warnings(ctx context.Context, name v1.IPFamily) (warnings []string, err error) {
	finder := w.natFinder(name)
	defer finder.Close()
	found, err := finder.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for source NAT of other software that comes before egress SNAT: %w", err)
	}
	for _, chain := range found {
		warnings = append(warnings, status.Warning+describeEarlier(name, chain))
	}
	return warnings, nil
}
