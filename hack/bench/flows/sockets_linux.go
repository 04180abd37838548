package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

const (
	streamPort = 5001
	streamTime = time.Second

	// count is how many datagrams of messageSize bytes are sent on a flow.
	count       = 20_000
	messageSize = 64
)

// between begins the name of a row.
const between = "packets of an established flow between sockets, "

// Sockets is the figure of what is seen of steering from a socket in a pod to one outside.
func Sockets() figure.Figure { return figure.Figure{Name: "steering/sockets", Run: runSockets} }

// runSockets compares a bound pod whose node has its egress IP with one on another node, and an unbound pod on the node of
// either with one on a node without steering.
func runSockets(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	s = s.AtMost(9)
	var streams, packets []figure.Case
	var nodes []*lab.Host
	for _, way := range []struct {
		structure
		transport steering.Transport
		holder    int
		fast      bool
	}{
		{local, steering.VXLAN, 0, false}, {vxlan, steering.VXLAN, 1, false}, {direct, steering.Direct, 1, false},
		{unsteered, "", 0, false}, {fastVXLAN, steering.VXLAN, 1, true}, {fastDirect, steering.Direct, 1, true},
	} {
		w, err := newSocketWay(ctx, way.transport, way.holder, way.fast)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		defer func() { err = errors.Join(err, w.close()) }()
		nodes = append(nodes, w.lab.Nodes()...)
		perPacket := figure.Quantity{Name: "Socket", Unit: "ns/op", N: count}
		streams = append(streams, figure.One("way="+way.name, figure.Quantity{Name: "Stream", Unit: "Gbit/s", N: 1}, func(ctx context.Context) (float64, error) {
			return stream(ctx, w.lab)
		}))
		for _, pod := range w.pods() {
			packets = append(packets, figure.One(fmt.Sprintf("way=%s/bound=%v", way.name, pod == w.lab.Pod(1)), perPacket, func(ctx context.Context) (float64, error) {
				flow, err := establish(ctx, w.lab, pod)
				if err != nil {
					return 0, err
				}
				took, err := flow.send(count)
				return float64(took.CPU.Nanoseconds()) / count, errors.Join(err, flow.close())
			}))
		}
	}
	rates, err := s.Measure(ctx, append(streams[:3:3], streams[4:]...)...)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes { // a packet that comes from another machine has its checksums
		if err := node.Offload("eth0", false); err != nil {
			return nil, err
		}
	}
	costs, err := s.Measure(ctx, packets...)
	if err != nil {
		return nil, err
	}
	return []figure.Result{
		{Name: between + "CPU: steered by vxlan ÷ local", Measured: figure.Ratio(costs[2][0], costs[0][0]), Target: figure.AtMost(2.3)},
		{Name: between + "CPU: steered by direct ÷ local", Measured: figure.Ratio(costs[4][0], costs[0][0]), Target: figure.AtMost(1.7)},
		{Name: between + "rate of unbound pods: with ÷ without steering", Measured: figure.Ratio(costs[7][0], costs[1][0]), Target: figure.AtLeast(0.98)},
		{Name: between + "rate of unbound pods: on a node that steers ÷ without steering", Measured: figure.Ratio(costs[7][0], costs[3][0]), Target: figure.AtLeast(0.98)},
		{Name: between + "rate of unbound pods: on a node that steers, fast path ÷ without steering", Measured: figure.Ratio(costs[7][0], costs[9][0]), Target: figure.AtLeast(0.98)},
		{Name: between + "CPU: steered by vxlan, fast path ÷ local", Measured: figure.Ratio(costs[8][0], costs[0][0]), Target: figure.AtMost(1.45)},
		{Name: between + "CPU: steered by direct, fast path ÷ local", Measured: figure.Ratio(costs[10][0], costs[0][0]), Target: figure.AtMost(1.45)},
		{Name: "one TCP stream of a pod, rate: steered by vxlan ÷ local", Measured: figure.Ratio(rates[1][0], rates[0][0])},
		{Name: "one TCP stream of a pod, rate: steered by vxlan, fast path ÷ without it", Measured: figure.Ratio(rates[3][0], rates[1][0]), Target: figure.AtLeast(1)},
		{Name: "one TCP stream of a pod, rate: steered by direct, fast path ÷ without it", Measured: figure.Ratio(rates[4][0], rates[2][0]), Target: figure.AtLeast(1)},
		{Name: "one TCP stream of a pod, rate: steered by direct ÷ local", Measured: figure.Ratio(rates[2][0], rates[0][0])},
	}, nil
}

// streamIP is of the network of the nodes: answers go to the node that has it.
var streamIP = netip.MustParseAddr("192.0.2.100")

// socketWay is a lab of two nodes. The first node has two pods that send, the first of which is bound.
type socketWay struct {
	lab  *lab.Lab
	plan kernel.Desired
	// places are the indices of the node's interfaces behind which these pods are.
	places map[netip.Addr]int
	fast   []*fastpath.Path
}

