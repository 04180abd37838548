package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// MakeLiberal makes the kernel accept any sequence numbers on the TCP connections that it tracks. Call it before
// nf_conntrack_tcp_be_liberal, which does the same for all connections, is set to 0, if conntrack has not seen all packets of some
// connections: otherwise all that follows on these would be dropped.
func MakeLiberal(ctx context.Context, family kernel.Family) error {
	t := NewTable(family)
	defer t.Close()
	err := t.with(ctx, func(k *handle) error {
		s, err := openSocket()
		if err != nil {
			return explain(err)
		}
		defer s.close()
		var requests [][]byte
		if err := k.lookAt(ctx, everyone, func(t *tracked) {
			// One that was picked up is liberal already, and what shows that is for the search for clashes.
			if t.connected() && t.nameable() && t.flags[1]&flagAcknowledges != 0 {
				requests = append(requests, t.appendLiberal(nil, inet(family)))
			}
		}); err != nil {
			return err
		}
		for _, request := range requests {
			if err := s.update(request); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("have conntrack take all sequence numbers of tracked %s connections: %w", family, err)
	}
	return nil
}

// appendLiberal appends a request that sets the flag of both sides of t.
func (t *tracked) appendLiberal(b []byte, family uint8) []byte {
	const side = attrHeader + 4 // the flag and its mask, padded
	at := len(b)
	b = appendHeader(b, family)
	b = t.appendName(b)
	b = appendNested(b, attrProtocol, 2*attrHeader+2*side)
	b = appendNested(b, protocolTCP, attrHeader+2*side)
	for _, flags := range []uint16{flagsOriginal, flagsReply} {
		b = binary.NativeEndian.AppendUint16(b, attrHeader+2)
		b = binary.NativeEndian.AppendUint16(b, flags)
		b = append(b, flagLiberal, flagLiberal, 0, 0)
	}
	finishRequest(b[at:], nl.IPCTNL_MSG_CT_NEW, unix.NLM_F_ACK)
	return b
}

// appendNested appends the header of an attribute of which the length is known.
func appendNested(b []byte, kind, length uint16) []byte {
	b = binary.NativeEndian.AppendUint16(b, length)
	return binary.NativeEndian.AppendUint16(b, kind|unix.NLA_F_NESTED)
}

// update sends a request, and waits for what the kernel says of it. A connection that has ended needs none.
func (s *socket) update(request []byte) error {
	s.sequence++
	binary.NativeEndian.PutUint32(request[8:], s.sequence)
	if err := s.send(request); err != nil {
		return err
	}
	for answered := false; !answered; {
		err := s.receive(func(m message) error {
			if answered = answered || m.sequence == s.sequence; m.sequence != s.sequence {
				return nil
			}
			return errorOf(m)
		})
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
