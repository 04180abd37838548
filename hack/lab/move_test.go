//go:build linux

package lab

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Addresses of the nodes' own network that are nobody's at first.
var (
	movedV4 = netip.MustParseAddr("192.0.2.100")
	movedV6 = netip.MustParseAddr("2001:db8:0:2::100")
)

func movedLab(t *testing.T) *Lab {
	t.Helper()
	l := ForTest(t, Config{Nodes: 3, Pods: 3, IPv6: true, Masquerade: true, AnswersByARP: true, Far: true})
	for _, h := range l.hosts() {
		serveAll(t, h)
	}
	return l
}

// Hosts on the nodes' network and behind a router find the address at the node that has it, at once after a move.
func TestMoveAddr_HostsOutsideFollow(t *testing.T) {
	l := movedLab(t)
	for _, addr := range []netip.Addr{movedV4, movedV6} {
		network := map[bool]string{true: "udp4", false: "udp6"}[addr.Is4()]
		last := l.Nodes()[2]
		if err := last.TakeAddr(addr); err != nil {
			t.Fatal(err)
		}
		for _, node := range l.Nodes() {
			if err := l.MoveAddr(addr, last, node); err != nil {
				t.Fatal(err)
			}
			last = node
			server, err := node.ServeWhoami(network, port+1)
			if err != nil {
				t.Fatal(err)
			}
			for i, from := range []*Host{l.Outside(), l.Far()} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				seen, err := from.Ask(ctx, network, netip.AddrPortFrom(addr, port+1), 0)
				cancel()
				if err != nil || seen != from.address(network) || len(slices.Compact(server.Seen())) != i+1 {
					t.Errorf("%s to %s on %s: seen as %s by %v, %v", from.Name, addr, node.Name, seen, server.Seen(), err)
				}
			}
		}
	}
	if err := l.Nodes()[0].DropAddr(movedV4); err == nil {
		t.Error("a node without the address has dropped it")
	}
}

// Pods of all nodes leave from the address, but only those of the node that has it get answers.
func TestAnswersByARP_GoToTheHolder(t *testing.T) {
	l := movedLab(t)
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		addr := movedV4
		if isV6(network) {
			addr = movedV6
		}
		holder := l.Nodes()[1]
		if network[:3] == "tcp" { // UDP comes after it
			if err := holder.TakeAddr(addr); err != nil {
				t.Fatal(err)
			}
		}
		for i, node := range l.Nodes() {
			pod := l.Pod(i + 1)
			rule(t, node, network, "-I", "POSTROUTING", "-s", pod.address(network).String(), "-o", "eth0", "-p", network[:3], "-j", "SNAT", "--to-source", addr.String())
			for _, to := range []*Host{l.Outside(), l.Far()} {
				ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{false: 500 * time.Millisecond, true: 10 * time.Second}[node == holder])
				seen, err := pod.Ask(ctx, network, netip.AddrPortFrom(to.address(network), port), 0)
				cancel()
				if (err == nil) != (node == holder) || err == nil && seen != addr {
					t.Errorf("%s from %s to %s: seen as %s, %v; only pods of %s should get answers", network, pod.Name, to.Name, seen, err, holder.Name)
				}
			}
		}
	}
}

func TestFar_IsReachedByEverybody(t *testing.T) {
	l := movedLab(t)
	for _, n := range networks {
		for i, node := range l.Nodes() {
			if got, want := ask(t, l.Pod(i+1), n.name, l.Far().address(n.name)), node.address(n.name); got != want {
				t.Errorf("%s from pod-%d: seen as %s, want its node, %s", n.name, i+1, got, want)
			}
			if got, want := ask(t, l.Far(), n.name, l.Pod(i+1).address(n.name)), l.Far().address(n.name); got != want {
				t.Errorf("%s to pod-%d: seen as %s, want %s", n.name, i+1, got, want)
			}
		}
	}
}

func TestAsk_ICMP(t *testing.T) {
	l := movedLab(t)
	for _, network := range []string{"icmp4", "icmp6"} {
		for _, to := range []*Host{l.Outside(), l.Pod(2)} {
			if _, err := to.ServeWhoami(network, 0); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := ask(t, l.Pod(1), network, l.Outside().address(network)), l.Node().address(network); got != want {
			t.Errorf("%s to the outside: seen as %s, want the node, %s", network, got, want)
		}
		if got, want := ask(t, l.Pod(1), network, l.Pod(2).address(network)), l.Pod(1).address(network); got != want {
			t.Errorf("%s to a pod: seen as %s, want %s", network, got, want)
		}
	}
}

// The wire shows each node's packets by their sources, and neither answers nor what nodes carry for each other.
func TestWatch_CountsWhatNodesSend(t *testing.T) {
	l := movedLab(t)
	for _, network := range []string{"icmp4", "icmp6"} {
		if _, err := l.Outside().ServeWhoami(network, 0); err != nil {
			t.Fatal(err)
		}
	}
	wire, err := l.Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = wire.Close() }()
	want := map[Sighting]int{}
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6", "icmp4", "icmp6", "sctp4", "sctp6"} {
		for i, node := range l.Nodes()[:2] {
			s := Sighting{node, network[:len(network)-1], node.address(network), netip.AddrPortFrom(l.Outside().address(network), port)}
			if s.Protocol == "icmp" {
				s.To = netip.AddrPortFrom(s.To.Addr(), 0)
			}
			ask(t, l.Pod(i+1), network, l.Outside().address(network))
			want[s] = 1 // or more
		}
	}
	tunnel, err := l.Node().DialContext(t.Context(), "udp4", netip.AddrPortFrom(l.Nodes()[1].V4, TunnelPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	_, _ = tunnel.Write([]byte("a packet in a packet")) // its arrival is not awaited
	if err := l.SetLink(l.Nodes()[2], false); err != nil {
		t.Fatal(err)
	}
	ask(t, l.Pod(1), "udp4", l.Outside().V4)
	got := map[Sighting]int{}
	for s, packets := range wire.Seen() {
		if s.To.Port() == port || s.Protocol == "icmp" || s.To.Port() == TunnelPort {
			got[s] = min(packets, 1)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(Sighting{}, netip.Addr{})); diff != "" {
		t.Errorf("on the wire (-want +got):\n%s", diff)
	}
	to := netip.AddrPortFrom(l.Outside().V4, port)
	if sources := wire.Sources("tcp", to); len(sources) != 2 || sources[l.Node().V4] < 3 {
		t.Errorf("TCP to %s: %v", to, sources)
	}
	if err := wire.Close(); err != nil {
		t.Error(err)
	}
}