// newSocketWay puts the egress IP on a node. Without a transport nothing is steered.
func newSocketWay(ctx context.Context, transport steering.Transport, holder int, fast bool) (w *socketWay, err error) {
	w = &socketWay{plan: planOf(0, fewNodes), places: map[netip.Addr]int{}}
	if w.lab, err = lab.New(ctx, lab.Config{Nodes: 2, Pods: 3, AnswersByARP: true, Masquerade: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for _, pod := range w.pods() {
		out, err := pod.Run(ctx, "cat", "/sys/class/net/eth0/iflink")
		if err != nil {
			return w, err
		}
		if w.places[pod.V4], err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
			return w, err
		}
	}
	if fast {
		if w.fast, err = fastPaths(w.lab.Nodes(), false); err != nil {
			return w, err
		}
		w.fast[0].Place(w.places)
	}
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP} {
		w.plan.Bindings = append(w.plan.Bindings, kernel.Binding{Pod: w.lab.Pod(1).V4, Protocol: protocol, EgressIP: streamIP})
	}
	nodes := w.lab.Nodes()
	if err := nodes[holder].TakeAddr(streamIP); err != nil {
		return w, err
	}
	if transport == "" {
		return w, nodes[holder].Do(func() error { return tables.Table(ctx, w.plan) })
	}
	return w, steerTo(ctx, nodes, nodes[holder], transport, w.fast, w.plan)
}

// pods are a bound one and one that is not.
func (w *socketWay) pods() []*lab.Host { return []*lab.Host{w.lab.Pod(1), w.lab.Pod(3)} }

func (w *socketWay) close() (err error) {
	for _, path := range w.fast {
		err = errors.Join(err, path.Close())
	}
	return errors.Join(err, w.lab.Close())
}

// stream sends for a while, and returns what arrived in Gbit/s.
func stream(ctx context.Context, l *lab.Lab) (rate float64, err error) {
	listener, err := l.Outside().Listen(ctx, "tcp4", fmt.Sprintf(":%d", streamPort))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	client, err := l.Pod(1).DialContext(ctx, "tcp4", netip.AddrPortFrom(l.Outside().V4, streamPort).String())
	if err != nil {
		return 0, err
	}
	server, err := listener.Accept()
	if err != nil {
		return 0, errors.Join(err, client.Close())
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if from := server.RemoteAddr().String(); netip.MustParseAddrPort(from).Addr() != streamIP {
		return 0, errors.Join(fmt.Errorf("the pod is seen as %s, want %s", from, streamIP), client.Close())
	}
	sent := make(chan error, 1)
	began := time.Now()
	go func() {
		block := make([]byte, 256<<10)
		for time.Since(began) < streamTime {
			if _, err := client.Write(block); err != nil {
				sent <- errors.Join(err, client.Close())
				return
			}
		}
		sent <- client.Close()
	}()
	got, err := io.Copy(io.Discard, server)
	return float64(8*got) / float64(time.Since(began).Nanoseconds()), errors.Join(err, <-sent)
}

// streamAfter is when conntrack takes what goes on for a stream: after two seconds.
const streamAfter = 2100 * time.Millisecond

// socketFlow is a UDP flow of a pod to the host outside, which has been answered.
type socketFlow struct {
	client *net.UDPConn
	server *net.UDPConn
}

// establish begins a flow, and checks where it leaves.
func establish(ctx context.Context, l *lab.Lab, pod *lab.Host) (f socketFlow, err error) {
	err = l.Outside().Do(func() error {
		f.server, err = net.ListenUDP("udp4", &net.UDPAddr{Port: streamPort})
		return err
	})
	if err != nil {
		return f, err
	}
	client, err := pod.DialContext(ctx, "udp4", netip.AddrPortFrom(l.Outside().V4, streamPort).String())
	if err != nil {
		return f, errors.Join(err, f.server.Close())
	}
	f.client = client.(*net.UDPConn)
	message := make([]byte, messageSize)
	for i := range 2 { // so that conntrack has seen both directions
		time.Sleep(time.Duration(i) * streamAfter)
		if err := f.exchange(pod.Name, message, pod == l.Pod(1)); err != nil {
			return f, errors.Join(err, f.close())
		}
	}
	return f, nil
}

func (f socketFlow) exchange(pod string, message []byte, bound bool) error {
	if _, err := f.client.Write(message); err != nil {
		return err
	}
	_, from, err := f.server.ReadFromUDPAddrPort(message)
	if err != nil {
		return err
	}
	if bound != (from.Addr() == streamIP) {
		return fmt.Errorf("%s is seen as %s", pod, from)
	}
	if _, err := f.server.WriteToUDPAddrPort(message, from); err != nil {
		return err
	}
	_, err = f.client.Read(message)
	return err
}

func (f socketFlow) close() error { return errors.Join(f.client.Close(), f.server.Close()) }

// send sends so many datagrams, and returns what that took. Whether they find room in the socket outside does not matter: they
// get there within the call that sends them.
func (f socketFlow) send(count int) (took figure.Spent, err error) {
	raw, err := f.client.SyscallConn()
	if err != nil {
		return took, err
	}
	message := make([]byte, messageSize)
	return onOneCPU(func() error {
		var sent error
		return errors.Join(raw.Write(func(fd uintptr) bool {
			for range count {
				if sent = unix.Send(int(fd), message, 0); sent != nil {
					break
				}
			}
			return true
		}), sent)
	})
}
