package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/kubelettest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// blocksWorld is a cluster whose pods get blocks of source ports. The first node, or that which the pool chooses, has the egress IPs of
// shop/web, of both IP families.
type blocksWorld struct {
	*world
	egressIPs []string
	runtimes  []*cniRuntime
}

const blocksOf512 = `egress-snat-port-blocks: ["512"]`

// newBlocksWorld makes one without pods, whose nodes have these arguments. A kubelet on each node knows the labels of its pods, also while
// the API server is away.
func newBlocksWorld(t *testing.T, arguments string) *blocksWorld {
	t.Helper()
	w := newBlocksWorldOf(t, arguments)
	w.holds(w.members[0], w.egressIPs)
	w.settled()
	return w
}

// newBlocksWorldOf makes one whose nodes have these arguments, and whose egress IPs are on no node yet.
func newBlocksWorldOf(t *testing.T, arguments string) *blocksWorld {
	t.Helper()
	w := &blocksWorld{world: newIdleWorld(t, settings{backend: lab.NFT, nftables: true, onLAN: true, arguments: arguments})}
	w.joinPool()
	var kubelets []*kubelettest.Kubelet
	for _, m := range w.members {
		k := &kubelettest.Kubelet{}
		k.ServeTest(t, m.File("pods.sock"))
		kubelets = append(kubelets, k)
	}
	w.start()
	w.namespace("shop")
	w.egressIPs = w.lanIPs(100)
	_, err := w.CreateService(t.Context(), cluster.NewService("shop", "web", web, w.egressIPs, tcp80, udp80))
	w.must(err)
	for i, m := range w.members {
		r := newCNIRuntime(w.world, m)
		r.kubelet = kubelets[i]
		w.runtimes = append(w.runtimes, r)
	}
	return w
}

// runs starts pods of shop/web on a node.
func (w *blocksWorld) runs(r *cniRuntime, name string, n int) (pods []*sandbox) {
	w.Helper()
	list := r.list(20, 240)
	for i := range n {
		pod := r.create("shop", fmt.Sprintf("%s-%s-%d", name, strings.ReplaceAll(r.on.Name, "node-", "n"), i), web)
		s := r.start(list, pod)
		r.sliced(s)
		pods = append(pods, s)
	}
	return pods
}

// localPorts returns the source ports that the kernel chooses from in a pod.
func (w *blocksWorld) localPorts(s *sandbox) (ports kernel.Ports) {
	w.Helper()
	text, err := s.Run(w.Context(), "cat", "/proc/sys/net/ipv4/ip_local_port_range")
	w.must(err)
	_, err = fmt.Sscan(string(text), &ports.First, &ports.Last)
	w.must(err)
	return ports
}

// block returns a pod's block; it fails if it has none.
func (w *blocksWorld) block(s *sandbox) kernel.Ports {
	w.Helper()
	ports := w.localPorts(s)
	if err := portblocks.Validate(ports); err != nil {
		w.Errorf("%s: %v", s.pod.Name, err)
	}
	return ports
}

// shares fails unless a pod uses the ports that pods without a block have.
func (w *blocksWorld) shares(s *sandbox) {
	w.Helper()
	if ports := w.localPorts(s); ports != portblocks.Shared {
		w.Errorf("%s has %s, and was to share %s", s.pod.Name, ports, portblocks.Shared)
	}
}

// blocks returns those of all pods that run, by pod. It fails if two have a port in common.
func (w *blocksWorld) blocks() map[string]kernel.Ports {
	w.Helper()
	blocks := map[string]kernel.Ports{}
	for _, r := range w.runtimes {
		for _, s := range r.runs {
			ports := w.localPorts(s)
			if portblocks.Validate(ports) != nil {
				continue
			}
			for name, other := range blocks {
				if ports.First <= other.Last && other.First <= ports.Last {
					w.Errorf("%s has %s, and %s has %s", s.pod.Name, ports, name, other)
				}
			}
			blocks[s.pod.Name] = ports
		}
	}
	return blocks
}

// agree waits until everybody says the same of each pod's block: its node's status, the Leases of the egress IPs, that of the node, and
// the status of the node that has the egress IPs.
func (w *blocksWorld) agree() {
	w.Helper()
	want := w.blocks()
	w.eventually(func() error {
		said := map[string]int{} // by how many
		held := map[kernel.Block]string{}
		for _, m := range w.members {
			blocks, err := w.said(m)
			if err != nil {
				return err
			}
			for _, a := range blocks {
				if a.Shared {
					continue
				}
				if a.Ports != want[a.Pod.Name] || a.Node != m.Name || a.Service != "shop/web" || a.Pod.UID == "" {
					return fmt.Errorf("%s says %+v; want %s", m.Name, a, want[a.Pod.Name])
				}
				said[a.Pod.Name]++
				held[kernel.Block{Pod: a.Pod.IP, EgressIP: a.EgressIP, Ports: a.Ports}] = m.Name
			}
		}
		for name := range want {
			if said[name] != len(w.egressIPs) {
				return fmt.Errorf("%s is said to have %d blocks, want one of each of %v", name, said[name], w.egressIPs)
			}
		}
		return errors.Join(w.claimed(held), w.mapped(held), w.stated(held))
	})
}

