package steering

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

func TestEnsure_TwiceChangesNothing(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		if !n.ensured(n.holders(1, 2, 60)) {
			n.Error("nothing was changed")
		}
		before, fingerprint := n.snapshot(), n.print()
		n.differ(n.holders(1, 2, 60))
		if n.ensured(n.holders(1, 2, 60)) || n.restarted().ensured(n.holders(1, 2, 60)) {
			n.Error("something was changed again")
		}
		n.unchanged(before)
		if n.print() != fingerprint {
			n.Error("the fingerprint has changed")
		}
	})
}

// damages are what somebody does to a path with the holders 1 and 2, and the words of the differences.
var damages = []struct {
	setups []setup
	damage string
	says   []string
}{
	{setups, "IP rule delete pref 901", []string{"rule pref 901 fwmark 0x2/0x7e lookup 7701 proto 77: is missing"}},
	{setups, "IP rule delete pref 902", []string{"rule pref 902 fwmark 0x4/0x7e lookup 7702 proto 77: is missing"}},
	{setups, "IP rule add pref 905 fwmark 0xa00/0x7e00 lookup 7705 proto 77",
		[]string{"rule pref 905 fwmark 0xa00/0x7e00 lookup 7705 proto 77: is unexpected"}},
	{setups, "IP route add prohibit default table 7763 metric 10 proto 77", []string{"route prohibit default table 7763 metric 10 proto 77: is unexpected"}},
	{setups, "IP route flush table 7701",
		[]string{"blackhole default table 7701 metric 4294967295 proto 77: is missing", "metric 10 proto 77: is missing"}},
	{setups, "IP route delete default table 7701 metric 10", []string{"table 7701 metric 10 proto 77: is missing"}},
	{setups, "IP route replace default via OTHER dev eth0 onlink table 7701 metric 10",
		[]string{"table 7701 metric 10 proto 77: is missing"}},
	{setups, "IP route replace default via OTHER dev eth0 onlink table 7701 metric 10 proto 77",
		[]string{"dev eth0 onlink table 7701 metric 10 proto 77: should be: ip"}},
	{setups, "IP route add blackhole default table 7709 proto 77", []string{"blackhole default table 7709"}},
	{overVXLAN, "IP neigh delete HOP1 dev steer0", []string{"neigh HOP1 lladdr MAC1 dev steer0 nud permanent: is missing"}},
	{overVXLAN, "IP neigh replace HOP1 lladdr 02:57:00:00:00:01 dev steer0 nud permanent",
		[]string{"neigh HOP1 lladdr 02:57:00:00:00:01 dev steer0 nud permanent: should be: ip neigh HOP1 lladdr MAC1"}},
	{overVXLAN, "bridge fdb delete MAC1 dev steer0", []string{"fdb MAC1 dev steer0 dst"}},
	{overVXLAN, "bridge fdb replace MAC1 dev steer0 dst NODE",
		[]string{"fdb MAC1 dev steer0 dst NODE self permanent: should be: bridge fdb MAC1"}},
	{overVXLAN, "ip link set steer0 mtu 1400", []string{"mtu 1400 up type vxlan id 4789 local NODE dstport 4799 nolearning: should be: ip link"}},
	{overLAN, "ip link add steer0 address 02:57:00:00:00:01 type vxlan id 4789 local NODE dstport 4799", []string{"ip link steer0"}},
	{ofFamily(overVXLAN, kernel.IPv4), "sysctl -w net.ipv4.conf.steer0.rp_filter=0",
		[]string{"sysctl net/ipv4/conf/steer0/rp_filter=0: should be: sysctl net/ipv4/conf/steer0/rp_filter=2"}},
	{ofFamily(overVXLAN, kernel.IPv6), "sysctl -w net.ipv6.conf.steer0.accept_ra=1",
		[]string{"sysctl net/ipv6/conf/steer0/accept_ra=1: should be: sysctl net/ipv6/conf/steer0/accept_ra=0"}},
}

