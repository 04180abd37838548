package conntrack

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// remembers returns the elements of each set of the barrier.
func (n *node) remembers() map[string][]nftables.SetElement {
	n.Helper()
	elements := map[string][]nftables.SetElement{}
	err := n.host.Do(func() error {
		b, err := connect(specOf(n.family, allRoom))
		if err != nil {
			return err
		}
		defer b.Close()
		for _, set := range b.remembering() {
			if elements[set.Name], err = b.GetSetElements(b.spec.Set(set.Name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		n.Fatal(err)
	}
	return elements
}

// remembersSoMany fails the test unless the sets have so many elements; those that are not named have none.
func (n *node) remembersSoMany(want map[string]int) {
	n.Helper()
	for name, elements := range n.remembers() {
		if len(elements) != want[name] {
			n.Errorf("%s has %d elements, want %d", name, len(elements), want[name])
		}
	}
}

// unanswered are so many wrong flows that nobody has answered.
func (n *node) unanswered(number int, protocol uint8, as string) map[string]entry {
	entries := map[string]entry{}
	for i := range number {
		to := netip.AddrPortFrom(addr(n.network.outside), uint16(1+i)).String()
		entries[fmt.Sprintf("unanswered %d %s %03d", protocol, as, i)] = entry{Flow: flow(protocol, n.network.other, to, as), unanswered: true}
	}
	return entries
}

// TestDelete_UnansweredFlowsAreBarredApart: they take no room from others, and only as long as an answer may come that reaches the
// pod.
func TestDelete_UnansweredFlowsAreBarredApart(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		n.holds(n.unanswered(5, udp, w.other))
		n.holds(n.unanswered(4, tcp, w.other))
		n.holds(n.unanswered(100, udp, w.node))
		n.holds(n.unanswered(100, tcp, w.node))
		if got, err := n.delete(n.Context(), n.bound(), Scope{All: true}); got != 5+4+100+100 || err != nil {
			n.Errorf("deleted %d, error %v", got, err)
		}
		n.remembersSoMany(map[string]int{unansweredSet: 5 + 4})
		for _, e := range n.remembers()[unansweredSet] {
			if e.Expires > 30*time.Second {
				n.Errorf("%x is remembered for %v", e.Key, e.Expires)
			}
		}
	})
}

// TestDelete_FullBarrier: whoever makes flows end without end fills the sets, and no more. All flows are deleted, and those that are
// not barred are counted, and told once.
func TestDelete_FullBarrier(t *testing.T) {
	onNode(t, func(n *node) {
		const connections, asked, withoutPorts = 300, 90, 30
		n.table.room = room{flows: 100, unanswered: 21, hosts: 7, fresh: 1}
		var log bytes.Buffer
		ctx := klog.NewContext(n.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		for round := range 3 {
			n.flush()
			n.holds(n.numbered(connections))
			n.holds(n.unanswered(asked, udp, n.network.other))
			n.holds(n.withoutPorts(withoutPorts))
			log.Reset()
			var done Deleted
			err := n.host.Do(func() (err error) {
				done, err = n.table.Delete(ctx, n.bound(), Scope{All: true})
				return err
			})
			// In later rounds there is room for those alone that are barred already.
			const all, barred = connections + asked + withoutPorts, 50 + 21 + 7
			if wrong := done.Unbarred != all-barred && (round == 0 || done.Unbarred < all-barred || done.Unbarred > all); err != nil || done.Ended != all || wrong {
				n.Errorf("round %d: %+v, error %v; want %d ended and %d barred", round, done, err, all, barred)
			}
			if left := n.left(); len(left) > 0 {
				n.Errorf("round %d: %d flows are left", round, len(left))
			}
			if told := strings.Count(log.String(), fmt.Sprintf("notPrevented=%d", done.Unbarred)); told != 1 || strings.Count(log.String(), "\n") != 1 {
				n.Errorf("round %d: it is told %d times, want once:\n%s", round, told, log.String())
			}
			n.remembersSoMany(map[string]int{flowsSet: 100, unansweredSet: 21, hostsSet: 7})
		}
	})
}

// TestDelete_OverConnectionsTakeNoRoom: of those that are over, which are many, none takes the room of one that goes on.
func TestDelete_OverConnectionsTakeNoRoom(t *testing.T) {
	onNode(t, func(n *node) {
		n.table.room = room{flows: 2, unanswered: 50, hosts: 1, fresh: 1}
		entries := n.numbered(40)
		for name, e := range entries {
			e.state, e.SeenAs = 7, e.Source // TCP_CONNTRACK_TIME_WAIT
			entries[name] = e
		}
		n.holds(entries)
		n.holds(map[string]entry{"goes on": {Flow: flow(tcp, n.network.pod, netip.AddrPortFrom(addr(n.network.outside), 443).String(), n.network.pod), state: 3}})
		err := n.host.Do(func() error {
			done, err := n.table.Delete(n.Context(), n.bound(), Scope{All: true})
			if done.Ended != 41 || done.Unbarred > 0 {
				n.Errorf("%+v, want all ended and barred", done)
			}
			return err
		})
		if err != nil {
			n.Fatal(err)
		}
		if sets := n.remembers(); len(sets[flowsSet]) != 2 {
			n.Errorf("%s has %d elements, want both sides of the one that goes on", flowsSet, len(sets[flowsSet]))
		}
	})
}

// withoutPorts are so many wrong flows of a protocol without ports.
func (n *node) withoutPorts(number int) map[string]entry {
	entries := map[string]entry{}
	for i := range number {
		to := addr(n.network.outside)
		for range i {
			to = to.Next()
		}
		entries[fmt.Sprintf("ESP %03d", i)] = entry{Flow: flow(esp, n.network.other, to.String(), n.network.other)}
	}
	return entries
}

var (
	sizeOfSet = regexp.MustCompile(`(?m)^\s*size \d+\n`)
	anew      = regexp.MustCompile(`(?s)\tchain anew \{.*?\}\n\n\tchain`)
)

// TestDelete_ReplacesABarrierWithoutSizes: what an earlier version has barred stays, for as long as before, and what is too much goes.
func TestDelete_ReplacesABarrierWithoutSizes(t *testing.T) {
	onNode(t, func(n *node) {
		const others = 1<<16 + 5000
		earlier := anew.ReplaceAllString(sizeOfSet.ReplaceAllString(barrierOf(n.family), ""), "\tchain")
		earlier = regexp.MustCompile(` comment "[^"]*"`).ReplaceAllString(earlier, "")
		earlier = strings.NewReplacer("reject with tcp reset", "meta l4proto tcp reject with tcp reset", "goto anew", "accept").Replace(earlier)
		var elements strings.Builder
		element := func(i int, ports bool, expires string) {
			separator := " . "
			elements.WriteString(n.network.outside + separator + n.network.pod + separator + "tcp")
			if ports {
				fmt.Fprintf(&elements, " . %d . %d", i>>14+1, i&(1<<14-1)+1)
			}
			fmt.Fprintf(&elements, " timeout 20m expires %s,", expires)
		}
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[n.family]
		for set, number := range map[string]int{flowsSet: others, unseenSet: 3, hostsSet: 1} {
			for first := 0; first < number; first += 1000 {
				fmt.Fprintf(&elements, "add element %s %s %s {", family, barrierTable, set)
				for i := first; i < min(first+1000, number); i++ {
					expires := "10m"
					if i < 10 {
						expires = "15m"
					}
					element(i, set != hostsSet, expires)
				}
				elements.WriteString("}\n")
			}
		}
		file := t.TempDir() + "/earlier"
		if err := os.WriteFile(file, []byte(earlier+elements.String()), 0o600); err != nil {
			n.Fatal(err)
		}
		if output, err := n.host.Run(n.Context(), "nft", "-f", file); err != nil {
			n.Fatalf("%v: %s", err, output)
		}
		n.holds(n.unanswered(1, udp, n.network.other))
		if _, err := n.delete(n.Context(), n.bound(), Scope{All: true}); err != nil {
			n.Fatal(err)
		}
		n.remembersSoMany(map[string]int{flowsSet: 1 << 16, unseenSet: 3, hostsSet: 1, unansweredSet: 1}) // before the last expires: nft lists slowly
		table, _ := n.barred()
		if table != barrierOf(n.family) {
			n.Errorf("the table is %s", table)
		}
		long := 0
		for _, e := range n.remembers()[flowsSet] {
			if e.Expires > 11*time.Minute {
				long++
			}
		}
		if long != 10 {
			n.Errorf("%d flows are remembered for more than 11 minutes, want 10", long)
		}
	})
}

// TestDelete_LateAnswer: the far side's first answer comes when the flow has been deleted. The flow does not go on under the pod's own
// address.
func TestDelete_LateAnswer(t *testing.T) {
	for family, network := range networks {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true, Pods: 1})
			s := &steering{T: t, Lab: l, network: network, family: family, egressIP: addr(network.egressIP)}
			s.pod = s.address(l.Pod(1))
			near, far := s.datagrams(l.Pod(1)), s.datagrams(l.Outside())
			to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.address(l.Outside()), far.LocalAddr().(*net.UDPAddr).AddrPort().Port()))
			seenAs := func() netip.AddrPort {
				t.Helper()
				if _, err := near.WriteTo([]byte("x"), to); err != nil {
					t.Fatal(err)
				}
				_ = far.SetReadDeadline(time.Now().Add(soon))
				_, from, err := far.ReadFrom(make([]byte, 9))
				if err != nil {
					t.Fatal(err)
				}
				seen := from.(*net.UDPAddr).AddrPort()
				return netip.AddrPortFrom(seen.Addr().Unmap(), seen.Port())
			}
			s.run(l.Node(), "nft", fmt.Sprintf("add table %[1]s holder; add chain %[1]s holder post { type nat hook postrouting priority 99; }; add chain %[1]s holder tracks { type filter hook forward priority 0; }; add rule %[1]s holder tracks ct state new", s.ip()))
			first := seenAs()
			if first.Addr() != s.pod {
				t.Fatalf("the pod is seen as %s", first)
			}
			s.run(l.Node(), "nft", fmt.Sprintf("add rule %[1]s holder post oifname eth0 %[1]s saddr %[2]s snat to %[3]s",
				s.ip(), s.pod, s.egressIP))
			err := l.Node().Do(func() error {
				after := kernel.Desired{Bindings: []kernel.Binding{{Pod: s.pod, Protocol: kernel.All, EgressIP: s.egressIP}}}
				done, err := Delete(context.WithoutCancel(t.Context()), family, after, Scope{All: true})
				if err == nil && done != (Deleted{Ended: 1}) {
					err = fmt.Errorf("deleted %+v", done)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := far.WriteTo([]byte("late"), net.UDPAddrFromAddrPort(first)); err != nil {
				t.Fatal(err)
			}
			// The node has had it when it has had a packet behind it.
			udp := map[kernel.Family]string{kernel.IPv4: "udp4", kernel.IPv6: "udp6"}[family]
			if _, err := l.Node().ServeWhoami(udp, 8080); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Outside().Ask(t.Context(), udp, netip.AddrPortFrom(s.address(l.Node()), 8080), 0); err != nil {
				t.Fatal(err)
			}
			if seen := seenAs(); seen.Addr() != s.egressIP {
				t.Errorf("the pod is seen as %s, want %s", seen, s.egressIP)
			}
		})
	}
}

// datagrams returns a UDP socket on a host.
func (s *steering) datagrams(h *lab.Host) (c net.PacketConn) {
	s.Helper()
	err := h.Do(func() (err error) {
		var config net.ListenConfig
		c, err = config.ListenPacket(s.Context(), "udp", netip.AddrPortFrom(s.address(h), 0).String())
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}
