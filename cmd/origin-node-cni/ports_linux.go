package main

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime" // as a test has another

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/cni"
)

// localPorts is the setting of the source ports that the kernel chooses from, of IPv4 and of IPv6.
const localPorts = "/proc/sys/net/ipv4/ip_local_port_range"

// setLocalPorts has what runs in a network namespace use these source ports, unless it asks for others.
func setLocalPorts(netns string, ports cni.Ports) error {
	failed := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread is in the pod's network namespace, and ends
		failed <- writeLocalPorts(netns, ports)
	}()
	return <-failed
}

// writeLocalPorts has this thread enter a network namespace.
func writeLocalPorts(netns string, ports cni.Ports) error {
	namespace, err := os.Open(netns)
	if err != nil {
		return fmt.Errorf("opening the pod's network namespace: %w", err)
	}
	err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
	if err = errors.Join(err, namespace.Close()); err != nil {
		return fmt.Errorf("entering the pod's network namespace %s: %w", netns, err)
	}
	if err := os.WriteFile(localPorts, fmt.Appendf(nil, "%d %d", ports.First, ports.Last), 0); err != nil {
		return fmt.Errorf("writing %d %d to %s in the pod's network namespace %s: %w", ports.First, ports.Last, localPorts, netns, err)
	}
	return nil
}
