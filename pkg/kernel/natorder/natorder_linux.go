package natorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Chain is a base chain of other software.
type Chain struct {
	// Family is nft's name of the table's family: ip, ip6 or inet.
	Family, Table, Name string
	Priority            int32
	// Legacy: it is iptables-legacy's.
	Legacy bool
}

// String names the chain as an operator finds it with nft, or with iptables-legacy.
func (c Chain) String() string {
	if c.Legacy {
		return fmt.Sprintf("chain %s of the table %s of %stables-legacy, priority %d", c.Name, c.Table, c.Family, c.Priority)
	}
	return fmt.Sprintf("chain %s of the nftables table %s %s, priority %d", c.Name, c.Family, c.Table, c.Priority)
}

// Finder finds chains again and again. It must not be used by two goroutines at once.
type Finder struct {
	family kernel.Family
	// priority is that of the first chain of ours.
	priority int32
	// otherNFT and otherLegacy: ours are in iptables' own chain, and so may be those of others, by the other back end of iptables. unknown is
	// why it is not known which one that is now.
	otherNFT, otherLegacy bool
	unknown               error
	program               iptables.Program
	found                 nft.Found[[]Chain]
	// legacy has what was found last in the other back end.
	legacy []Chain
}

// NewFinder returns a Finder of chains that give packets of an IP family a source address before a chain with this priority does,
// or may do so because they have the same one.
func NewFinder(family kernel.Family, priority int32) *Finder {
	return &Finder{family: family, priority: priority}
}

// Find returns the chains that are there now, sorted; none of nftables where the kernel has none. As long as nobody changes
// the ruleset it costs one message; another program named iptables costs a run of it besides, if ours are in its chain. Where they are iptables-nft's,
// each look costs a copy of the legacy table nat. If it cannot look everywhere, it returns an error, and those that it found there the
// last time.
func (f *Finder) Find(ctx context.Context) ([]Chain, error) {
	found, err := f.found.Find(ctx, func(c *nft.Conn) ([]Chain, error) {
		f.unknown = f.askIPTables(ctx) // the programs on PATH may have changed, and then the rules have
		return f.find(c)
	})
	if f.unknown != nil {
		f.found.Forget()
	}
	err = errors.Join(err, f.unknown, f.findLegacy(ctx))
	return slices.Concat(found, f.legacy), err
}

// Close ends the connection to the kernel. The next Find opens another one.
func (f *Finder) Close() { f.found.Close() }

// findLegacy looks for rules of iptables-legacy, where ours are iptables-nft's.
func (f *Finder) findLegacy(ctx context.Context) error {
	changes := false
	if f.otherLegacy {
		if err := iptables.LegacyRulesFrom(f.family, natTable, postrouting, func(parts []iptables.LegacyPart) bool {
			changes = slices.ContainsFunc(parts, func(p iptables.LegacyPart) bool { return slices.Contains(sourceTargets, string(p.Name)) })
			return !changes
		}); err != nil {
			return err
		}
	}
	if changes && f.legacy == nil { // they may be ours: the programs on PATH write by this back end now
		f.program = iptables.Program{} // a script may choose between both
		if err := f.askIPTables(ctx); err != nil {
			return err
		}
		if changes = f.otherLegacy; !changes {
			f.found.Forget()
		}
	}
	f.legacy = nil
	if changes {
		f.legacy = []Chain{{Family: nft.FamilyNames[nft.FamilyOf(f.family).Table], Table: natTable, Name: postrouting, Priority: iptables.SourceNATPriority, Legacy: true}}
	}
	return nil
}

// askIPTables finds out which back end of iptables ours is.
func (f *Finder) askIPTables(ctx context.Context) error {
	if f.priority < iptables.SourceNATPriority {
		return nil
	}
	legacy, err := f.program.IsLegacy(ctx, f.family)
	if err != nil {
		return fmt.Errorf("find out which back end of iptables there is: %w", err)
	}
	f.otherNFT, f.otherLegacy = legacy, !legacy
	return nil
}

func (f *Finder) find(c *nft.Conn) (found []Chain, err error) {
	for _, of := range []nftables.TableFamily{nft.FamilyOf(f.family).Table, nftables.TableFamilyINet} {
		tables, err := c.OtherTables(of)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			inTable, err := f.findIn(c, t)
			if err != nil {
				return nil, err
			}
			found = append(found, inTable...)
		}
	}
	slices.SortFunc(found, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.String(), b.String()))
	})
	return found, nil
}

func (f *Finder) findIn(c *nft.Conn, t *nftables.Table) (found []Chain, err error) {
	chains, err := c.Chains(t, func(chain string) bool { return strings.HasPrefix(chain, "KUBE-") && chain != "KUBE-POSTROUTING" })
	if err != nil {
		return nil, err
	}
	for _, name := range chains.Roots() {
		chain, err := c.Chain(t, name)
		if err != nil {
			return nil, err
		}
		if chain == nil || !f.comesFirst(t, chain) {
			continue
		}
		changes, err := changesSources(c, t, chains.From(name))
		if err != nil {
			return nil, err
		}
		if changes {
			found = append(found, Chain{Family: nft.FamilyNames[t.Family], Table: t.Name, Name: name, Priority: int32(*chain.Priority)})
		}
	}
	return found, nil
}

// natTable and postrouting are where iptables has its source NAT.
const natTable, postrouting = "nat", "POSTROUTING"

// comesFirst tells whether a chain of somebody else's may decide before ours. That of iptables' own back end has ours, or a higher priority.
func (f *Finder) comesFirst(t *nftables.Table, chain *nftables.Chain) bool {
	own := !f.otherNFT && t.Family != nftables.TableFamilyINet && t.Name == natTable && chain.Name == postrouting
	return !own && chain.Type == nftables.ChainTypeNAT && chain.Hooknum != nil && *chain.Hooknum == *nftables.ChainHookPostrouting &&
		chain.Priority != nil && int32(*chain.Priority) <= f.priority
}

// changesSources tells whether a rule of these chains gives a source address. A chain whose rules cannot be read may have one.
func changesSources(c *nft.Conn, t *nftables.Table, chains []string) (bool, error) {
	for _, name := range chains {
		rules, err := c.RulesOf(t, name)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, fmt.Errorf("list the rules of the nftables chain %s of the table %s: %w", name, t.Name, err)
		}
		if err != nil || slices.ContainsFunc(rules, changesSource) {
			return true, nil
		}
	}
	return false, nil
}

// changesSource tells whether a rule gives a source address.
func changesSource(rule *nftables.Rule) bool {
	return slices.ContainsFunc(rule.Exprs, func(e expr.Any) bool {
		switch e := e.(type) {
		case *expr.Masq:
			return true
		case *expr.NAT:
			return e.Type == expr.NATTypeSourceNAT
		case *expr.Target: // of iptables-nft
			return slices.Contains(sourceTargets, e.Name)
		}
		return false
	})
}

// sourceTargets are the targets of iptables that give a source address.
var sourceTargets = []string{"MASQUERADE", "SNAT", "NETMAP"}
