package redirect

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// Owner owns the chains.
var Owner = iptables.Owner{Prefix: chainPrefix, Jumps: []iptables.Jump{
	{Chain: "OUTPUT", Rule: jumpRule + nodesChain},
	{Chain: "PREROUTING", Rule: jumpRule + podsChain},
}, Journal: recordChain}

// render returns the rules for want.
func render(want kernel.Redirects) iptables.Ruleset {
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
	for _, cidr := range want.Sources {
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

// heldBy returns what rules stand for, with what the IP sets hold that those of former versions name.
func heldBy(rules iptables.Ruleset, sets map[string]formerSet) kernel.Redirects {
	var r kernel.Redirects
	for _, rule := range rules[toChain] {
		to, _ := netip.ParseAddrPort(valueOf(rule, "--to-destination")) // invalid if it is somebody else's rule
		set := valueOf(rule, setOption)
		target := &r.Secure
		if strings.HasSuffix(set, insecureSet) || r.Secure.To.IsValid() && to != r.Secure.To {
			target = &r.Insecure
		}
		target.To, target.Ports = to, append(target.Ports, sets[set].ports...)
		for text := range strings.SplitSeq(valueOf(rule, "--dports"), ",") {
			if port, err := strconv.ParseUint(text, 10, 16); err == nil {
				target.Ports = append(target.Ports, uint16(port))
			}
		}
	}
	for _, rule := range slices.Concat(slices.Collect(maps.Values(rules))...) {
		if prefix, err := netip.ParsePrefix(valueOf(rule, "-d")); err == nil && prefix.IsSingleIP() {
			r.Nodes = append(r.Nodes, prefix.Addr())
		}
		r.Nodes = append(r.Nodes, sets[valueOf(rule, setOption)].addresses...)
		r.Others = r.Others || rule == "-g "+toChain || strings.Contains(rule, "! "+setOption)
	}
	for _, rule := range rules[podsChain] {
		if cidr, err := netip.ParsePrefix(valueOf(rule, "-s")); err == nil {
			r.Sources = append(r.Sources, cidr)
		}
	}
	slices.SortFunc(r.Nodes, netip.Addr.Compare)
	return r
}

// setOption is in front of the name of an IP set.
const setOption = "--match-set"

// valueOf returns the word behind an option of a rule; "" if it is not there.
func valueOf(rule, option string) string {
	words := strings.Fields(rule)
	if i := slices.Index(words, option); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
