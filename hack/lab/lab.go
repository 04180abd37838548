//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every single wait for the kernel.
var patience = Stretch(10 * time.Second)

// Config says what to build. The zero value is an IPv4 node without pods.
type Config struct {
	// Prefix of the names of the namespaces: "demo" gives demo-node, demo-node-2,
	// demo-outside, demo-control, demo-router, demo-far, demo-pod-1. Empty means a prefix that no other
	// lab has, and that the lab is nobody's when its process has ended.
	Prefix string
	// Nodes is how many nodes there are; 0 means one.
	Nodes int
	// Pods is how many pods to start with, pod-1 to pod-N, dealt out to the nodes
	// in turn.
	Pods int
	// Control adds a host for a control plane.
	Control bool
	// Far adds a host behind a router, see [Lab.Far].
	Far bool
	// AnswersByARP has answers to an address of the nodes' own network go to the node that
	// says by ARP, or by neighbour discovery, that it has the address. Otherwise they go back to
	// the node that the flow came from, like those to all other addresses.
	AnswersByARP bool
	// IPv6 makes every host dual stack; otherwise IPv6 is disabled everywhere.
	IPv6 bool
	// IPv6Only gives every host IPv6 addresses and no others.
	IPv6Only bool
	// Backend is the iptables flavour of processes on the nodes; empty means NFT.
	Backend Backend
	// Masquerade adds what a CNI plugin adds: whatever leaves the cluster CIDR
	// leaves it as the node.
	Masquerade bool
	// PointToPoint has the CNI plugin ptp make the pods' networks: each pod has an interface of its own on the node and a route to it,
	// and there is no bridge. See [MissingPlugins].
	PointToPoint bool
	// Apart leaves out the routes of nodes to the pods of other nodes: somebody else makes that network.
	Apart bool
}

// Lab is a running topology. Its methods may be called from several goroutines,
// but none after Close.
type Lab struct {
	cfg  Config
	lock net.Listener
	dir  string // of temporary files

	outside *Host
	control *Host // nil without Config.Control
	router  *Host // nil without Config.Far
	far     *Host // nil without Config.Far
	nodes   []*Host

	mu   sync.Mutex
	pods map[int]*Host // those too that are on their way in or out
}

var labs atomic.Int64

// New builds the topology and returns when its links carry packets. What a killed
// process left behind of labs without a prefix, or of one with the same prefix, is
// removed first (see [Remove]); a prefix that another lab is using is an error. When
// New fails it leaves nothing behind.
func New(ctx context.Context, cfg Config) (*Lab, error) {
	if cfg.Backend == "" {
		cfg.Backend = NFT
	}
	cfg.Nodes = max(cfg.Nodes, 1)
	cfg.IPv6 = cfg.IPv6 || cfg.IPv6Only
	if cfg.Nodes > lastNode {
		return nil, fmt.Errorf("lab: %d nodes are too many, at most %d have an address", cfg.Nodes, lastNode)
	}
	if cfg.Pods > cfg.Nodes*lastPod {
		return nil, fmt.Errorf("lab: %d pods are too many, at most %d have an address on a node", cfg.Pods, lastPod)
	}
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	lock, err := reserveFor(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg, lock: lock, pods: map[int]*Host{}}
	if err := l.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lab %s: %w", cfg.Prefix, err), l.Close())
	}
	return l, nil
}

// reserveFor takes the configured prefix, or one that nobody has.
func reserveFor(ctx context.Context, cfg *Config) (net.Listener, error) {
	if cfg.Prefix != "" {
		return reserve(ctx, cfg.Prefix)
	}
	for {
		cfg.Prefix = ownPrefix("lab")
		lock, err := reserve(ctx, cfg.Prefix)
		// Somebody may be removing what is left of it, if this process has the ID of an earlier one.
		if !errors.Is(err, unix.EADDRINUSE) {
			return lock, err
		}
	}
}

// ownPrefix returns a prefix that no other lab of this process has.
func ownPrefix(kind string) string { return fmt.Sprintf("%s-%d-%d", kind, os.Getpid(), labs.Add(1)) }

// reserve takes the prefix for this lab. The lock is an abstract socket: the
// kernel gives it back when the process ends, however it ends.
func reserve(ctx context.Context, prefix string) (net.Listener, error) {
	lock, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@origin-node-lab-"+prefix)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("lab: prefix %q is in use by another lab; choose another or end that one: %w", prefix, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: reserve prefix %q: %w", prefix, err)
	}
	return lock, nil
}

