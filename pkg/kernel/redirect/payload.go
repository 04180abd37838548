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
	names := setNamesOf(family)
	inet, nodes := "inet", names.nodes
	if family == kernel.IPv6 {
		inet = "inet6"
	}
	if want.Others {
		nodes = names.direct
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# ipset restore\ncreate %s hash:ip family %s maxelem %d\n", nodes, inet, mostAddresses)
	for _, set := range []string{names.secure, names.insecure} {
		fmt.Fprintf(&text, "create %s bitmap:port range 0-65535\n", set)
	}
	for _, addr := range want.Nodes {
		fmt.Fprintf(&text, "add %s %s\n", nodes, addr)
	}
	for _, port := range want.Secure.Ports {
		fmt.Fprintf(&text, "add %s %d\n", names.secure, port)
	}
	for _, port := range want.Insecure.Ports {
		fmt.Fprintf(&text, "add %s %d\n", names.insecure, port)
	}
	text.WriteString("# iptables-restore --noflush\n")
	text.Write(Owner.Payload(renderSets(want, names)))
	return []byte(text.String())
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
	set(nodesSet, address, texts(want.Nodes, netip.Addr.String))
	set(securePorts, "inet_service", texts(want.Secure.Ports, portText))
	set(insecurePorts, "inet_service", texts(want.Insecure.Ports, portText))
	set(sourcesSet, address+"; flags interval", texts(want.Sources, netip.Prefix.String))
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

func texts[T any](list []T, text func(T) string) (result []string) {
	for _, element := range list {
		result = append(result, text(element))
	}
	return result
}
