package redirect

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/ipset"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// Owner owns the chains.
var Owner = iptables.Owner{Prefix: chainPrefix, Jumps: []iptables.Jump{
	{Chain: "OUTPUT", Rule: jumpRule + nodesChain},
	{Chain: "PREROUTING", Rule: jumpRule + podsChain},
}, Journal: recordChain}

// generation are the IP sets that the rules of an IP family name. There are two generations, A and B: a change of the rules
// goes from one to the other.
type generation struct{ nodes, secure, insecure ipset.Set }

func generationsOf(family kernel.Family) [2]generation {
	prefix := map[kernel.Family]string{kernel.IPv4: "openshift-tunnel-4", kernel.IPv6: "openshift-tunnel-6"}[family]
	named := func(letter string) generation {
		return generation{ipset.Set{Name: prefix + letter + "-nodes", Family: family}, ipset.Set{Name: prefix + letter + "-secure"}, ipset.Set{Name: prefix + letter + "-insecure"}}
	}
	return [2]generation{named("a"), named("b")}
}

func (g generation) all() []ipset.Set { return []ipset.Set{g.nodes, g.secure, g.insecure} }

// isIn tells whether rules name the sets.
func (g generation) isIn(rules iptables.Ruleset) bool {
	return slices.ContainsFunc(rules[nodesChain], func(rule string) bool { return setIn(rule) == g.nodes.Name })
}

// contents are what the sets hold for want.
func (g generation) contents(want kernel.Redirects) map[ipset.Set][]ipset.Element {
	return map[ipset.Set][]ipset.Element{
		g.nodes: ipset.Addresses(want.Nodes), g.secure: ipset.Ports(want.Secure.Ports), g.insecure: ipset.Ports(want.Insecure.Ports),
	}
}

// renderSets returns the rules for want that use IP sets.
func renderSets(want kernel.Redirects, g generation) iptables.Ruleset {
	if want.Empty() {
		return iptables.Ruleset{}
	}
	not := ""
	if want.Others {
		not = "! "
	}
	rules := iptables.Ruleset{nodesChain: {"-m set " + not + "--match-set " + g.nodes.Name + " dst -m addrtype ! --dst-type LOCAL -g " + toChain}}
	for _, t := range []struct {
		set ipset.Set
		kernel.Target
	}{{g.secure, want.Secure}, {g.insecure, want.Insecure}} {
		if len(t.Ports) > 0 {
			rules[toChain] = append(rules[toChain], fmt.Sprintf("-p tcp -m set --match-set %s dst -j DNAT --to-destination %s", t.set.Name, t.To))
		}
	}
	return withSources(rules, want.Sources)
}

// renderTree returns the rules for want in a kernel without IP sets.
func renderTree(want kernel.Redirects) iptables.Ruleset {
	if want.Empty() {
		return iptables.Ruleset{}
	}
	verdict, tail := "-g "+toChain, []string(nil)
	if want.Others {
		verdict, tail = "-j RETURN", []string{"-g " + toChain}
	}
	rules := Owner.Destinations(nodesChain, want.Nodes, verdict, tail)
	rules[nodesChain] = append([]string{"-m addrtype --dst-type LOCAL -j RETURN"}, rules[nodesChain]...)
	for _, t := range want.Targets() {
		const most = 15 // ports that a rule takes
		for ports := range slices.Chunk(t.Ports, most) {
			rules[toChain] = append(rules[toChain], fmt.Sprintf("-p tcp -m multiport --dports %s -j DNAT --to-destination %s", kernel.Join(ports, ","), t.To))
		}
	}
	return withSources(rules, want.Sources)
}

func withSources(rules iptables.Ruleset, sources []netip.Prefix) iptables.Ruleset {
	for _, cidr := range sources {
		rules[podsChain] = append(rules[podsChain], fmt.Sprintf("-s %s -g %s", cidr, nodesChain))
	}
	return rules
}

// withRecord returns rules with a record more, in a chain that nothing leads to.
func withRecord(rules iptables.Ruleset, record []string) iptables.Ruleset {
	rules = maps.Clone(rules)
	for _, part := range record {
		rules[recordChain] = append(rules[recordChain], recordRule+part)
	}
	return rules
}

// split returns rules without the record, and the record.
func split(rules iptables.Ruleset) (others iptables.Ruleset, record []string) {
	others = iptables.Ruleset{}
	maps.Copy(others, rules)
	delete(others, recordChain)
	for _, rule := range rules[recordChain] {
		record = append(record, strings.TrimPrefix(rule, recordRule))
	}
	return others, record
}

// heldBy returns what rules stand for, with what the IP sets hold that they name.
func heldBy(rules iptables.Ruleset, g generation, sets map[ipset.Set][]ipset.Element) kernel.Redirects {
	var r kernel.Redirects
	for _, rule := range rules[toChain] {
		to, _ := netip.ParseAddrPort(valueOf(rule, "--to-destination")) // invalid if it is somebody else's rule
		target := &r.Secure
		if setIn(rule) == g.insecure.Name || r.Secure.To.IsValid() && to != r.Secure.To {
			target = &r.Insecure
		}
		target.To = to
		for text := range strings.SplitSeq(valueOf(rule, "--dports"), ",") {
			if port, err := strconv.ParseUint(text, 10, 16); err == nil {
				target.Ports = append(target.Ports, uint16(port))
			}
		}
		for _, set := range []ipset.Set{g.secure, g.insecure} {
			if setIn(rule) == set.Name {
				target.Ports = each(sets[set], ipset.Element.Port)
			}
		}
	}
	for _, rule := range slices.Concat(slices.Collect(maps.Values(rules))...) {
		if prefix, err := netip.ParsePrefix(valueOf(rule, "-d")); err == nil && prefix.IsSingleIP() {
			r.Nodes = append(r.Nodes, prefix.Addr())
		}
		r.Others = r.Others || rule == "-g "+toChain || strings.Contains(rule, "! --match-set")
	}
	for _, rule := range rules[podsChain] {
		if cidr, err := netip.ParsePrefix(valueOf(rule, "-s")); err == nil {
			r.Sources = append(r.Sources, cidr)
		}
	}
	if g.isIn(rules) {
		r.Nodes = each(sets[g.nodes], ipset.Element.Addr)
	}
	slices.SortFunc(r.Nodes, netip.Addr.Compare)
	return r
}

// setIn returns the set that a rule names; "" if it names none.
func setIn(rule string) string { return valueOf(rule, "--match-set") }

// valueOf returns the word behind an option of a rule; "" if it is not there.
func valueOf(rule, option string) string {
	words := strings.Fields(rule)
	if i := slices.Index(words, option); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
