package steering

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// TestWarnings_OfAClosedFirewall: a holder that forwards only what a rule accepts drops what other nodes send it, which is
// told, until a rule lets it pass.
func TestWarnings_OfAClosedFirewall(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		source, holder, pod := c.nodes[0], c.nodes[1], c.lab.Pod(1)
		leaks := c.leaks(pod)
		source.write(d)
		warned := func() (warnings []string) {
			holder.inside(func() (err error) {
				warnings, err = Warnings(t.Context(), holder.config(), d.ClusterCIDRs)
				return err
			})
			return warnings
		}
		six := map[kernel.Family]string{kernel.IPv6: "6"}[c.family]
		cidr, family, icmp := lab.ClusterV4.String(), "ip", "icmp"
		if c.family == kernel.IPv6 {
			cidr, family, icmp = lab.ClusterV6.String(), "ip6", "ipv6-icmp"
		}
		for name, firewall := range map[string]struct{ closes, accepts, chain, undo string }{
			"iptables-legacy": {
				"ip" + six + "tables-legacy -P FORWARD DROP", "ip" + six + "tables-legacy -A FORWARD -i steer0 -j ACCEPT", "the chain FORWARD of ip" + six + "tables-legacy",
				"ip" + six + "tables-legacy -P FORWARD ACCEPT",
			},
			"iptables-nft, pods accepted": {
				"ip" + six + "tables-nft -P FORWARD DROP", "ip" + six + "tables-nft -A FORWARD -s " + cidr + " -j ACCEPT", "the nftables chain FORWARD of the table " + family + " filter",
				"ip" + six + "tables-nft -P FORWARD ACCEPT",
			},
			"nftables, as firewalld": {
				"nft add table inet wall ; add chain inet wall f { type filter hook forward priority 10 ; } ; add rule inet wall f meta l4proto != " + icmp + " ct state established accept ; add rule inet wall f reject",
				"nft insert rule inet wall f iifname steer0 accept", "the nftables chain f of the table inet wall", "nft delete table inet wall",
			},
		} {
			t.Run(name, func(t *testing.T) {
				c.sees("before", pod, "tcp", c.outside(), c.egressIP)
				if warnings := warned(); len(warnings) > 0 {
					t.Errorf("without a firewall: %q", warnings)
				}
				c.run(holder.host, "%s", firewall.closes)
				_ = c.unseen("closed", pod, "tcp", c.outside(), unanswered)
				if warnings := warned(); len(warnings) != 1 || !strings.Contains(warnings[0], firewall.chain+" drops") {
					t.Errorf("a closed firewall: %q, want one about %s", warnings, firewall.chain)
				}
				c.run(holder.host, "%s", firewall.accepts)
				// Answers pass by the rule of somebody who lets them: kube-proxy's KUBE-FORWARD accepts what is established.
				if strings.Contains(firewall.closes, "tables") && !strings.Contains(firewall.closes, "wall") {
					tool := strings.Fields(firewall.accepts)[0]
					c.run(holder.host, "%s -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", tool)
				}
				c.sees("accepted", pod, "tcp", c.outside(), c.egressIP)
				if warnings := warned(); len(warnings) > 0 {
					t.Errorf("what is accepted: %q", warnings)
				}
				c.run(holder.host, "%s", firewall.undo)
				if strings.Contains(name, "iptables") {
					c.run(holder.host, "%s -F FORWARD", strings.Fields(firewall.accepts)[0])
				}
			})
		}
		c.noLeak(leaks)
	})
}

// TestWarnings_OfRulesAmongOurs: a rule of others is told and left alone.
func TestWarnings_OfRulesAmongOurs(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.run("IP rule add pref 950 from OTHER lookup 5")
		n.run("IP rule add pref 951 fwmark 0x100/0xf00 lookup 5")
		n.ensured(n.holders(1))
		n.do(func() error {
			warnings, err := Warnings(n.Context(), n.config, nil)
			if len(warnings) != 1 || !strings.Contains(warnings[0], "rule 950 is not egress SNAT's") {
				n.Errorf("got %q, want one about the rule 950", warnings)
			}
			return err
		})
		if rules := n.run("IP rule"); !strings.Contains(rules, "950:") {
			n.Errorf("the rule is gone:\n%s", rules)
		}
	})
}

