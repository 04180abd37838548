package steering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

func TestAdjacent_Places(t *testing.T) {
	onCluster(t, func(c *cluster) {
		here, there := c.nodes[0], c.nodes[1]
		inside := c.addr(c.lab.Pod(1)) // on cni0, without a router
		elsewhere := c.of("198.51.100.1", "2001:db8:113::99")
		for what, test := range map[string]struct {
			self, node netip.Addr
			words      string
		}{
			"on the same network":     {here.ip, there.ip, ""},
			"behind a router":         {here.ip, elsewhere, "is behind the router"},
			"on another network":      {here.ip, inside, "is not on the network of eth0"},
			"no address of this node": {there.ip, here.ip, "no interface has the node's address"},
		} {
			here.inside(func() error {
				if err := Adjacent(test.self, test.node); (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
					t.Errorf("%s: got %v, want an error with %q", what, err, test.words)
				}
				return nil
			})
		}
		if c.family == kernel.IPv4 {
			c.run(here.host, "ip route add %s via inet6 %s dev eth0", there.ip, there.host.V6)
			here.inside(func() error {
				if err := Adjacent(here.ip, there.ip); err == nil || !strings.Contains(err.Error(), there.host.V6.String()) {
					t.Errorf("behind a router of the other IP family: %v", err)
				}
				return nil
			})
		}
	})
}

// TestAdjacent_WhileAddressesChange: a node does not cease to be the next hop because a list was interrupted.
func TestAdjacent_WhileAddressesChange(t *testing.T) {
	onCluster(t, func(c *cluster) {
		here, there := c.nodes[0], c.nodes[1]
		const changes = 500
		ended := make(chan error, 1)
		go func() {
			ended <- here.host.Do(func() error {
				lo, pace := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: 1}}, time.Tick(2*time.Millisecond)
				for i := range changes { // they become many, so a list comes in several parts
					ip := netlink.NewIPNet(c.of("198.18.0.0", "2001:db8:18::").AsSlice())
					ip.IP[len(ip.IP)-2], ip.IP[len(ip.IP)-1] = byte(i>>8), byte(i)
					if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: ip}); err != nil {
						return err
					}
					<-pace // without it, every list would be interrupted
				}
				return nil
			})
		}()
		here.inside(func() error {
			for {
				if err := Adjacent(here.ip, there.ip); err != nil {
					t.Error(err)
				}
				select {
				case err := <-ended:
					return err
				default:
				}
			}
		})
	})
}

// TestWatchNeighbours_Follow: a node is found that was not known, and one that gets another hardware address is noticed.
func TestWatchNeighbours_Follow(t *testing.T) {
	onCluster(t, func(c *cluster) {
		here, there := c.nodes[0], c.nodes[1]
		ctx, cancel := context.WithCancel(t.Context())
		told, again, ended := make(chan kernel.HardwareAddr, 100), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- here.host.Do(func() error {
				wanted := func(host netip.Addr) bool { return host == there.ip }
				WatchNeighbours(ctx, wanted, again, func(_ netip.Addr, at kernel.HardwareAddr) { told <- at })
				return nil
			})
		}()
		tells := func(want kernel.HardwareAddr) {
			t.Helper()
			deadline := time.After(lab.Stretch(5 * time.Second))
			for {
				select {
				case at := <-told:
					if at == want {
						return
					}
				case <-deadline:
					t.Fatalf("%s is not told to be at %s", there.ip, want)
				}
			}
		}
		c.run(here.host, "ip neigh flush dev eth0")
		here.inside(func() error { return FindNeighbour(here.ip, there.ip) })
		tells(there.uplink())
		const another = "02:00:00:00:00:77"
		c.run(there.host, "ip link set eth0 address %s", another)
		c.run(here.host, "ip neigh del %s dev eth0", there.ip)
		here.inside(func() error { return FindNeighbour(here.ip, there.ip) })
		tells(there.uplink())
		again <- struct{}{}
		tells(there.uplink())
		// By the interface of pods, a pod claims to be the node.
		c.run(here.host, "ip neigh replace %s lladdr 02:00:00:00:00:66 dev cni0", there.ip)
		again <- struct{}{}
		again <- struct{}{} // the first time is over
		for {
			at := <-told
			if at != there.uplink() {
				t.Errorf("%s is told to be at %s, where pods are", there.ip, at)
			}
			if len(told) == 0 {
				break
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestFollowNeighbours_EndsWhileTheKernelTells: no goroutine is left that waits to tell the rest.
func TestFollowNeighbours_EndsWhileTheKernelTells(t *testing.T) {
	onCluster(t, func(c *cluster) {
		here := c.nodes[0]
		for i := range 50 {
			c.run(here.host, "ip neigh replace %s lladdr 02:00:00:00:01:%02x dev eth0", c.of(fmt.Sprintf("192.0.2.%d", 100+i), fmt.Sprintf("2001:db8::7:%x", i)), i)
		}
		here.inside(func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := followNeighbours(ctx, nil, func(netlink.Neigh) { cancel() }); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %w, want that the context has ended", err)
			}
			return nil
		})
		stacks := make([]byte, 1<<20)
		for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
			all := string(stacks[:runtime.Stack(stacks, true)])
			if !strings.Contains(all, "neighSubscribeAt") {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("a goroutine of the subscription is left:\n%s", all)
			}
		}
	})
}
