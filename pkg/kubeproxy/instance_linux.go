package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// instanceSocket is an abstract unix socket (unix(7)). The kernel keeps such a name for each
// network namespace, as it keeps the rules, wherever the process has its files: a container
// on the host's network and a process of the host meet here.
const instanceSocket = "@openshift/origin-node"

// instanceFolder has the lock files. It is also the unit's runtime directory.
const instanceFolder = "/run/origin-node"

// instancePatience is how long a holder is given to answer or to go: another node process may
// just have begun, or just have ended.
const instancePatience, instancePause = time.Second, 50 * time.Millisecond

// claimInstance makes this process the only node process of its network namespace until
// release is called or it ends, however it ends. It is an error if there is another one: the
// two would undo each other's changes.
//
// Two things are claimed. The lock file in folder decides among processes that share /run:
// only root can open it. The socket is for a container that does not share /run. Any process
// can take its name, so only a holder that looks like a node keeps this process away; for any
// other one the log says which process to end.
func claimInstance(ctx context.Context, folder string) (release func(), err error) {
	releaseSocket, err := claimSocket(ctx)
	if err != nil {
		return nil, err
	}
	releaseLock, err := claimLock(ctx, folder)
	if err != nil {
		releaseSocket()
		return nil, err
	}
	return func() { releaseLock(); releaseSocket() }, nil
}

func errSecondInstance(first holder) error {
	return fmt.Errorf("another node process runs in this network namespace: %s. Two would undo each other's changes: stop that one first, or do not start this one", first)
}

// claimSocket listens on the socket. It is an error if a node process does.
func claimSocket(ctx context.Context) (release func(), err error) {
	for deadline := time.Now().Add(instancePatience); ; time.Sleep(instancePause) {
		listener, err := net.Listen("unix", instanceSocket)
		if err == nil {
			go hangUp(listener)
			return func() { _ = listener.Close() }, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("checking for another node process in this network namespace: %w", err)
		}
		first, err := askSocket()
		if err != nil {
			if time.Now().Before(deadline) {
				continue
			}
			first = findSocketHolder()
		}
		if first.isNode() {
			return nil, errSecondInstance(first)
		}
		klog.FromContext(ctx).Error(fmt.Errorf("the socket %s is held by %s", instanceSocket, first),
			"A process that is not a node has taken the socket by which node processes find each other; starting without it. End that process, then restart this node")
		return func() {}, nil
	}
}

// hangUp lets those who connect see which process listens, and nothing else.
func hangUp(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

// claimLock locks the file in folder that stands for this network namespace. It is an error
// if another process has locked it. Without a file that only root can open there is no lock,
// which is logged: the node's work does not depend on it.
func claimLock(ctx context.Context, folder string) (release func(), err error) {
	path, err := lockPath(folder)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Starting without the lock file that keeps a second node process away; make its folder one that only root can write to", "folder", folder)
		return func() {}, nil
	}
	for deadline := time.Now().Add(instancePatience); ; time.Sleep(instancePause) {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		held := errors.Is(err, unix.EWOULDBLOCK)
		switch {
		case err == nil && isAt(file, path):
			return func() { _ = os.Remove(path); file.Close() }, nil
		case held && time.Now().After(deadline):
			err = errSecondInstance(findLockHolder(file))
			file.Close()
			return nil, err
		case err != nil && !held:
			file.Close()
			klog.FromContext(ctx).Error(err, "Starting without the lock file that keeps a second node process away", "file", path)
			return func() {}, nil
		}
		file.Close() // the holder has just removed the file, or is about to end
	}
}

// lockPath returns the name of the lock file of this network namespace. The folder is made if
// it is missing.
func lockPath(folder string) (string, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	var in, namespace unix.Stat_t
	if err := unix.Lstat(folder, &in); err != nil {
		return "", fmt.Errorf("looking at %s: %w", folder, err)
	}
	if in.Mode&unix.S_IFMT != unix.S_IFDIR || int(in.Uid) != os.Geteuid() || in.Mode&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder that only this process's user can write to", folder)
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &namespace); err != nil {
		return "", fmt.Errorf("finding the network namespace: %w", err)
	}
	return filepath.Join(folder, fmt.Sprintf("netns-%d.lock", namespace.Ino)), nil
}

// isAt tells whether a file still has its name.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}
