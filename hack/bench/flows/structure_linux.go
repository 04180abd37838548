package flows

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// structure is a way to write rules.
type structure struct {
	name, title string
	// backend is that of the node's iptables, and proxier writes KUBE-POSTROUTING.
	backend lab.Backend
	proxier func(ctx context.Context, h *host) error
	write   func(ctx context.Context, h *host, p kernel.Desired) error
	// leavesAs is the source address that the far side must see.
	leavesAs func(f flow) netip.Addr
	// nodes is how many there are: packets enter by the first and leave by the last.
	nodes int
}

// The structures of a node that steers nothing.
var (
	noneLegacy   = structure{"none-legacy", withoutSNAT, lab.Legacy, iptablesProxier, nothing, asItself, 1}
	noneNFT      = structure{"none-nft", withoutSNAT, lab.NFT, iptablesProxier, nothing, asItself, 1}
	noneNFTables = structure{"none-nftables", withoutSNAT, lab.NFT, nftablesProxier, nothing, asItself, 1}
	single       = structure{"single", "single rule", lab.Legacy, iptablesProxier, singleRule, asSingle, 1}
	singleAgain  = structure{"single-again", "single rule on another node", lab.Legacy, iptablesProxier, singleRule, asSingle, 1}
	legacyTree   = structure{"legacy", "legacy tree", lab.Legacy, iptablesProxier, written(tables.Rules), asPlanned, 1}
	nftTree      = structure{"nft", "iptables-nft tree", lab.NFT, iptablesProxier, written(tables.Rules), asPlanned, 1}
	nftablesMap  = structure{"nftables", "nftables", lab.NFT, nftablesProxier, written(tables.Table), asPlanned, 1}
	singleMap    = structure{"map", "one lookup", lab.NFT, nftablesProxier, oneLookup, asPlanned, 1}
)

const withoutSNAT = "no egress SNAT"

func asItself(f flow) netip.Addr  { return f.pod }
func asSingle(flow) netip.Addr    { return singleIP }
func asPlanned(f flow) netip.Addr { return f.leavesAs }
func asShared(flow) netip.Addr    { return exitIP }

func nothing(context.Context, *host, kernel.Desired) error { return nil }

// iptablesProxier writes the rules of upstream's iptables proxier in POSTROUTING (syncProxyRules in
// pkg/proxy/iptables/proxier.go).
func iptablesProxier(ctx context.Context, h *host) error {
	return h.restore(ctx, `*nat
:KUBE-POSTROUTING - [0:0]
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
COMMIT
`)
}

// nftablesProxier writes the rules of upstream's nftables proxier there (setupNFTables in
// pkg/proxy/nftables/proxier.go).
func nftablesProxier(ctx context.Context, h *host) error {
	return h.lab.Node().Feed(ctx, `table ip kube-proxy {
	set hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }
	chain masquerading {
		mark and 0x4000 != 0 mark set mark xor 0x4000 masquerade fully-random
		ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
	}
	chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading; }
}
`, "nft", "-f", "-")
}

// masquerading is nftablesProxier, and what a network plugin does for pods.
func masquerading(ctx context.Context, h *host) error {
	if err := nftablesProxier(ctx, h); err != nil {
		return err
	}
	return h.lab.Node().Feed(ctx, fmt.Sprintf(`table ip plugin {
	chain postrouting { type nat hook postrouting priority 110; ip saddr %[1]s ip daddr != %[1]s masquerade; }
}
`, lab.ClusterV4), "nft", "-f", "-")
}

func singleRule(ctx context.Context, h *host, _ kernel.Desired) error {
	return h.restore(ctx, fmt.Sprintf("*nat\n-I POSTROUTING -s %s -j SNAT --to-source %s --random-fully\nCOMMIT\n", lab.ClusterV4, singleIP))
}

// oneLookup gives each pod its egress IP, and asks for nothing else.
func oneLookup(ctx context.Context, h *host, d kernel.Desired) error {
	var b strings.Builder
	fmt.Fprintf(&b, "table ip lookup { map sources { type ipv4_addr : ipv4_addr; size %d; elements = {", len(d.Bindings))
	for _, binding := range d.Bindings {
		fmt.Fprintf(&b, "%s : %s,\n", binding.Pod, binding.EgressIP)
	}
	fmt.Fprintf(&b, "}; }; chain postrouting { type nat hook postrouting priority %d; snat to ip saddr map @sources fully-random; }; }\n", steering.LocalSourceNATPriority)
	return h.lab.Node().Feed(ctx, b.String(), "nft", "-f", "-")
}

// written writes with the product's own writers.
func written(write tables.Write) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) error {
		return tables.As(h.lab, func() error { return write(ctx, p) })
	}
}

func (h *host) restore(ctx context.Context, rules string) error {
	return h.lab.Node().Feed(ctx, rules, "iptables-restore", "--noflush", "-w")
}