func (l *Lab) build(ctx context.Context) error {
	steps := []func(context.Context) error{
		l.removeLeftovers, l.makeDir, l.addOutside, l.addControl, l.addFar, l.addNodes, l.linkTools, l.addRoutes, l.replyTo,
		l.masquerade, l.addPods,
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
// namespaces and all temporary files. Calling it again does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil
	}
	for _, h := range l.hosts() {
		h.close()
	}
	err := errors.Join(remove(context.Background(), l.cfg.Prefix), l.lock.Close())
	l.lock = nil
	return err
}

func (l *Lab) hosts() []*Host {
	hosts := append(slices.Collect(maps.Values(l.pods)), l.underlay()...)
	if l.far != nil {
		hosts = append(hosts, l.far)
	}
	return hosts
}

// underlay are the hosts that are plugged into lan0, and the one that has it.
func (l *Lab) underlay() []*Host {
	hosts := slices.Clone(l.nodes)
	for _, h := range []*Host{l.control, l.router, l.outside} {
		if h != nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Node returns the first node.
func (l *Lab) Node() *Host { return l.nodes[0] }

// Nodes returns every node.
func (l *Lab) Nodes() []*Host { return slices.Clone(l.nodes) }

// Outside returns the host outside the cluster.
func (l *Lab) Outside() *Host { return l.outside }

// Far returns a host outside the cluster that is not on the nodes' network, but behind a router
// which is; nil without Config.Far.
func (l *Lab) Far() *Host { return l.far }

// Router returns the router that [Lab.Far] is behind; nil without Config.Far.
func (l *Lab) Router() *Host { return l.router }

// Control returns the host for a control plane, nil without Config.Control.
func (l *Lab) Control() *Host { return l.control }

// Pod returns pod-i, the first being Pod(1); nil when there is none.
func (l *Lab) Pod(i int) *Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.pods[i]; h != nil && h.ready {
		return h
	}
	return nil
}

// AddPod is AddPodOn the first node.
func (l *Lab) AddPod() (*Host, error) { return l.AddPodOn(l.Node()) }

// AddPodOn starts a pod on a node. It takes the lowest free number, and of the
// node's pod network the lowest free address, so that of a pod removed before: an
// address that changes hands is what a proxy must get right. Add before removing
// to get a new address.
func (l *Lab) AddPodOn(node *Host) (*Host, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.addPod(ctx, node, l.startPod)
}

// AddSandboxOn makes a pod on a node without a network, which the caller gives it: its V4 and V6 are invalid. RemovePod
// removes it.
func (l *Lab) AddSandboxOn(node *Host) (*Host, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.addPod(ctx, node, func(ctx context.Context, h *Host) error { return h.create(ctx) })
}

// RemovePod ends a pod with its processes, servers and flows. h is of no use
// afterwards; its number and addresses are free when RemovePod returns.
func (l *Lab) RemovePod(h *Host) error {
	l.mu.Lock()
	ours := h.ready && h.lab == l
	h.ready = false
	l.mu.Unlock()
	if !ours {
		return fmt.Errorf("lab: %s is not a pod of lab %s", h.Name, l.cfg.Prefix)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.discard(ctx, h)
}

// discard removes whatever there is of a pod.
func (l *Lab) discard(ctx context.Context, h *Host) error {
	h.close()
	err := errors.Join(h.uplink.remove(), removeNamespace(ctx, h.Name))
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pods, func(_ int, pod *Host) bool { return pod == h })
	return err
}

func (l *Lab) addPods(ctx context.Context) error {
	for i := range l.cfg.Pods {
		if _, err := l.addPod(ctx, l.nodes[i%len(l.nodes)], l.startPod); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) masquerade(ctx context.Context) error {
	if !l.cfg.Masquerade {
		return nil
	}
	for _, cidr := range l.families(ClusterV4, ClusterV6) {
		tool := "iptables"
		if cidr.Addr().Is6() {
			tool = "ip6tables"
		}
		for _, node := range l.nodes {
			_, err := node.Run(ctx, tool, "-w", "-t", "nat", "-A", "POSTROUTING", "-s", cidr.String(), "!", "-d", cidr.String(),
				"-m", "comment", "--comment", "the CNI's masquerade", "-j", "MASQUERADE")
			if err != nil {
				return err
			}
		}
	}
	return nil
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