// claimed returns an error unless the nodes have claimed these blocks of the egress IPs.
func (w *blocksWorld) claimed(held map[kernel.Block]string) error {
	for block, node := range held {
		lease, err := w.Client().CoordinationV1().Leases("origin-node").Get(w.Context(), portblocks.LeaseName(block.EgressIP), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := lease.Annotations[portblocks.Annotation]; !strings.Contains(text, fmt.Sprintf(`%q:{"node":%q`, block.Ports.String(), node)) {
			return fmt.Errorf("%s has not claimed %s of %s: %s", node, block.Ports, block.EgressIP, text)
		}
	}
	return nil
}

// mapped returns an error unless the first node knows the blocks of the other nodes' pods.
func (w *blocksWorld) mapped(held map[kernel.Block]string) error {
	snapshot, err := status.NewClient(w.members[0].Socket()).Snapshot(w.Context())
	if err != nil {
		return err
	}
	var want []kernel.Block
	for block, node := range held {
		if node != w.members[0].Name {
			want = append(want, block)
		}
	}
	slices.SortFunc(want, kernel.CompareBlocks)
	got := slices.SortedFunc(slices.Values(snapshot.PortMap), kernel.CompareBlocks)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the node with the egress IPs knows %v, want %v", got, want)
	}
	return nil
}

// stated returns an error unless each node's Lease says which of its pods has which block.
func (w *blocksWorld) stated(held map[kernel.Block]string) error {
	for _, m := range w.members {
		lease, err := w.Client().CoordinationV1().Leases("origin-node").Get(w.Context(), m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var blocks []kernel.Block
		if text := lease.Annotations[portblocks.AssignedAnnotation]; text != "" {
			if blocks, err = portblocks.ParseBlocks(text); err != nil {
				return err
			}
		}
		want := 0
		for block, node := range held {
			if node != m.Name {
				continue
			}
			if want++; !slices.Contains(blocks, block) {
				return fmt.Errorf("the Lease of %s has not %v", m.Name, block)
			}
		}
		if len(blocks) != want {
			return fmt.Errorf("the Lease of %s has %d blocks, want %d", m.Name, len(blocks), want)
		}
	}
	return nil
}

// usesBlock has a pod make connections, and fails if one of their source ports is not of its block.
func (w *blocksWorld) usesBlock(s *sandbox, connections int) {
	w.Helper()
	ports := w.block(s)
	for _, to := range w.outside() { // until the node with the egress IPs knows the pod
		w.eventually(func() error {
			_, err := s.Ask(w.Context(), network("tcp", to), to, 0)
			return err
		})
	}
	for range connections {
		for _, to := range w.outside() {
			seen, err := w.askWithin(20*time.Second, "tcp", s.Host, to)
			if want := identity(s.Host, to, w.egressIPs); err != nil || seen != want {
				w.Errorf("%s is seen as %v, err %v; want %s", s.pod.Name, seen, err, want)
			}
		}
	}
	text, err := s.Run(w.Context(), "sh", "-c", "cat /proc/net/tcp /proc/net/tcp6")
	w.must(err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] == "0A" || !strings.Contains(fields[1], ":") { // 0A: it listens
			continue
		}
		var port uint16
		if _, err := fmt.Sscanf(fields[1][strings.LastIndex(fields[1], ":")+1:], "%X", &port); err != nil {
			continue // the heading
		}
		if !ports.Contains(port) {
			w.Errorf("%s uses the source port %d, which is not of its block %s", s.pod.Name, port, ports)
		}
	}
}

// same fails unless pods have the blocks that they had.
func (w *blocksWorld) same(when string, before map[string]kernel.Ports) {
	w.Helper()
	now := w.blocks()
	for name, ports := range before {
		if now[name] != ports {
			w.Errorf("%s: %s has %s, and had %s", when, name, now[name], ports)
		}
	}
	if !maps.Equal(before, now) {
		w.Errorf("%s: %d pods have blocks, and %d had", when, len(now), len(before))
	}
}

// hasSpare waits until a node has a spare block of each of these egress IPs.
func (w *blocksWorld) hasSpare(m *member, egressIPs []netip.Addr) {
	w.Helper()
	w.eventually(func() error {
		got, err := w.get(m.Host, metricsAt, "/metrics")
		if err != nil {
			return err
		}
		for _, ip := range egressIPs {
			if series := fmt.Sprintf("egress_snat_port_blocks{egress_ip=%q,state=\"spare\"} ", ip); !strings.Contains(got.body, series) || strings.Contains(got.body, series+"0\n") {
				return fmt.Errorf("%s has no spare block of %s", m.Name, ip)
			}
		}
		return nil
	})
}