// TestEnsure_Repairs: whatever is done to a path is told, changes the fingerprint, and is put right.
func TestEnsure_Repairs(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.ensured(n.holders(1, 2))
		before, fingerprint := n.snapshot(), n.print()
		for _, d := range damages {
			if !slices.Contains(d.setups, n.setup) {
				continue
			}
			n.test(d.damage, func(n *pathNode) {
				n.run(d.damage)
				n.differ(n.holders(1, 2), d.says...)
				if n.print() == fingerprint {
					n.Error("the fingerprint is that of before")
				}
				if !n.ensured(n.holders(1, 2)) {
					n.Error("nothing was changed")
				}
				if n.unchanged(before); n.print() != fingerprint {
					n.Error("the fingerprint is another one after the repair")
				}
			})
		}
	})
}

// TestEnsure_RepairsTheDevice: what goes with the device is made again for both families, and the MTU follows the uplink's.
func TestEnsure_RepairsTheDevice(t *testing.T) {
	onPath(t, overVXLAN, func(n *pathNode) {
		for _, damage := range []string{
			"ip link set steer0 down", "ip link delete steer0", "sysctl -w net.ipv6.conf.steer0.disable_ipv6=1",
			"ip link set steer0 address 02:57:00:00:00:01", "ip link set steer0 type vxlan id 4789 learning",
			"ip addr delete 169.254.77.0/32 dev steer0", "ip link set eth0 mtu 1400",
			"ip link set steer0 name elsewhere",
		} {
			n.test(damage, func(n *pathNode) {
				other := n.otherFamily()
				ensured := func() {
					n.ensured(n.holders(1, 2))
					other.ensured(other.holders(7))
				}
				ensured()
				before := n.print() + other.print()
				n.run(damage)
				if n.print()+other.print() == before {
					n.Error("the fingerprints are those of before")
				}
				ensured()
				n.differ(n.holders(1, 2))
				other.differ(other.holders(7))
				if n.ensured(n.holders(1, 2)) {
					n.Error("the families undo what the other one does")
				}
			})
		}
		mtu := map[kernel.Family]string{kernel.IPv4: " mtu 1350 ", kernel.IPv6: " mtu 1330 "}[n.setup.outer]
		if link := n.run("ip link show steer0"); !strings.Contains(link, mtu) {
			n.Errorf("want %s: %s", mtu, link)
		}
	})
}

// TestEnsure_FollowsTheConfiguration: a process with other settings changes what the one before has made.
func TestEnsure_FollowsTheConfiguration(t *testing.T) {
	onPath(t, overVXLAN, func(n *pathNode) {
		n.ensured(n.holders(1, 2))
		other := n.restarted()
		other.config.Port, other.config.MarkMask = 4800, 0x3f00
		other.ensured(n.holders(1))
		other.differ(n.holders(1))
		if rules := n.run("IP rule"); strings.Contains(rules, "0x7e") || strings.Count(rules, "0x3f00 ") != 1 {
			n.Errorf("the rules are\n%s", rules)
		}
		if link := n.run("ip -d link show steer0"); !strings.Contains(link, "dstport 4800") {
			n.Error(link)
		}
		if n.setup.inner != n.setup.outer {
			return // no node can be the next hop
		}
		direct := n.restarted()
		direct.config.Transport = Direct
		direct.ensured(n.holders(1))
		direct.differ(n.holders(1))
		if links := n.run("ip link"); strings.Contains(links, "steer0") {
			n.Errorf("the device is left:\n%s", links)
		}
		n.restarted().ensured(n.holders(1))
		n.differ(n.holders(1))
	})
}

// TestEnsure_Conflicts: what others have is told and left alone, and nothing is made beside it.
func TestEnsure_Conflicts(t *testing.T) {
	onPath(t, overVXLAN, func(n *pathNode) {
		for _, test := range []struct{ has, says, undo string }{
			{"ip link add steer0 type bridge", "interface steer0, of the type bridge, is not egress SNAT's", "ip link delete steer0"},
			{"ip link add other type vxlan id 7 local NODE dstport 4799", "interface other uses the UDP port 4799", "ip link delete other"},
			{"IP rule add pref 100 fwmark 0x10/0xff lookup 5", "rule 100, with fwmark 0x10/0xff, uses bits of egress SNAT's mark 0x7e",
				"IP rule delete pref 100"},
			{"IP rule add not fwmark 0xca6c lookup 51820 pref 32000", "rule 32000, with fwmark 0xca6c/0xffffffff, uses bits of egress SNAT's mark 0x7e",
				"IP rule delete pref 32000"},
			{"IP route add default via OTHER dev eth0 onlink table 7701", "routing table 7701 is egress SNAT's and has a foreign route",
				"IP route flush table 7701"},
			{"ip addr delete NODE/LENGTH dev eth0", "no interface has the node's address NODE", "ip addr add NODE/LENGTH dev eth0"},
		} {
			n.test(test.has, func(n *pathNode) {
				n.run(test.has)
				n.refused(n.holders(1), n.fill(test.says))
				n.run(test.undo)
			})
		}
	})
}

