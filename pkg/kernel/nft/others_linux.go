package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// OtherTables returns the tables of a family that are neither ours nor kube-proxy's; those of all families if it is unspecified.
func (c *Conn) OtherTables(of nftables.TableFamily) ([]*nftables.Table, error) {
	tables, err := c.ListTablesOfFamily(of)
	if err != nil {
		return nil, fmt.Errorf("list the nftables tables: %w", err)
	}
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool {
		return strings.HasPrefix(t.Name, "openshift-egress") || strings.HasPrefix(t.Name, "openshift-tunnel") || t.Name == "kube-proxy"
	}), nil
}

// iptablesHooks are the names of the base chains that iptables-nft makes in its tables.
var iptablesHooks = map[string][]string{
	"nat":      {"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"},
	"filter":   {"INPUT", "FORWARD", "OUTPUT"},
	"mangle":   {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"},
	"raw":      {"PREROUTING", "OUTPUT"},
	"security": {"INPUT", "FORWARD", "OUTPUT"},
}

// mostRead is how many chains a table of iptables may have that is read whole.
const mostRead = 1000

// isLarge tells whether a table is of iptables-nft, with so many chains of kube-proxy that reading all of them in vain costs too much.
func (c *Conn) isLarge(t *nftables.Table) (bool, error) {
	if t.Family != nftables.TableFamilyIPv4 && t.Family != nftables.TableFamilyIPv6 || iptablesHooks[t.Name] == nil {
		return false, nil
	}
	table, err := c.get(t.Family, unix.NFT_MSG_GETTABLE, map[uint16]string{unix.NFTA_TABLE_NAME: t.Name})
	if err != nil && !errors.Is(err, unix.ENOENT) { // one that has gone meanwhile is not large
		return false, fmt.Errorf("ask how many chains the nftables table %s has: %w", t.Name, err)
	}
	use := attribute(table, unix.NFTA_TABLE_USE) // the library reads it in the wrong byte order
	return len(use) == 4 && binary.BigEndian.Uint32(use) > mostRead, nil
}

// Chains are chains of a table that have rules, by their names.
type Chains map[string]Leads

// Leads is where the rules of a chain lead.
type Leads struct {
	To []string
	// Anywhere: a map of verdicts may lead to any chain.
	Anywhere bool
}

// Chains returns the chains of a table that have rules. It costs what the table has, however many other chains there are: the kernel can
// list chains only of all tables together, and kube-proxy may have a hundred thousand. Of a large table of iptables it returns only the
// chains that packets may reach from iptables' base chains, without those for which leftOut returns true, and what only they lead to.
func (c *Conn) Chains(t *nftables.Table, leftOut func(chain string) bool) (chains Chains, err error) {
	large, err := c.isLarge(t)
	if large {
		chains, err = c.chainsFrom(t, iptablesHooks[t.Name], leftOut)
	}
	if err == nil && chains == nil {
		chains = Chains{}
		err = chains.list(c, t, "")
	}
	return chains, err
}

// chainsFrom returns the chains that packets meet which come to one of these; nil if that may be any.
func (c *Conn) chainsFrom(t *nftables.Table, from []string, leftOut func(chain string) bool) (Chains, error) {
	chains, met := Chains{}, map[string]bool{}
	for next := slices.Clone(from); len(next) > 0; next = next[1:] {
		chain := next[0]
		if met[chain] || leftOut(chain) {
			continue
		}
		met[chain] = true
		if err := chains.list(c, t, chain); err != nil {
			return nil, err
		}
		if chains[chain].Anywhere {
			return nil, nil
		}
		next = append(next, chains[chain].To...)
	}
	return chains, nil
}

// list adds what a chain's rules say; those of all chains if it has no name.
func (all Chains) list(c *Conn, t *nftables.Table, chain string) error {
	names := map[uint16]string{unix.NFTA_RULE_TABLE: t.Name}
	if chain != "" {
		names[unix.NFTA_RULE_CHAIN] = chain
	}
	var rule ListedRule
	for encoded, err := range c.list(t.Family, unix.NFT_MSG_GETRULE, names) {
		if err != nil {
			return fmt.Errorf("list the rules of the nftables table %s: %w", t.Name, err)
		}
		rule = decodeRule(encoded, rule.Content[:0])
		name := word(attribute(encoded, unix.NFTA_RULE_CHAIN))
		leads := all[name]
		if rule.LeadsTo != "" {
			leads.To = append(leads.To, rule.LeadsTo)
		}
		leads.Anywhere = leads.Anywhere || rule.LeadsAnywhere
		all[name] = leads
	}
	return nil
}

// Roots returns the chains that no rule jumps or goes to, sorted. All base chains that have rules are among them, because nothing may lead to
// one.
func (all Chains) Roots() []string {
	led := map[string]bool{}
	for _, leads := range all {
		for _, to := range leads.To {
			led[to] = true
		}
	}
	return slices.DeleteFunc(all.Names(), func(chain string) bool { return led[chain] })
}

// From returns the chains that a packet may meet which comes to a chain.
func (all Chains) From(chain string) []string {
	met, next := map[string]bool{chain: true}, []string{chain}
	for i := 0; i < len(next); i++ {
		to := all[next[i]].To
		if all[next[i]].Anywhere {
			to = all.Names()
		}
		for _, name := range to {
			if _, has := all[name]; has && !met[name] {
				met[name], next = true, append(next, name)
			}
		}
	}
	return next
}

// Names returns all of them, sorted.
func (all Chains) Names() []string { return slices.Sorted(maps.Keys(all)) }

// RulesOf returns the rules of a chain. The error is [os.ErrDeadlineExceeded] if the kernel took too long; otherwise the chain is gone, or has
// rules of a kind that the library does not know.
func (c *Conn) RulesOf(t *nftables.Table, chain string) ([]*nftables.Rule, error) {
	rules, err := c.GetRules(t, &nftables.Chain{Name: chain})
	return rules, c.late(err)
}

// late returns an error of the library's, or that the deadline has passed, which the library does not tell.
func (c *Conn) late(err error) error {
	if err != nil && !time.Now().Before(c.deadline) {
		return fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
	}
	return err
}

// Chain returns a chain of a table with its hook; nil if it is gone.
func (c *Conn) Chain(t *nftables.Table, name string) (*nftables.Chain, error) {
	chain, err := c.ListChain(t, name)
	if err == nil {
		return chain, nil
	}
	r := Reader{conn: c, family: t.Family}
	if has, hasErr := r.hasChain(t.Name, name); hasErr == nil && !has {
		return nil, nil
	}
	return nil, fmt.Errorf("read the nftables chain %s of the table %s: %w", name, t.Name, c.late(err))
}
