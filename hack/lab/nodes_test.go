//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// addresses is what a lab gives its hosts.
type addresses struct {
	V4, V6 netip.Addr
	Node   string
	CIDRs  []string
}

func addressesOf(hosts ...*Host) map[string]addresses {
	all := map[string]addresses{}
	for _, h := range hosts {
		a := addresses{V4: h.V4, V6: h.V6}
		if h.Node != nil {
			a.Node = h.Node.Name
		} else if h.lab.control != h && h.lab.outside != h {
			for _, cidr := range h.PodCIDRs() {
				a.CIDRs = append(a.CIDRs, cidr.String())
			}
		}
		all[h.Name] = a
	}
	return all
}

func TestNodes_Addresses(t *testing.T) {
	l := ForTest(t, Config{Prefix: "labaddr", Nodes: 3, Pods: 4, IPv6: true, Control: true})
	addr := netip.MustParseAddr
	want := map[string]addresses{
		"labaddr-outside": {V4: addr("192.0.2.1"), V6: addr("2001:db8:0:2::1")},
		"labaddr-control": {V4: addr("192.0.2.254"), V6: addr("2001:db8:0:2::254")},
		"labaddr-node": {
			V4: addr("192.0.2.2"), V6: addr("2001:db8:0:2::2"), CIDRs: []string{"10.128.0.0/24", "fd00:10:128::/64"},
		},
		"labaddr-node-2": {
			V4: addr("192.0.2.3"), V6: addr("2001:db8:0:2::3"), CIDRs: []string{"10.128.1.0/24", "fd00:10:128:1::/64"},
		},
		"labaddr-node-3": {
			V4: addr("192.0.2.4"), V6: addr("2001:db8:0:2::4"), CIDRs: []string{"10.128.2.0/24", "fd00:10:128:2::/64"},
		},
		"labaddr-pod-1": {V4: addr("10.128.0.11"), V6: addr("fd00:10:128::11"), Node: "labaddr-node"},
		"labaddr-pod-2": {V4: addr("10.128.1.11"), V6: addr("fd00:10:128:1::11"), Node: "labaddr-node-2"},
		"labaddr-pod-3": {V4: addr("10.128.2.11"), V6: addr("fd00:10:128:2::11"), Node: "labaddr-node-3"},
		"labaddr-pod-4": {V4: addr("10.128.0.12"), V6: addr("fd00:10:128::12"), Node: "labaddr-node"},
	}
	if diff := cmp.Diff(want, addressesOf(l.hosts()...), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if l.Node() != l.Nodes()[0] {
		t.Error("Node is not the first of Nodes")
	}
}

// threeNodes is a lab with a pod on each of three nodes, and servers outside, in
// the control host and in every pod.
func threeNodes(t *testing.T, cfg Config) *Lab {
	t.Helper()
	cfg.Nodes, cfg.Pods, cfg.Control, cfg.IPv6 = 3, 3, true, true
	l := ForTest(t, cfg)
	for _, h := range l.hosts() {
		serveAll(t, h)
	}
	return l
}

func TestNodes_WhoPodsAreSeenAs(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := threeNodes(t, Config{Backend: b, Masquerade: true})
		for _, n := range networks {
			for i := 1; i <= 3; i++ {
				pod := l.Pod(i)
				for j := 1; j <= 3; j++ {
					if got, want := ask(t, pod, n.name, l.Pod(j).address(n.name)), pod.address(n.name); got != want {
						t.Errorf("%s from pod-%d to pod-%d: seen as %s, want the pod, %s", n.name, i, j, got, want)
					}
				}
				for _, to := range []*Host{l.Outside(), l.Control()} {
					if got, want := ask(t, pod, n.name, to.address(n.name)), pod.Node.address(n.name); got != want {
						t.Errorf("%s from pod-%d to %s: seen as %s, want its node, %s", n.name, i, to.Name, got, want)
					}
				}
				for _, from := range append(l.Nodes(), l.Control(), l.Outside()) {
					want := from.address(n.name)
					if from == pod.Node { // the address that it has on cni0
						want = gateway(from, n.name)
					}
					if got := ask(t, from, n.name, pod.address(n.name)); got != want {
						t.Errorf("%s from %s to pod-%d: seen as %s, want %s", n.name, from.Name, i, got, want)
					}
				}
			}
		}
	})
}

func gateway(node *Host, network string) netip.Addr {
	v4, v6 := podNet(node.index).host(gatewayNumber)
	if isV6(network) {
		return v6.Addr()
	}
	return v4.Addr()
}

