package conntrack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// clashing is a node that holds an egress IP of two pods, with connections to one port outside. It can forget them all, as a
// node has never known them that takes over from one that has died.
type clashing struct {
	*steering
	listener net.Listener
	table    *Table
	blocks   []kernel.Block
}

func onHolder(t *testing.T, test func(c *clashing)) {
	for family, network := range networks {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true, Pods: 2, Control: true})
			c := &clashing{&steering{T: t, Lab: l, network: network, family: family, egressIP: addr(network.egressIP)}, nil, NewTable(family), nil}
			t.Cleanup(c.table.Close)
			c.run(c.Node(), "nft", fmt.Sprintf("add table %[1]s holder; add chain %[1]s holder post { type nat hook postrouting priority 99; }; add rule %[1]s holder post oifname eth0 meta l4proto tcp snat to %[2]s",
				c.ip(), c.egressIP))
			// What the node does not know of the far side is dropped, as the guard does.
			c.run(c.Node(), "nft", fmt.Sprintf("add chain %[1]s holder guard { type filter hook prerouting priority -90; }; add rule %[1]s holder guard %[1]s daddr %[2]s ct state new drop", c.ip(), c.egressIP))
			if err := l.RouteVia(netip.PrefixFrom(c.egressIP, c.egressIP.BitLen()), c.Node()); err != nil {
				t.Fatal(err)
			}
			var err error
			if c.listener, err = l.Outside().Listen(c.Context(), "tcp", netip.AddrPortFrom(c.address(l.Outside()), 0).String()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.listener.Close() })
			test(c)
		})
	}
}

// connectFrom has a pod connect from a port, and returns both ends and the port outside.
func (c *clashing) connectFrom(pod, port int) (connection, uint16) {
	c.Helper()
	both := c.connectTo(c.listener, c.Pod(pod), port)
	return both, netip.MustParseAddrPort(both.far.RemoteAddr().String()).Port()
}

// forgets has the node forget all connections.
func (c *clashing) forgets() {
	c.Helper()
	c.run(c.Node(), "conntrack", "-F")
}

func (c *clashing) write(what string, end net.Conn) {
	c.Helper()
	if _, err := end.Write([]byte("on")); err != nil {
		c.Errorf("%s: %v", what, err)
	}
}

