package flows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

const (
	// patience bounds every wait for the kernel.
	patience = 10 * time.Second
	// sample is how many flows of a load are checked.
	sample = 500
)

// host is a structure in a kernel: a node with its pod and its outside; with another node between them if packets are steered.
type host struct {
	structure
	lab  *lab.Lab
	pod  *sender
	sink *sender
	// conntracks are those of the nodes.
	conntracks []*netlink.Handle
	// fast are the fast paths of the nodes, if they have any.
	fast []*fastpath.Path
}

// exit is the node by which packets of bound pods leave.
func (h *host) exit() *lab.Host { return h.lab.Nodes()[len(h.lab.Nodes())-1] }

// newHost builds one with the rules for p.
func newHost(ctx context.Context, s structure, p kernel.Desired) (h *host, err error) {
	h = &host{structure: s}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", s.name, err), h.close())
		}
	}()
	if h.lab, err = lab.New(ctx, lab.Config{Backend: s.backend, Nodes: s.nodes, Pods: 1}); err != nil {
		return h, err
	}
	if err := h.link(ctx); err != nil {
		return h, err
	}
	if h.pod, err = newSender(h.lab.Pod(1), "gen0"); err != nil {
		return h, err
	}
	if h.sink, err = newSender(h.lab.Outside(), "sink0"); err != nil {
		return h, err
	}
	for _, node := range h.lab.Nodes() {
		if err := node.Do(func() error { return h.openConntrack() }); err != nil {
			return h, err
		}
	}
	if err := s.proxier(ctx, h); err != nil {
		return h, err
	}
	return h, s.write(ctx, h, p)
}

func (h *host) openConntrack() error {
	conntrack, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err == nil {
		h.conntracks = append(h.conntracks, conntrack)
	}
	return err
}

// link connects the pod to its node and the outside host to the last one, once more and directly. Answers to pods go by
// the first node.
func (h *host) link(ctx context.Context) error {
	batches := []struct {
		host *lab.Host
		text string
	}{
		{h.lab.Node(), `
link add from0 address ` + mac(macFrom) + ` type veth peer name gen0 address ` + mac(macGenerator) + ` netns ` + h.lab.Pod(1).Name + `
link set from0 up
route add ` + lab.ClusterV4.String() + ` dev from0
`},
		{h.exit(), `
link add to0 address ` + mac(macTo) + ` type veth peer name sink0 address ` + mac(macSink) + ` netns ` + h.lab.Outside().Name + `
link set to0 up
addr add ` + exitIP.String() + `/30 dev to0
route add ` + toOutside.String() + ` via 172.31.0.2 dev to0
neigh add 172.31.0.2 lladdr ` + mac(macNobody) + ` dev to0 nud permanent
`},
		{h.lab.Pod(1), "link set gen0 up\n"},
		{h.lab.Outside(), "link set sink0 up\n"},
	}
	for _, b := range batches {
		if err := b.host.Feed(ctx, b.text, "ip", "-batch", "-"); err != nil {
			return err
		}
	}
	if h.exit() == h.lab.Node() {
		return nil
	}
	_, err := h.exit().Run(ctx, "ip", "route", "add", lab.ClusterV4.String(), "via", h.lab.Node().V4.String())
	return err
}

func mac(last byte) string { return fmt.Sprintf("02:00:00:00:00:%02x", last) }

func (h *host) close() error {
	var errs []error
	for _, s := range []*sender{h.pod, h.sink} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	for _, conntrack := range h.conntracks {
		conntrack.Close()
	}
	for _, path := range h.fast {
		errs = append(errs, path.Close())
	}
	if h.lab != nil {
		errs = append(errs, h.lab.Close())
	}
	return errors.Join(errs...)
}

// flush empties the nodes' conntrack.
func (h *host) flush() error {
	for _, conntrack := range h.conntracks {
		if err := conntrack.ConntrackTableFlush(netlink.ConntrackTable); err != nil {
			return fmt.Errorf("%s: empty conntrack: %w", h.name, err)
		}
	}
	return nil
}

// tracks waits until conntrack of the last node has so many flows: missing ones were not forwarded.
func (h *host) tracks(want int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		have, err := tables.Flows(h.exit())
		switch {
		case err != nil:
			return fmt.Errorf("%s: count flows: %w", h.name, err)
		case have == want:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s: conntrack has %d flows after %d were sent", h.name, have, want)
		}
	}
}