// Every node gives the same egress IP, which is routed to one of them: an answer
// that came in by that one would be lost to the pods of the others.
func TestNodes_AnswersReturnToTheNodeOfTheFlow(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := threeNodes(t, Config{Backend: b, Masquerade: true})
		for _, n := range networks {
			egress := egressV4
			if isV6(n.name) {
				egress = egressV6
			}
			for _, node := range l.Nodes() {
				rule(t, node, n.name, "-I", "POSTROUTING", "-s", l.Pod(node.index+1).address(n.name).String(),
					"-o", "eth0", "-p", n.protocol, "-j", "SNAT", "--to-source", egress.String())
			}
			for _, to := range l.Nodes() {
				if err := l.RouteVia(netip.PrefixFrom(egress, egress.BitLen()), to); err != nil {
					t.Fatal(err)
				}
				for i := 1; i <= 3; i++ {
					if got := ask(t, l.Pod(i), n.name, l.Outside().address(n.name)); got != egress {
						t.Errorf("%s from pod-%d, routed to %s: seen as %s, want %s", n.name, i, to.Name, got, egress)
					}
				}
			}
		}
	})
}

// Nodes that give the same egress IP choose ports without knowing of each other.
func TestNodes_SamePortOfOneAddress(t *testing.T) {
	l := threeNodes(t, Config{})
	for _, n := range networks[:4] { // those of flows that are kept
		seenAs := netip.AddrPortFrom(egressV4, 5000)
		if isV6(n.name) {
			seenAs = netip.AddrPortFrom(egressV6, 5000)
		}
		var flows []*Flow
		for i := 1; i <= 3; i++ {
			rule(t, l.Pod(i).Node, n.name, "-I", "POSTROUTING", "-s", l.Pod(i).address(n.name).String(),
				"-o", "eth0", "-p", n.protocol, "-j", "SNAT", "--to-source", seenAs.String())
			flow, err := l.Pod(i).Dial(t.Context(), n.name, netip.AddrPortFrom(l.Outside().address(n.name), port), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = flow.Close() }()
			flows = append(flows, flow)
		}
		for range 2 {
			for i, flow := range flows {
				if got, err := flow.Ask(t.Context()); err != nil || got != seenAs.Addr() {
					t.Errorf("%s from pod-%d: seen as %s, want %s: %v", n.name, i+1, got, seenAs.Addr(), err)
				}
			}
		}
	}
}

