package iptables

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	nftables "github.com/openshift/origin-node/pkg/kernel/nft"
)

// sight is how the kernel has a chain of the nat table.
type sight struct {
	exists bool
	// rules is a hash of them, without their counters.
	rules uint64
}

// emptyChain is the sight of one.
var emptyChain = sight{exists: true, rules: newHash().Sum64()}

func newHash() *maphash.Hash {
	hash := &maphash.Hash{}
	hash.SetSeed(hashSeed)
	return hash
}

// tables are those of an IP family and a back end, read without running a program.
type tables interface {
	// Rules is that of [nftables.Reader].
	Rules(table, chain string, visit func(nftables.ListedRule)) (exists bool, err error)
	// HasRules tells whether a chain has rules.
	HasRules(table, chain string) (bool, error)
	Close()
}

// Untouched tells whether the kernel has the owned chains, and those with a jump, as the Writer has seen or written
// them last, and all rules of the proxier that [MissingFromProxier] looks for. It does not depend on what
// others do to other chains: with iptables-nft it costs what these chains hold, with iptables-legacy a copy of
// the tables. It runs no program but for a few chains that were written since they were seen last, which it has
// iptables list. It does not see owned chains that somebody has added and nothing leads to. It is false, too,
// where it cannot tell without a [Writer.Read].
func (w *Writer) Untouched(ctx context.Context) (bool, error) {
	return w.glance(ctx, hasProxier)
}

// Unchanged is Untouched whatever has become of the proxier's rules.
func (w *Writer) Unchanged(ctx context.Context) (bool, error) {
	return w.glance(ctx, func(tables) (bool, error) { return true, nil })
}

// glance tells whether all chains are as they were, and what else has to be so.
func (w *Writer) glance(ctx context.Context, also func(tables) (bool, error)) (bool, error) {
	if w.known == nil {
		return false, nil
	}
	chains := w.watched()
	unseen := slices.DeleteFunc(slices.Clone(chains), func(chain string) bool { _, seen := w.sights[chain]; return seen })
	isHook := func(chain string) bool { _, hooked := w.owner.jumpIn(chain); return hooked }
	if len(unseen) > mostListed || slices.ContainsFunc(unseen, isHook) {
		return false, nil
	}
	t, err := w.open(ctx)
	if err != nil {
		return false, err
	}
	defer t.Close()
	now, err := see(t, chains)
	if err != nil {
		return false, err
	}
	for _, chain := range unseen { // after they were seen: what changes in between shows now, or at the next glance
		if written, err := w.asWritten(ctx, chain, now[chain]); !written || err != nil {
			return false, err
		}
		w.sights[chain] = now[chain]
	}
	if !maps.Equal(now, w.sights) {
		return false, nil
	}
	return also(t)
}

// mostListed is how many chains a glance has iptables list, one by one. A change of a pod writes one or two, and a mark.
const mostListed = 4

// asWritten tells whether an owned chain that was just seen holds what was written.
func (w *Writer) asWritten(ctx context.Context, chain string, now sight) (bool, error) {
	want := w.known.Chains[chain]
	if len(want) == 0 {
		return now == emptyChain, nil
	}
	listed, err := run(ctx, nil, w.commands.version, "-w", lockWait, "-t", table, "-S", chain)
	if err != nil {
		return false, err
	}
	var have []string
	for line := range strings.Lines(listed) {
		if _, rule, ok := cutRule(strings.TrimRight(line, "\n")); ok {
			have = append(have, rule)
		}
	}
	return slices.Equal(have, want), nil
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
			note := func(r nftables.ListedRule) { found[[3]string{table, chain, r.LeadsTo}] = true }
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

// HasChain tells whether the nat table of a family has a chain of an [Owner], in either back end. It runs no program.
func HasChain(ctx context.Context, family kernel.Family, chain string) (bool, error) {
	ignore := func(nftables.ListedRule) {}
	old, err := openLegacy(family)
	if err != nil {
		return false, err
	}
	defer old.Close()
	if exists, err := old.Rules(table, chain, ignore); exists || err != nil {
		return exists, err
	}
	r, err := nftables.OpenReader(ctx, family)
	if errors.Is(err, nftables.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.Rules(table, chain, ignore)
}

// HasChainsOf tells whether the nat table of nftables has a chain that an owner's rules jump to, or its journal; also if that cannot be told.
func HasChainsOf(ctx context.Context, owner Owner, family kernel.Family) bool {
	r, err := nftables.OpenReader(ctx, family)
	if err != nil {
		return true
	}
	defer r.Close()
	chains := []string{owner.Journal}
	for _, jump := range owner.Jumps {
		chains = append(chains, jump.Rule[strings.LastIndexByte(jump.Rule, ' ')+1:])
	}
	return slices.ContainsFunc(chains, func(chain string) bool {
		has, err := r.Rules(table, chain, func(nftables.ListedRule) {})
		return has || err != nil
	})
}

// watched are the chains of the nat table that others could change to the harm of the owned rules. The journal
// is not, for nothing leads to it.
func (w *Writer) watched() []string {
	var chains []string
	for _, jump := range w.owner.Jumps {
		chains = append(chains, jump.Chain)
	}
	if w.known != nil {
		chains = slices.AppendSeq(append(chains, w.known.marks...), maps.Keys(w.known.Chains))
	}
	return slices.DeleteFunc(chains, func(chain string) bool { return chain == RemovedChain })
}

// see returns how the kernel has these chains.
func see(t tables, chains []string) (map[string]sight, error) {
	sights := make(map[string]sight, len(chains))
	for _, chain := range chains {
		hash := newHash()
		exists, err := t.Rules(table, chain, func(r nftables.ListedRule) {
			maphash.WriteComparable(hash, len(r.Content))
			_, _ = hash.Write(r.Content) // never fails
			maphash.WriteComparable(hash, r.LeadsTo)
		})
		if err != nil {
			return nil, err
		}
		sights[chain] = sight{exists, hash.Sum64()}
	}
	return sights, nil
}

// seeAll returns how the kernel has all chains that others could change, before a Read: what changes during
// that shows at the next glance.
func (w *Writer) seeAll(ctx context.Context) map[string]sight {
	w.backend = "" // the programs on PATH may have changed
	t, err := w.open(ctx)
	if err == nil {
		defer t.Close()
		var sights map[string]sight
		if sights, err = see(t, w.watched()); err == nil {
			return sights
		}
	}
	klog.FromContext(ctx).V(2).Info("Cannot read the rules in the kernel without iptables-save", "err", err)
	return map[string]sight{}
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
