package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	blocksOf64 = `egress-snat-port-blocks: ["64"]`
	// busyPort is that of a server to which pods have as many connections as they can.
	busyPort = 8443
	// before is how many connections a pod has when it is to get a second block, both how many when it has one: 128 are the most.
	before, both = 56, 120
)

// TestPortBlocks_SecondBlock: a pod with most of its block in use towards one destination gets a second one, uses both, and no other pod
// has either. Both name it, also after its node's process was killed and after its end. When both are in use there is an Event. The first
// pod is on another node than its egress IPs, the second one on the same.
func TestPortBlocks_SecondBlock(t *testing.T) {
	belongsTo(t, usual)
	w := newBlocksWorld(t, blocksOf64)
	for i, to := range at(w.Outside(), busyPort) {
		r := w.runtimes[1-i]
		server, err := w.Outside().ServeWhoami(network("tcp", to), busyPort)
		w.must(err)
		b := &busyPod{blocksWorld: w, runtime: r, to: to, server: server}
		w.scenario(fmt.Sprintf("towards %s from %s", to.Addr(), r.on.Name), b.run)
	}
}

// busyPod is a pod with connections to a server.
type busyPod struct {
	*blocksWorld
	*sandbox
	runtime       *cniRuntime
	to            netip.AddrPort
	server        *lab.Server
	conns         []net.Conn
	first, second kernel.Ports
}

func (b *busyPod) run() {
	w, r := b.blocksWorld, b.runtime
	b.sandbox = w.runs(r, fmt.Sprintf("busy%d", b.to.Addr().BitLen()), 1)[0]
	w.Cleanup(b.close)
	w.usesBlock(b.sandbox, 1) // so the node with the egress IPs knows it
	b.first = w.block(b.sandbox)
	b.connect(before)
	b.getsSecond()
	b.connect(both - before)
	b.leavesFromItsOwn()
	b.isNamed()
	r.on.Kill()
	r.startWith(blocksOf64)
	b.getsSecond()
	b.connect(2)
	b.live()
	for i, r := range w.runtimes {
		w.runs(r, fmt.Sprintf("beside%d-%d", b.to.Addr().BitLen(), i), 3)
	}
	w.apart()
	w.eventually(func() error { return w.hasEvent("EgressPortBlockFull", "Pod/"+b.pod.Name, "two blocks already") })
	b.isNamed()
	b.endsWithBoth()
}

func (b *busyPod) close() {
	for _, c := range b.conns {
		_ = c.Close()
	}
}

// connect opens so many connections that stay.
func (b *busyPod) connect(n int) {
	for range n {
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		c, err := b.DialContext(ctx, "tcp", b.to.String())
		cancel()
		if err != nil {
			b.blocksWorld.Fatalf("connection %d of %s: %v", len(b.conns), b.pod.Name, err)
		}
		b.conns = append(b.conns, c)
	}
	b.live()
}

// live fails unless the far side answers on each connection, and sees an egress IP.
func (b *busyPod) live() {
	want := identity(b.Host, b.to, b.egressIPs)
	for i, c := range b.conns {
		b.must(c.SetDeadline(time.Now().Add(20 * time.Second)))
		_, err := fmt.Fprintf(c, "#%d\n", i)
		lines := bufio.NewReader(c)
		line := ""
		for err == nil && !strings.HasSuffix(strings.TrimSpace(line), fmt.Sprintf("#%d", i)) {
			line, err = lines.ReadString('\n')
		}
		if err != nil || !strings.HasPrefix(line, netip.AddrPortFrom(want, 0).Addr().String()) && !strings.HasPrefix(line, "["+want.String()+"]") {
			b.blocksWorld.Fatalf("connection %d of %s: seen as %q, want %s: %v", i, b.pod.Name, line, want, err)
		}
	}
}

