package netns

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// TestProtocols_SCTPAssociation: an association of the kernel's own SCTP leaves from the egress IP, and data goes both ways. The other
// tests speak the first half of the handshake themselves.
func TestProtocols_SCTPAssociation(t *testing.T) {
	if !lab.SCTPAvailable() {
		t.Skip("this kernel has no SCTP: hack/kernels has some that do")
	}
	everyWay(t, func(n *node) {
		n.putWeb([]string{egressV4.String(), egressV6.String()}, allProtocols...)
		n.start()
		n.Ready()
		for _, network := range []string{"sctp4", "sctp6"} {
			server := n.sctpSocket(n.Outside(), n.outside(network))
			if err := unix.Listen(server, 1); err != nil {
				n.Fatal(err)
			}
			for pod, want := range map[*lab.Host]netip.Addr{n.Pod(1): of(network, egressV4, egressV6), n.Pod(2): n.nodeIP(network)} {
				n.Eventually(soon, func() error {
					seen, err := n.associate(pod, network, server)
					if err == nil && seen != want {
						err = fmt.Errorf("%s (%s) is seen as %s, want %s", pod.Name, network, seen, want)
					}
					return err
				})
			}
		}
	})
}

// sctpSocket returns a socket of the host with this address, the only one that its associations name. It is closed at the test's end.
func (n *node) sctpSocket(host *lab.Host, address netip.AddrPort) (fd int) {
	n.Helper()
	domain := unix.AF_INET
	if address.Addr().Is6() {
		domain = unix.AF_INET6
	}
	err := host.Do(func() (err error) {
		if fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP); err != nil {
			return err
		}
		patience := unix.NsecToTimeval(int64(lab.Stretch(2 * time.Second)))
		for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &patience); err != nil {
				return err
			}
		}
		return unix.Bind(fd, lab.SocketAddress(address, 0))
	})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// associate has a pod make an association with the server, which answers one message. It returns the address that the server sees.
func (n *node) associate(pod *lab.Host, network string, server int) (seen netip.Addr, err error) {
	n.Helper()
	if err := forgetWaiting(server); err != nil {
		return seen, err
	}
	client := n.sctpSocket(pod, netip.AddrPortFrom(of(network, pod.V4, pod.V6), 0))
	if err := unix.Connect(client, lab.SocketAddress(n.outside(network), 0)); err != nil {
		return seen, fmt.Errorf("connect: %w", err)
	}
	accepted, from, err := unix.Accept(server)
	if err != nil {
		return seen, fmt.Errorf("accept: %w", err)
	}
	defer func() { _ = unix.Close(accepted) }()
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		seen = netip.AddrFrom4(from.Addr)
	case *unix.SockaddrInet6:
		seen = netip.AddrFrom16(from.Addr)
	}
	for _, way := range [][2]int{{client, accepted}, {accepted, client}} {
		const text = "some data"
		if _, err := unix.Write(way[0], []byte(text)); err != nil {
			return seen, fmt.Errorf("write: %w", err)
		}
		buffer := make([]byte, 2*len(text))
		if size, err := unix.Read(way[1], buffer); err != nil || string(buffer[:size]) != text {
			return seen, fmt.Errorf("read: got %q, %v", buffer[:max(0, size)], err) //nolint:errorlint // it may be nil
		}
	}
	return seen, nil
}

// forgetWaiting ends the associations that a server has not accepted: those of earlier attempts, which were late.
func forgetWaiting(server int) error {
	if err := unix.SetNonblock(server, true); err != nil {
		return err
	}
	for {
		late, _, err := unix.Accept(server)
		if err != nil {
			return unix.SetNonblock(server, false)
		}
		_ = unix.Close(late)
	}
}
