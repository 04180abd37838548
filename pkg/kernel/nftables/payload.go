package nftables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Payload returns the input of nft -f that makes the table for p in a kernel that has none, with
// a comment behind the element of each binding that has one; nil if p binds nothing. It is for
// readers: the [Writer] speaks netlink.
func Payload(p kernel.Desired, comments map[kernel.Binding]string) []byte {
	if len(p.Bindings) == 0 {
		return nil
	}
	ip, address := "ip", "ipv4_addr"
	if p.Bindings[0].Pod.Is6() {
		ip, address = "ip6", "ipv6_addr"
	}
	byKey := map[Key]string{}
	for _, b := range p.Bindings {
		key := Key{Pod: b.Pod, Protocol: b.Protocol}
		if b.Protocol == kernel.All {
			key.Protocol = ""
		}
		byKey[key] = kernel.Printable(comments[b])
	}
	c := Render(p)
	var out strings.Builder
	fmt.Fprintf(&out, "table %s %s {\n", ip, Table)
	types := strings.NewReplacer("ADDRESS", address)
	for _, set := range []struct{ kind, name, definition string }{
		{"set", exclusionsSet, "type ADDRESS; flags interval;"},
		{"set", egressIPsSet, "type ADDRESS;"},
		{"set", ownSet, "type ADDRESS . inet_proto . ADDRESS;"},
		{"set", ownPodsSet, "type ADDRESS . ADDRESS;"},
		{"map", bindingsMap, "type ADDRESS . inet_proto : ADDRESS;"},
		{"map", podsMap, "type ADDRESS : ADDRESS;"},
	} {
		fmt.Fprintf(&out, "\t%s %s {\n\t\t%s\n", set.kind, set.name, types.Replace(set.definition))
		writeElements(&out, set.name, c[set.name], byKey)
		out.WriteString("\t}\n")
	}
	fmt.Fprintf(&out, "\tchain %s {\n\t\ttype nat hook postrouting priority %d; policy accept;\n", chainName, SourceNATPriority)
	for _, rule := range ruleTexts(ip, c) {
		fmt.Fprintf(&out, "\t\t%s\n", rule)
	}
	out.WriteString("\t}\n}\n")
	return []byte(out.String())
}

func writeElements(out *strings.Builder, set string, elements Elements, comments map[Key]string) {
	if len(elements) == 0 {
		return
	}
	out.WriteString("\t\telements = {\n")
	for _, key := range slices.SortedFunc(maps.Keys(elements), compareKeys) {
		fmt.Fprintf(out, "\t\t\t%s,", text(set, key, elements[key]))
		if comment := comments[key]; comment != "" && (set == bindingsMap || set == podsMap) {
			fmt.Fprintf(out, " # %s", comment) // in the same line: nft 0.9.8 reads no other between elements
		}
		out.WriteString("\n")
	}
	out.WriteString("\t\t}\n")
}

func compareKeys(a, b Key) int {
	if c := a.Pod.Compare(b.Pod); c != 0 {
		return c
	}
	if c := strings.Compare(string(a.Protocol), string(b.Protocol)); c != 0 {
		return c
	}
	return a.Other.Compare(b.Other)
}

// The rules of the chain, as nft prints them but for their family.
const (
	bindingRule      = "IP daddr != @exclusions IP daddr != @egress-ips snat to IP saddr . meta l4proto map @bindings fully-random"
	bindingAmongRule = "IP daddr @egress-ips IP daddr != @exclusions IP saddr . meta l4proto . IP daddr != @own snat to IP saddr . meta l4proto map @bindings fully-random"
	podRule          = "IP daddr != @exclusions IP daddr != @egress-ips snat to IP saddr map @pods fully-random"
	podAmongRule     = "IP daddr @egress-ips IP daddr != @exclusions IP saddr . IP daddr != @own-pods snat to IP saddr map @pods fully-random"
)

// ruleTexts returns the rules of the chain for a content.
func ruleTexts(family string, c Content) []string {
	var rules []string
	if len(c[bindingsMap]) > 0 {
		rules = append(rules, bindingRule, bindingAmongRule)
	}
	if len(c[podsMap]) > 0 {
		rules = append(rules, podRule, podAmongRule)
	}
	for i := range rules {
		rules[i] = strings.ReplaceAll(rules[i], "IP", family)
	}
	return rules
}
