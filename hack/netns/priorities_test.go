package netns

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// lowestNAT and highestNAT are priorities of source NAT: the lowest that the kernel allows, and one behind everybody's.
const lowestNAT, highestNAT = -199, 200

// atOnce is how many chains that decide before egress SNAT come at a time at most. A look at many is long, and so is the rest after it.
const atOnce = 40

// TestPriorities_IdentityIsRightOrTold: other software masquerades pods at every priority from -199 to 200, in tables of the families ip, ip6
// and inet and by both iptables, and was there first or comes later. Bound pods leave from their egress IP, or the node names the chain
// within a second.
func TestPriorities_IdentityIsRightOrTold(t *testing.T) {
	everyWay(t, func(n *node) {
		first := map[reconcile.Backend]int{reconcile.IPTables: iptables.SourceNATPriority, reconcile.NFTables: steering.LocalSourceNATPriority}[n.Backend]
		n.Fields = map[string]any{"iptablesSyncPeriod": "10m"} // nobody waits for that
		n.Configure("")
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		one, other := []string{"inet"}, []string{"ip", "ip6"} // both at once are more hooks than the kernel has room for
		slowest := time.Duration(0)
		for range 2 {
			n.masqueradeAt("first", first+1, highestNAT, one...)
			n.start()
			n.Ready()
			n.masqueradeAt("later", first+1, highestNAT, other...)
			n.Iptables("-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE")
			n.isFirst(true)
			n.Eventually(soon, func() error { return n.tellsEarlier(nil) })
			for _, families := range [][]string{one, other} {
				// Each time there are fewer than before, so that what was told of the ones before does not count for the next.
				for from, count := lowestNAT, atOnce; from <= first; count-- {
					to := min(first, from+count-1)
					n.masqueradeAt("decides", from, to, families...)
					slowest = max(slowest, n.toldSoon(earlierChains(from, to, families...)))
					n.isFirst(false)
					n.removeTables("decides", families...)
					from = to + 1
				}
				n.toldSoon(nil)
			}
			n.isFirst(true)
			n.Stop()
			if _, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--cleanup"); status != 0 {
				n.Fatalf("status %d: %s", status, stderr)
			}
			n.removeTables("first", one...)
			n.removeTables("later", other...)
			one, other = other, one
			n.Printed.Reset()
		}
		n.Logf("told after %s at most", slowest.Round(time.Millisecond))
	})
}

// TestPriorities_OtherIPTables: the rules of the iptables that the node does not use have the same priority as its own. If they come before
// them, the node names them within a second; if its own have another priority, they change nothing.
func TestPriorities_OtherIPTables(t *testing.T) {
	everyWay(t, func(n *node) {
		other, chain := "legacy", "chain POSTROUTING of the table nat of iptables-legacy, priority 100"
		if out, err := n.Node().Run(n.Context(), "iptables", "--version"); err != nil || strings.Contains(out, "legacy") {
			other, chain = "nft", "chain POSTROUTING of the nftables table ip nat, priority 100"
		}
		n.serve(n.Outside(), whoamiPort, "tcp4")
		n.putWeb([]string{egressV4.String()})
		n.start()
		n.Ready()
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
		n.AsSomebodyElse("", "iptables-"+other, "-w", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j", "MASQUERADE")
		if n.Backend == reconcile.NFTables {
			n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
			if err := n.tellsEarlier(nil); err != nil {
				n.Error(err)
			}
			return
		}
		n.toldSoon(map[string][]string{"IPv4": {chain}})
		n.AsSomebodyElse("", "iptables-"+other, "-w", "-t", "nat", "-F", "POSTROUTING")
		n.toldSoon(nil)
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	})
}

// masqueradeAt has other software masquerade pods at all these priorities, in a table of each of these families.
func (n *node) masqueradeAt(name string, from, to int, families ...string) {
	n.Helper()
	var rules strings.Builder
	for _, family := range families {
		fmt.Fprintf(&rules, "table %s %s {\n", family, name)
		for priority := from; priority <= to; priority++ {
			fmt.Fprintf(&rules, "chain c%d { type nat hook postrouting priority %d; oifname \"eth0\" masquerade; }\n", priority-lowestNAT, priority)
		}
		rules.WriteString("}\n")
	}
	n.AsSomebodyElse(rules.String(), "nft", "-f", "-")
}

func (n *node) removeTables(name string, families ...string) {
	n.Helper()
	for _, family := range families {
		n.nft(fmt.Sprintf("delete table %s %s", family, name))
	}
}

// earlierChains are those of masqueradeAt, by the IP family whose packets they see.
func earlierChains(from, to int, families ...string) map[string][]string {
	chains := map[string][]string{}
	for _, family := range families {
		for _, of := range map[string][]string{"ip": {"IPv4"}, "ip6": {"IPv6"}, "inet": {"IPv4", "IPv6"}}[family] {
			for priority := from; priority <= to; priority++ {
				chains[of] = append(chains[of], fmt.Sprintf("chain c%d of the nftables table %s decides, priority %d", priority-lowestNAT, family, priority))
			}
		}
	}
	return chains
}

// isFirst fails unless the bound pod leaves from its egress IPs, or from its node's addresses.
func (n *node) isFirst(is bool) {
	n.Helper()
	for network, egressIP := range map[string]netip.Addr{"tcp4": egressV4, "tcp6": egressV6} {
		want := egressIP
		if !is {
			want = n.nodeIP(network)
		}
		n.Sees(network, n.Pod(1), n.outside(network), want)
	}
}

// toldSoon fails unless the node tells of these chains, and of no others, within a second, or some on a busy machine. It returns after which
// time it did.
func (n *node) toldSoon(chains map[string][]string) (after time.Duration) {
	n.Helper()
	began := time.Now()
	n.Eventually(lab.Stretch(10*time.Second), func() error { return n.countsEarlier(chains) })
	after = time.Since(began)
	n.Eventually(soon, func() error { return n.tellsEarlier(chains) })
	return after
}

// countsEarlier returns an error unless the node's metrics count so many chains that come before egress SNAT.
func (n *node) countsEarlier(chains map[string][]string) error {
	text, err := n.get(metricsURL)
	for _, family := range []string{"IPv4", "IPv6"} {
		line := fmt.Sprintf("egress_snat_earlier_nat_chains{ip_family=%q} %d\n", family, len(chains[family]))
		if err == nil && !strings.Contains(text, line) {
			err = fmt.Errorf("the metrics do not say %s", line)
		}
	}
	return err
}

// tellsEarlier returns an error unless the metrics count these chains, and verify names them.
func (n *node) tellsEarlier(chains map[string][]string) error {
	if err := n.countsEarlier(chains); err != nil {
		return err
	}
	out, stderr, _ := n.Openshift("egress", "verify", "--socket="+n.Socket())
	if named := strings.Count(out, "a source address before egress SNAT does"); named != len(chains["IPv4"])+len(chains["IPv6"]) {
		return fmt.Errorf("verify names %d chains: %s%s", named, out, stderr)
	}
	for family, of := range chains {
		for _, chain := range of {
			if !strings.Contains(out, family+": warning: the "+chain+" gives") {
				return fmt.Errorf("verify does not name %s, but says %s%s", chain, out, stderr)
			}
		}
	}
	return nil
}
