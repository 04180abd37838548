package iptables

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Ruleset is the content of the owned chains: rules by chain name, each rule as
// iptables-save prints it after "-A CHAIN ". A ruleset has RootChain unless it is empty or
// holds RemovedChain alone.
type Ruleset map[string][]string

// Render returns the ruleset for p: empty if p binds nothing. What no rule can say, such as a
// protocol that is none, is left out, for it would fail the transaction and with it everybody
// else's rules; plan.Build makes no such bindings of what package egress reads from objects.
func Render(p kernel.Desired) Ruleset {
	return NewRendering(p).rules
}

// Record adds the journal of bindings that the write of r takes away: RemovedChain, with
// their rules. No packet meets them. It comes and the bindings go in one transaction, so
// whoever starts after a crash finds them in [Kernel.Bindings] and can see to the flows
// that they have left behind; the next write of a ruleset without it deletes it. If removed
// is empty nothing is added. Services, order and duplicates do not matter.
func (r Ruleset) Record(removed []kernel.Binding) {
	removed = sayable(removed)
	if len(removed) == 0 {
		return
	}
	rules := make([]string, 0, len(removed))
	for _, b := range kernel.Sorted(removed) {
		rules = append(rules, snatRule(b))
	}
	r[RemovedChain] = rules
}

// Rules returns the number of rules in all chains of r; the jump in POSTROUTING is none of
// them.
func (r Ruleset) Rules() int {
	n := 0
	for _, rules := range r {
		n += len(rules)
	}
	return n
}

// exclusions splits what n excludes: destinations that a rule each in the root chain is
// for, and single addresses, nodes mostly, of which there can be thousands.
func exclusions(n kernel.Networks) (networks []netip.Prefix, hosts []leaf) {
	networks = slices.Clone(n.ClusterCIDRs)
	for _, cidr := range n.Exclusions {
		if cidr.IsSingleIP() {
			hosts = append(hosts, leaf{addr: cidr.Addr(), rule: returnRule(cidr)})
		} else {
			networks = append(networks, cidr)
		}
	}
	return networks, hosts
}

func returnRules(cidrs []netip.Prefix) []string {
	rules := make([]string, 0, len(cidrs)+leafRules)
	for _, cidr := range cidrs {
		if cidr.IsValid() {
			rules = append(rules, returnRule(cidr))
		}
	}
	return rules
}

// returnRule returns the rule for a bound pod's packets that stay inside: to pods, or to
// Services, which the proxier has turned into a pod's address by now; and for those to
// nodes and to what the configuration excludes. No chain calls another, all go to it, so
// from wherever the packet is it returns to POSTROUTING.
func returnRule(cidr netip.Prefix) string { return match("-d", cidr) + "-j RETURN" }

// sayable returns the bindings that a rule can be made of.
func sayable(bindings []kernel.Binding) []kernel.Binding {
	unsayable := func(b kernel.Binding) bool {
		return !b.Pod.IsValid() || !b.EgressIP.IsValid() || b.Pod.Zone()+b.EgressIP.Zone() != "" || !slices.Contains(protocols, b.Protocol)
	}
	if !slices.ContainsFunc(bindings, unsayable) {
		return bindings
	}
	return slices.DeleteFunc(slices.Clone(bindings), unsayable)
}

// protocols are those of bindings.
var protocols = []kernel.Protocol{kernel.All, kernel.TCP, kernel.UDP, kernel.SCTP}

func snatLeaves(bindings []kernel.Binding) []leaf {
	leaves := make([]leaf, 0, len(bindings))
	for _, b := range bindings {
		leaves = append(leaves, leaf{b.Pod, b.Protocol, snatRule(b)})
	}
	return leaves
}

// snatRule returns the rule for a bound pod's packets that leave. Not for those to its own
// egress IP: what the proxier does not serve there goes the way that it went before. Random
// ports: an egress IP is shared by many pods, and with ports chosen in order new flows are
// dropped long before the ports run out.
func snatRule(b kernel.Binding) string {
	protocol := ""
	if b.Protocol != kernel.All {
		protocol = "-p " + string(b.Protocol) + " "
	}
	return match("-s", host(b.Pod)) + "! " + match("-d", host(b.EgressIP)) + protocol +
		"-j SNAT --to-source " + addressText(b.EgressIP) + " --random-fully"
}

func host(ip netip.Addr) netip.Prefix { return netip.PrefixFrom(ip, ip.BitLen()) }

// match returns "option prefix " as iptables-save prints it: nothing for all addresses.
func match(option string, prefix netip.Prefix) string {
	if prefix.Bits() == 0 {
		return ""
	}
	return option + " " + addressText(prefix.Addr()) + "/" + strconv.Itoa(prefix.Bits()) + " "
}

// addressText returns ip as iptables-save prints it, through inet_ntop: with a dotted end
// where the first six groups of an IPv6 address are zero and the seventh is not.
func addressText(ip netip.Addr) string {
	if bytes := ip.AsSlice(); len(bytes) == 16 && [12]byte(bytes[:12]) == [12]byte{} && (bytes[12]|bytes[13]) != 0 {
		return "::" + netip.AddrFrom4([4]byte(bytes[12:])).String()
	}
	return ip.String()
}
