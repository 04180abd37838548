//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// netnsDir is where ip-netns(8) keeps the names of namespaces.
	netnsDir = "/run/netns"
	// patience bounds every single wait for the kernel.
	patience = 10 * time.Second
)

// Config says what to build. The zero value is an IPv4 node without pods.
type Config struct {
	// Prefix of the names of the namespaces: "demo" gives demo-node,
	// demo-outside, demo-pod-1. Empty means a prefix that no other lab has.
	Prefix string
	// Pods is how many pods to start with, pod-1 to pod-N.
	Pods int
	// IPv6 makes every host dual stack; otherwise IPv6 is disabled everywhere.
	IPv6 bool
	// Backend is the iptables flavour of processes on the node; empty means NFT.
	Backend Backend
	// Masquerade adds what a CNI plugin adds: whatever leaves the cluster CIDR
	// leaves it as the node.
	Masquerade bool
}

// Lab is a running topology. Its methods may be called from several goroutines,
// but none after Close.
type Lab struct {
	cfg    Config
	lock   net.Listener
	binDir string

	mu      sync.Mutex
	node    *Host
	outside *Host
	pods    map[int]*Host
}

var labs atomic.Int64

// New builds the topology and returns when its links carry packets. Namespaces
// that a crashed run with the same prefix left behind are removed first, with
// the processes in them; a prefix that another lab is using is an error. When New
// fails it leaves nothing behind.
func New(ctx context.Context, cfg Config) (*Lab, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = fmt.Sprintf("lab-%d-%d", os.Getpid(), labs.Add(1))
	}
	if cfg.Backend == "" {
		cfg.Backend = NFT
	}
	if cfg.Pods > lastPod {
		return nil, fmt.Errorf("lab: %d pods are too many, at most %d have an address", cfg.Pods, lastPod)
	}
	lock, err := reserve(ctx, cfg.Prefix)
	if err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg, lock: lock, pods: map[int]*Host{}}
	if err := l.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lab %s: %w", cfg.Prefix, err), l.Close())
	}
	return l, nil
}

// reserve takes the prefix for this lab. The lock is an abstract socket: the
// kernel gives it back when the process ends, however it ends.
func reserve(ctx context.Context, prefix string) (net.Listener, error) {
	lock, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@origin-node-lab-"+prefix)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("lab: prefix %q is in use by another lab; choose another or end that one", prefix)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: reserve prefix %q: %w", prefix, err)
	}
	return lock, nil
}

func (l *Lab) build(ctx context.Context) error {
	steps := []func(context.Context) error{
		l.removeNamespaces, l.addOutside, l.addNode, l.addPods, l.linkTools, l.masquerade,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every server and flow, kills every process that still runs in one of
// the namespaces (a shell that somebody opened there too) and removes the
// namespaces and the temporary directory. Calling it again does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil
	}
	for _, h := range l.hosts() {
		h.close()
	}
	err := l.removeNamespaces(context.Background())
	if l.binDir != "" {
		err = errors.Join(err, os.RemoveAll(l.binDir))
	}
	err = errors.Join(err, l.lock.Close())
	l.lock = nil
	return err
}

func (l *Lab) hosts() []*Host {
	var hosts []*Host
	for _, h := range l.pods {
		hosts = append(hosts, h)
	}
	if l.node != nil {
		hosts = append(hosts, l.node)
	}
	if l.outside != nil {
		hosts = append(hosts, l.outside)
	}
	return hosts
}

// Node returns the node.
func (l *Lab) Node() *Host { return l.node }

// Outside returns the host outside the cluster.
func (l *Lab) Outside() *Host { return l.outside }

// Pod returns pod-i, the first being Pod(1); nil when there is none.
func (l *Lab) Pod(i int) *Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods[i]
}

// AddPod starts a pod. It takes the lowest free number and with it the address of
// a pod removed before: an address that changes hands is what a proxy must get
// right. Add before removing to get a new address.
func (l *Lab) AddPod() (*Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.addPod(ctx)
}

// RemovePod ends a pod with its processes, servers and flows. h is of no use
// afterwards.
func (l *Lab) RemovePod(h *Host) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, pod := range l.pods {
		if pod != h {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		delete(l.pods, i)
		h.close()
		return errors.Join(l.node.removeLink(podPort(i)), removeNamespace(ctx, h.Name))
	}
	return fmt.Errorf("lab: %s is not a pod of lab %s", h.Name, l.cfg.Prefix)
}

func (l *Lab) addPods(ctx context.Context) error {
	for range l.cfg.Pods {
		if _, err := l.addPod(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) masquerade(ctx context.Context) error {
	if !l.cfg.Masquerade {
		return nil
	}
	rules := map[string]string{"iptables": ClusterV4.String()}
	if l.cfg.IPv6 {
		rules["ip6tables"] = ClusterV6.String()
	}
	for tool, cidr := range rules {
		_, err := l.node.Run(ctx, tool, "-w", "-t", "nat", "-A", "POSTROUTING", "-s", cidr, "!", "-d", cidr,
			"-m", "comment", "--comment", "the CNI's masquerade", "-j", "MASQUERADE")
		if err != nil {
			return err
		}
	}
	return nil
}

// removeNamespaces removes every namespace that bears a name of this lab, whether
// this run made it or an earlier one.
func (l *Lab) removeNamespaces(ctx context.Context) error {
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list namespaces: %w", err)
	}
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(l.cfg.Prefix) + "-(node|outside|pod-[0-9]+)$")
	var errs []error
	for _, e := range entries {
		if ours.MatchString(e.Name()) {
			errs = append(errs, removeNamespace(ctx, e.Name()))
		}
	}
	return errors.Join(errs...)
}

func removeNamespace(ctx context.Context, name string) error {
	if err := killAll(ctx, name); err != nil {
		return fmt.Errorf("end the processes in %s: %w", name, err)
	}
	_, err := run(ip(ctx, "netns", "delete", name))
	return err
}

// killAll ends the processes in a namespace and returns when they are gone: the
// children of those that Command started too, and those of a run that crashed.
func killAll(ctx context.Context, name string) error {
	return poll(ctx, func() (bool, error) {
		out, err := run(ip(ctx, "netns", "pids", name))
		if err != nil {
			return false, err
		}
		gone := true
		for _, field := range strings.Fields(out) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return false, err
			}
			if pid == os.Getpid() { // its main thread is in a Do just now
				continue
			}
			gone = false
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, err
			}
		}
		return gone, nil
	})
}

// poll calls done until it returns true or an error, ctx ends or patience does.
func poll(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
