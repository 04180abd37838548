//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is one network namespace.
type Host struct {
	// Name of the namespace, for ip netns exec.
	Name string
	// V4 and V6 are its addresses; the zero Addr for a family that the lab is
	// without.
	V4, V6 netip.Addr
	// Node is the node of a pod, nil for any other host.
	Node *Host

	lab    *Lab
	handle sync.RWMutex // of ns: somebody may enter it while close closes it
	ns     netns.NsHandle
	nl     *netlink.Handle
	dev    string // has V4 and V6
	uplink uplink // the other end of eth0
	index  int    // of a node, from 0
	number int    // of a pod in the network of its node
	ready  bool   // for others to know of, a pod; under the lock of the lab

	// alive ends with the host, and its processes with it.
	alive context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	closed bool
	open   []io.Closer // servers and flows
}

func (l *Lab) newHost(name string) *Host {
	h := &Host{Name: l.cfg.Prefix + "-" + name, lab: l, ns: netns.None()}
	h.alive, h.end = context.WithCancel(context.Background())
	return h
}

// create makes the namespace with nothing in it but lo. What there is after an
// error, the caller closes and removes.
func (h *Host) create(ctx context.Context) error {
	if err := addNamespace(ctx, h.Name); err != nil {
		return err
	}
	return h.enter()
}

// enter opens the namespace and sets it up.
func (h *Host) enter() (err error) {
	if h.ns, err = netns.GetFromName(h.Name); err != nil {
		return fmt.Errorf("open namespace %s: %w", h.Name, err)
	}
	if err := h.set(hostSysctls, h.lab.ipv6Sysctls()); err != nil {
		return err
	}
	err = h.Do(func() error {
		h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: open netlink: %w", h.Name, err)
	}
	return h.setUp("lo")
}

// close ends what this process started and has open in the namespace: any of it
// would keep the namespace alive.
func (h *Host) close() {
	h.end()
	h.mu.Lock()
	open := h.open
	h.closed, h.open = true, nil
	h.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // its owner may have closed it already
	}
	if h.nl != nil {
		h.nl.Close()
	}
	h.handle.Lock()
	defer h.handle.Unlock()
	if h.ns.IsOpen() {
		_ = h.ns.Close()
	}
}

// track has c closed with the host.
func (h *Host) track(c io.Closer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return fmt.Errorf("%s is closed", h.Name)
	}
	h.open = append(h.open, c)
	return nil
}

// Do runs fn on a thread in the host's namespace, in a goroutine of its own, and
// returns its error. A socket that fn opens stays in the namespace; a goroutine
// that fn starts is not in it. fn must return: t.Fatal inside is an error of Do.
func (h *Host) Do(fn func() error) error {
	return onThread(func() error {
		h.handle.RLock()
		err := netns.Set(h.ns)
		h.handle.RUnlock()
		if err != nil {
			return fmt.Errorf("enter namespace %s: %w", h.Name, err)
		}
		return fn()
	})
}

// onThread runs fn, which may leave the thread in another namespace, in a
// goroutine of its own. If the way back fails the thread stays locked to the
// goroutine, and Go ends it with that: no other goroutine ever runs in the wrong
// namespace (cilium/cilium#30932).
func onThread(fn func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine")
		defer func() { result <- err }()
		runtime.LockOSThread()
		home, failed := netns.Get()
		if failed != nil {
			runtime.UnlockOSThread()
			err = fmt.Errorf("open the namespace of this thread: %w", failed)
			return
		}
		defer func() {
			if netns.Set(home) == nil {
				runtime.UnlockOSThread()
			}
			_ = home.Close()
		}()
		err = fn()
	}()
	return <-result
}

// DialContext connects from the namespace; it fits fields named Dial and
// DialContext. The address must be a literal: a resolver would ask from another
// goroutine, so from another namespace. The caller closes the connection.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.connect(ctx, &net.Dialer{}, network, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	return c, nil
}

func (h *Host) connect(ctx context.Context, d *net.Dialer, network, address string) (c net.Conn, err error) {
	if _, err := netip.ParseAddrPort(address); err != nil && !strings.HasPrefix(network, "ip") {
		return nil, err
	}
	err = h.Do(func() error {
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Listen listens in the namespace, on a literal address like ":6443". The listener
// ends with the host at the latest; the caller closes the connections that it accepts.
func (h *Host) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	var config net.ListenConfig
	err = h.Do(func() error {
		l, err = config.Listen(ctx, network, address)
		return err
	})
	if err == nil {
		err = h.track(l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	return l, nil
}

// XtablesLock is the file that iptables locks in processes of the host: a node's own,
// as if each were a machine. They wait as long as somebody holds it (flock(2)).
func (h *Host) XtablesLock() string { return filepath.Join(h.lab.dir, h.Name+".lock") }

// Command is exec.CommandContext for a process in the namespace, with the
// environment of [Lab.Env] and its own [Host.XtablesLock]. Its PID is that of the named program. It has a /sys
// of its own (see ip-netns(8)) and is killed at the latest with the host, and so
// are its children. The caller waits for its end.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	// The namespace cannot tell of a process that is only on its way into it, so
	// killAll alone would miss one.
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(h.alive, cancel)
	cmd := ip(ctx, append([]string{"netns", "exec", h.Name, name}, args...)...)
	cmd.Env = append(h.lab.Env(), "XTABLES_LOCKFILE="+h.XtablesLock())
	return cmd
}

// Start starts a command that is killed at the latest when this process ends, however
// it ends: nobody else would. ended is closed when the command has ended; its
// ProcessState then has the status.
func Start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		// The signal is sent when the thread ends that has started the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the status is in its ProcessState
			close(done)
		}
	}()
	return done, <-started
}

// Run runs a command to its end and returns its standard output and standard
// error together; an error repeats them.
func (h *Host) Run(ctx context.Context, name string, args ...string) (string, error) {
	return run(h.Command(ctx, name, args...))
}

// Feed runs a command to its end with this standard input; an error repeats what the command has printed.
func (h *Host) Feed(ctx context.Context, input, name string, args ...string) error {
	cmd := h.Command(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	_, err := run(cmd)
	return err
}

func ip(ctx context.Context, args ...string) *exec.Cmd {
	tool := "ip"
	if path, err := find(tool); err == nil {
		tool = path
	}
	return exec.CommandContext(ctx, tool, args...)
}

func run(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
