package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime" // as a test has another
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/cni"
)

// passWait is how long the plugin tries to pass the setting to the node. The pod starts all the same.
const passWait = 500 * time.Millisecond

// setLocalPorts has what runs in a network namespace use these source ports, unless it asks for others. It returns the setting, open.
func setLocalPorts(netns string, ports cni.Ports) (setting *os.File, err error) {
	type result struct {
		setting *os.File
		err     error
	}
	done := make(chan result, 1)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread is in the pod's network namespace, and ends
		setting, err := writeLocalPorts(netns, ports)
		done <- result{setting, err}
	}()
	r := <-done
	return r.setting, r.err
}

// writeLocalPorts has this thread enter a network namespace.
func writeLocalPorts(netns string, ports cni.Ports) (*os.File, error) {
	namespace, err := os.Open(netns)
	if err != nil {
		return nil, fmt.Errorf("opening the pod's network namespace: %w", err)
	}
	err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
	if err = errors.Join(err, namespace.Close()); err != nil {
		return nil, fmt.Errorf("entering the pod's network namespace %s: %w", netns, err)
	}
	setting, err := os.OpenFile(cni.LocalPortsFile, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s in the pod's network namespace %s: %w", cni.LocalPortsFile, netns, err)
	}
	if _, err := fmt.Fprintf(setting, "%d %d", ports.First, ports.Last); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %d %d to %s in the pod's network namespace %s: %w", ports.First, ports.Last, cni.LocalPortsFile, netns, err), setting.Close())
	}
	return setting, nil
}

// passLocalPorts passes the open setting to the node, which can give the pod more ports with it when its own are in use. A node that does
// not take it gives none; the pod starts.
func (c *config) passLocalPorts(containerID string, setting *os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), passWait)
	defer cancel()
	if err := cni.NewClient(c.Socket).PassLocalPorts(ctx, containerID, setting); err != nil {
		fmt.Fprintf(os.Stderr, "origin-node-cni: the container %s gets no more source ports when those that it has are in use, because the node did not take their setting: %v\n", containerID, err)
	}
}
