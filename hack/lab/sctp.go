//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Many kernels have no SCTP sockets, but their netfilter knows SCTP all the same:
// connection tracking, NAT, port matches. So the lab speaks the first half of the
// handshake itself, over raw sockets, whether the kernel has SCTP or not: an INIT
// from the client; an INIT ACK from the server, whose state cookie is the
// address that the server saw. The checksums are real and both sides verify
// them, as does connection tracking on the way. A kernel with SCTP adds an ABORT
// of its own, which nobody here listens to.

const (
	protocolSCTP = "132"

	// RFC 9260, section 3.
	sctpHeader     = 12 // ports, verification tag, checksum
	chunkInit      = 1
	chunkInitAck   = 2
	chunkFixed     = 20 // of INIT and INIT ACK
	parameterFixed = 4  // type and length
	stateCookie    = 7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SCTPAvailable reports whether this kernel has SCTP sockets now. The lab does
// without; a program under test may not.
func SCTPAvailable() bool {
	protocols, err := os.ReadFile("/proc/net/protocols")
	return err == nil && bytes.Contains(protocols, []byte("\nSCTP "))
}

// sctpNetwork is the raw network of sctp4 or sctp6, as in package net.
func sctpNetwork(network string) string {
	return "ip" + strings.TrimPrefix(network, "sctp") + ":" + protocolSCTP
}

// sctpPacket is a packet with one INIT or INIT ACK.
type sctpPacket struct {
	src, dst    uint16
	tag         uint32 // verification tag: the initiate tag of the receiver
	chunk       byte
	initiateTag uint32
	cookie      []byte // a multiple of 4 bytes long
}

func (p sctpPacket) marshal() []byte {
	be := binary.BigEndian
	b := be.AppendUint16(nil, p.src)
	b = be.AppendUint16(b, p.dst)
	b = be.AppendUint32(b, p.tag)
	b = be.AppendUint32(b, 0) // checksum
	length := chunkFixed
	if p.cookie != nil {
		length += parameterFixed + len(p.cookie)
	}
	b = append(b, p.chunk, 0)
	b = be.AppendUint16(b, uint16(length))
	b = be.AppendUint32(b, p.initiateTag)
	b = be.AppendUint32(b, 1<<16) // receiver window
	b = be.AppendUint16(b, 1)     // outbound streams
	b = be.AppendUint16(b, 1)     // inbound streams
	b = be.AppendUint32(b, 1)     // initial TSN
	if p.cookie != nil {
		b = be.AppendUint16(b, stateCookie)
		b = be.AppendUint16(b, uint16(parameterFixed+len(p.cookie)))
		b = append(b, p.cookie...)
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, castagnoli))
	return b
}

// parseSCTP returns false for anything but an intact INIT or INIT ACK.
func parseSCTP(b []byte) (p sctpPacket, ok bool) {
	if len(b) < sctpHeader+chunkFixed {
		return p, false
	}
	want := binary.LittleEndian.Uint32(b[8:])
	unsummed := bytes.Clone(b)
	clear(unsummed[8:12])
	if crc32.Checksum(unsummed, castagnoli) != want {
		return p, false
	}
	be := binary.BigEndian
	p = sctpPacket{
		src: be.Uint16(b), dst: be.Uint16(b[2:]), tag: be.Uint32(b[4:]),
		chunk: b[sctpHeader], initiateTag: be.Uint32(b[sctpHeader+4:]),
	}
	if rest := b[sctpHeader+chunkFixed:]; len(rest) > parameterFixed && be.Uint16(rest) == stateCookie {
		p.cookie = rest[parameterFixed:]
	}
	return p, p.chunk == chunkInit || p.chunk == chunkInitAck
}

// serveSCTP answers the INITs for a port. A raw socket sees the packets for all
// ports of the host.
func (s *Server) serveSCTP(c *net.IPConn, port uint16) {
	packet, control := make([]byte, 2048), make([]byte, 128)
	for {
		size, n, _, from, err := c.ReadMsgIP(packet, control)
		if err != nil {
			return
		}
		addr, _ := netip.AddrFromSlice(from.IP)
		p, ok := parseSCTP(payload(packet[:size], addr))
		if !ok || p.chunk != chunkInit || p.dst != port {
			continue
		}
		peer := netip.AddrPortFrom(addr, p.src)
		s.record(peer)
		ack := sctpPacket{
			src: port, dst: p.src, tag: p.initiateTag,
			chunk: chunkInitAck, initiateTag: newTag(), cookie: pad(answer(peer, "")),
		}
		// What cannot be sent is lost like any packet: the client asks again.
		_, _, _ = c.WriteMsgIP(ack.marshal(), control[:n], from)
	}
}

func (h *Host) askSCTP(ctx context.Context, network string, dst netip.AddrPort, src uint16) (netip.Addr, error) {
	c, err := h.connect(ctx, &net.Dialer{}, sctpNetwork(network), dst.Addr().String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = c.Close() }()
	if src == 0 {
		src = uint16(32768 + rand.IntN(28232)) // Linux's own range
	}
	ask := sctpPacket{src: src, dst: dst.Port(), chunk: chunkInit, initiateTag: newTag()}
	return exchange(ctx, c, ask.marshal(), func(b []byte) (netip.Addr, error) {
		p, ok := parseSCTP(payload(b, dst.Addr()))
		if !ok || p.chunk != chunkInitAck || p.dst != ask.src || p.src != ask.dst || p.tag != ask.initiateTag {
			return netip.Addr{}, errNotMine
		}
		return parseAnswer(string(p.cookie), "")
	})
}

// newTag returns an initiate tag, which must not be zero.
func newTag() uint32 { return 1 + rand.Uint32N(1<<32-1) }

func pad(s string) []byte {
	return []byte(s + strings.Repeat(" ", (4-len(s)%4)%4))
}

// payload removes the IP header that a raw IPv4 socket delivers; a raw IPv6 one
// delivers none.
func payload(b []byte, peer netip.Addr) []byte {
	if !peer.Is4() || len(b) == 0 {
		return b
	}
	return b[min(len(b), 4*int(b[0]&0x0f)):]
}