// TestWarnings_OfTheWayBack: who looks for the way back with a packet's mark finds the holder's, and drops the packet.
func TestWarnings_OfTheWayBack(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.ensured(n.holders(1))
		expect := func(what, want string) {
			n.Helper()
			n.do(func() error {
				warnings, err := Warnings(n.Context(), n.config, nil)
				if all := strings.Join(warnings, "\n"); (want == "") != (all == "") || !strings.Contains(all, want) {
					n.Errorf("%s: got %q, want %q", what, all, want)
				}
				return err
			})
		}
		expect("nobody", "")
		for _, setting := range validMarks {
			set := func(value string) {
				n.do(func() error { return os.WriteFile("/proc/sys/"+setting, []byte(value), 0o600) })
			}
			want := ""
			if n.config.Family == kernel.IPv4 {
				want = strings.ReplaceAll(setting, "/", ".") + " is 1"
			}
			set("1")
			expect("the kernel", want)
			set("0")
		}
		n.run("nft add table inet firewalld")
		n.run("nft add chain inet firewalld before { type filter hook prerouting priority -140 ; }")
		n.run("nft add rule inet firewalld before fib saddr . mark . iif oif missing drop")
		expect("a check that comes before the mark", "")
		n.run("nft add chain inet firewalld filter_PREROUTING { type filter hook prerouting priority 10 ; }")
		check := "nft add rule inet firewalld filter_PREROUTING meta nfproto %s fib saddr . %s iif oif missing drop"
		own, other := "ipv4", "ipv6"
		if n.config.Family == kernel.IPv6 {
			own, other = other, own
		}
		n.run(fmt.Sprintf(check, other, "mark ."))
		n.run(fmt.Sprintf(check, own, ""))
		expect("checks of the other family, and without the mark", "")
		n.run(fmt.Sprintf(check, own, "mark ."))
		expect("firewalld", "filter_PREROUTING of the table inet firewalld")
	})
}

// TestWarnings_OfMarks that somebody sets in our bits after the start: kube-vip does so for its own egress, and the guard then drops
// what a bound pod sends.
func TestWarnings_OfMarks(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.ensured(n.holders(1))
		expect := func(what string, want ...string) {
			n.do(func() error {
				warnings, err := Warnings(n.Context(), n.config, nil)
				if len(warnings) != len(want) || len(want) > 0 && !strings.Contains(warnings[0], want[0]) {
					n.Errorf("%s: got %q, want %q", what, warnings, want)
				}
				return err
			})
		}
		expect("nobody marks")
		iptables := map[kernel.Family]string{kernel.IPv4: "iptables", kernel.IPv6: "ip6tables"}[n.config.Family]
		table := nft.FamilyNames[nft.FamilyOf(n.config.Family).Table]
		for tool, told := range map[string]string{
			"-nft":    "nftables chain PREROUTING of the table " + table + " mangle",
			"-legacy": "chain PREROUTING of the table mangle of " + iptables + "-legacy",
		} {
			for _, rule := range []string{"-j MARK --set-xmark 0x2/0x2", "-p tcp -m mark --mark 0x40/0x40 -j ACCEPT"} {
				n.run(iptables + tool + " -t mangle -A PREROUTING -j MARK --set-xmark 0x4000/0x4000")
				expect("other bits, by " + tool)
				n.run(iptables + tool + " -t mangle -A PREROUTING " + rule)
				expect("as kube-vip, by "+tool, "a rule in the "+told+" uses bits of egress SNAT's mark")
				n.run(iptables + tool + " -t mangle -F")
				expect("nobody marks any more, by " + tool)
			}
		}
	})
}
