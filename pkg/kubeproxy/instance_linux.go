package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// instanceSocket is the abstract unix socket (unix(7)) of the one process that writes the
// rules of a network namespace. The kernel keeps such a name for each network namespace, as
// it keeps the rules, wherever the process has its files: a container on the host's network
// and a process of the host are noticed. It ends with its process, however that ends.
const instanceSocket = "@openshift/origin-node"

// claimInstance makes this process the one of its network namespace until release is called
// or it ends. It is an error if another node's process is: the two would undo each other's
// work. The name may be taken by anybody, so whoever has neither root's nor this process's
// user is not taken for a node, which the log says.
func claimInstance(ctx context.Context) (release func(), err error) {
	const patience, pause = time.Second, 50 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		listener, err := net.Listen("unix", instanceSocket)
		if err == nil {
			go hangUp(listener)
			return func() { _ = listener.Close() }, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("seeing whether another node's process runs in this network namespace: %w", err)
		}
		holder, err := askInstance()
		unanswered := errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EAGAIN)
		switch {
		case unanswered && time.Now().Before(deadline):
			time.Sleep(pause) // it has just begun, or ended
			continue
		case unanswered:
			err = fmt.Errorf("nobody answers there: %w", err)
		case err != nil:
			return nil, fmt.Errorf("another process has the socket %s, so a node's process may run in this network namespace already, and it cannot be asked: %w", instanceSocket, err)
		case holder.Uid == 0 || int(holder.Uid) == os.Geteuid():
			return nil, fmt.Errorf("a node's process runs in this network namespace already: %s. Two would undo each other's work: end that one first, or do not start this one", nameOf(holder.Pid))
		default:
			err = fmt.Errorf("it is %s, of user %d", nameOf(holder.Pid), holder.Uid)
		}
		klog.FromContext(ctx).Error(err, "Somebody who is no node has the socket by which a second node's process would be noticed; running without", "socket", instanceSocket)
		return func() {}, nil
	}
}

// hangUp lets those who ask know who listens, and no more.
func hangUp(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

// askInstance returns who listens.
func askInstance() (*unix.Ucred, error) {
	conn, err := net.DialTimeout("unix", instanceSocket, time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var holder *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { holder, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return holder, errors.Join(err, failed)
}

// nameOf names a process for people. One that lives among processes that this one does not
// see, in another container, has no number.
func nameOf(pid int32) string {
	if pid == 0 {
		return "a process in another container"
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d, %q", pid, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
}
