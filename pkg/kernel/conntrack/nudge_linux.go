package conntrack

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10

	lengthTCP  = 20
	hopLimit   = 64
	checksumAt = 16 // in the TCP header

	// answersAgain is after how long an end that has answered a packet out of order answers the next one
	// (net.ipv4.tcp_invalid_ratelimit is half a second).
	answersAgain = 600 * time.Millisecond
	// moreAnswers is after how long all ends of a node together answer as many again, and lastAgain how long they are asked.
	moreAnswers = 1100 * time.Millisecond
	lastAgain   = time.Minute
)

// nudger sends packets to the ends of connections.
type nudger struct {
	fd     int
	family kernel.Family
}

// openNudger opens one in the network namespace of the thread.
func openNudger(family kernel.Family) (*nudger, error) {
	domain := unix.AF_INET
	if family == kernel.IPv6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("open a raw socket: %w", err)
	}
	return &nudger{fd: fd, family: family}, nil
}

func (n *nudger) close() { _ = unix.Close(n.fd) } // what was sent is on its way

// nudge has an end of a connection send a packet: the source of packets that have a tuple. The barrier answers it by a reset, if the
// connection has ended. So an end that only waits learns that the connection is gone. Of a connection that moves it
// makes the entry, here or on the node that it is steered to, by which the far side's packets find the pod.
//
// It gets a SYN+ACK of the other end's, with the sequence number 0. Whoever has the connection answers by an
// ACK, whatever the number is (RFC 5961, section 4), and whoever has not by a reset. The node's own
// conntrack makes no entry of a SYN+ACK that it does not expect.
func (n *nudger) nudge(t tuple) error {
	to := t.source.Addr()
	var address unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if n.family == kernel.IPv4 {
		address = &unix.SockaddrInet4{Addr: to.As4()}
	}
	if err := unix.Sendto(n.fd, nudgeFrom(t.destination, t.source), 0, address); err != nil {
		return fmt.Errorf("nudge %s as %s: %w", t.source, t.destination, err)
	}
	return nil
}

// closeAfter closes the nudger after it has nudged sources once more. The answer to the first nudge may be missing: a source has
// answered a stranger's packet just before, or there were more sources than a kernel lets answer at once. A source that has no connection
// any more answers by a reset, which leads nowhere.
func (n *nudger) closeAfter(again []tuple) {
	if len(again) == 0 {
		n.close()
		return
	}
	size, pause := pieces(len(again), setting("ipv4/tcp_challenge_ack_limit", 1000))
	go func() {
		defer n.close()
		began := time.Now()
		for some := range slices.Chunk(again, size) {
			if time.Sleep(pause); time.Since(began) > lastAgain {
				return
			}
			for _, t := range some {
				_ = n.nudge(t) // what was wrong with the first one was told
			}
		}
	}()
}

// pieces returns how many of so many sources are nudged again at once, and how long after the nudges before. limit is
// net.ipv4.tcp_challenge_ack_limit: newer kernels have one for each network namespace, and no limit by default; older ones have one of 1000
// for all, which only the host's namespace sees. In a second they let half of that be answered, or more by chance (tcp_send_challenge_ack).
// Half of this half is the other IP family's. Few sources are nudged twice in a second.
func pieces(sources, limit int) (size int, pause time.Duration) {
	size = max(limit/4, 1)
	if 2*sources <= size {
		return size, answersAgain
	}
	return size, moreAnswers
}

// nudgeFrom returns the packet, which is of the family of the addresses. The kernel fills in IPv4's checksum.
func nudgeFrom(from, to netip.AddrPort) []byte {
	addresses := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
	segment := make([]byte, lengthTCP)
	binary.BigEndian.PutUint16(segment, from.Port())
	binary.BigEndian.PutUint16(segment[2:], to.Port())
	segment[12], segment[13] = lengthTCP/4<<4, flagSYN|flagACK
	pseudo := append(addresses[:len(addresses):len(addresses)], 0, 0, 0, unix.IPPROTO_TCP, 0, 0, 0, lengthTCP)
	binary.BigEndian.PutUint16(segment[checksumAt:], checksum(append(pseudo, segment...)))

	header := []byte{0x60, 0, 0, 0, 0, lengthTCP, unix.IPPROTO_TCP, hopLimit}
	if from.Addr().Is4() {
		header = []byte{0x45, 0, 0, 20 + lengthTCP, 0, 0, 0, 0, hopLimit, unix.IPPROTO_TCP, 0, 0}
	}
	return append(append(header, addresses...), segment...)
}

// checksum is that of the Internet protocols (RFC 1071), of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
