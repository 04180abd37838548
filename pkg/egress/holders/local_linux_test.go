package holders

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

// watched is a node whose addresses are watched.
type watched struct {
	*testing.T
	host, outside *lab.Host
	// addresses are those that were told last, the node's own left out.
	addresses atomic.Pointer[[]netip.Addr]
	// busy, while it is locked, keeps the watch from going on when it has told something.
	busy sync.Mutex
	log  chan string
}

// watchNode watches a new node's addresses until the test ends.
func watchNode(t *testing.T) *watched {
	t.Helper()
	l := lab.ForTest(t, lab.Config{IPv6: true})
	w := &watched{T: t, host: l.Node(), outside: l.Outside(), log: make(chan string, 1000)}
	own := []netip.Addr{w.host.V4, w.host.V6}
	for _, cidr := range w.host.PodCIDRs() {
		own = append(own, cidr.Addr().Next())
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), funcr.New(func(_, args string) { w.log <- args }, funcr.Options{Verbosity: 2})))
	ended := make(chan error, 1)
	go func() {
		ended <- w.host.Do(func() error {
			WatchAddresses(ctx, "steer0", func(event Event) {
				addresses := slices.DeleteFunc(event.(OwnAddresses).Addresses, func(ip netip.Addr) bool { return slices.Contains(own, ip) })
				w.addresses.Store(&addresses)
				w.busy.Lock()
				defer w.busy.Unlock()
			})
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.has("at the start")
	return w
}

// ip runs ip(8) with these arguments, on the node.
func (w *watched) ip(commands ...string) {
	w.Helper()
	for _, command := range commands {
		w.run(w.host, "ip "+command)
	}
}

func (w *watched) run(on *lab.Host, command string) (output string) {
	w.Helper()
	args := strings.Fields(command)
	output, err := on.Run(w.Context(), args[0], args[1:]...)
	if err != nil {
		w.Fatal(err)
	}
	return output
}

// has waits until exactly these addresses were told last.
func (w *watched) has(when string, want ...string) {
	w.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := w.addresses.Load()
		diff := "nothing was told"
		if got != nil {
			diff = cmp.Diff(addrs(want...), *got, compare)
		}
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s (-want +got):\n%s", when, diff)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestWatchAddresses_WhichCount(t *testing.T) {
	w := watchNode(t)
	w.ip("link add uplink type veth peer name peer", "link set uplink up", "link set peer up", "addr add 203.0.113.10/32 dev uplink")
	w.has("an address comes", "203.0.113.10")
	w.ip("addr add 203.0.113.11/32 dev lo", "addr add 203.0.113.12/24 dev uplink")
	w.has("one comes to lo, which does not count, and one with a network", "203.0.113.10", "203.0.113.12")
	w.ip("link add kube-ipvs0 type veth peer name ipvs-peer", "link set kube-ipvs0 up arp off", "addr add 203.0.113.13/32 dev kube-ipvs0",
		"link add steer0 type veth peer name steer0-peer", "link set steer0 up", "addr add 203.0.113.14/32 dev steer0",
		"addr add 169.254.1.1/32 dev uplink", "addr add 203.0.113.15 peer 203.0.113.99 dev uplink")
	w.has("they come to a device without ARP, as that of IPVS, and to the steering device; a link-local one; one with a peer", "203.0.113.10", "203.0.113.12", "203.0.113.15")
	w.ip("link set kube-ipvs0 arp on")
	w.has("that device has ARP", "203.0.113.10", "203.0.113.12", "203.0.113.13", "203.0.113.15")
	w.ip("link set kube-ipvs0 arp off", "link set steer0 down", "link set steer0 name other", "link set other up")
	w.has("without ARP again; another device is the steering device no more", "203.0.113.10", "203.0.113.12", "203.0.113.14", "203.0.113.15")
	w.ip("link set uplink down")
	w.has("an interface is set down", "203.0.113.14")
	w.ip("link set uplink up", "link set peer down")
	w.has("it is set up again, without a carrier", "203.0.113.10", "203.0.113.12", "203.0.113.14", "203.0.113.15")
	w.ip("addr del 203.0.113.12/24 dev uplink", "addr add 203.0.113.10/32 dev other")
	w.has("an address goes; another one is on two interfaces", "203.0.113.10", "203.0.113.14", "203.0.113.15")
	w.ip("link del uplink")
	w.has("an interface is deleted", "203.0.113.10", "203.0.113.14")
}

// TestWatchAddresses_PortLeavesABridge: the kernel tells of that like of the end of an interface.
func TestWatchAddresses_PortLeavesABridge(t *testing.T) {
	w := watchNode(t)
	w.ip("link add name br0 type bridge", "link set br0 up", "link add port type veth peer name peer", "link set port master br0 up", "link set peer up",
		"addr add 203.0.113.10/32 dev port")
	w.has("a port has an address", "203.0.113.10")
	w.ip("link set port nomaster", "addr add 203.0.113.11/32 dev br0")
	w.has("it is no port any more", "203.0.113.10", "203.0.113.11")
}

func TestWatchAddresses_DuplicateAddressDetection(t *testing.T) {
	w := watchNode(t)
	w.ip("link add uplink type veth peer name peer", "link set peer netns "+w.outside.Name, "link set uplink up")
	w.run(w.host, "sysctl -q -w net.ipv6.conf.uplink.accept_dad=1")
	// Without a carrier detection does not begin.
	w.ip("addr add 2001:db8:113::10/128 dev uplink", "addr add 2001:db8:113::11/128 dev uplink nodad", "addr add 203.0.113.10/32 dev uplink")
	w.has("before detection", "203.0.113.10", "2001:db8:113::11")
	w.run(w.outside, "ip link set peer up")
	w.has("it is over", "203.0.113.10", "2001:db8:113::10", "2001:db8:113::11")
	w.run(w.outside, "ip addr add 2001:db8:113::12/128 dev peer nodad")
	w.ip("addr add 2001:db8:113::12/128 dev uplink")
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(w.run(w.host, "ip -6 addr show dev uplink dadfailed"), "2001:db8:113::12") {
		if time.Now().After(deadline) {
			t.Fatal("the kernel does not find that another host has the address")
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.ip("addr del 203.0.113.10/32 dev uplink") // told after that
	w.has("another host has it", "2001:db8:113::10", "2001:db8:113::11")
}

// TestWatchAddresses_TooManyChanges: what comes faster than it is read is not lost.
func TestWatchAddresses_TooManyChanges(t *testing.T) {
	w := watchNode(t)
	w.ip("link add uplink type veth peer name peer", "link set uplink up", "addr add 203.0.113.10/32 dev uplink")
	w.has("before", "203.0.113.10")
	w.busy.Lock()
	var batch strings.Builder
	var want []string
	for i := range 4000 {
		fmt.Fprintf(&batch, "addr add 198.18.%d.%d/32 dev uplink\n", i/250, 1+i%250)
		want = append(want, fmt.Sprintf("198.18.%d.%d", i/250, 1+i%250))
	}
	batch.WriteString("addr del 203.0.113.10/32 dev uplink\n")
	file := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(file, []byte(batch.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ip("-batch " + file)
	w.busy.Unlock()
	w.has("afterwards", want...)
	select {
	case line := <-w.log:
		if !strings.Contains(line, "missed") {
			t.Errorf("logged %q, want that changes were missed: otherwise this shows nothing", line)
		}
	case <-time.After(lab.Stretch(10 * time.Second)):
		t.Error("nothing was missed: this shows nothing")
	}
}
