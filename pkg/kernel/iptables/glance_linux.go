package iptables

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	nftables "github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// sight is how the kernel has a chain of the nat table.
type sight struct {
	exists bool
	// rules is a hash of them, without their counters.
	rules uint64
}

// tables are those of an IP family and a back end, read without running a program.
type tables interface {
	// Rules is that of [nftables.Reader].
	Rules(table, chain string, visit func(content []byte, leadsTo string)) (exists bool, err error)
	// HasRules tells whether a chain has rules.
	HasRules(table, chain string) (bool, error)
	Close()
}

// Untouched tells whether the kernel has the owned chains and POSTROUTING as the Writer has seen or written
// them last, and all rules of the proxier that [MissingFromProxier] looks for. It runs no program, and does
// not depend on what others do to other chains: with iptables-nft it costs what these chains hold, with
// iptables-legacy a copy of the tables. It does not see owned chains that somebody has added and nothing
// leads to. It is false, too, where that cannot be told: after a write during which others changed
// something, and with iptables-legacy after every write.
func (w *Writer) Untouched(ctx context.Context) (bool, error) {
	if w.known == nil {
		return false, nil
	}
	chains := w.watched()
	for _, chain := range chains {
		if _, seen := w.sights[chain]; !seen {
			return false, nil
		}
	}
	t, err := w.open(ctx)
	if err != nil {
		return false, err
	}
	defer t.Close()
	now, err := see(t, chains)
	if err != nil || !maps.Equal(now, w.sights) {
		return false, err
	}
	return hasProxier(t)
}

// HasProxier tells whether all rules of the proxier are there that [MissingFromProxier] looks for. It runs no
// program.
func (w *Writer) HasProxier(ctx context.Context) (bool, error) {
	t, err := w.open(ctx)
	if err != nil {
		return false, err
	}
	defer t.Close()
	return hasProxier(t)
}

func hasProxier(t tables) (bool, error) {
	found := map[[3]string]bool{}
	for _, table := range []string{"nat", "filter"} {
		for _, chain := range hookChains {
			note := func(_ []byte, leadsTo string) { found[[3]string{table, chain, leadsTo}] = true }
			if _, err := t.Rules(table, chain, note); err != nil {
				return false, err
			}
		}
	}
	for _, r := range rulesOfProxier {
		if !found[[3]string{r.table, r.chain, r.target}] {
			return false, nil
		}
	}
	for _, c := range chainsOfProxier {
		if filled, err := t.HasRules(c.table, c.chain); !filled || err != nil {
			return false, err
		}
	}
	return true, nil
}

// watched are the chains of the nat table that others could change to the harm of the owned rules.
func (w *Writer) watched() []string {
	chains := []string{postrouting}
	if w.known != nil {
		chains = slices.AppendSeq(append(chains, w.known.marks...), maps.Keys(w.known.Chains))
	}
	return chains
}

// see returns how the kernel has these chains.
func see(t tables, chains []string) (map[string]sight, error) {
	sights := make(map[string]sight, len(chains))
	for _, chain := range chains {
		var hash maphash.Hash
		hash.SetSeed(hashSeed)
		exists, err := t.Rules(table, chain, func(content []byte, leadsTo string) {
			maphash.WriteComparable(&hash, len(content))
			_, _ = hash.Write(content) // never fails
			maphash.WriteComparable(&hash, leadsTo)
		})
		if err != nil {
			return nil, err
		}
		sights[chain] = sight{exists, hash.Sum64()}
	}
	return sights, nil
}

// seeAll returns how the kernel has all chains that others could change, before a Read: what changes during
// that shows at the next glance. It spares the copy of legacy tables if a write follows, for that is not seen.
func (w *Writer) seeAll(ctx context.Context) map[string]sight {
	w.backend = "" // the programs on PATH may have changed
	t, err := w.open(ctx)
	if err == nil {
		defer t.Close()
		if w.backend == backendLegacy && w.willWrite() {
			return map[string]sight{}
		}
		var sights map[string]sight
		if sights, err = see(t, w.watched()); err == nil {
			return sights
		}
	}
	klog.FromContext(ctx).V(2).Info("Cannot read the rules in the kernel without iptables-save", "err", err)
	return map[string]sight{}
}

// willWrite tells whether the next write changes something, whatever is wanted: it deletes the journal.
func (w *Writer) willWrite() bool {
	if w.known == nil {
		return true // or it may
	}
	_, recorded := w.known.Chains[RemovedChain]
	return recorded
}

// seeWritten brings the sights up to date after a write that touched these chains, before which the ruleset
// had a generation. Its own transaction must be the only one since: else somebody's change of these chains
// would be taken for ours. Without that the next look is a full one.
func (w *Writer) seeWritten(ctx context.Context, touched []string, before uint32) {
	for _, chain := range touched {
		delete(w.sights, chain)
	}
	if before == 0 {
		return
	}
	r, err := nftables.OpenReader(ctx, w.commands.family)
	if err != nil {
		return
	}
	defer r.Close()
	now, err := see(r, touched)
	if err != nil {
		return
	}
	if after, err := r.Generation(); err != nil || after != before+1 {
		return
	}
	maps.DeleteFunc(now, func(_ string, s sight) bool { return !s.exists })
	maps.Copy(w.sights, now)
}

// generation returns the number of the nftables ruleset, which each transaction of anybody raises by one. It
// is 0 where that cannot be told: the kernel does not count what happens to legacy tables.
func (w *Writer) generation(ctx context.Context) uint32 {
	if w.backend != backendNFT {
		return 0
	}
	r, err := nftables.OpenReader(ctx, w.commands.family)
	if err != nil {
		return 0
	}
	defer r.Close()
	generation, err := r.Generation()
	if err != nil {
		return 0
	}
	return generation
}

// open returns the tables of the iptables on PATH.
func (w *Writer) open(ctx context.Context) (tables, error) {
	if w.backend == "" {
		var err error
		if w.backend, err = w.commands.backend(ctx); err != nil {
			return nil, err
		}
	}
	if w.backend == backendNFT {
		return nftables.OpenReader(ctx, w.commands.family)
	}
	return openLegacy(w.commands.family)
}