// TestDifferences_Conflicts: they are told beside a path that is whole.
func TestDifferences_Conflicts(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.ensured(n.holders(1))
		fingerprint := n.print()
		n.run("IP rule add pref 100 fwmark 0x10/0xff lookup 5")
		n.differ(n.holders(1), "rule 100, with fwmark 0x10/0xff, uses bits")
		if n.print() == fingerprint {
			n.Error("the fingerprint is that of before")
		}
		n.run("ip addr delete NODE/LENGTH dev eth0")
		n.differ(n.holders(1), "no interface has the node's address NODE", "rule 100, with fwmark 0x10/0xff, uses bits")
	})
}

func TestEnsure_PortInUse(t *testing.T) {
	onPath(t, overVXLAN, func(n *pathNode) {
		n.do(func() error {
			conn, err := net.ListenPacket("udp", fmt.Sprintf(":%d", testPort))
			if err == nil {
				n.Cleanup(func() { _ = conn.Close() })
			}
			return err
		})
		n.refused(n.holders(1), "another program uses the UDP port 4799, "+thisProcess())
	})
}

// thisProcess is how an error names it.
func thisProcess() string { return fmt.Sprintf("process %d (", os.Getpid()) }

// TestEnsure_OthersMarks: rules for other bits of the mark are no conflict, wherever they are.
func TestEnsure_OthersMarks(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		for _, rule := range []string{
			"pref 9 fwmark 0x200/0xf00 lookup 2004", "pref 905 fwmark 0x80/0x80 lookup main", "fwmark 0x4000/0xc000 lookup main",
			"pref 950 from OTHER lookup 5", "not fwmark 0x300 lookup 51820",
		} {
			n.run("IP rule add " + rule)
		}
		before := n.run("IP rule")
		n.ensured(n.holders(1))
		n.do(func() error { return cleanupPath(n.Context()) })
		if diff := cmp.Diff(before, n.run("IP rule")); diff != "" {
			n.Errorf("(-before +after):\n%s", diff)
		}
	})
}

func TestEnsure_ImpossibleHolders(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		other := n.holders(1)[1]
		for words, holders := range map[string]map[int]netip.Addr{
			"number 61": {61: other}, "number 0": {0: other}, "of node invalid IP": {1: {}},
			"cannot be":            {1: map[bool]netip.Addr{true: netip.IPv6LinkLocalAllRouters(), false: netip.MustParseAddr("192.0.2.8")}[other.Is4()]},
			"cannot be told apart": {1: n.config.NodeIP},
		} {
			n.refused(holders, words)
		}
	})
}

// TestRemove_LeavesOthers: all of one number goes, and nothing that another number or the other family uses.
func TestRemove_LeavesOthers(t *testing.T) {
	onPath(t, overVXLAN, func(n *pathNode) {
		other := n.otherFamily()
		n.ensured(n.holders(1))
		other.ensured(map[int]netip.Addr{1: n.holders(2)[2], 2: n.holders(1)[1]}) // in another order
		before, fingerprint := n.snapshot(), other.print()
		n.ensured(n.holders(1, 2, 3))
		n.ensured(n.holders(1)) // the others are in use until they are removed
		n.differ(n.holders(1, 2, 3))
		for range 2 { // the second time there is nothing
			for _, number := range []int{2, 3} {
				n.do(func() error { return n.remove(n.Context(), number) })
			}
		}
		n.unchanged(before)
		if other.print() != fingerprint {
			n.Error("the fingerprint has changed")
		}
		other.differ(map[int]netip.Addr{1: n.holders(2)[2], 2: n.holders(1)[1]})
		n.differ(n.holders(1))
	})
}

