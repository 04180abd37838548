//go:build linux

package lab

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
)

// A server for ICMP answers an echo request whose data is a question with another echo reply than the kernel does:
// its data is the answer. The identifier is what a port is elsewhere.

const (
	// RFC 792.
	icmpHeader    = 8 // type, code, checksum, identifier, sequence number
	icmpEcho      = 8
	icmpEchoReply = 0
	// RFC 4443 and RFC 4861.
	icmpv6Echo          = 128
	icmpv6EchoReply     = 129
	icmpv6Solicitations = 133 // the first of five kinds of neighbour discovery
	icmpv6Advertisement = 136
	icmpv6Redirect      = 137 // the last
)

// icmpNetwork is the raw network of icmp4 or icmp6, as in package net.
func icmpNetwork(network string) string {
	if network == "icmp6" {
		return "ip6:58"
	}
	return "ip4:1"
}

// icmpKinds are those of a question and of an answer to a host.
func icmpKinds(peer netip.Addr) (request, reply byte) {
	if peer.Is4() {
		return icmpEcho, icmpEchoReply
	}
	return icmpv6Echo, icmpv6EchoReply
}

// echo is a message. The kernel sums those of IPv6.
func echo(kind byte, identifier uint16, data string) []byte {
	message := binary.BigEndian.AppendUint16([]byte{kind, 0, 0, 0}, identifier)
	message = append(append(message, 0, 1), data...)
	if kind == icmpEcho || kind == icmpEchoReply {
		binary.BigEndian.PutUint16(message[2:], checksum(message))
	}
	return message
}

// serveICMP answers the questions that come as echo requests.
func (s *Server) serveICMP(c *net.IPConn) {
	packet, control := make([]byte, 2048), make([]byte, 128)
	for {
		size, n, _, from, err := c.ReadMsgIP(packet, control)
		if err != nil {
			return
		}
		addr, _ := netip.AddrFromSlice(from.IP)
		addr = addr.Unmap()
		request, reply := icmpKinds(addr)
		message := payload(packet[:size], addr)
		if len(message) < icmpHeader || message[0] != request || !strings.HasPrefix(string(message[icmpHeader:]), "#") {
			continue
		}
		identifier := binary.BigEndian.Uint16(message[4:])
		peer := netip.AddrPortFrom(addr, identifier)
		s.record(peer)
		// What cannot be sent is lost like any packet: the client asks again.
		_, _, _ = c.WriteMsgIP(echo(reply, identifier, answer(peer, string(message[icmpHeader:]))), control[:n], from)
	}
}

func (h *Host) askICMP(ctx context.Context, network string, dst netip.Addr, src uint16) (netip.Addr, error) {
	c, err := h.connect(ctx, &net.Dialer{}, icmpNetwork(network), dst.String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = c.Close() }()
	if src == 0 {
		src = uint16(1 + rand.IntN(1<<16-1))
	}
	token := newToken()
	request, reply := icmpKinds(dst)
	return exchange(ctx, c, echo(request, src, token), func(b []byte) (netip.Addr, error) {
		message := payload(b, dst)
		if len(message) < icmpHeader || message[0] != reply || binary.BigEndian.Uint16(message[4:]) != src {
			return netip.Addr{}, errNotMine
		}
		return parseAnswer(string(message[icmpHeader:]), token)
	})
}
