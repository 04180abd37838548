package pool

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// makeRoom lets the kernel keep receiveBuffer and sendBuffer for a socket, whatever the limits for users are. With less, more may be lost.
func makeRoom(socket syscall.Conn) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
	})
}
