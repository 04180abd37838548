package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// received is what the kernel may tell at once. It never fills more than 32 KiB.
	received = 64 << 10
)

// everyone is the source of a dump of the whole table.
var everyone netip.Addr

// errTruncated is what no kernel sends.
var errTruncated = errors.New("the kernel's answer is cut off")

// socket is a netlink socket to netfilter. The library's reads the whole table into memory.
type socket struct {
	fd       int
	sequence uint32
	buffer   []byte
}

// openSocket opens one in the network namespace of the thread.
func openSocket() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout),
	)
	if err != nil {
		_ = unix.Close(fd) // nothing was sent
		return nil, fmt.Errorf("set the timeout of netlink: %w", err)
	}
	return &socket{fd: fd, buffer: make([]byte, received)}, nil
}

func (s *socket) close() { _ = unix.Close(s.fd) } // nothing is under way that anybody waits for

// dumpRequest asks for the entries of a family that begin at source, or for all of them.
func dumpRequest(family uint8, source netip.Addr) *nl.NetlinkRequest {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	if source == everyone {
		return request
	}
	attr := sourceV4
	if source.Is6() {
		attr = sourceV6
	}
	original := nl.NewRtAttr(unix.NLA_F_NESTED|attrOriginal, nil)
	original.AddRtAttr(unix.NLA_F_NESTED|tupleAddresses, nil).AddRtAttr(attr, source.AsSlice())
	filter := nl.NewRtAttr(unix.NLA_F_NESTED|attrFilter, nil)
	filter.AddRtAttr(filterOriginal, nl.Uint32Attr(filterSource))
	filter.AddRtAttr(filterReply, nl.Uint32Attr(0))
	request.AddData(original)
	request.AddData(filter)
	return request
}

// dump calls see for each entry that the kernel tells when asked for those of source. Kernels
// before Linux 5.8 tell those of everyone. The error is [netlink.ErrDumpInterrupted] if some may be
// missing, and ctx's own if that ended meanwhile. Afterwards the socket can be used
// again, unless ctx has ended or the kernel gave no whole answer.
func (s *socket) dump(ctx context.Context, family uint8, source netip.Addr, see func(*tracked)) error {
	request := dumpRequest(family, source)
	s.sequence++
	request.Seq = s.sequence
	if err := s.send(request.Serialize()); err != nil {
		return err
	}
	interrupted := false
	var t tracked
	for done := false; !done && ctx.Err() == nil; {
		err := s.receive(func(m message) error {
			if m.sequence != s.sequence {
				return nil
			}
			interrupted = interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
			if m.kind == unix.NLMSG_DONE || m.kind == unix.NLMSG_ERROR {
				done = true
				return errorOf(m)
			}
			t = decode(m.body)
			see(&t)
			return nil
		})
		if err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case interrupted:
		return netlink.ErrDumpInterrupted
	}
	return nil
}

// appendHeader appends the headers of a request, which finishRequest fills when the rest of it is there.
func appendHeader(b []byte, family uint8) []byte {
	b = append(b, make([]byte, headerLength)...)
	return append(b, family, nl.NFNETLINK_V0, 0, 0) // nfgenmsg
}

// finishRequest says how long a request is and what it asks for. Its sequence number is for the caller.
func finishRequest(request []byte, kind int, flags uint16) {
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.NFNL_SUBSYS_CTNETLINK<<8|uint16(kind))
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
}

func (s *socket) send(messages []byte) error {
	for {
		err := unix.Sendto(s.fd, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if !errors.Is(err, unix.EINTR) {
			return timedOut(err)
		}
	}
}

// receive waits for one datagram and calls each for its messages, which it owns.
func (s *socket) receive(each func(message) error) error {
	n, from, err := unix.Recvfrom(s.fd, s.buffer, unix.MSG_TRUNC)
	for errors.Is(err, unix.EINTR) {
		n, from, err = unix.Recvfrom(s.fd, s.buffer, unix.MSG_TRUNC)
	}
	if err != nil {
		return timedOut(err)
	}
	if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != nl.PidKernel {
		return nil
	}
	if n > len(s.buffer) {
		return errTruncated
	}
	for rest := s.buffer[:n]; len(rest) > 0; {
		var m message
		var ok bool
		if m, rest, ok = nextMessage(rest); !ok {
			return errTruncated
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return nil
}

func timedOut(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("the kernel gave no answer in %s: %w", patience, err)
	}
	return err
}
