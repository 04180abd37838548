package redirect

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// Payload returns, for readers, what a [Writer] makes of want in a kernel that has nothing of it: input of nft -f, or
// of ipset restore and iptables-restore --noflush; nil if nothing is redirected.
func Payload(backend reconcile.Backend, family kernel.Family, want kernel.Redirects) []byte {
	if want.Empty() {
		return nil
	}
	if backend == reconcile.NFTables {
		return []byte(tableText(family, want))
	}
	g := generationsOf(family)[0]
	text := "# ipset restore\n"
	for _, set := range g.all() {
		text += set.Payload(g.contents(want)[set])
	}
	return append([]byte(text+"# iptables-restore --noflush\n"), Owner.Payload(renderSets(want, g))...)
}

// tableText is the table as package redirect's documentation shows it.
func tableText(family kernel.Family, want kernel.Redirects) string {
	ip, address, not := "ip", "ipv4_addr", ""
	if family == kernel.IPv6 {
		ip, address = "ip6", "ipv6_addr"
	}
	if want.Others {
		not = "!= "
	}
	var text strings.Builder
	set := func(name, kind string, elements []string) {
		fmt.Fprintf(&text, "\tset %s {\n\t\ttype %s;\n", name, kind)
		if len(elements) > 0 {
			fmt.Fprintf(&text, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		text.WriteString("\t}\n")
	}
	toNodes := fmt.Sprintf("meta l4proto tcp %s daddr %s@%s fib daddr type != local goto %s", ip, not, nodesSet, redirectChain)
	fmt.Fprintf(&text, "table %s %s {\n", ip, tableName)
	set(nodesSet, address, each(want.Nodes, netip.Addr.String))
	set(securePorts, "inet_service", each(want.Secure.Ports, portText))
	set(insecurePorts, "inet_service", each(want.Insecure.Ports, portText))
	set(sourcesSet, address+"; flags interval", each(want.Sources, netip.Prefix.String))
	fmt.Fprintf(&text, "\tchain %s {\n", redirectChain)
	if len(want.Secure.Ports) > 0 {
		fmt.Fprintf(&text, "\t\ttcp dport @%s dnat to %s\n", securePorts, want.Secure.To)
	}
	if len(want.Insecure.Ports) > 0 {
		fmt.Fprintf(&text, "\t\ttcp dport @%s dnat to %s\n", insecurePorts, want.Insecure.To)
	}
	fmt.Fprintf(&text, "\t}\n\tchain %s {\n\t\ttype nat hook output priority -101; policy accept;\n\t\t%s\n\t}\n", outputChain, toNodes)
	fmt.Fprintf(&text, "\tchain %s {\n\t\ttype nat hook prerouting priority dstnat - 1; policy accept;\n", preroutingChain)
	if len(want.Sources) > 0 {
		fmt.Fprintf(&text, "\t\t%s saddr @%s %s\n", ip, sourcesSet, toNodes)
	}
	text.WriteString("\t}\n}\n")
	return text.String()
}

func each[T, U any](list []T, convert func(T) U) (result []U) {
	for _, element := range list {
		result = append(result, convert(element))
	}
	return result
}
