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
)

// Sockets is the figure of what is seen of steering from a socket in a pod to one outside.
func Sockets() figure.Figure { return figure.Figure{Name: "steering/sockets", Run: runSockets} }

// runSockets compares a bound pod whose node has its egress IP with one on another node, and an unbound pod on the node of
// either with one on a node without steering.
func runSockets(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	s = s.AtMost(9)
	streams, packets := []figure.Case{}, []figure.Case{}
	var nodes []*lab.Host
	for _, way := range []struct {
		structure
		transport steering.Transport
		holder    int
	}{{local, steering.VXLAN, 0}, {vxlan, steering.VXLAN, 1}, {direct, steering.Direct, 1}, {unsteered, "", 0}, {fastVXLAN, steering.VXLAN, 1}, {fastDirect, steering.Direct, 1}} {
		l, err := lab.New(ctx, lab.Config{Nodes: 2, Pods: 3, AnswersByARP: true, Masquerade: true})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		nodes = append(nodes, l.Nodes()...)
		var fast []*fastpath.Path
		if way.name == fastVXLAN.name || way.name == fastDirect.name {
			if fast, err = fastPods(l); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, fast[0].Close(), fast[1].Close()) }()
		}
		if err := bindPod(ctx, l, way.transport, way.holder, fast); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		const count = 20_000
		perPacket := figure.Quantity{Name: "Socket", Unit: "ns/op", N: count}
		streams = append(streams, figure.One("way="+way.name, figure.Quantity{Name: "Stream", Unit: "Gbit/s", N: 1}, func(ctx context.Context) (float64, error) {
			return stream(ctx, l)
		}))
		for _, pod := range []*lab.Host{l.Pod(1), l.Pod(3)} {
			packets = append(packets, figure.One(fmt.Sprintf("way=%s/bound=%v", way.name, pod == l.Pod(1)), perPacket, func(ctx context.Context) (float64, error) {
				took, err := datagrams(ctx, l, pod, count)
				return float64(took.CPU.Nanoseconds()) / count, err
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
	const between = "packets of an established flow between sockets, "
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

// bindPod binds the first pod of a lab, which is on the first node, and puts its egress IP on a node. Without a transport
// nothing is steered.
func bindPod(ctx context.Context, l *lab.Lab, transport steering.Transport, holder int, fast []*fastpath.Path) error {
	nodes := l.Nodes()
	if err := nodes[holder].TakeAddr(streamIP); err != nil {
		return err
	}
	p := planOf(0, fewNodes)
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP} {
		p.Bindings = append(p.Bindings, kernel.Binding{Pod: l.Pod(1).V4, Protocol: protocol, EgressIP: streamIP})
	}
	if transport == "" {
		return nodes[holder].Do(func() error { return tables.Table().Write(ctx, p) })
	}
	return steerTo(ctx, nodes, nodes[holder], transport, fast, p)
}

// fastPods loads a fast path on each node of a lab, for the pods of the first node.
func fastPods(l *lab.Lab) ([]*fastpath.Path, error) {
	paths, err := fastPaths(l.Nodes(), false)
	if err != nil {
		return nil, err
	}
	places := map[netip.Addr]int{}
	for _, pod := range []*lab.Host{l.Pod(1), l.Pod(3)} {
		out, err := pod.Run(context.Background(), "cat", "/sys/class/net/eth0/iflink")
		if err != nil {
			return nil, err
		}
		if places[pod.V4], err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
			return nil, err
		}
	}
	return paths, l.Node().Do(func() error {
		paths[0].Place(places)
		return nil
	})
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

// datagrams sends so many on a flow that has been answered, and returns what that took. Whether they find room in
// the socket outside does not matter: they get there within the call that sends them.
func datagrams(ctx context.Context, l *lab.Lab, pod *lab.Host, count int) (took figure.Spent, err error) {
	var server *net.UDPConn
	err = l.Outside().Do(func() error {
		server, err = net.ListenUDP("udp4", &net.UDPAddr{Port: streamPort})
		return err
	})
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := pod.DialContext(ctx, "udp4", netip.AddrPortFrom(l.Outside().V4, streamPort).String())
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	message := make([]byte, 64)
	for i := range 2 { // so that conntrack has seen both directions
		time.Sleep(time.Duration(i) * streamAfter)
		if _, err := client.Write(message); err != nil {
			return took, err
		}
		_, from, err := server.ReadFromUDPAddrPort(message)
		if err != nil {
			return took, err
		}
		if bound := pod == l.Pod(1); bound != (from.Addr() == streamIP) {
			return took, fmt.Errorf("%s is seen as %s", pod.Name, from)
		}
		if _, err := server.WriteToUDPAddrPort(message, from); err != nil {
			return took, err
		}
		if _, err := client.Read(message); err != nil {
			return took, err
		}
	}
	raw, err := client.(*net.UDPConn).SyscallConn()
	if err != nil {
		return took, err
	}
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
