package steering

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// onRealPaths runs test for each IP family on two nodes with what really steers, which hold an egress IP each. The
// pod of the first node is bound to both.
func onRealPaths(t *testing.T, test func(c *cluster, d kernel.Desired)) {
	onCluster(t, func(c *cluster) {
		for _, n := range c.nodes {
			n.restart(newPath(n.config()))
		}
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(0, c.another)
		c.holdsOn(1, c.egressIP)
		d := c.desired(c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.another))
		ways := map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
		holder := d
		holder.Steering = c.nodes[1].steering(ways)
		c.nodes[1].write(holder)
		d.Steering = c.nodes[0].steering(ways)
		test(c, d)
	})
}

// faulty writes d, and fails unless the error has these words. The table is written all the same.
func (n *node) faulty(d kernel.Desired, words string) {
	n.c.Helper()
	n.inside(func() error {
		if _, err := n.Write(n.c.Context(), d, nil); err == nil || !strings.Contains(err.Error(), words) {
			n.c.Errorf("the error is %v; want one with %q", err, words)
		}
		if !n.Known() {
			n.c.Error("the table is not written")
		}
		return nil
	})
	n.desired = d
}

// TestWriter_FailsClosedWithoutPath: whatever keeps packets from being sent to another node, the guard is there,
// pods leave from the addresses of their own node, and everything is right as soon as the cause has gone.
func TestWriter_FailsClosedWithoutPath(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		source, pod := c.nodes[0], c.lab.Pod(1)
		leaks := c.leaks(pod)
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
		for _, cause := range []struct{ does, words, undo string }{
			{family + " rule add pref 100 fwmark 0x2/0x2 lookup 5", "rule 100, with fwmark 0x2/0x2", family + " rule del pref 100"},
			{family + " route add unreachable default table 7701 metric 5", "routing table 7701", family + " route flush table 7701"},
			{"ip link add steer0 type bridge", "interface steer0, of the type bridge", "ip link del steer0"},
			{"ip link add other type vxlan id 7 local " + source.ip.String() + " dstport 4799", "interface other uses the UDP port 4799", "ip link del other"},
		} {
			t.Run(cause.does, func(t *testing.T) {
				c.run(source.host, "%s", cause.does)
				source.restart(newPath(source.config()))
				source.faulty(d, cause.words)
				before := source.drops()
				_ = c.unseen(cause.words, pod, "tcp", c.outside(), unanswered)
				source.dropped(before, unsnattedCounter)
				c.sees(cause.words, pod, "udp", c.outside(), c.another)
				c.run(source.host, "%s", cause.undo)
				source.write(d)
				c.sees("afterwards", pod, "tcp", c.outside(), c.egressIP)
				source.inside(func() error { return Cleanup(t.Context()) })
			})
		}
		c.noLeak(leaks)
	})
}

// TestWriter_WithoutUplink: without a tunnel, a node whose address is on no interface sends nothing to other nodes and takes nothing from
// them, but its guard stands.
func TestWriter_WithoutUplink(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.use(Direct)
		n := c.nodes[0]
		d := c.desired(c.bind(1, kernel.TCP, c.egressIP))
		d.Steering = n.steering(map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		config := n.config()
		config.NodeIP = c.of("192.0.2.250", "2001:db8:0:1::250")
		n.inside(func() error {
			w := NewWriter(config)
			defer w.Close()
			if _, err := w.Write(t.Context(), d, nil); err == nil || !strings.Contains(err.Error(), config.NodeIP.String()) {
				t.Errorf("error: %v; want one that names the address", err)
			}
			return nil
		})
		before := n.drops()
		_ = c.unseen("without an uplink", c.lab.Pod(1), "tcp", c.outside(), unanswered)
		n.dropped(before, unsnattedCounter)
	})
}

// TestWriter_ConflictLater: what is there goes on when somebody takes bits of the mark, and changes of bindings are
// written.
func TestWriter_ConflictLater(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		source, pod := c.nodes[0], c.lab.Pod(1)
		leaks := c.leaks(pod)
		source.write(d)
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
		c.run(source.host, "%s rule add pref 100 fwmark 0x40/0x40 lookup 5", family)
		source.faulty(d, "rule 100, with fwmark 0x40/0x40")
		c.sees("the path stays", pod, "tcp", c.outside(), c.egressIP)
		next := d
		next.Bindings = kernel.Sorted([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)})
		source.updateTo(next)
		c.nodes[1].write(func() kernel.Desired {
			holder := next
			holder.Steering = c.nodes[1].desired.Steering
			return holder
		}())
		c.sees("another binding", pod, "udp", c.outside(), c.egressIP)
		c.noLeak(leaks)
	})
}

