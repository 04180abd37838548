//go:build linux

package lab

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Wire counts the packets that nodes send to the underlay, as the network sees them: by whatever
// address they have there. Left out is what nodes send to each other: whatever has a node's hardware address
// as its destination. So are ARP and neighbour discovery.
type Wire struct {
	taps  []*os.File
	nodes map[[6]byte]bool // their hardware addresses
	wg    sync.WaitGroup

	mu    sync.Mutex
	seen  map[Sighting]int
	first map[Sighting]string
	err   error
}

// TunnelPort is the UDP port of the tunnel by which nodes take steered packets from each other, by default.
const TunnelPort = 4799

// AnnouncePort is the UDP port at which nodes tell each other which addresses they have, by default.
const AnnouncePort = 4798

// Sighting is what packets have in common that the network saw.
type Sighting struct {
	// Node has sent them.
	Node *Host
	// Protocol is tcp, udp, sctp, icmp for an echo request, icmp-other for what else is of ICMP or
	// ICMPv6, or the number of another protocol.
	Protocol string
	Source   netip.Addr
	// To has the port 0 where the protocol has none, and for a fragment that is not the first.
	To netip.AddrPort
}

// Watch counts from now on, until Close.
func (l *Lab) Watch() (*Wire, error) {
	w := &Wire{seen: map[Sighting]int{}, first: map[Sighting]string{}, nodes: map[[6]byte]bool{}}
	for _, node := range l.nodes {
		link, err := node.nl.LinkByName(node.dev)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", node.Name, err)
		}
		w.nodes[[6]byte(link.Attrs().HardwareAddr)] = true
	}
	for _, node := range l.nodes {
		tap, err := l.tap(node)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.taps = append(w.taps, tap)
		w.wg.Go(func() { w.count(node, tap) })
	}
	return w, nil
}

// tap opens a socket that gets what a host sends to its bridge.
func (l *Lab) tap(h *Host) (tap *os.File, err error) {
	link, err := h.uplink.host.nl.LinkByName(h.uplink.name)
	if err == nil {
		err = h.uplink.host.Do(func() error {
			tap, err = openTap(link)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", h.Name, err)
	}
	return tap, nil
}

func openTap(link netlink.Link) (*os.File, error) {
	const buffer = 64 << 20
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0) // of no protocol yet, so that it gets nothing
	if err != nil {
		return nil, err
	}
	every := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: link.Attrs().Index}),
	)
	return os.NewFile(uintptr(fd), "packets from "+link.Attrs().Name), err
}

func (w *Wire) count(node *Host, tap *os.File) {
	packet := make([]byte, 256) // of longer ones the start is enough
	for {
		n, err := tap.Read(packet)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if errors.Is(err, unix.ENETDOWN) {
			continue // SetLink has cut the node off
		}
		w.mu.Lock()
		if err != nil {
			w.err = errors.Join(w.err, err)
			w.mu.Unlock()
			return
		}
		if s, ok := sighting(packet[:n]); ok && !w.nodes[[6]byte(packet)] {
			s.Node = node
			if w.seen[s]++; w.seen[s] == 1 {
				w.first[s] = hex.EncodeToString(packet[:n])
			}
		}
		w.mu.Unlock()
	}
}

// Sources are the addresses that packets to a destination had, and how many had each.
func (w *Wire) Sources(protocol string, to netip.AddrPort) map[netip.Addr]int {
	sources := map[netip.Addr]int{}
	for s, packets := range w.Seen() {
		if s.Protocol == protocol && s.To == to {
			sources[s.Source] += packets
		}
	}
	return sources
}

// Seen is what was counted so far.
func (w *Wire) Seen() map[Sighting]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.seen)
}

// First is the beginning of the first frame of a sighting, in hexadecimal digits.
func (w *Wire) First(s Sighting) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first[s]
}

// Close ends the counting. An error says that the count is not complete.
func (w *Wire) Close() error {
	var errs []error
	for _, tap := range w.taps {
		errs = append(errs, lost(tap), tap.Close())
	}
	w.taps = nil
	w.wg.Wait()
	return errors.Join(append(errs, w.err)...)
}

// lost returns an error if the kernel had no room for packets that nobody fetched in time.
func lost(tap *os.File) error {
	raw, err := tap.SyscallConn()
	if err != nil {
		return err
	}
	var stats *unix.TpacketStats
	err = errors.Join(err, raw.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	}), err)
	if err == nil && stats.Drops > 0 {
		err = fmt.Errorf("%s: %d of %d are not counted", tap.Name(), stats.Drops, stats.Packets)
	}
	return err
}

// sighting returns what an Ethernet frame shows; false for what is not counted.
func sighting(frame []byte) (s Sighting, ok bool) {
	if len(frame) < ethernetHeader {
		return s, false
	}
	packet := frame[ethernetHeader:]
	var protocol byte
	first := true
	var rest []byte // behind the IP header
	switch binary.BigEndian.Uint16(frame[ethernetHeader-2:]) {
	case unix.ETH_P_IP:
		const fixed, fragmentOffset = 20, 0x1fff
		if len(packet) < fixed || len(packet) < 4*int(packet[0]&0x0f) {
			return s, false
		}
		s.Source, s.To = netip.AddrFrom4([4]byte(packet[12:])), netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[16:])), 0)
		protocol, rest = packet[9], packet[4*int(packet[0]&0x0f):]
		first = binary.BigEndian.Uint16(packet[6:])&fragmentOffset == 0
	case unix.ETH_P_IPV6:
		const fixed = 40
		if len(packet) < fixed {
			return s, false
		}
		s.Source, s.To = netip.AddrFrom16([16]byte(packet[8:])), netip.AddrPortFrom(netip.AddrFrom16([16]byte(packet[24:])), 0)
		protocol, rest = packet[6], packet[fixed:]
	default:
		return s, false
	}
	return s.transport(protocol, rest, first)
}

// transport adds what follows the IP header.
func (s Sighting) transport(protocol byte, rest []byte, first bool) (Sighting, bool) {
	names := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp"}
	if s.Protocol = names[protocol]; s.Protocol != "" && first && len(rest) >= 4 {
		port := binary.BigEndian.Uint16(rest[2:])
		s.To = netip.AddrPortFrom(s.To.Addr(), port)
		return s, true
	}
	if s.Protocol == "" {
		s.Protocol = fmt.Sprint(protocol)
	}
	if len(rest) > 0 && (protocol == unix.IPPROTO_ICMP || protocol == unix.IPPROTO_ICMPV6) {
		s.Protocol = "icmp-other"
		switch kind := rest[0]; {
		case protocol == unix.IPPROTO_ICMP && kind == icmpEcho, protocol == unix.IPPROTO_ICMPV6 && kind == icmpv6Echo:
			s.Protocol = "icmp"
		case protocol == unix.IPPROTO_ICMPV6 && kind >= icmpv6Solicitations && kind <= icmpv6Redirect:
			return s, false
		}
	}
	return s, true
}
