package pool

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

// TestKeep_RenewsWhatNobodyElseHas: a process that does not know the pool keeps the addresses of an earlier one, but for
// one that another host has, and one that the kernel has withdrawn while the process was stopped. What answers by the MAC of another
// interface of this node is no other host.
func TestKeep_RenewsWhatNobodyElseHas(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2, IPv6: true})
	own, taken := []netip.Addr{netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("2001:db8:0:2::100")}, netip.MustParseAddr("192.0.2.101")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Outside().TakeAddr(taken))
	must(l.Nodes()[1].TakeAddr(own[0]))
	var twin net.HardwareAddr
	must(l.Nodes()[1].Do(func() error {
		state, err := kernelAddresses{networks: poolNetworks}.read()
		must(err)
		link, _ := state.link(own[0])
		twin = link.HardwareAddr
		return nil
	}))
	must(l.Nodes()[0].Do(func() error {
		must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "twin", HardwareAddr: twin}, PeerName: "twins-peer"}))
		for _, name := range []string{"twin", "twins-peer"} {
			link, err := netlink.LinkByName(name)
			must(err)
			must(netlink.LinkSetUp(link))
		}
		k := kernelAddresses{networks: poolNetworks, ignored: "steer0"}
		state, err := k.read()
		must(err)
		for _, ip := range append(own, taken) {
			link, _ := state.link(ip)
			must(k.put(ip, link.Index))
			must(netlink.AddrReplace(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link.Index}}, expiring(ip)))
		}
		state, err = k.read()
		must(err)
		must(k.keep(context.WithoutCancel(t.Context()), klog.Background(), state))
		lifetimes := func() map[netip.Addr]int {
			result := map[netip.Addr]int{}
			list, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
			must(err)
			for _, a := range list {
				ip, _ := netip.AddrFromSlice(a.IP)
				result[ip.Unmap()] = a.ValidLft
			}
			return result
		}
		after := lifetimes()
		for _, ip := range own {
			if after[ip] < 20 {
				t.Errorf("the kernel keeps %s for %d s, want it renewed", ip, after[ip])
			}
			must(k.remove(ip, state.ours[ip]))
		}
		if _, there := after[taken]; there {
			t.Errorf("%s is still here although another host has it", taken)
		}
		state.at = state.at.Add(-rereadAfter)
		must(k.keep(context.WithoutCancel(t.Context()), klog.Background(), state))
		after = lifetimes()
		for _, ip := range own {
			if _, there := after[ip]; there {
				t.Errorf("%s is put here again by a process that was stopped", ip)
			}
		}
		return nil
	}))
}

// TestKeep_RemovesWhatIsAnsweredFor although another address cannot be asked for, which it does not renew.
func TestKeep_RemovesWhatIsAnsweredFor(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2})
	p, host, unasked, taken := testPool{T: t}, l.Nodes()[0], netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("192.0.2.101")
	link, _ := kernelHolds(t, host).link(taken)
	p.must(l.Outside().TakeAddr(taken))
	p.must(refuseQuestions(t, host, link.Name, unasked))
	p.must(host.Do(func() error {
		k := kernelAddresses{networks: poolNetworks}
		for _, ip := range []netip.Addr{unasked, taken} {
			p.must(netlink.AddrReplace(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link.Index}}, expiring(ip)))
		}
		state, err := k.read()
		p.must(err)
		if err := k.keep(context.WithoutCancel(t.Context()), klog.Background(), state); err == nil {
			t.Error("no error, although an address could not be asked for")
		}
		list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
		for _, a := range list {
			if ip, _ := netip.AddrFromSlice(a.IP); ip == taken || ip == unasked && a.ValidLft > 10 {
				t.Errorf("the kernel has %s for %d s", ip, a.ValidLft)
			}
		}
		return err
	}))
}

// expiring is an address of the pool that the kernel is about to withdraw.
func expiring(ip netip.Addr) *netlink.Addr {
	a := ours(ip)
	a.ValidLft = int((10 * time.Second).Seconds())
	return a
}
