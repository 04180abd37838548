package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPortBlocks_FarSideAlone: pods have TCP connections and UDP flows by which the far side alone sends. The node with the egress IP is drained. Then the next
// one is cut off, and the pool puts it on another one, which knows nothing of them but whose the ports are. They live: those of its own pods, and
// of others.
func TestPortBlocks_FarSideAlone(t *testing.T) {
	w := newBlocksWorldOf(t, blocksOf512+poolArguments)
	pool := &poolWorld{&steeredWorld{world: w.world, egressIPs: w.egressIPs}}
	for _, r := range w.runtimes {
		w.runs(r, "far", 2)
	}
	for _, ip := range w.egressIPs {
		pool.complete()
		holder := pool.holderOf(ip, nil)
		c := w.listen(pool, ip, by(t, 5, 20, 80), func(r *cniRuntime) []string {
			if r.on == holder { // it ends its pods' flows, and UDP has no acknowledgement by which they would go on
				return []string{"tcp"}
			}
			return []string{"tcp", "udp"}
		})
		pool.drain(holder, true)
		pool.holderOf(ip, holder)
		c.end(pool, ip, "drained, the far side alone speaks", 100)
		pool.drain(holder, false)

		holder = pool.holderOf(ip, nil)
		c = w.listen(pool, ip, by(t, 10, 50, 250), func(r *cniRuntime) []string {
			if r.on == holder { // its pods are cut off, too
				return nil
			}
			return []string{"tcp", "udp"}
		})
		w.must(w.SetLink(holder.Host, false))
		pool.holderOf(ip, holder)
		c.heard(pool, time.Now())
		c.end(pool, ip, "link cut, the far side alone speaks", 100)
		w.must(w.SetLink(holder.Host, true))
	}
}

// listen has each pod open so many flows of the protocols that its node has, by which the far side alone sends; of UDP a tenth, as a thousand
// of TCP are what two processors can listen to.
func (w *blocksWorld) listen(pool *poolWorld, ip string, each int, protocols func(*cniRuntime) []string) *connections {
	w.Helper()
	socket := pool.datagrams(ip)
	c, to := &connections{ends: func() { _ = socket.Close() }}, map[string]string{"tcp": pool.beats(ip), "udp": socket.LocalAddr().String()}
	w.Cleanup(c.close)
	for _, r := range w.runtimes {
		for _, protocol := range protocols(r) {
			for _, s := range r.runs {
				w.usesBlock(s, 1)
				for range map[string]int{"tcp": each, "udp": each/10 + 1}[protocol] {
					conn, err := s.DialContext(w.Context(), protocol, to[protocol])
					w.must(err)
					if protocol == "udp" {
						_, err = conn.Write([]byte{1}) // the only one
						w.must(err)
					}
					c.keep(pool, s.Host, conn, false)
				}
			}
		}
	}
	c.begin(pool)
	return c
}

// datagrams has somebody outside send datagrams to all who have sent one, in the family of an address, until the socket is closed.
func (w *poolWorld) datagrams(ip string) (socket net.PacketConn) {
	w.Helper()
	w.must(w.Outside().Do(func() (err error) {
		socket, err = new(net.ListenConfig).ListenPacket(w.Context(), "udp", netip.AddrPortFrom(w.outsideFor(ip).Addr(), 0).String())
		return err
	}))
	go serveDatagrams(w.Context(), socket)
	return socket
}

// serveDatagrams sends a datagram every beat to all who have sent one.
func serveDatagrams(ctx context.Context, socket net.PacketConn) {
	for buffer := make([]byte, 100); ; {
		_, from, err := socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		go sendBeats(ctx, datagramsTo{socket, from})
	}
}

// datagramsTo writes datagrams to an address.
type datagramsTo struct {
	net.PacketConn
	to net.Addr
}

func (d datagramsTo) Write(datagram []byte) (int, error) { return d.WriteTo(datagram, d.to) }

// TestPortBlocks_WhoHadThePort: an address and a port name the pod, on its node, on that with the address, and by the API; and when the pod has
// ended by its node's journal, also after its node's process was killed. Nobody is named for a port that nobody had.
func TestPortBlocks_WhoHadThePort(t *testing.T) {
	w := newBlocksWorld(t, blocksOf512)
	r := w.runtimes[1]
	list := r.list(20, 240)
	s, other := w.runs(r, "asked", 1)[0], w.runs(w.runtimes[2], "other", 1)[0]
	w.usesBlock(s, 1)
	w.usesBlock(other, 1)
	w.agree()
	conn, err := s.DialContext(t.Context(), "tcp", w.outside()[0].String())
	w.must(err)
	defer conn.Close()
	port := at4(w.egressIPs, portOf(conn))
	w.says(r, s.pod.Name, port)
	w.says(w.runtimes[0], s.ips[0].String(), port) // which knows the pod's address

	time.Sleep(1100 * time.Millisecond) // times are whole seconds on the command line
	during := time.Now().UTC().Format(time.RFC3339)
	r.on.Kill()
	r.startWith(blocksOf512)
	r.end(list, s)
	r.delete(s.pod)
	w.isNobodys(r.on, port)
	w.says(r, s.pod.Name, port, "--at="+during)
	w.says(r, string(s.pod.UID), port, "--at="+during, "--journal="+r.on.Socket()+".journal")
	for _, nobodys := range []string{at4(w.egressIPs, 1024+60*512), at4(w.egressIPs, 80)} {
		if out, errs, status := r.on.Openshift("egress", "who", nobodys, "--at="+during, "--socket="+r.on.Socket()); status != 1 || out != "" {
			t.Errorf("who %s: status %d, %s%s; want 1 and nobody", nobodys, status, out, errs)
		}
	}
}

// at4 is the IPv4 one of egress IPs with a port.
func at4(egressIPs []string, port uint16) string {
	for _, ip := range egressIPs {
		if netip.MustParseAddr(ip).Is4() {
			return net.JoinHostPort(ip, strconv.Itoa(int(port)))
		}
	}
	return ""
}

// says waits until a node says of a port what contains a text.
func (w *blocksWorld) says(r *cniRuntime, text, port string, flags ...string) {
	w.Helper()
	args := append([]string{"egress", "who", port, "-o", "json"}, flags...)
	if !strings.Contains(strings.Join(flags, " "), "--journal") {
		args = append(args, "--socket="+r.on.Socket())
	}
	w.eventually(func() error {
		out, errs, status := r.on.Openshift(args...)
		if status != 0 || !strings.Contains(out, text) {
			return fmt.Errorf("who %s: status %d, want %s: %s%s", port, status, text, out, errs)
		}
		return nil
	})
}

// isNobodys waits until a node says that nobody has a port: the end of a pod is written behind the answer to DEL.
func (w *blocksWorld) isNobodys(m *member, port string) {
	w.Helper()
	w.eventually(func() error {
		if out, errs, status := m.Openshift("egress", "who", port, "--socket="+m.Socket()); status != 1 || out != "" || !strings.Contains(errs, "nobody has "+port) {
			return fmt.Errorf("somebody has %s still: status %d, %s%s", port, status, out, errs)
		}
		return nil
	})
}
