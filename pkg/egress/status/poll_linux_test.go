package status

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// waitForHangup waits until the other side has closed a connection, without reading.
func waitForHangup(conn *net.UnixConn, timeout time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}} // HUP is told in any case
		deadline := time.Now().Add(timeout)
		for left := timeout; left > 0; left = time.Until(deadline) {
			n, err := unix.Poll(poll, int(left.Milliseconds())+1)
			if err != nil && !errors.Is(err, unix.EINTR) {
				failed = err
				return
			}
			if n > 0 && poll[0].Revents&unix.POLLHUP != 0 {
				return
			}
		}
		failed = errors.New("the other side keeps the connection")
	})
	return errors.Join(err, failed)
}