// timed sends frames from a thread that stays on one CPU.
func (h *host) timed(frames []byte) (took figure.Spent, err error) {
	return onOneCPU(func() error { return h.pod.send(frames) })
}

// onOneCPU runs fn on a thread that stays on one CPU, and returns what that thread took.
func onOneCPU(fn func() error) (took figure.Spent, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		if err = stay(); err == nil {
			took, err = figure.Time(figure.ThreadCPU, fn)
		}
	}()
	<-done
	return took, err
}

// stay pins the thread to its last CPU; the first ones have most of the interrupts.
func stay() error {
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("ask for CPUs: %w", err)
	}
	for cpu, left := 0, may.Count(); left > 0; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		if left--; left == 0 {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("stay on one CPU: %w", err)
	}
	return nil
}

// begins sends the first frames of flows, each of another one, and returns what that took.
func (h *host) begins(frames []byte) (took figure.Spent, err error) {
	if err := h.flush(); err != nil {
		return took, err
	}
	if took, err = h.timed(frames); err != nil {
		return took, err
	}
	if err := h.tracks(len(frames) / frameSize); err != nil {
		return took, err
	}
	return took, h.flush()
}

// check begins a load's flows and checks which source addresses the far side sees. It returns what the far
// side saw; the flows stay.
func (h *host) check(load []flow) ([]segment, error) {
	if err := h.awaitLinks(load); err != nil {
		return nil, err
	}
	sink, err := newListener(h.lab.Outside(), "sink0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = sink.close() }() // it has been read
	if err := h.flush(); err != nil {
		return nil, err
	}
	if err := h.pod.send(begin(load)); err != nil {
		return nil, err
	}
	seen, err := sink.receive(len(load), patience)
	if err != nil {
		return nil, err
	}
	return seen, h.judge(load, seen)
}

// judge returns an error unless each flow of a load was seen once, from the right address.
func (h *host) judge(load []flow, seen []segment) error {
	there := make([]bool, len(load))
	for _, s := range seen {
		if int(s.sequence) >= len(load) || there[s.sequence] {
			return fmt.Errorf("%s: saw %+v, which was not sent", h.name, s)
		}
		there[s.sequence] = true
		f := load[s.sequence]
		if want := h.leavesAs(f); s.source.Addr() != want {
			return fmt.Errorf("%s: flow %d of pod %s leaves as %s, want %s", h.name, s.sequence, f.pod, s.source.Addr(), want)
		}
	}
	if len(seen) != len(load) {
		return fmt.Errorf("%s: saw %d of %d flows", h.name, len(seen), len(load))
	}
	return nil
}

// awaitLinks returns when the links carry packets, a moment after they are up.
func (h *host) awaitLinks(load []flow) error {
	sink, err := newListener(h.lab.Outside(), "sink0")
	if err != nil {
		return err
	}
	defer func() { _ = sink.close() }() // it has been read
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := h.pod.send(begin(load[:1])); err != nil {
			return err
		}
		if seen, err := sink.receive(1, 100*time.Millisecond); err != nil || len(seen) > 0 {
			return err
		}
	}
	return fmt.Errorf("%s: no packet of pod %s arrives outside within %s", h.name, load[0].pod, patience)
}

// establish begins a load's flows and has the far side answer them. It tries again if some are not listed as
// established: the list can miss a flow while others come and go.
func (h *host) establish(ctx context.Context, load []flow) (err error) {
	const tries = 5
	for range tries {
		if err = h.tryToEstablish(ctx, load); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (h *host) tryToEstablish(ctx context.Context, load []flow) error {
	seen, err := h.check(load)
	if err != nil {
		return err
	}
	frames := make([]byte, len(seen)*frameSize)
	for i, s := range seen {
		answer(s).put(frames[i*frameSize:])
	}
	if err := errors.Join(h.sink.send(frames), h.pod.send(carryOn(load, len(load))), h.tracks(len(load))); err != nil {
		return err
	}
	for _, node := range h.lab.Nodes() {
		// What it says besides, on standard error, could come into the middle of a line.
		list, err := node.Command(ctx, "conntrack", "-L", "-p", "tcp", "--state", "ESTABLISHED").Output()
		if err != nil {
			return fmt.Errorf("%s: list flows: %w", node.Name, err)
		}
		if n := bytes.Count(list, []byte("[ASSURED]")); n != len(load) {
			return fmt.Errorf("%s: %d of %d flows are established on %s", h.name, n, len(load), node.Name)
		}
	}
	return nil
}
