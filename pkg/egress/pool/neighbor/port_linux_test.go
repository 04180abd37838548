package neighbor

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

var (
	free4, free6 = netip.MustParseAddr("192.0.2.99"), netip.MustParseAddr("2001:db8:0:2::99")
	mac          = net.HardwareAddr{2, 0, 0, 0, 0, 7}
)

// on calls f for the interface of a host on the nodes' network.
func on(t *testing.T, host *lab.Host, f func(link *net.Interface) error) {
	t.Helper()
	err := host.Do(func() error {
		links, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, link := range links {
			addresses, err := link.Addrs()
			if err != nil {
				return err
			}
			for _, a := range addresses {
				if strings.HasPrefix(a.String(), host.V4.String()+"/") {
					return f(&link)
				}
			}
		}
		t.Fatalf("%s has no interface with %s", host.Name, host.V4)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAsk_AnswersOfOtherHosts(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2, IPv6: true})
	asker, other := l.Nodes()[0], l.Nodes()[1]
	var want net.HardwareAddr
	on(t, other, func(link *net.Interface) error { want = link.HardwareAddr; return nil })
	on(t, asker, func(link *net.Interface) error {
		// Its own addresses are nobody else's.
		answers, _, err := Ask(t.Context(), link, []netip.Addr{other.V4, other.V6, free4, free6, asker.V4, asker.V6}, nil, nil)
		same := func(a, b net.HardwareAddr) bool { return bytes.Equal(a, b) }
		if wanted := map[netip.Addr]net.HardwareAddr{other.V4: want, other.V6: want}; !maps.EqualFunc(answers, wanted, same) {
			t.Errorf("answers %v, want %v", answers, wanted)
		}
		return err
	})
}

func TestAsk_OwnInterfacesDoNotAnswer(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2, IPv6: true})
	asker, other := l.Nodes()[0], l.Nodes()[1]
	var own net.HardwareAddr
	on(t, other, func(link *net.Interface) error { own = link.HardwareAddr; return nil })
	on(t, asker, func(link *net.Interface) error {
		answers, _, err := Ask(t.Context(), link, []netip.Addr{other.V4, other.V6}, []net.HardwareAddr{own}, nil)
		if len(answers) > 0 {
			t.Errorf("answers %v, want none: they are of this host", answers)
		}
		return err
	})
}

// TestAsk_FullQueue refuses the first question for each address, every one for two of them, and none for two others.
func TestAsk_FullQueue(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2, IPv6: true})
	asker, other := l.Nodes()[0], l.Nodes()[1]
	also4, also6 := netip.MustParseAddr("192.0.2.98"), netip.MustParseAddr("2001:db8:0:2::98")
	on(t, asker, func(link *net.Interface) error {
		for _, rule := range []string{
			"add table netdev test",
			"add chain netdev test egress { type filter hook egress device " + link.Name + " priority 0; }",
			"add rule netdev test egress ether type arp arp daddr ip " + free4.String() + " drop",
			"add rule netdev test egress ether type arp arp daddr ip " + also4.String() + " accept",
			"add rule netdev test egress ether type arp numgen inc mod 2 == 0 drop",
			"add rule netdev test egress icmpv6 type nd-neighbor-solicit ip6 daddr ff02::1:ff00:99 drop",
			"add rule netdev test egress icmpv6 type nd-neighbor-solicit ip6 daddr ff02::1:ff00:98 accept",
			"add rule netdev test egress icmpv6 type nd-neighbor-solicit numgen inc mod 2 == 0 drop",
		} {
			if _, err := asker.Run(t.Context(), "nft", rule); err != nil {
				return err
			}
		}
		if answers, _, err := Ask(t.Context(), link, []netip.Addr{other.V4, other.V6}, nil, nil); len(answers) != 2 || err != nil {
			t.Errorf("answers %v, %v; want both: they are asked for twice", answers, err)
		}
		answers, unasked, err := Ask(t.Context(), link, []netip.Addr{other.V4, other.V6, free4, free6, also4, also6}, nil, nil)
		slices.SortFunc(unasked, netip.Addr.Compare)
		if len(answers) != 2 || !slices.Equal(unasked, []netip.Addr{free4, free6}) || !errors.Is(err, unix.ENOBUFS) {
			t.Errorf("answers %v, unasked %v, %v; want two answers, and that %v and %v could not be asked for", answers, unasked, err, free4, free6)
		}
		return nil
	})
}

func TestAsk_LeavesNoTraceInNeighboursTables(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2})
	on(t, l.Nodes()[0], func(link *net.Interface) error {
		answers, _, err := Ask(t.Context(), link, []netip.Addr{l.Nodes()[1].V4}, nil, nil)
		if len(answers) != 1 {
			t.Errorf("answers %v, want one", answers)
		}
		return err
	})
	out, err := l.Nodes()[1].Run(t.Context(), "ip", "neigh", "show", l.Nodes()[0].V4.String())
	if err != nil || strings.Contains(out, "lladdr") {
		t.Errorf("the host that was asked has learned %q, %v", out, err)
	}
}

