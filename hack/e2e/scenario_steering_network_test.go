package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// TestSteering_StrictReversePathFilter: on all nodes, with a network plugin whose overlay has addresses.
func TestSteering_StrictReversePathFilter(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{families: families[:1]}, func(w *world) { // IPv6 has no such filter
		w.overlay()
		for _, dev := range []string{"all", "default", "eth0", "cni0", "overlay0"} {
			w.onAll("sysctl -q -w net.ipv4.conf." + dev + ".rp_filter=1")
		}
	})
	w.leaveByTheHolder()
	for _, m := range w.members[1:] {
		w.move(m)
		w.answered()
	}
	w.leaveByTheHolder()
	w.clean(50)
}

// overlay has packets between pods go through a tunnel of the network plugin's, as flannel makes it.
func (w *world) overlay() {
	w.Helper()
	inner := func(m *member) netip.Addr { return m.Host.PodCIDRs()[0].Addr() }
	mac := func(m *member) string {
		return net.HardwareAddr(append([]byte{0x0a, 0x59}, inner(m).AsSlice()...)).String()
	}
	for _, m := range w.members {
		w.run(m.Host, fmt.Sprintf("ip link add overlay0 type vxlan id 1 dstport 8472 nolearning local %s", m.Host.V4),
			fmt.Sprintf("ip link set overlay0 address %s up", mac(m)), fmt.Sprintf("ip addr add %s/32 dev overlay0", inner(m)))
		for _, peer := range w.members {
			if peer == m {
				continue
			}
			w.run(m.Host, fmt.Sprintf("ip neigh replace %s lladdr %s dev overlay0 nud permanent", inner(peer), mac(peer)),
				fmt.Sprintf("bridge fdb replace %s dev overlay0 dst %s self permanent", mac(peer), peer.Host.V4),
				fmt.Sprintf("ip route replace %s via %s dev overlay0 onlink", peer.Host.PodCIDRs()[0], inner(peer)))
		}
	}
}

// TestSteering_PodsWithTheUplinksMTU: the tunnel takes less than a pod's interface does, which the pod is told; a connection
// works also where it does not hear of it.
func TestSteering_PodsWithTheUplinksMTU(t *testing.T) {
	w := newSteeredWorld(t, settings{nodes: 2}, nil)
	near, far := w.pods[0], w.pods[1]
	w.scenario("a large packet is answered with the MTU of the tunnel", func() {
		for _, to := range w.outside() {
			w.eventually(func() error {
				mtu, err := pathMTU(w.Context(), far, to)
				if err == nil && mtu != 1450 {
					err = fmt.Errorf("the path to %s has an MTU of %d, want 1450", to, mtu)
				}
				return err
			})
		}
	})
	w.scenario("an upload of a pod that does not hear of it", func() {
		w.run(far, "iptables -w -A INPUT -p icmp --icmp-type fragmentation-needed -j DROP",
			"ip6tables -w -A INPUT -p ipv6-icmp --icmpv6-type packet-too-big -j DROP")
		for _, to := range w.outside() {
			local, steered := w.upload(near, to), w.upload(far, to)
			w.Logf("to %s: %.0f %% of the speed of a pod on the holder", to, 100*float64(local)/float64(steered))
		}
	})
	w.clean(8)
}

// pathMTU sends a datagram of 1500 bytes that must not be fragmented, and returns the largest packet that the pod's kernel
// sends to there from then on.
func pathMTU(ctx context.Context, pod *lab.Host, to netip.AddrPort) (mtu int, err error) {
	conn, err := pod.DialContext(ctx, network("udp", to), to.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	level, discover, option, headers := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_MTU, 28
	if to.Addr().Is6() {
		level, discover, option, headers = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, 48
	}
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	set := func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, discover, unix.IP_PMTUDISC_DO) }
	get := func(fd uintptr) { mtu, err = unix.GetsockoptInt(int(fd), level, option) }
	if err := errors.Join(raw.Control(set), err); err != nil {
		return 0, err
	}
	_, _ = conn.Write(make([]byte, 1500-headers)) // too large by then, perhaps
	return mtu, errors.Join(raw.Control(get), err)
}

// upload has a pod send to a server outside, and returns how long that took.
func (w *world) upload(pod *lab.Host, to netip.AddrPort) time.Duration {
	w.Helper()
	const size = 32 << 20
	listener, err := w.Outside().Listen(w.Context(), network("tcp", to), fmt.Sprintf(":%d", 9000))
	w.must(err)
	defer func() { _ = listener.Close() }()
	received := make(chan int64, 1)
	go func() {
		var n int64
		if conn, err := listener.Accept(); err == nil {
			n, _ = io.Copy(io.Discard, conn) // how much it was tells
			_ = conn.Close()
		}
		received <- n
	}()
	began := time.Now()
	conn, err := pod.DialContext(w.Context(), network("tcp", to), netip.AddrPortFrom(to.Addr(), 9000).String())
	w.must(err)
	w.must(conn.SetDeadline(began.Add(soon)))
	_, err = conn.Write(make([]byte, size))
	_ = conn.Close()
	if n := <-received; err != nil || n != size {
		w.Fatalf("%s to %s: %d of %d bytes have arrived, %v", pod.Name, to, n, size, err)
	}
	return time.Since(began)
}