// TestCompare_SaysWhatDiffers compares with what a Writer has made, by another process's eyes.
func TestCompare_SaysWhatDiffers(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		n := c.nodes[0]
		compare := func() (lines []string) {
			n.inside(func() (err error) {
				lines, err = Compare(t.Context(), n.config(), d, n.Numbers())
				return err
			})
			return lines
		}
		n.write(d)
		if lines := compare(); len(lines) > 0 {
			t.Fatalf("differences from what was written: %q", lines)
		}
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
		hop, mac := innerAddr(c.family, 1), HardwareAddrOf(c.nodes[1].ip)
		for _, damage := range []struct {
			does string
			want []string
		}{
			{family + " rule del pref 901", []string{fmt.Sprintf("%s rule pref 901 fwmark 0x2/0x7e lookup 7701 proto 77: is missing", family)}},
			{family + " route del blackhole default table 7701 metric 4294967295", []string{fmt.Sprintf("%s route blackhole default table 7701 metric 4294967295 proto 77: is missing", family)}},
			{fmt.Sprintf("ip neigh del %s dev steer0", hop), []string{fmt.Sprintf("ip neigh %s lladdr %s dev steer0 nud permanent: is missing", hop, mac)}},
			{fmt.Sprintf("bridge fdb del %s dev steer0", mac), []string{fmt.Sprintf("bridge fdb %s dev steer0 dst %s self permanent: is missing", mac, c.nodes[1].ip)}},
			{"nft flush chain " + n.name() + " guard", []string{"chain guard of table openshift-egress-steering has other rules than were written"}},
			{"nft delete element " + n.name() + " nodes { " + c.nodes[1].ip.String() + " }", []string{"set nodes of table openshift-egress-steering lacks the element " + c.nodes[1].ip.String()}},
		} {
			c.run(n.host, "%s", damage.does)
			if diff := cmp.Diff(damage.want, compare()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", damage.does, diff)
			}
			n.read()
			n.write(d)
			if lines := compare(); len(lines) > 0 {
				t.Errorf("%s: after the repair: %q", damage.does, lines)
			}
		}
		c.run(n.host, "ip link del steer0")
		if lines := compare(); !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "ip link steer0 ") && strings.HasSuffix(l, ": is missing")
		}) {
			t.Errorf("without the device: %q", lines)
		}
		n.nft("delete table %s", n.name())
		if lines := compare(); !slices.Contains(lines, "table openshift-egress-steering: is missing") {
			t.Errorf("without the table: %q", lines)
		}
	})
}

// TestHalt_DropsWhatWasSteered: connections that another node has translated, and new ones, are dropped, and the bindings can
// be told still. It is no error where nothing steers.
func TestHalt_DropsWhatWasSteered(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		source, pod := c.nodes[0], c.lab.Pod(1)
		leaks := c.leaks(pod)
		source.write(d)
		stream, err := pod.DialContext(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), 8080).String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		source.inside(func() error { return Halt(t.Context()) })
		before := source.drops()
		c.says(stream, "it goes nowhere")
		source.dropped(before, unsnattedCounter)
		for _, protocol := range []string{"tcp", "udp"} {
			before := source.drops()
			_ = c.unseen("halted", pod, protocol, c.outside(), unanswered)
			source.dropped(before, unsnattedCounter)
		}
		source.inside(func() error {
			standing, err := Stands(t.Context(), c.family)
			if !slices.Equal(standing.Bindings, d.Bindings) || len(standing.Given) > 0 {
				c.Errorf("the bindings are %v, of which %v give egress IPs; want %v, and none", standing.Bindings, standing.Given, d.Bindings)
			}
			return err
		})
		c.noLeak(leaks)
		source.inside(func() error { return errors.Join(Cleanup(t.Context()), Halt(t.Context())) })
	})
}
