package pool

import (
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport carries what members tell each other. It passes nothing on that comes from elsewhere than nodes of the
// cluster.
type transport struct {
	*memberlist.NetTransport
	self    netip.Addr
	isNode  func(netip.Addr) bool
	packets chan *memberlist.Packet
	streams chan net.Conn
	// closing is closed when nobody reads any more, closed when nothing comes any more.
	closing, closed chan struct{}
	running         sync.WaitGroup
}

// listen opens the port at an address of this node.
func listen(self netip.Addr, port uint16, logger *log.Logger, isNode func(netip.Addr) bool) (*transport, error) {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{self.String()}, BindPort: int(port), Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("listen for the other nodes of the pool at %s: %w", netip.AddrPortFrom(self, port), err)
	}
	t := &transport{
		NetTransport: inner, self: self, isNode: isNode,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	t.running.Go(t.filterPackets)
	t.running.Go(t.filterStreams)
	return t, nil
}

func (t *transport) filterPackets() {
	for {
		select {
		case <-t.closed:
			return
		case packet := <-t.NetTransport.PacketCh():
			if !t.fromNode(packet.From) {
				continue
			}
			select {
			case t.packets <- packet:
			case <-t.closing:
			}
		}
	}
}

func (t *transport) filterStreams() {
	for {
		select {
		case <-t.closed:
			return
		case conn := <-t.NetTransport.StreamCh():
			if !t.fromNode(conn.RemoteAddr()) {
				_ = conn.Close()
				continue
			}
			select {
			case t.streams <- conn:
			case <-t.closing:
				_ = conn.Close()
			}
		}
	}
}

func (t *transport) fromNode(from net.Addr) bool {
	at, err := netip.ParseAddrPort(from.String())
	return err == nil && t.isNode(at.Addr().Unmap().WithZone(""))
}

// PacketCh is part of [memberlist.Transport].
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh is part of [memberlist.Transport].
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout is part of [memberlist.Transport].
func (t *transport) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: to}, timeout)
}

// DialAddressTimeout is part of [memberlist.NodeAwareTransport]. The other node must see this one's address.
func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout, LocalAddr: &net.TCPAddr{IP: t.self.AsSlice()}}
	return dialer.Dial("tcp", to.Addr)
}

// Shutdown is part of [memberlist.Transport].
func (t *transport) Shutdown() error {
	close(t.closing)
	err := t.NetTransport.Shutdown()
	close(t.closed)
	t.running.Wait()
	return err
}