// getsSecond waits until the pod has a second block, and uses it.
func (b *busyPod) getsSecond() {
	b.eventually(func() error {
		blocks, err := b.said(b.runtime.on)
		if err != nil {
			return err
		}
		var second kernel.Ports
		for _, a := range blocks {
			if a.Pod.Name == b.pod.Name && a.Second {
				second = a.Ports
			}
		}
		if second == (kernel.Ports{}) || b.second != (kernel.Ports{}) && second != b.second {
			return fmt.Errorf("%s has %s besides, and had %s: %v", b.pod.Name, second, b.second, blocks)
		}
		if wide := portblocks.Widened(b.first, second); b.localPorts(b.sandbox) != wide {
			return fmt.Errorf("%s uses %s, want %s", b.pod.Name, b.localPorts(b.sandbox), wide)
		}
		b.second = second
		return nil
	})
	b.Logf("%s has %s, and %s besides", b.pod.Name, b.first, b.second)
}

// said is what a node says of its pods.
func (w *blocksWorld) said(m *member) ([]portblocks.Assignment, error) {
	snapshot, err := status.NewClient(m.Socket()).Snapshot(w.Context())
	return snapshot.PortBlocks, err
}

// leavesFromItsOwn fails unless the far side has seen the pod come from its two blocks alone, and from the same ports as inside.
func (b *busyPod) leavesFromItsOwn() {
	seen, inSecond := map[uint16]bool{}, 0
	for _, peer := range b.server.Seen() {
		if seen[peer.Port()] = true; !b.first.Contains(peer.Port()) && !b.second.Contains(peer.Port()) {
			b.Errorf("%s was seen as %s, which is not of %s nor %s", b.pod.Name, peer, b.first, b.second)
		}
		if b.second.Contains(peer.Port()) {
			inSecond++
		}
	}
	for _, c := range b.conns {
		if !seen[portOf(c)] {
			b.Errorf("%s uses the port %d, and is not seen with it", b.pod.Name, portOf(c))
		}
	}
	if least := both - 64; inSecond < least || len(seen) != both {
		b.Errorf("%s was seen with %d ports, %d of its second block; want %d, and %d at least", b.pod.Name, len(seen), inSecond, both, least)
	}
}

// isNamed fails unless ports of both blocks name the pod, on its node, and on the node with the egress IPs.
func (b *busyPod) isNamed() {
	for _, ports := range []kernel.Ports{b.first, b.second} {
		port := at4(b.egressIPs, ports.First+3)
		b.says(b.runtime, b.pod.Name, port)
		b.says(b.runtimes[0], b.ips[0].String(), port)
	}
}

// apart fails if two pods have a port in common.
func (w *blocksWorld) apart() {
	w.Helper()
	var all []portblocks.Assignment
	for _, m := range w.members {
		blocks, err := w.said(m)
		w.must(err)
		for _, a := range blocks {
			if !a.Shared {
				all = append(all, a)
			}
		}
	}
	for i, a := range all {
		for _, o := range all[:i] {
			if a.EgressIP == o.EgressIP && a.Ports.First <= o.Ports.Last && o.Ports.First <= a.Ports.Last {
				w.Errorf("%s has %s of %s, and %s has %s", a.Pod.Name, a.Ports, a.EgressIP, o.Pod.Name, o.Ports)
			}
		}
	}
}

// endsWithBoth: when the pod ends neither block is anybody's, and its journal says who had them.
func (b *busyPod) endsWithBoth() {
	b.close()
	during := time.Now().UTC()
	time.Sleep(1100 * time.Millisecond) // times are whole seconds on the command line
	r := b.runtime
	r.end(r.list(20, 240), b.sandbox)
	r.delete(b.pod)
	for _, ports := range []kernel.Ports{b.first, b.second} {
		port := at4(b.egressIPs, ports.Last)
		b.isNobodys(r.on, port)
		b.says(r, b.pod.Name, port, "--at="+during.Format(time.RFC3339))
		b.says(r, string(b.pod.UID), port, "--at="+during.Format(time.RFC3339), "--journal="+r.on.Socket()+".journal")
	}
}
