package holders

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sendBuffer is for what waits to be sent: the kernel keeps up to 208 KiB for seconds for each node that is switched off, and no other
// datagram may wait for these.
const sendBuffer = 32 << 20

// MakeRoom lets the kernel keep so many bytes of what has come by a socket between nodes, and enough of what is to be sent, whatever
// the limits for users are. With less, more may be lost.
func MakeRoom(socket syscall.Conn, receive int) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receive)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
	})
}