// TestKnown_NodesAlike: a number is of one node, also if the hardware addresses of two are alike.
func TestKnown_NodesAlike(t *testing.T) {
	alike := []netip.Addr{netip.MustParseAddr("2001:db8::211e:f128:f934:cb05"), netip.MustParseAddr("2001:db8::f11:8a20:42b5:bdd7")}
	onPath(t, overVXLAN[2:], func(n *pathNode) {
		n.ensured(map[int]netip.Addr{1: alike[0]})
		n = n.restarted()
		n.do(func() error {
			known, err := n.known(n.Context(), alike)
			if len(known) != 1 {
				n.Errorf("the number of one node is that of %v", known)
			}
			return err
		})
	})
}

// TestKnown_AfterARestart: nodes keep their numbers; what is there for nodes that are none any more goes.
func TestKnown_AfterARestart(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.ensured(n.holders(1, 2, 3))
		nodes := n.holders(2, 3, 4)
		n = n.restarted()
		n.do(func() error {
			known, err := n.known(n.Context(), []netip.Addr{nodes[4], nodes[3], nodes[2]})
			if diff := cmp.Diff(numbersOf(n.holders(2, 3)), known); diff != "" {
				n.Errorf("(-want +got):\n%s", diff)
			}
			return err
		})
		n.ensured(n.holders(2))
		n.differ(n.holders(2, 3)) // that of a known number stays until it is removed
		n.do(func() error { return n.remove(n.Context(), 3) })
		n.differ(n.holders(2))
	})
}

// TestPaths_AtOnce: the paths of both families come and go at the same time.
func TestPaths_AtOnce(t *testing.T) {
	onPath(t, setups[:1], func(n *pathNode) {
		paths := []*pathNode{n, n.otherFamily()}
		errs := make(chan error)
		for _, p := range paths {
			go func() {
				errs <- p.host.Do(func() (err error) {
					for range 30 {
						_, ensured := p.ensure(p.Context(), p.holders(1, 2))
						err = errors.Join(err, ensured, p.remove(p.Context(), 1), p.remove(p.Context(), 2))
					}
					_, ensured := p.ensure(p.Context(), p.holders(1, 2))
					return errors.Join(err, ensured)
				})
			}()
		}
		for range paths {
			if err := <-errs; err != nil {
				n.Error(err)
			}
		}
		for _, p := range paths {
			p.differ(p.holders(1, 2))
		}
	})
}

// TestCleanupPath_LeavesWhatWasThere: of both families, and of others' things nothing.
func TestCleanupPath_LeavesWhatWasThere(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		n.run("IP route add default via OTHER dev eth0 onlink table 7750")
		n.run("IP rule add pref 950 fwmark 0x100/0xf00 lookup 7750")
		n.run("ip link add other type vxlan id 4789 local NODE dstport 4789")
		before := n.snapshot()
		n.ensured(n.holders(1, 2, 60))
		if n.setup.transport == VXLAN {
			other := n.otherFamily()
			other.ensured(other.holders(3))
		}
		for range 2 { // the second time there is nothing
			n.do(func() error { return cleanupPath(n.Context()) })
		}
		n.unchanged(before)
	})
}

// TestPathAvailable_LeavesNothing: neither at first, nor beside a path, nor of a process that was killed meanwhile.
func TestPathAvailable_LeavesNothing(t *testing.T) {
	onPath(t, setups, func(n *pathNode) {
		available := func() { n.do(func() error { return pathAvailable(n.Context(), n.config) }) }
		before := n.snapshot()
		available()
		if n.setup.transport == VXLAN {
			n.run("ip link add steer0-probe address 02:57:00:00:00:00 type vxlan id 4789 dstport 1")
			available()
		}
		n.unchanged(before)
		n.ensured(n.holders(1))
		before = n.snapshot()
		available()
		n.unchanged(before)
	})
}

