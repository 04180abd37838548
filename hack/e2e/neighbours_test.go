package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Other software on the nodes.

// TestNeighbours_SourceNAT: other software masquerades pods at all priorities behind ours, as kindnet does at 90, and was there first or
// comes later. Bound pods leave from their egress IP all the same. Where a chain decides before ours, the node names it until it goes.
func TestNeighbours_SourceNAT(t *testing.T) {
	for name, way := range map[string]struct {
		settings
		share share
		// behind is the lowest priority at which others change nothing, before one at which they decide.
		behind, before int
	}{
		"iptables":                   {settings{nodes: 2}, inCI, steering.SourceNATPriority + 1, -199},
		"nftables":                   {settings{nodes: 2, nftables: true}, usual, steering.SourceNATPriority + 1, -199},
		"nftables, without steering": {settings{nodes: 2, nftables: true, arguments: `egress-snat-steering: ["off"]`}, usual, steering.LocalSourceNATPriority + 1, steering.LocalSourceNATPriority},
		"iptables, without steering": {settings{nodes: 2, backend: lab.Legacy, arguments: `egress-snat-steering: ["off"]`}, usual, 101, 90},
	} {
		t.Run(name, func(t *testing.T) {
			belongsTo(t, way.share)
			w := newIdleWorld(t, way.settings)
			w.masqueradeFrom("first", way.behind, "inet")
			w.start()
			pods := w.shop(w.ips(10)...)
			w.masqueradeFrom("later", way.behind, "ip", "ip6")
			for _, pod := range pods {
				w.leaves("tcp", pod, w.ips(10)...)
				w.leaves("udp", pod, w.ips(10)...)
			}
			w.tellEarlierNAT("later", 0)
			w.masqueradeAt("decides", way.before)
			w.tellEarlierNAT("decides", 1)
			w.eventTold("EgressSNATNotFirst", fmt.Sprintf("chain post of the nftables table inet decides, priority %d", way.before))
			w.onAll("nft delete table inet decides")
			w.tellEarlierNAT("decides", 0)
			for _, pod := range pods {
				w.leaves("tcp", pod, w.ips(10)...)
			}
		})
	}
}

// TestNeighbours_Fixtures: beside the rules of network plugins that cannot be had, which were there first or come later, bound pods leave
// from their egress IP, and the others from their nodes. The node finds no clash.
func TestNeighbours_Fixtures(t *testing.T) {
	w := newBesideWorld(t, settings{nodes: 2}, func(w *world) { // what a plugin masquerades is up to its rules
		w.onAll("iptables -w -t nat -F POSTROUTING", "ip6tables -w -t nat -F POSTROUTING")
	})
	for _, f := range fixtures[:by(t, 1, len(fixtures), len(fixtures))] {
		w.scenario(f.name, func() {
			for _, m := range w.members {
				m.Stop()
				w.load(m, f)
				m.AnewReady()
			}
			w.rightBeside(f)
			for _, m := range w.members {
				w.remove(m, f)
				w.load(m, f)
			}
			w.rightBeside(f)
			for _, m := range w.members {
				w.remove(m, f)
			}
		})
	}
	w.clean(100)
}

// TestNeighbours_Marks: other software begins to set a bit of the mark by which packets are steered, as kube-vip's egress does, or to match
// it, as kindnet's DNS cache does, in rules of nft and of both iptables. The node names the chain in every place, until it goes.
func TestNeighbours_Marks(t *testing.T) {
	w := newSteeredWorld(t, settings{nodes: 2}, nil)
	w.tellMarks("")
	for _, way := range []struct{ chain, add, remove string }{
		{"nftables chain pre of the table inet others", "nft add table inet others ; add chain inet others pre { type filter hook prerouting priority mangle ; } ; add rule inet others pre udp dport 9 meta mark set meta mark or 0x40", "nft delete table inet others"},
		{"chain PREROUTING of the table mangle of iptables-legacy", "iptables-legacy -t mangle -A PREROUTING -p udp --dport 9 -j MARK --set-xmark 0x40/0x40", "iptables-legacy -t mangle -F PREROUTING"},
		{"nftables chain output of the table inet kindnet-dnscache", "nft -f testdata/neighbours/kindnet-dnscache.nft", "nft delete table inet kindnet-dnscache"},
		{"nftables chain PREROUTING of the table ip6 mangle", "ip6tables-nft -t mangle -A PREROUTING -p udp --dport 9 -j MARK --set-xmark 0x40/0x40", "ip6tables-nft -t mangle -F PREROUTING"},
	} {
		w.onAll(way.add)
		w.tellMarks(way.chain)
		w.eventTold("EgressMarkInUse", way.chain+" uses bits of egress SNAT's mark 0x7e")
		w.onAll(way.remove)
		w.tellMarks("")
	}
}