// ends fails the test unless so many connections clash. It may take several looks: sides may be close to each other by chance.
func (c *clashing) ends(egressIP netip.Addr, want int) {
	c.Helper()
	err := c.Node().Do(func() error {
		ended, began := 0, time.Now()
		for {
			more, err := c.table.EndClashes(c.Context(), map[netip.Addr]time.Time{egressIP: {}}, c.blocks)
			if ended += more.Ended; err != nil {
				return err
			}
			if ended >= want || time.Since(began) > lab.Stretch(2*stillness) {
				break
			}
		}
		if ended != want {
			return fmt.Errorf("%d connections have ended, want %d", ended, want)
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
	if tables := c.run(c.Node(), "nft", "list", "tables"); strings.Contains(tables, listeningTable) {
		c.Errorf("the node still listens:\n%s", tables)
	}
}

// waits fails the test if an end that only waits has heard anything.
func (c *clashing) waits(what string, end net.Conn) {
	c.Helper()
	if err := end.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		c.Fatal(err)
	}
	if _, err := end.Read(make([]byte, 2)); !errors.Is(err, syscall.EAGAIN) && !isTimeout(err) {
		c.Errorf("%s: %v, want nothing", what, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestEndClashes: the pod whose port another one had outside is heard first, and gets that port. Both connections end, on the sides
// that the node can reach; all others go on.
func TestEndClashes(t *testing.T) {
	onHolder(t, func(c *clashing) {
		kept, outside := c.connectFrom(1, 40000)
		moved, other := c.connectFrom(2, 40000)
		if outside != 40000 || other == 40000 {
			c.Fatalf("the ports outside are %d and %d, want the first one alone to be 40000", outside, other)
		}
		idle, _ := c.connectFrom(2, 40001)
		receives, _ := c.connectFrom(1, 40002)
		c.forgets()
		c.write("the pod that had another port", moved.near)
		c.waits("the pod that had another port, as nobody does anything", moved.near)
		c.carries("another pod", idle.near, idle.far)
		c.write("the pod that had the port", kept.near)
		c.isReset("the pod that had the port", kept.near) // by the far side
		c.ends(addr(c.network.otherEgressIP), 0)
		c.ends(c.egressIP, 1)
		c.isReset("the pod that had another port", moved.near)
		c.isReset("the far side of the port", kept.far)
		c.carries("another pod", idle.near, idle.far)
		c.carries("another far side", idle.far, idle.near)
		c.carries("a pod that only receives, once it is heard", receives.near, receives.far)
		c.carries("a pod that only receives", receives.far, receives.near)
		c.ends(c.egressIP, 0)
		next, outside := c.connectFrom(2, 40003)
		c.carries(fmt.Sprintf("a new connection from %d", outside), next.near, next.far)
	})
}

// TestEndClashes_PortsOfBlocks: connections of a pod from ports that it has for itself are not asked, whatever becomes of them; those of another pod
// from there are.
func TestEndClashes_PortsOfBlocks(t *testing.T) {
	onHolder(t, func(c *clashing) {
		block := kernel.Block{Pod: c.address(c.Pod(2)), EgressIP: c.egressIP, Ports: kernel.Ports{First: 39936, Last: 40447}}
		c.connectFrom(1, 40000)
		moved, _ := c.connectFrom(2, 40000)
		c.forgets()
		c.write("the pod that had another port", moved.near)
		c.waits("the pod that had another port", moved.near)
		c.blocks = []kernel.Block{block}
		c.ends(c.egressIP, 0)
		c.blocks[0].Pod = c.address(c.Pod(1))
		c.ends(c.egressIP, 1)
		c.isReset("the pod that had another port", moved.near)
	})
}

// TestEndClashes_PortOutsideOfTheBlock: a pod has chosen a port from outside of its block. Source NAT gives it a port of the block that
// another connection of the same pod had at the former holder. It ends, though nobody else has the port.
func TestEndClashes_PortOutsideOfTheBlock(t *testing.T) {
	onHolder(t, func(c *clashing) {
		pod := c.address(c.Pod(2))
		c.blocks = []kernel.Block{{Pod: pod, EgressIP: c.egressIP, Ports: kernel.Ports{First: 39936, Last: 40447}}}
		kept, _ := c.connectFrom(2, 40000)
		translated, _ := c.connectFrom(2, 50000)
		c.forgets()
		c.run(c.Node(), "nft", fmt.Sprintf("insert rule %[1]s holder post %[1]s saddr %[2]s tcp sport 50000 snat to %[3]s", c.ip(), pod, netip.AddrPortFrom(c.egressIP, 40000)))
		c.write("the connection that has got another port", translated.near)
		c.waits("the connection that has got another port", translated.near)
		c.ends(c.egressIP, 1)
		c.isReset("the connection that has got another port", translated.near)
		c.isReset("the far side of the port", kept.far)
	})
}

// TestEndClashes_OfThePodThatIsGone: the node that has died took the pod along whose port it was.
func TestEndClashes_OfThePodThatIsGone(t *testing.T) {
	onHolder(t, func(c *clashing) {
		kept, _ := c.connectFrom(1, 40000)
		moved, _ := c.connectFrom(2, 40000)
		c.run(c.Pod(1), "ip", "link", "set", "eth0", "down")
		c.forgets()
		c.write("the pod that is there", moved.near)
		c.waits("the pod that is there, as nobody does anything", moved.near)
		c.ends(c.egressIP, 1)
		c.isReset("the pod that is there", moved.near)
		c.isReset("the far side", kept.far)
	})
}

// TestEndClashes_FastConnectionsGoOn: the kernel never finds what they send in a window whose scale it does not know.
func TestEndClashes_FastConnectionsGoOn(t *testing.T) {
	onHolder(t, func(c *clashing) {
		up, _ := c.connectFrom(1, 40000)
		down, _ := c.connectFrom(2, 40001)
		received := make(chan error, 2)
		for _, ends := range [][2]net.Conn{{up.near, up.far}, {down.far, down.near}} {
			go pour(ends[0])
			go func() { received <- drink(ends[1]) }()
		}
		c.forgets()
		c.carries("the pod that receives", down.near, down.far)
		for range 3 {
			c.ends(c.egressIP, 0)
		}
		_, _ = up.near.Close(), down.far.Close()
		for range 2 {
			select {
			case err := <-received:
				if err != nil {
					c.Errorf("a connection has ended: %v", err)
				}
			case <-time.After(soon):
				c.Error("a connection hangs")
			}
		}
	})
}

// TestListen_ToMany: as many as there may be.
func TestListen_ToMany(t *testing.T) {
	onNode(t, func(n *node) {
		many := pairs{}
		far := netip.AddrPortFrom(addr(n.network.outside), 443)
		for i := range mostSuspects {
			near, outside := netip.AddrPortFrom(addr(n.network.pod), uint16(i)), netip.AddrPortFrom(addr(n.network.egressIP), uint16(i))
			many[tuple{protocol: tcp, source: near, destination: far}] = tuple{protocol: tcp, source: far, destination: outside}
		}
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			l, err := k.listen(many, firstPackets)
			if err != nil {
				return err
			}
			elements, err := l.GetSetElements(&nftables.Set{Table: l.table, Name: suspectsSet})
			if err == nil && len(elements) != 2*mostSuspects {
				err = fmt.Errorf("the kernel has %d elements, want %d", len(elements), 2*mostSuspects)
			}
			return errors.Join(err, l.end())
		})
		if err != nil {
			n.Fatal(err)
		}
	})
}

// pour sends as fast as it can, until the end is closed.
func pour(to net.Conn) {
	for buffer := make([]byte, 1<<16); ; {
		if _, err := to.Write(buffer); err != nil {
			return
		}
	}
}

// drink receives until the other end is closed.
func drink(from net.Conn) error {
	for buffer := make([]byte, 1<<16); ; {
		if _, err := from.Read(buffer); err != nil {
			if errors.Is(err, net.ErrClosed) || err.Error() == "EOF" {
				return nil
			}
			return err
		}
	}
}

func TestSides_Differ(t *testing.T) {
	began := time.Now()
	for name, test := range map[string]struct {
		near, far segment
		want      bool
		still     bool // if nothing moves
	}{
		"idle":                          {segment{5, 9}, segment{9, 5}, false, false},
		"bytes under way":               {segment{5 + 64<<20, 9}, segment{9, 5}, false, true},
		"less that nobody acknowledges": {segment{5 + 8<<20, 9}, segment{9, 5}, false, false},
		"around zero":                   {segment{1, 2}, segment{1<<32 - 9, 1<<32 - 7}, false, false},
		"another far side":              {segment{5, 9}, segment{9 + 1<<30, 5}, true, true},
		"another near side":             {segment{5 + 1<<31, 9}, segment{9, 5}, true, true},
		"both":                          {segment{1 << 30, 1 << 31}, segment{0, 0}, true, true},
	} {
		first := sides{test.near, test.far, began}
		if got := first.differ(began); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		later := began.Add(stillness)
		if got := (sides{test.near, test.far, later}).after(first).differ(later); got != test.still {
			t.Errorf("%s, and nothing moves: %v, want %v", name, got, test.still)
		}
		moved := test.far
		moved.expects++
		if got := (sides{test.near, moved, later}).after(first).differ(later); got != test.want {
			t.Errorf("%s, and one byte arrives: %v, want %v", name, got, test.want)
		}
	}
}

// TestCameIn_Lately: what belongs to no connection is answered for a moment after an address has come, and not at each later look.
func TestCameIn_Lately(t *testing.T) {
	old, young, unknown, now := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3"), time.Now()
	got := cameIn(map[netip.Addr]time.Time{old: now.Add(-time.Minute), young: now.Add(-time.Second), unknown: {}}, now.Add(-strayResets))
	if len(got) != 1 || got[0] != young {
		t.Errorf("got %v, want %s alone", got, young)
	}
}

// TestEndListening removes what a process that was killed has left, and nothing if there is nothing.
func TestEndListening(t *testing.T) {
	l := lab.ForTest(t, lab.Config{})
	for _, family := range []string{"ip", "ip6"} {
		if out, err := l.Node().Command(t.Context(), "nft", "add", "table", family, listeningTable).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for range 2 {
		if err := l.Node().Do(func() error { return EndListening(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		if tables, err := l.Node().Command(t.Context(), "nft", "list", "tables").Output(); err != nil || len(tables) > 0 {
			t.Errorf("%v; there are tables:\n%s", err, tables)
		}
	}
}