// TestAsk_AnswersAreForTheAskerAlone: a third host goes on sending to the one that it knows.
func TestAsk_AnswersAreForTheAskerAlone(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 3, IPv6: true})
	asker, other, third := l.Nodes()[0], l.Nodes()[1], l.Nodes()[2]
	var dev string
	on(t, third, func(link *net.Interface) error { dev = link.Name; return nil })
	for _, ip := range []netip.Addr{free4, free6} {
		if err := l.AddAddr(other, ip); err != nil {
			t.Fatal(err)
		}
		if _, err := third.Run(t.Context(), "ip", "neigh", "replace", ip.String(), "dev", dev, "lladdr", mac.String(), "nud", "stale"); err != nil {
			t.Fatal(err)
		}
		on(t, asker, func(link *net.Interface) error {
			answers, _, err := Ask(t.Context(), link, []netip.Addr{ip}, nil, nil)
			if len(answers) != 1 {
				t.Errorf("answers %v, want one", answers)
			}
			return err
		})
		out, err := third.Run(t.Context(), "ip", "neigh", "show", ip.String())
		if err != nil || !strings.Contains(out, mac.String()) {
			t.Errorf("the neighbour of %s is now %q, %v; want %s as before", ip, out, err, mac)
		}
	}
}

func TestAdvertise_ChangesNeighboursTables(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2, IPv6: true})
	from, to := l.Nodes()[0], l.Nodes()[1]
	var dev string
	on(t, to, func(link *net.Interface) error { dev = link.Name; return nil })
	var want string
	on(t, from, func(link *net.Interface) error { want = link.HardwareAddr.String(); return nil })
	for _, ip := range []netip.Addr{free4, free6} {
		if _, err := to.Run(t.Context(), "ip", "neigh", "replace", ip.String(), "dev", dev, "lladdr", mac.String(), "nud", "stale"); err != nil {
			t.Fatal(err)
		}
		on(t, from, func(link *net.Interface) error { return Advertise(link, []netip.Addr{ip}) })
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			out, err := to.Run(t.Context(), "ip", "neigh", "show", ip.String())
			if err == nil && strings.Contains(out, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the neighbour of %s is %q, %v; want %s", ip, out, err, want)
			}
		}
	}
}

// TestLinkLocal_IsThisHostsAlone: neither one that another host may have, too, nor one whose duplicate address detection is
// not over or has failed.
func TestLinkLocal_IsThisHostsAlone(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 1, IPv6: true})
	node := l.Nodes()[0]
	on(t, node, func(link *net.Interface) error {
		ip := func(arguments ...string) {
			t.Helper()
			if _, err := node.Run(t.Context(), "ip", append([]string{"addr"}, arguments...)...); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, want netip.Addr) {
			t.Helper()
			if got, err := linkLocal(link); got != want || err != nil {
				t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
			}
		}
		virtual := netip.MustParseAddr("fe80::1")
		own, err := linkLocal(link)
		if !own.IsLinkLocalUnicast() || err != nil {
			t.Fatalf("got %v, %v; want the address that the kernel has made", own, err)
		}
		ip("add", "fe80::1/64", "dev", link.Name, "nodad")
		expect("a virtual router's beside it", own)
		ip("del", own.String()+"/64", "dev", link.Name)
		expect("that alone", virtual)
		ip("change", "fe80::1/64", "dev", link.Name, "nodad", "preferred_lft", "0")
		expect("deprecated", netip.Addr{})
		ip("change", "fe80::1/64", "dev", link.Name, "nodad", "valid_lft", "1000", "preferred_lft", "1000")
		expect("one that ends by itself", netip.Addr{})
		ip("del", "fe80::1/64", "dev", link.Name)
		if _, err := node.Run(t.Context(), "sysctl", "-w", "net.ipv6.conf."+link.Name+".dad_transmits=100", "net.ipv6.conf."+link.Name+".accept_dad=1"); err != nil {
			t.Fatal(err)
		}
		ip("add", "fe80::2/64", "dev", link.Name)
		expect("one that is being looked for", netip.Addr{})
		return nil
	})
}

// TestLinkLocal_WhileAddressesChange: the kernel's list of them may be interrupted, and no address must follow from that.
func TestLinkLocal_WhileAddressesChange(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 1, IPv6: true})
	on(t, l.Nodes()[0], func(link *net.Interface) error {
		device := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link.Index}}
		address := func(i int) *netlink.Addr {
			return &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(fmt.Sprintf("2001:db8:9::%x", i)), Mask: net.CIDRMask(128, 128)}, Flags: unix.IFA_F_NODAD}
		}
		const many = 200 // a list in several parts
		for i := range many {
			if err := netlink.AddrAdd(device, address(i+1)); err != nil {
				return err
			}
		}
		want, err := linkLocal(link)
		if err != nil {
			return err
		}
		handle, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer handle.Close()
		done, interrupted := make(chan struct{}), 0
		var changing sync.WaitGroup
		changing.Go(func() {
			pace := time.Tick(time.Millisecond) // faster, and every list would be interrupted
			for i := many; ; i++ {
				select {
				case <-done:
					return
				case <-pace:
				}
				if err := errors.Join(handle.AddrAdd(device, address(i+1)), handle.AddrDel(device, address(i+1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
		defer changing.Wait()
		defer close(done)
		for deadline := time.Now().Add(10 * time.Second); interrupted < 20 && time.Now().Before(deadline); {
			if _, err := netlink.AddrList(device, netlink.FAMILY_V6); errors.Is(err, netlink.ErrDumpInterrupted) {
				interrupted++
			}
			if got, err := linkLocal(link); got != want || err != nil {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		}
		if interrupted == 0 {
			t.Error("no list was interrupted")
		}
		return nil
	})
}
