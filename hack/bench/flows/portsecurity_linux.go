package flows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// The structures of port security: those of steering, and the table of package portsecurity, with the pod of a load's flows behind
// the pod's link.
var (
	secured        = structure{"secured", "with port security", lab.NFT, nftablesProxier, securedFor(onePod), asPlanned, 1}
	securedUnbound = structure{"secured-unbound", "with port security", lab.NFT, nftablesProxier, securedFor(oneUnbound), asPlanned, 1}

	fastSecured        = structure{"fast-secured", "with port security", lab.NFT, nftablesProxier, fastSecuredBy(onePod, true), asPlanned, 1}
	fastSecuredUnbound = structure{"fast-secured-unbound", "with port security", lab.NFT, masquerading, fastSecuredBy(oneUnbound, false), asShared, 1}

	securedComparisons = []comparison{
		{secured, local, onePod, false, 0.97, 0},
		{secured, local, onePod, true, 0.97, 0},
		{securedUnbound, local, oneUnbound, false, 0.97, 0},
		{securedUnbound, local, oneUnbound, true, 0.97, 0},
		{fastSecured, fastLocal, onePod, true, 0.97, 0},
		{fastSecuredUnbound, fastUnbound, oneUnbound, true, 0.97, 0},
	}
)

// PortSecurity is the figure of what the check of sources costs packets.
func PortSecurity() figure.Figure {
	return figure.Figure{Name: "steering/port-security", Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
		results, err := runSteering(ctx, s, []structure{local, secured, securedUnbound, fastLocal, fastSecured, fastUnbound, fastSecuredUnbound}, securedComparisons)
		if err != nil {
			return results, err
		}
		sockets, err := runSecuredSockets(ctx, s.AtMost(9))
		return append(results, sockets...), err
	}}
}

// runSecuredSockets measures what is seen of it from a socket in a pod to one outside.
func runSecuredSockets(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	var packets []figure.Case
	var titles []string
	for _, fast := range []bool{false, true} {
		w, err := newSocketWay(ctx, steering.VXLAN, 0, fast)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, w.close()) }()
		for _, pod := range w.pods() {
			bound := pod == w.lab.Pod(1)
			packets = append(packets, w.securedPod(fmt.Sprintf("fast=%v/bound=%v", fast, bound), pod))
			titles = append(titles, map[bool]string{false: "rate of unbound pods", true: "rate"}[bound]+map[bool]string{true: ", fast path"}[fast])
		}
	}
	costs, err := s.Measure(ctx, packets...)
	if err != nil {
		return nil, err
	}
	for i, cost := range costs {
		results = append(results, figure.Result{
			Name: between + titles[i] + ": with port security ÷ without", Measured: figure.Ratio(cost[0], cost[1]), Target: figure.AtLeast(0.97),
		})
	}
	return results, nil
}

// The packets of a socket are sent with and without port security in turns: so briefly each time that what else happens on the machine
// meets both. What the kernel does after a change of the table, which the first packets would pay for, has ended after the pause.
const (
	turns = 10
	pause = 50 * time.Millisecond
)

// securedPod is the case of a pod's flow without port security and with it.
func (w *socketWay) securedPod(name string, pod *lab.Host) figure.Case {
	quantities := []figure.Quantity{{Name: "Socket", Unit: "ns/op", N: count}, {Name: "SecuredSocket", Unit: "ns/op", N: count}}
	return figure.Case{Name: name, Quantities: quantities, Measure: func(ctx context.Context) (took []float64, err error) {
		flow, err := establish(ctx, w.lab, pod)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, flow.close()) }()
		table := newPortSecurity(w.plan)
		defer table.Close()
		took = make([]float64, 2)
		for turn := range 2 * turns {
			places := w.places
			if turn%2 == 0 {
				places = nil
			}
			if err := w.lab.Node().Do(func() error { return place(ctx, table, places) }); err != nil {
				return nil, err
			}
			if err := figure.Sleep(ctx, pause); err != nil {
				return nil, err
			}
			var spent figure.Spent
			for range 2 { // the first ones find cold caches
				if spent, err = flow.send(count / turns); err != nil {
					return nil, err
				}
			}
			took[turn%2] += float64(spent.CPU.Nanoseconds()) / count
		}
		return took, nil
	}}
}

// securedFor has the last node of a host have all egress IPs, and the pod of a load's flows alone be behind the pod's link.
func securedFor(l load) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) error {
		if err := steerTo(ctx, h.lab.Nodes(), h.exit(), steering.VXLAN, nil, p); err != nil {
			return err
		}
		return secureLink(ctx, h, l, p)
	}
}

// fastSecuredBy is fastBy by vxlan, and the pod of a load's flows alone may send by the pod's link.
func fastSecuredBy(l load, all bool) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) error {
		if err := fastBy(steering.VXLAN, all)(ctx, h, p); err != nil {
			return err
		}
		return secureLink(ctx, h, l, p)
	}
}

func secureLink(ctx context.Context, h *host, l load, p kernel.Desired) error {
	return h.lab.Node().Do(func() error {
		link, err := net.InterfaceByName("from0")
		if err != nil {
			return err
		}
		w := newPortSecurity(p)
		defer w.Close()
		return place(ctx, w, map[netip.Addr]int{l.of(p, 1)[0].pod: link.Index})
	})
}

// newPortSecurity returns a writer to which all bound pods of a plan are known.
func newPortSecurity(p kernel.Desired) *portsecurity.Writer {
	w := portsecurity.NewWriter()
	for _, b := range p.Bindings {
		w.Bind(b.Pod)
	}
	return w
}

// place writes the table of the current node, whose pods are behind these interfaces. Without any there is no hook.
func place(ctx context.Context, w *portsecurity.Writer, places map[netip.Addr]int) error {
	interfaces, grants := []portsecurity.Interface{}, portsecurity.Grants{}
	for pod, index := range places {
		link, err := net.InterfaceByIndex(index)
		if err != nil {
			return err
		}
		at := portsecurity.Link{Index: index, Name: link.Name}
		interfaces = append(interfaces, portsecurity.Interface{Link: at})
		grants[at] = []netip.Addr{pod}
	}
	w.SetInterfaces(interfaces, grants)
	_, err := w.Write(ctx, false)
	return err
}