func TestRouteVia_MovesWhatComesIn(t *testing.T) {
	l := threeNodes(t, Config{Masquerade: true})
	for _, n := range networks {
		external, want := egressV4, l.Outside().address(n.name)
		if isV6(n.name) {
			external = egressV6
		}
		for _, node := range l.Nodes() {
			// Seen as the node by which it came in, but for the pod's own.
			rule(t, node, n.name, "-A", "PREROUTING", "-d", external.String(), "-p", n.protocol,
				"-j", "DNAT", "--to-destination", bracketed(l.Pod(1).address(n.name)))
			if node != l.Node() {
				rule(t, node, n.name, "-A", "POSTROUTING", "-d", l.Pod(1).address(n.name).String(), "-p", n.protocol, "-j", "MASQUERADE")
				want = node.address(n.name)
			}
			if err := l.RouteVia(netip.PrefixFrom(external, external.BitLen()), node); err != nil {
				t.Fatal(err)
			}
			if got := ask(t, l.Outside(), n.name, external); got != want {
				t.Errorf("%s to %s via %s: seen as %s, want %s", n.name, external, node.Name, got, want)
			}
		}
	}
	for name, err := range map[string]error{
		"a pod":           l.RouteVia(netip.PrefixFrom(egressV4, 32), l.Pod(1)),
		"no host":         l.RouteVia(netip.PrefixFrom(egressV4, 32), nil),
		"the zero prefix": l.RouteVia(netip.Prefix{}, l.Node()),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func bracketed(addr netip.Addr) string {
	if addr.Is6() {
		return "[" + addr.String() + "]"
	}
	return addr.String()
}

func TestAddPodOn_NodesAlone(t *testing.T) {
	l := threeNodes(t, Config{})
	if _, err := l.AddPodOn(l.Outside()); err == nil {
		t.Error("a pod on the outside host")
	}
}

func TestLab_OneIPFamily(t *testing.T) {
	for name, cfg := range map[string]Config{
		"IPv4": {Nodes: 2, Pods: 2, Control: true, Masquerade: true},
		"IPv6": {Nodes: 2, Pods: 2, Control: true, Masquerade: true, IPv6Only: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := ForTest(t, cfg)
			var has, lacks string
			for _, n := range networks {
				if isV6(n.name) != cfg.IPv6Only {
					continue
				}
				has = n.name
				for _, h := range []*Host{l.Outside(), l.Pod(1)} {
					if _, err := h.ServeWhoami(n.name, port); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := ask(t, l.Pod(2), n.name, l.Outside().address(n.name)), l.Nodes()[1].address(n.name); got != want {
					t.Errorf("%s to outside: seen as %s, want %s", n.name, got, want)
				}
				if got, want := ask(t, l.Pod(2), n.name, l.Pod(1).address(n.name)), l.Pod(2).address(n.name); got != want {
					t.Errorf("%s to pod: seen as %s, want %s", n.name, got, want)
				}
			}
			lacks = "tcp6"
			family := "-6"
			if isV6(has) {
				lacks, family = "tcp4", "-4"
			}
			for _, h := range l.hosts() {
				out, err := h.Run(t.Context(), "ip", family, "-brief", "address", "show", "up", "scope", "global")
				if err != nil || out != "" || h.address(lacks).IsValid() || !h.address(has).IsValid() {
					t.Errorf("%s has addresses of the wrong family: %s%v", h.Name, out, err)
				}
			}
			egress := map[bool]netip.Addr{false: egressV6, true: egressV4}[cfg.IPv6Only]
			if err := l.RouteVia(netip.PrefixFrom(egress, egress.BitLen()), l.Node()); err == nil {
				t.Error("a route of the family that is not there")
			}
		})
	}
}

func TestSetLink_CutsOffAndConnects(t *testing.T) {
	l := threeNodes(t, Config{Masquerade: true})
	other := l.Pod(3)
	for _, cut := range []*Host{l.Nodes()[1], l.Pod(2), l.Control()} {
		flow, err := other.Dial(t.Context(), "tcp6", netip.AddrPortFrom(cut.V6, port), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SetLink(cut, false); err != nil {
			t.Fatal(err)
		}
		each(t, len(networks), len(networks), func(i int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			network := networks[i].name
			if _, err := other.Ask(ctx, network, netip.AddrPortFrom(cut.address(network), port), 0); err == nil {
				return fmt.Errorf("%s: %s answers, cut off", network, cut.Name)
			}
			return nil
		})
		if err := l.SetLink(cut, true); err != nil {
			t.Fatal(err)
		}
		for _, n := range networks {
			ask(t, other, n.name, cut.address(n.name))
		}
		if _, err := flow.Ask(t.Context()); err != nil {
			t.Errorf("a flow to %s from before: %v", cut.Name, err)
		}
	}
	if err := l.SetLink(l.Outside(), false); err == nil {
		t.Error("cut the outside host off from itself")
	}
}

// TestLab_Apart: a pod reaches pods of its own node, and none of another.
func TestLab_Apart(t *testing.T) {
	l := ForTest(t, Config{Nodes: 2, Pods: 4, IPv6: true, Apart: true, Masquerade: true})
	for i, reached := range map[int]bool{2: false, 3: true} {
		for _, network := range []string{"tcp4", "tcp6"} {
			_, err := l.Pod(i).ServeWhoami(network, 8080)
			if err != nil {
				t.Fatal(err)
			}
			patience := map[bool]time.Duration{false: time.Second, true: 10 * time.Second}[reached]
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, err = l.Pod(1).Ask(ctx, network, netip.AddrPortFrom(l.Pod(i).address(network), 8080), 0)
			cancel()
			if (err == nil) != reached {
				t.Errorf("%s to pod %d: %v, want it reached: %v", network, i, err, reached)
			}
		}
	}
}

// each calls do for 0 to n-1, parallel at a time.
func each(t *testing.T, parallel, n int, do func(int) error) {
	t.Helper()
	errs := make(chan error)
	for worker := range parallel {
		go func() {
			var err error
			for i := worker; i < n && err == nil; i += parallel {
				err = do(i)
			}
			errs <- err
		}()
	}
	for range parallel {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddPodOn_ManyAtOnce(t *testing.T) {
	const count = 30
	l := ForTest(t, Config{Nodes: 3, IPv6: true})
	var pods [count]*Host
	for range 2 {
		each(t, 6, count, func(i int) (err error) {
			pods[i], err = l.AddPodOn(l.Nodes()[i%3])
			return err
		})
		seen := map[string]bool{}
		for _, pod := range pods {
			seen[pod.Name], seen[pod.V4.String()], seen[pod.V6.String()] = true, true, true
		}
		if len(seen) != 3*count || l.Pod(count) == nil || l.Pod(count+1) != nil {
			t.Errorf("%d pods have only %d names and addresses", count, len(seen))
		}
		serveAll(t, pods[count-1])
		each(t, 6, count, func(i int) error {
			for _, network := range []string{"udp4", "udp6"} {
				got, err := pods[i].Ask(t.Context(), network, netip.AddrPortFrom(pods[count-1].address(network), port), 0)
				if err == nil && got != pods[i].address(network) {
					err = fmt.Errorf("%s is seen as %s, want %s", pods[i].Name, got, pods[i].address(network))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		each(t, 6, count, func(i int) error { return l.RemovePod(pods[i]) })
		if l.Pod(1) != nil {
			t.Error("a removed pod is still there")
		}
	}
	if err := l.RemovePod(pods[0]); err == nil {
		t.Error("removed a pod twice")
	}
}

func TestXtablesLock_IsOfOneNode(t *testing.T) {
	l := ForTest(t, Config{Nodes: 2, Backend: Legacy})
	lock, err := os.Create(l.Nodes()[1].XtablesLock())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if out, err := l.Nodes()[0].Run(t.Context(), "iptables", "-w", "1", "-t", "nat", "-N", "TEST"); err != nil {
		t.Errorf("the lock of another node: %v: %s", err, out)
	}
	if _, err := l.Nodes()[1].Run(t.Context(), "iptables", "-w", "1", "-t", "nat", "-N", "TEST"); err == nil {
		t.Error("iptables did not mind the lock of its node")
	}
}
