package flows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// structure is a way to write rules.
type structure struct {
	name string
	// backend is that of the node's iptables, and proxier what KUBE-POSTROUTING is written as.
	backend lab.Backend
	proxier func(ctx context.Context, h *host) error
	write   func(ctx context.Context, h *host, p plan.Plan) error
	// leavesAs is the address that the far side must see in a flow.
	leavesAs func(f flow) netip.Addr
	// slow: the price of a flow grows with the number of bindings.
	slow bool
}

// The structures.
var (
	noneLegacy   = structure{"none-legacy", lab.Legacy, iptablesProxier, nothing, asItself, false}
	noneNFT      = structure{"none-nft", lab.NFT, iptablesProxier, nothing, asItself, false}
	noneNFTables = structure{"none-nftables", lab.NFT, nftablesProxier, nothing, asItself, false}
	single       = structure{"single", lab.Legacy, iptablesProxier, singleRule("--random-fully"), asSingle, false}
	again        = structure{"single-again", lab.Legacy, iptablesProxier, singleRule("--random-fully"), asSingle, false}
	plain        = structure{"plain", lab.Legacy, iptablesProxier, singleRule(), asSingle, false}
	linear       = structure{"linear", lab.Legacy, iptablesProxier, linearRules, asPlanned, true}
	legacy       = structure{"legacy", lab.Legacy, iptablesProxier, iptablesRules, asPlanned, false}
	nft          = structure{"nft", lab.NFT, iptablesProxier, iptablesRules, asPlanned, false}
	nftablesMap  = structure{"nftables", lab.NFT, nftablesProxier, nftablesTable, asPlanned, false}
)

func asItself(f flow) netip.Addr  { return f.pod }
func asSingle(flow) netip.Addr    { return singleIP }
func asPlanned(f flow) netip.Addr { return f.leavesAs }

func nothing(context.Context, *host, plan.Plan) error { return nil }

// iptablesProxier writes what upstream's iptables proxier does with every packet in
// POSTROUTING (syncProxyRules in pkg/proxy/iptables/proxier.go).
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

// nftablesProxier writes what upstream's nftables proxier does there (setupNFTables in
// pkg/proxy/nftables/proxier.go).
func nftablesProxier(ctx context.Context, h *host) error {
	return h.feed(ctx, `table ip kube-proxy {
	set hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }
	chain masquerading {
		mark and 0x4000 != 0 mark set mark xor 0x4000 masquerade fully-random
		ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
	}
	chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading; }
}
`, "nft", "-f", "-")
}

func singleRule(options ...string) func(context.Context, *host, plan.Plan) error {
	return func(ctx context.Context, h *host, _ plan.Plan) error {
		rule := fmt.Sprintf("-I POSTROUTING -s %s -j SNAT --to-source %s %s", lab.ClusterV4, singleIP, strings.Join(options, " "))
		return h.restore(ctx, "*nat\n"+rule+"\nCOMMIT\n")
	}
}

func linearRules(ctx context.Context, h *host, p plan.Plan) error {
	var rules bytes.Buffer
	fmt.Fprintf(&rules, "*nat\n:LINEAR - [0:0]\n-I POSTROUTING ! -d %s -j LINEAR\n", lab.ClusterV4)
	for _, b := range p.Bindings {
		fmt.Fprintf(&rules, "-A LINEAR -s %s -p tcp -j SNAT --to-source %s --random-fully\n", b.Pod, b.EgressIP)
	}
	rules.WriteString("COMMIT\n")
	return h.restore(ctx, rules.String())
}

func iptablesRules(ctx context.Context, h *host, p plan.Plan) error {
	return h.asNode(func() error {
		_, err := iptables.NewWriter(iptables.IPv4).Write(ctx, iptables.Render(p))
		return err
	})
}

func nftablesTable(ctx context.Context, h *host, p plan.Plan) error {
	return h.asNode(func() error {
		_, err := nftables.NewWriter(nftables.IPv4).Write(ctx, p, nil)
		return err
	})
}

func (h *host) restore(ctx context.Context, rules string) error {
	return h.feed(ctx, rules, "iptables-restore", "--noflush", "-w")
}

// feed runs a command on the node with an input.
func (h *host) feed(ctx context.Context, input, name string, arguments ...string) error {
	return feed(ctx, h.lab.Node(), input, name, arguments...)
}

func feed(ctx context.Context, on *lab.Host, input, name string, arguments ...string) error {
	command := on.Command(ctx, name, arguments...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s: %w: %s", on.Name, name, err, bytes.TrimSpace(output))
	}
	return nil
}

// asNode runs fn of the writers, which run programs themselves, on the node with its tools
// and lock. One at a time may: the environment is the process's.
func (h *host) asNode(fn func() error) (err error) {
	for name, value := range map[string]string{"PATH": h.lab.Path(), "XTABLES_LOCKFILE": h.lab.Node().XtablesLock()} {
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		defer func() {
			if was {
				err = errors.Join(err, os.Setenv(name, before))
			} else {
				err = errors.Join(err, os.Unsetenv(name))
			}
		}()
	}
	return h.lab.Node().Do(fn)
}
