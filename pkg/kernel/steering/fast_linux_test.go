package steering

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

// fastOn gives a node a fast path, which it has from its next write on.
func (c *cluster) fastOn(n *node) {
	c.Helper()
	n.inside(func() (err error) {
		n.fast, err = fastpath.Load(klog.Background())
		return err
	})
	c.Cleanup(func() { _ = n.fast.Close() }) // the nodes may have gone already
	n.restart(n.ways)
	n.place()
}

// place tells a node's fast path where its pods are.
func (n *node) place() {
	n.c.Helper()
	places := map[netip.Addr]int{}
	for i := range 2 {
		pod := n.c.lab.Pod(i + 1)
		if pod == nil || pod.Node != n.host {
			continue
		}
		var at int
		if _, err := fmt.Sscan(n.c.run(pod, "cat /sys/class/net/eth0/iflink"), &at); err != nil {
			n.c.Fatal(err)
		}
		places[n.c.addr(pod)] = at
	}
	n.inside(func() error {
		n.fast.Place(places)
		return nil
	})
}

// counts returns what took the fast path of a node.
func (n *node) counts() fastpath.Count {
	n.c.Helper()
	counts, err := n.fast.Counts()
	if err != nil {
		n.c.Fatal(err)
	}
	return counts[n.c.family]
}

func TestFast_EstablishedFlows(t *testing.T) {
	test := func(transport Transport, family kernel.Family, overIPv4 bool, want uint64) func(t *testing.T) {
		return func(t *testing.T) {
			c := newClusterOver(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true, Masquerade: true}, overIPv4)
			c.use(transport)
			for _, n := range c.nodes {
				c.fastOn(n)
			}
			c.serve(c.lab.Outside(), "tcp", "udp")
			c.holdsOn(1, c.egressIP)
			c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			for _, protocol := range []string{"tcp", "udp"} {
				flow, err := c.lab.Pod(1).Dial(t.Context(), c.network(protocol), netip.AddrPortFrom(c.outside(), port), 0)
				if err != nil {
					t.Fatal(err)
				}
				defer flow.Close()
				if protocol == "udp" {
					time.Sleep(2100 * time.Millisecond) // conntrack takes it for a stream then
					if _, err := flow.Ask(t.Context()); err != nil {
						t.Error(err)
					}
				}
				sent, left := c.nodes[0].counts().Sent.Packets, c.nodes[1].counts().Left.Packets
				for range 10 {
					if seen, err := flow.Ask(t.Context()); err != nil || seen != c.egressIP {
						t.Errorf("%s: seen as %s (%v), want %s", protocol, seen, err, c.egressIP)
					}
				}
				sent, left = c.nodes[0].counts().Sent.Packets-sent, c.nodes[1].counts().Left.Packets-left
				if sent < want || left < want || want == 0 && sent+left > 0 {
					t.Errorf("%s: %d packets took the fast path to the holder, %d from there, want at least %d", protocol, sent, left, want)
				}
			}
			for _, n := range c.nodes {
				if s := n.fast.Status(); s.Fault != nil || len(s.Refused) > 0 || (len(s.Unusable) > 0) != (want == 0) {
					t.Errorf("%s: %+v", n.host.Name, s)
				}
			}
		}
	}
	t.Run("vxlan/IPv4", test(VXLAN, kernel.IPv4, false, 10))
	t.Run("vxlan/IPv6 over IPv4", test(VXLAN, kernel.IPv6, true, 10))
	t.Run("vxlan/IPv6 over IPv6", test(VXLAN, kernel.IPv6, false, 0)) // the kernel alone makes these
	t.Run("direct/IPv4", test(Direct, kernel.IPv4, false, 10))
	t.Run("direct/IPv6", test(Direct, kernel.IPv6, false, 10))
}