// TestNeighbours_PreferredIPv6: an egress IP that other software has put on a node may become what pods that are not bound leave from. The
// node says so, and what to do.
func TestNeighbours_PreferredIPv6(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{nodes: 2}, nil)
	ip := w.egressIPs[1]
	warning := "MASQUERADE of other software may give it to pods that are not bound; run: ip addr change " + ip + "/128 dev eth0 preferred_lft 0"
	for lifetime, told := range map[string]bool{"forever": true, "0": false} {
		w.must(w.holder.Host.Command(w.Context(), "ip", "addr", "change", ip+"/128", "dev", "eth0", "preferred_lft", lifetime).Run())
		out, _, status := w.holder.Openshift("egress", "verify", "--socket="+w.holder.Socket())
		if strings.Contains(out, warning) != told || status != 0 {
			t.Errorf("preferred_lft %s: verify ended with %d and said %s", lifetime, status, out)
		}
	}
}

// tellMarks waits until all nodes tell of a chain that uses bits of the mark, or of none.
func (w *world) tellMarks(chain string) {
	w.Helper()
	w.allTell(func(verify, metrics string) error {
		metric := fmt.Sprintf("egress_snat_steering_fault{reason=\"marks\"} %d\n", map[bool]int{true: 1}[chain != ""])
		told := strings.Contains(verify, "uses bits of egress SNAT's mark")
		if told != (chain != "") || !strings.Contains(verify, chain) || !strings.Contains(metrics, metric) {
			return fmt.Errorf("want %s and %q told; verify says %s", metric, chain, verify)
		}
		return nil
	})
}

// allTell waits until what each node's verification says, and its metrics, are right.
func (w *world) allTell(right func(verify, metrics string) error) {
	w.Helper()
	for _, m := range w.members {
		w.eventually(func() error {
			out, _, _ := m.Openshift("egress", "verify", "--socket="+m.Socket())
			got, err := w.get(m.Host, metricsAt, "/metrics")
			if err == nil {
				err = right(out, got.body)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			return nil
		})
	}
}

// masqueradeAt has other software on all nodes masquerade what leaves, in an nftables table with this name.
func (w *world) masqueradeAt(name string, priority int) {
	w.Helper()
	w.onAll(fmt.Sprintf("nft add table inet %[1]s ; add chain inet %[1]s post { type nat hook postrouting priority %[2]d ; } ; add rule inet %[1]s post oifname eth0 masquerade", name, priority))
}

// masqueradeFrom has other software on all nodes masquerade what leaves, at each priority from this one to 200, in tables of these families.
func (w *world) masqueradeFrom(name string, lowest int, families ...string) {
	w.Helper()
	var rules strings.Builder
	for _, family := range families {
		fmt.Fprintf(&rules, "table %s %s {\n", family, name)
		for priority := lowest; priority <= 200; priority++ {
			fmt.Fprintf(&rules, "chain c%d { type nat hook postrouting priority %d; oifname eth0 masquerade; }\n", priority-lowest, priority)
		}
		rules.WriteString("}\n")
	}
	for _, m := range w.members {
		m.AsSomebodyElse(rules.String(), "nft", "-f", "-")
	}
}

// tellEarlierNAT waits until all nodes tell of this many chains that come before egress SNAT in each IP family, 0 or 1, and of a table
// with this name.
func (w *world) tellEarlierNAT(table string, chains int) {
	w.Helper()
	w.allTell(func(verify, metrics string) error {
		for _, family := range w.families {
			metric := fmt.Sprintf("egress_snat_earlier_nat_chains{ip_family=%q} %d\n", family, chains)
			told := strings.Contains(verify, fmt.Sprintf("%s: warning: the chain post of the nftables table inet %s, priority ", family, table))
			if told != (chains > 0) || !strings.Contains(metrics, metric) {
				return fmt.Errorf("want %s and the chain of %s told %v; verify says %s", metric, table, chains > 0, verify)
			}
		}
		return nil
	})
}
