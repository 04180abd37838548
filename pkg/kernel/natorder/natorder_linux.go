package natorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
// the ruleset it costs one message; a change costs a run of iptables besides, if ours are in its chain. Where they are iptables-nft's,
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

// findLegacy looks for rules of iptables-legacy, where ours are iptables-nft's.
func (f *Finder) findLegacy(ctx context.Context) error {
	changes := false
	if f.otherLegacy {
		if err := iptables.LegacyRulesFrom(f.family, "nat", iptablesHooks["nat"], func(parts []iptables.LegacyPart) bool {
			changes = slices.ContainsFunc(parts, func(p iptables.LegacyPart) bool { return slices.Contains(sourceTargets, string(p.Name)) })
			return !changes
		}); err != nil {
			return err
		}
	}
	if changes && f.legacy == nil { // they may be ours: the programs on PATH write by this back end now
		if err := f.askIPTables(ctx); err != nil {
			return err
		}
		if changes = f.otherLegacy; !changes {
			f.found.Forget()
		}
	}
	f.legacy = nil
	if changes {
		of := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[f.family]
		f.legacy = []Chain{{Family: of, Table: "nat", Name: iptablesHooks["nat"], Priority: iptables.SourceNATPriority, Legacy: true}}
	}
	return nil
}

// askIPTables finds out which back end of iptables ours is.
func (f *Finder) askIPTables(ctx context.Context) error {
	if f.priority < iptables.SourceNATPriority {
		return nil
	}
	legacy, err := iptables.IsLegacy(ctx, f.family)
	if err != nil {
		return fmt.Errorf("find out which back end of iptables there is: %w", err)
	}
	f.otherNFT, f.otherLegacy = legacy, !legacy
	return nil
}

func (f *Finder) find(c *nft.Conn) (found []Chain, err error) {
	tables, err := f.foreign(c)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	for _, of := range tables {
		chains, err := c.ListChainsOfTableFamily(of)
		if err != nil {
			return nil, fmt.Errorf("list the nftables chains: %w", err)
		}
		for _, chain := range chains {
			if f.comesFirst(chain) && changesSources(c, chain, chains) {
				found = append(found, Chain{Family: families[of], Table: chain.Table.Name, Name: chain.Name, Priority: int32(*chain.Priority)})
			}
		}
	}
	slices.SortFunc(found, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.String(), b.String()))
	})
	return found, nil
}

// families are those that may have chains for packets of an IP family, with nft's names.
var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
}

// foreign returns the families in which others have tables. There may be tens of thousands of chains in those of kube-proxy and
// iptables, whose priorities are known: nobody lists these in vain.
func (f *Finder) foreign(c *nft.Conn) (with []nftables.TableFamily, err error) {
	for _, of := range []nftables.TableFamily{nft.FamilyOf(f.family).Table, nftables.TableFamilyINet} {
		tables, err := c.ListTablesOfFamily(of)
		if err != nil {
			return nil, fmt.Errorf("list the nftables tables: %w", err)
		}
		if slices.ContainsFunc(tables, func(t *nftables.Table) bool { return !known(t) && (f.otherNFT && t.Name == "nat" || !ofIPTables(c, t)) }) {
			with = append(with, of)
		}
	}
	return with, nil
}

// known tells whether a table is ours or kube-proxy's.
func known(t *nftables.Table) bool {
	return strings.HasPrefix(t.Name, "openshift-egress") || t.Name == "kube-proxy"
}

// iptablesHooks are the names of base chains that iptables-nft makes in its tables.
var iptablesHooks = map[string]string{"nat": "POSTROUTING", "filter": "FORWARD", "mangle": "FORWARD", "raw": "PREROUTING", "security": "FORWARD"}

// ofIPTables tells whether iptables-nft has made a table.
func ofIPTables(c *nft.Conn, t *nftables.Table) bool {
	name, is := iptablesHooks[t.Name]
	if !is || t.Family == nftables.TableFamilyINet {
		return false
	}
	chain, err := c.ListChain(t, name)
	return err == nil && chain != nil
}

// comesFirst tells whether a chain of somebody else's may decide before ours.
func (f *Finder) comesFirst(chain *nftables.Chain) bool {
	return chain.Type == nftables.ChainTypeNAT && chain.Hooknum != nil && *chain.Hooknum == *nftables.ChainHookPostrouting &&
		chain.Priority != nil && int32(*chain.Priority) <= f.priority && !known(chain.Table) && (f.otherNFT || chain.Table.Name != "nat" || chain.Name != iptablesHooks["nat"])
}

// changesSources tells whether a packet that comes to a base chain may meet a rule that gives it a source address. A chain whose rules cannot
// be read may have one.
func changesSources(c *nft.Conn, base *nftables.Chain, chains []*nftables.Chain) bool {
	of := map[string]*nftables.Chain{}
	for _, chain := range chains {
		if chain.Table.Name == base.Table.Name {
			of[chain.Name] = chain
		}
	}
	met, next := map[string]bool{base.Name: true}, []string{base.Name}
	for len(next) > 0 {
		chain := of[next[0]]
		if next = next[1:]; chain == nil {
			continue // gone meanwhile
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return true
		}
		for _, rule := range rules {
			if changesSource(rule) {
				return true
			}
			for _, name := range leadsTo(rule, of) {
				if !met[name] {
					met[name], next = true, append(next, name)
				}
			}
		}
	}
	return false
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

// leadsTo returns to which chains of its table a rule may lead: with a map of verdicts, to any.
func leadsTo(rule *nftables.Rule, of map[string]*nftables.Chain) (names []string) {
	for _, e := range rule.Exprs {
		switch e := e.(type) {
		case *expr.Verdict:
			if e.Chain != "" {
				names = append(names, e.Chain)
			}
		case *expr.Lookup:
			if e.IsDestRegSet && e.DestRegister == 0 {
				return slices.Collect(maps.Keys(of))
			}
		}
	}
	return names
}
