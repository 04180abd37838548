package redirect

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// Chains in the nat table. Changing a name orphans what earlier versions have written.
const (
	chainPrefix = "OPENSHIFT-TUNNEL-"
	nodesChain  = chainPrefix + "NODES"
	podsChain   = chainPrefix + "PODS"
	toChain     = chainPrefix + "TO"

	jumpRule = `-p tcp -m comment --comment "OpenShift tunnel ports" -j `
)

// Owner owns the chains.
var Owner = iptables.Owner{Prefix: chainPrefix, Jumps: []iptables.Jump{
	{Chain: "OUTPUT", Rule: jumpRule + nodesChain},
	{Chain: "PREROUTING", Rule: jumpRule + podsChain},
}}

// setNames are the names of a family's IP sets.
type setNames struct{ nodes, direct, secure, insecure string }

func setNamesOf(family kernel.Family) setNames {
	prefix := "openshift-tunnel-4-"
	if family == kernel.IPv6 {
		prefix = "openshift-tunnel-6-"
	}
	return setNames{nodes: prefix + "nodes", direct: prefix + "direct", secure: prefix + "secure", insecure: prefix + "insecure"}
}

// renderSets returns the rules for want that use IP sets.
func renderSets(want kernel.Redirects, names setNames) iptables.Ruleset {
	if want.Empty() {
		return nil
	}
	match := "-m set --match-set " + names.nodes
	if want.Others {
		match = "-m set ! --match-set " + names.direct
	}
	rules := iptables.Ruleset{nodesChain: {match + " dst -m addrtype ! --dst-type LOCAL -g " + toChain}}
	for _, t := range []struct {
		kernel.Target
		set string
	}{{want.Secure, names.secure}, {want.Insecure, names.insecure}} {
		if len(t.Ports) > 0 {
			rules[toChain] = append(rules[toChain], fmt.Sprintf("-p tcp -m set --match-set %s dst -j DNAT --to-destination %s", t.set, t.To))
		}
	}
	addSources(rules, want.Sources)
	return rules
}

// renderTree returns the rules for want in a kernel without IP sets.
func renderTree(want kernel.Redirects) iptables.Ruleset {
	if want.Empty() {
		return nil
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
			rules[toChain] = append(rules[toChain], fmt.Sprintf("-p tcp -m multiport --dports %s -j DNAT --to-destination %s", joinPorts(ports), t.To))
		}
	}
	addSources(rules, want.Sources)
	return rules
}

func addSources(rules iptables.Ruleset, sources []netip.Prefix) {
	for _, cidr := range sources {
		rules[podsChain] = append(rules[podsChain], fmt.Sprintf("-s %s -g %s", cidr, nodesChain))
	}
}

func joinPorts(ports []uint16) string { return strings.Join(texts(ports, portText), ",") }

func portText(port uint16) string { return strconv.Itoa(int(port)) }

// setContents are what IP sets hold.
type setContents struct {
	nodes, direct    []netip.Addr
	secure, insecure []uint16
}

// heldBy returns what rules stand for, with what the IP sets hold that they name.
func heldBy(rules iptables.Ruleset, names setNames, sets setContents) kernel.Redirects {
	var r kernel.Redirects
	for _, rule := range rules[toChain] {
		target, ports := &r.Secure, sets.secure
		switch w := strings.Fields(rule); {
		case valueOf(w, "--match-set") == names.insecure:
			target, ports = &r.Insecure, sets.insecure
		case valueOf(w, "--dports") != "":
			ports = splitPorts(valueOf(w, "--dports"))
			if to := targetOf(w); r.Secure.To.IsValid() && to != r.Secure.To {
				target = &r.Insecure
			}
		}
		target.To = targetOf(strings.Fields(rule))
		target.Ports = append(target.Ports, ports...)
	}
	for _, chain := range rules {
		for _, rule := range chain {
			w := strings.Fields(rule)
			if prefix, err := netip.ParsePrefix(valueOf(w, "-d")); err == nil && prefix.IsSingleIP() {
				r.Nodes = append(r.Nodes, prefix.Addr())
			}
			switch valueOf(w, "--match-set") {
			case names.nodes:
				r.Nodes = slices.Clone(sets.nodes)
			case names.direct:
				r.Nodes, r.Others = slices.Clone(sets.direct), true
			}
			r.Others = r.Others || rule == "-g "+toChain
		}
	}
	slices.SortFunc(r.Nodes, netip.Addr.Compare)
	return r
}

// valueOf returns the word behind an option; "" if it is not there.
func valueOf(words []string, option string) string {
	if i := slices.Index(words, option); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

func targetOf(words []string) netip.AddrPort {
	to, _ := netip.ParseAddrPort(valueOf(words, "--to-destination")) // invalid if it is somebody else's rule
	return to
}

func splitPorts(text string) (ports []uint16) {
	for _, part := range strings.Split(text, ",") {
		if port, err := strconv.ParseUint(part, 10, 16); err == nil {
			ports = append(ports, uint16(port))
		}
	}
	return ports
}
