//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where ip-netns(8) keeps the names of namespaces.
const netnsDir = "/run/netns"

// prepared says whether ip-netns(8) has made a namespace for this process: it then
// has set up netnsDir so that a name removed is removed for every process, also one
// that ip-netns started.
var prepared struct {
	sync.Mutex
	done bool
}

// addNamespace does what ip netns add does, the first time by calling it.
func addNamespace(ctx context.Context, name string) error {
	prepared.Lock()
	defer prepared.Unlock()
	if !prepared.done {
		_, err := run(ip(ctx, "netns", "add", name))
		prepared.done = err == nil
		return err
	}
	err := onThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		return ns.Close()
	})
	if err != nil {
		return fmt.Errorf("add namespace %s: %w", name, err)
	}
	return nil
}

// removeNamespace does what ip netns delete does, after it has ended the processes
// in the namespace. One that does not exist is no error.
func removeNamespace(ctx context.Context, name string) error {
	err := killAll(ctx, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end the processes in %s: %w", name, err)
	}
	path := filepath.Join(netnsDir, name)
	// A run that was killed early leaves a name that nothing is mounted at.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount namespace %s: %w", name, err)
	}
	return os.Remove(path)
}

// killAll ends the processes in a namespace and returns when they are gone: the
// children of those that Command started too, and those of a run that crashed.
func killAll(ctx context.Context, name string) error {
	return poll(ctx, func() (bool, error) {
		pids, err := processesIn(name)
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, err
			}
		}
		return len(pids) == 0, err
	})
}

// processesIn does what ip netns pids does.
func processesIn(name string) ([]int, error) {
	ns, err := os.Stat(filepath.Join(netnsDir, name))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() { // its main thread may be in a Do just now
			continue
		}
		its, err := os.Stat(filepath.Join("/proc", e.Name(), "ns/net"))
		if err == nil && os.SameFile(ns, its) { // an error: it has ended
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
