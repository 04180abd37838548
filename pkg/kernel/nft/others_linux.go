package nft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
		return strings.HasPrefix(t.Name, "openshift-egress") || t.Name == "kube-proxy"
	}), nil
}

// IPTablesHooks are the names of the base chains that iptables-nft makes in its tables. It takes no table with others.
func IPTablesHooks(table string) []string {
	return map[string][]string{
		"nat":      {"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"},
		"filter":   {"INPUT", "FORWARD", "OUTPUT"},
		"mangle":   {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"},
		"raw":      {"PREROUTING", "OUTPUT"},
		"security": {"INPUT", "FORWARD", "OUTPUT"},
	}[table]
}

// OfIPTables tells whether iptables-nft has made a table, with a chain for packets.
func (c *Conn) OfIPTables(t *nftables.Table) (bool, error) {
	if t.Family != nftables.TableFamilyIPv4 && t.Family != nftables.TableFamilyIPv6 {
		return false, nil
	}
	r := Reader{conn: c, family: t.Family}
	for _, hook := range IPTablesHooks(t.Name) {
		if has, err := r.hasChain(t.Name, hook); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// Chains are chains of a table that have rules, by their names.
type Chains map[string]Leads

// Leads is where the rules of a chain lead.
type Leads struct {
	To []string
	// Anywhere: a map of verdicts may lead to any chain.
	Anywhere bool
}

// Chains returns all chains of a table that have rules. It costs what the table has, however many others there are: the kernel lists chains
// only with those of all tables, and kube-proxy may have a hundred thousand.
func (c *Conn) Chains(t *nftables.Table) (Chains, error) {
	chains := Chains{}
	return chains, chains.list(c, t, "")
}

// ChainsFrom is Chains for those which packets may meet that come to one of these chains, but for what skip tells to leave out, with all that
// only these lead to. It costs what these chains have.
func (c *Conn) ChainsFrom(t *nftables.Table, from []string, skip func(chain string) bool) (Chains, error) {
	chains, met := Chains{}, map[string]bool{}
	for next := slices.Clone(from); len(next) > 0; next = next[1:] {
		chain := next[0]
		if met[chain] || skip(chain) {
			continue
		}
		met[chain] = true
		if err := chains.list(c, t, chain); err != nil {
			return nil, err
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

// Roots returns the chains that no rule jumps or goes to, sorted. All base chains are among them, because nothing may lead to one.
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
