package flows

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// batch is how many frames one call sends.
const batch = 64

// message is struct mmsghdr of sendmmsg(2).
type message struct {
	header unix.Msghdr
	sent   uint32
}

// sender sends frames from a link past its qdisc.
type sender struct {
	fd       int
	messages []message
	vectors  []unix.Iovec
}

func newSender(host *lab.Host, link string) (*sender, error) {
	s := &sender{messages: make([]message, batch), vectors: make([]unix.Iovec, batch)}
	for i := range s.messages {
		s.messages[i].header.Iov = &s.vectors[i]
		s.messages[i].header.SetIovlen(1)
		s.vectors[i].SetLen(frameSize)
	}
	var err error
	s.fd, err = packetSocket(host, link, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: PACKET_QDISC_BYPASS: %w", link, err), s.close())
	}
	return s, nil
}

// packetSocket opens an AF_PACKET socket that sends from a link, and receives what comes
// there of an EtherType, nothing of 0.
func packetSocket(host *lab.Host, link string, etherType uint16) (fd int, err error) {
	err = host.Do(func() error {
		device, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("AF_PACKET: %w", err)
		}
		address := &unix.SockaddrLinklayer{Protocol: etherType<<8 | etherType>>8, Ifindex: device.Index}
		if err := unix.Bind(fd, address); err != nil {
			return errors.Join(fmt.Errorf("bind to %s: %w", link, err), unix.Close(fd))
		}
		return nil
	})
	return fd, err
}

// send sends frames. It allocates nothing, and the thread does nothing else.
func (s *sender) send(frames []byte) error {
	for len(frames) > 0 {
		n := min(batch, len(frames)/frameSize)
		for i := range n {
			s.vectors[i].Base = &frames[i*frameSize]
		}
		// A raw system call: a blocking one would give this thread to another goroutine.
		sent, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.messages[0])), uintptr(n), 0, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return fmt.Errorf("sendmmsg: %w", errno)
		default:
			frames = frames[int(sent)*frameSize:]
		}
	}
	runtime.KeepAlive(s)
	return nil
}

func (s *sender) close() error { return unix.Close(s.fd) }

// listener receives frames from a link.
type listener struct{ fd int }

// receiveBuffer is enough for the frames of a sample.
const receiveBuffer = 64 << 20

func newListener(host *lab.Host, link string) (*listener, error) {
	fd, err := packetSocket(host, link, unix.ETH_P_IP)
	if err != nil {
		return nil, err
	}
	l := &listener{fd}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 0, Usec: 100_000}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", link, err), l.close())
	}
	return l, nil
}

// receive waits for n segments, and returns those that arrive in time.
func (l *listener) receive(n int, patience time.Duration) ([]segment, error) {
	var all []segment
	frame := make([]byte, 2048)
	for deadline := time.Now().Add(patience); len(all) < n && time.Now().Before(deadline); {
		size, from, err := unix.Recvfrom(l.fd, frame, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if s, ok := parse(frame[:size]); ok {
			all = append(all, s)
		}
	}
	return all, nil
}

func (l *listener) close() error { return unix.Close(l.fd) }