func BenchmarkPath(b *testing.B) {
	l := lab.ForTest(b, lab.Config{IPv6: true})
	for _, count := range []int{1, 5, 60} {
		p := newPath(Config{Family: kernel.IPv4, NodeIP: l.Node().V4, Transport: VXLAN, Port: testPort, MarkMask: testMask})
		holders := map[int]netip.Addr{}
		for number := 1; number <= count; number++ {
			holders[number] = netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + number)})
		}
		err := l.Node().Do(func() error {
			if _, err := p.ensure(b.Context(), holders); err != nil {
				return err
			}
			for name, f := range map[string]func() error{
				"ensure nothing": func() error { _, err := p.ensure(b.Context(), holders); return err },
				"glance":         func() error { _, _, err := p.glance(b.Context(), nil); return err },
			} {
				b.Run(fmt.Sprintf("%s/%d holders", name, count), func(b *testing.B) {
					for b.Loop() {
						if err := l.Node().Do(f); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestPathAvailable_Conflicts: a node can do without steering where somebody else has what it takes, and says what to do.
func TestPathAvailable_Conflicts(t *testing.T) {
	onPath(t, setups[:1], func(n *pathNode) {
		available := func() (err error) {
			n.do(func() error {
				err = pathAvailable(n.Context(), n.config)
				return nil
			})
			return err
		}
		for _, test := range []struct{ has, says, undo string }{
			{"ip rule add pref 100 fwmark 0x2/0xff lookup 51820", "fwmark 0x2/0xff|egress-snat-mark-mask", "ip rule del pref 100"},
			{"ip route add 192.0.2.77 via OTHER dev eth0 onlink table 7733", "routing table 7733|move it to another table", "ip route flush table 7733"},
			{"ip link add other type vxlan id 7 local NODE dstport 4799", "interface other uses the UDP port 4799|egress-snat-steering-port", "ip link del other"},
			{"nft add table inet other ; add chain inet other c ; add rule inet other c meta mark set 0x12", "chain c of the table inet other|egress-snat-mark-mask", "nft delete table inet other"},
			{"nft add table ip other ; add chain ip other c ; add rule ip other c meta mark set meta mark | 0x40", "chain c of the table ip other", "nft delete table ip other"},
			{"nft add table ip other ; add chain ip other c ; add rule ip other c meta mark & 0xff == 0x22 drop", "chain c of the table ip other", "nft delete table ip other"},
			{"nft add table ip other ; add chain ip other c ; add rule ip other c meta mark & 0x10 != 0 drop", "chain c of the table ip other", "nft delete table ip other"},
			{"iptables-nft -t mangle -A PREROUTING -p tcp -j MARK --set-xmark 0x8/0x8", "chain PREROUTING of the table ip mangle", "iptables-nft -t mangle -F"},
			{"iptables-nft -t mangle -A OUTPUT -m mark --mark 0x8/0x8 -m comment --comment x -j ACCEPT", "chain OUTPUT of the table ip mangle", "iptables-nft -t mangle -F"},
			{"iptables-legacy -t mangle -A PREROUTING -p tcp -j MARK --set-xmark 0x8/0x8", "chain PREROUTING of the table mangle of iptables-legacy|egress-snat-mark-mask", "iptables-legacy -t mangle -F"},
			{"nft add table ip other ; add chain ip other c ; add rule ip other c meta mark & 0xf00 == 0x200 meta mark set meta mark | 0x4000 drop", "", "nft delete table ip other"},
			{"iptables-nft -t mangle -A PREROUTING -m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x4000", "", "iptables-nft -t mangle -F"},
		} {
			n.test(test.has, func(n *pathNode) {
				n.run(test.has)
				err := available()
				for _, words := range strings.Split(test.says, "|") {
					if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), words)) {
						n.Errorf("got %v; want %q", err, test.says)
					}
				}
				n.run(test.undo)
			})
		}
		n.do(func() error {
			conn, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", testPort))
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			if err := pathAvailable(n.Context(), n.config); err != nil { // TestEnsure_PortInUse is what follows
				n.Errorf("a process has the port: got %v; want that it is waited for", err)
			}
			return nil
		})
		if err := available(); err != nil {
			n.Errorf("afterwards: %v", err)
		}
	})
}
