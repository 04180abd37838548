package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// agentLabel is one of the default labels of a node with the tunnel's agent.
const agentLabel = "openyurt.io/is-edge-worker"

const (
	// quietPeriod is the control node's sync period, unless a test is about repairs. Twice in it the node looks at the kernel:
	// a change that nothing but a look finds is found too late.
	quietPeriod = time.Hour
	// changeLimit is how long a change of an object may take. On an idle machine it takes less than a second.
	changeLimit = 20 * time.Second
)

// kubelet are the ports that kubelets and others listen at, and tunnelled those of the tunnel server.
var kubelet, tunnelled = []uint16{10250, 10255, 9100, 9443}, []uint16{10263, 10264}

// tunnelWorld is a cluster with edge nodes behind a tunnel.
type tunnelWorld struct {
	*world
	control *member
	// server are the tunnel server's addresses, period is the control node's sync period: both from its next start on.
	server []netip.Addr
	period time.Duration
	// changes are how long changes took.
	changes []time.Duration
	wrong   atomic.Int64
	asked   atomic.Int64
}

func newTunnelWorld(t *testing.T, s settings) *tunnelWorld {
	t.Helper()
	w := &tunnelWorld{world: newIdleWorld(t, s), period: quietPeriod}
	w.control = w.members[0]
	w.server = w.addressesOf("node-1")
	w.must(w.Apply(t.Context(), "../../images/node/rbac-tunnel.yaml"))
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"})
	for _, host := range []*lab.Host{w.control.Host, w.members[1].Host, w.members[2].Host, w.Outside()} {
		for _, port := range kubelet {
			w.must(host.ServeAsked(port))
		}
	}
	for _, host := range []*lab.Host{w.control.Host, w.Outside()} {
		for _, port := range tunnelled {
			w.must(host.ServeAsked(port))
		}
	}
	for n := 1; n <= 3; n++ {
		w.edge(n)
	}
	w.configure("")
	w.start()
	w.goes("edge-1", true)
	w.measures(3, 2, 2, nil)
	return w
}

// configure writes the control node's configuration, with further arguments.
func (w *tunnelWorld) configure(more string) {
	w.Helper()
	var to [2][]string
	for i, port := range tunnelled {
		for _, addr := range w.server {
			to[i] = append(to[i], strconv.Quote(netip.AddrPortFrom(addr, port).String()))
		}
	}
	w.control.Fields["iptablesSyncPeriod"] = w.period.String()
	w.control.Configure(fmt.Sprintf("tunnel-ports: [\"true\"]\ntunnel-secure-address: [%s]\ntunnel-insecure-address: [%s]\n%s",
		strings.Join(to[0], ", "), strings.Join(to[1], ", "), more))
}

// arguments gives the control node further arguments.
func (w *tunnelWorld) arguments(more string) {
	w.Helper()
	w.configure(more)
	w.restarted()
}

// restarted waits for the control node to end, for its configuration has changed, and starts it anew.
func (w *tunnelWorld) restarted() {
	w.Helper()
	w.control.Ends(75)
	w.control.Start()
	w.control.Ready()
}

func edgeName(n int) string { return fmt.Sprintf("edge-%d", n) }

// edge makes an edge node with the agent.
func (w *tunnelWorld) edge(n int) {
	w.Helper()
	w.answered(edgeName(n))
	w.claim(edgeName(n), w.addressesOf(edgeName(n))...)
}

// answered has the host outside answer at an edge node's addresses.
func (w *tunnelWorld) answered(node string) {
	w.Helper()
	for _, addr := range w.addressesOf(node) {
		w.must(w.Outside().TakeAddr(addr))
	}
}

// claim makes a node with the agent that has these addresses, it says.
func (w *tunnelWorld) claim(node string, addrs ...netip.Addr) {
	w.Helper()
	_, err := w.CreateNode(w.Context(), node, addrs...)
	w.must(err)
	w.label(node, `"true"`)
}

// renumber gives a node the addresses of another one.
func (w *tunnelWorld) renumber(node, as string) {
	w.Helper()
	w.eventually(func() error {
		object, err := w.Client().CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.Status.Addresses = nil
		for _, addr := range w.addressesOf(as) {
			object.Status.Addresses = append(object.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: addr.String()})
		}
		_, err = w.Client().CoreV1().Nodes().UpdateStatus(w.Context(), object, metav1.UpdateOptions{})
		return err
	})
}

func (w *tunnelWorld) deleteNode(name string) {
	w.Helper()
	w.must(w.Client().CoreV1().Nodes().Delete(w.Context(), name, metav1.DeleteOptions{}))
}

// label gives a node the label of the agent; null takes it away.
func (w *tunnelWorld) label(node, value string) {
	w.Helper()
	_, err := w.Client().CoreV1().Nodes().Patch(w.Context(), node, types.StrategicMergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, agentLabel, value)), metav1.PatchOptions{})
	w.must(err)
}

func (w *tunnelWorld) configMap(data map[string]string) {
	w.Helper()
	maps := w.Client().CoreV1().ConfigMaps("kube-system")
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "yurt-tunnel-server-cfg"}, Data: data}
	_, err := maps.Update(w.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(w.Context(), object, metav1.CreateOptions{})
	}
	w.must(err)
}

// addressesOf returns a node's, by its name. Those of edge nodes are addresses of the host outside.
func (w *tunnelWorld) addressesOf(node string) []netip.Addr {
	w.Helper()
	for _, m := range w.members {
		if m.Name == node {
			return []netip.Addr{m.Host.V4, m.Host.V6}
		}
	}
	var n int
	_, err := fmt.Sscanf(node, "edge-%d", &n)
	w.must(err)
	return addrs(w.lanIPs(150 + n))
}

// way opens a connection, and tells whether it goes to the tunnel server. It is an error if the one on the control node, which
// can tell, was asked for another destination.
func (w *tunnelWorld) way(ctx context.Context, from *lab.Host, to netip.AddrPort) (asked lab.Asked, tunnelled bool, err error) {
	c, asked, err := from.DialAsked(context.WithoutCancel(ctx), to)
	if err != nil {
		return asked, false, err
	}
	defer func() { _ = c.Close() }() // it has said what it had to
	if asked.By == w.control.Host.Name && asked.For != to {
		return asked, false, fmt.Errorf("%s is answered by %s for %s", to, asked.By, asked.For)
	}
	return asked, asked.At != to, nil
}

// waysTo returns an error unless connections of a host to these ports, the kubelet's if none are given, go as wanted.
func (w *tunnelWorld) waysTo(from *lab.Host, addrs []netip.Addr, want bool, ports ...uint16) error {
	if len(ports) == 0 {
		ports = []uint16{10250, 10255}
	}
	for _, addr := range addrs {
		for _, port := range ports {
			to := netip.AddrPortFrom(addr, port)
			if _, got, err := w.way(w.Context(), from, to); err != nil || got != want {
				return errors.Join(err, fmt.Errorf("%s to %s: through the tunnel: %v, want %v", from.Name, to, got, want))
			}
		}
	}
	return nil
}

// goes waits until the control node's connections to these ports of a node go by the tunnel, or directly.
func (w *tunnelWorld) goes(node string, want bool, ports ...uint16) {
	w.Helper()
	w.eventually(func() error { return w.waysTo(w.control.Host, w.addressesOf(node), want, ports...) })
}

// follows is goes after a change of an object, which must not wait until the control node looks at the kernel.
func (w *tunnelWorld) follows(node string, want bool, ports ...uint16) {
	w.Helper()
	began := time.Now()
	process.Eventually(w.T, changeLimit, func() error { return w.waysTo(w.control.Host, w.addressesOf(node), want, ports...) })
	w.changes = append(w.changes, time.Since(began))
}

// podGoes waits until a pod's connections to a node's kubelet go by the tunnel, or directly, and the other side sees them come from
// one of these addresses. The tunnel redirects, another component excludes nodes' addresses from egress SNAT, and either may come first.
func (w *tunnelWorld) podGoes(pod *lab.Host, node string, want bool, as ...netip.Addr) {
	w.Helper()
	w.eventually(func() error {
		for _, addr := range w.addressesOf(node) {
			asked, _, err := w.way(w.Context(), pod, netip.AddrPortFrom(addr, 10250))
			if err != nil || !slices.Contains(as, asked.From.Addr()) {
				return errors.Join(err, fmt.Errorf("%s is seen by %s as %s, want one of %s", pod.Name, asked.By, asked.From, as))
			}
		}
		return w.waysTo(pod, w.addressesOf(node), want)
	})
}

// nothingOfItsOwn fails unless connections to the control node itself go directly, by its addresses and by loopback.
func (w *tunnelWorld) nothingOfItsOwn() {
	w.Helper()
	own := append(w.addressesOf("node-1"), netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
	w.must(w.waysTo(w.control.Host, own, false, kubelet...))
}

// load opens connections to nodes that do not change, until it is stopped: none of them may go another way, whatever
// else happens.
func (w *tunnelWorld) load() (stop func()) {
	t := w.T // scenarios put their own in its place
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for node, want := range map[string]bool{"edge-1": true, "edge-3": true, "node-2": false} {
		for _, addr := range w.addressesOf(node) {
			for _, port := range []uint16{10250, 10255} {
				running.Go(func() {
					for ctx.Err() == nil {
						_, got, err := w.way(ctx, w.control.Host, netip.AddrPortFrom(addr, port))
						w.asked.Add(1)
						if err != nil || got != want {
							w.wrong.Add(1)
							t.Errorf("%s %s:%d: through the tunnel: %v, want %v (%v)", node, addr, port, got, want, err)
						}
						select {
						case <-ctx.Done():
						case <-time.After(10 * time.Millisecond):
						}
					}
				})
			}
		}
	}
	return func() {
		cancel()
		running.Wait()
		w.Logf("%d connections under load, %d of them wrong", w.asked.Load(), w.wrong.Load())
		slices.Sort(w.changes)
		w.Logf("%d changes: followed within %s, half of them within %s", len(w.changes), w.changes[len(w.changes)-1].Round(time.Millisecond), w.changes[len(w.changes)/2].Round(time.Millisecond))
	}
}

// streams are connections of a host to a node's kubelet that stay open.
func (w *tunnelWorld) streams(from *lab.Host, node string) []*lab.AskedConn {
	return w.streamsTo(from, node, 10250)
}

func (w *tunnelWorld) streamsTo(from *lab.Host, node string, port uint16) (streams []*lab.AskedConn) {
	w.Helper()
	for _, addr := range w.addressesOf(node) {
		c, _, err := from.DialAsked(w.Context(), netip.AddrPortFrom(addr, port))
		w.must(err)
		streams = append(streams, c)
		w.Cleanup(func() { _ = c.Close() })
	}
	return streams
}

// end waits until streams end that nobody sends anything on.
func (w *tunnelWorld) end(streams []*lab.AskedConn) {
	w.Helper()
	for _, c := range streams {
		if err := c.Ends(10 * time.Second); err != nil {
			w.Errorf("a connection that goes the wrong way: %v", err)
		}
	}
}

// endAtLast waits until streams end: those that nobody sends anything on, or, if the process was killed between deleting a connection and
// telling its ends, when they send.
func (w *tunnelWorld) endAtLast(streams []*lab.AskedConn) {
	w.Helper()
	for _, c := range streams {
		if c.Ends(10*time.Second) == nil {
			continue
		}
		if _, err := c.Ask(w.Context()); err == nil {
			w.Errorf("a connection that goes the wrong way goes on")
		}
	}
}

// goOn fails unless streams are answered.
func (w *tunnelWorld) goOn(streams []*lab.AskedConn) {
	w.Helper()
	for _, c := range streams {
		if _, err := c.Ask(w.Context()); err != nil {
			w.Errorf("a connection that goes the right way: %v", err)
		}
	}
}

// told waits for Events of these reasons about an object.
func (w *tunnelWorld) told(kind, name string, reasons ...string) {
	w.Helper()
	for _, reason := range reasons {
		w.eventually(func() error { return w.hasEvent(reason, kind+"/"+name) })
	}
}

// tunnelMetrics are the control node's of the tunnel's ports: values by name and labels.
func (w *tunnelWorld) tunnelMetrics() (map[string]float64, error) {
	got, err := w.get(w.control.Host, metricsAt, "/metrics")
	values := map[string]float64{}
	for line := range strings.Lines(got.body) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil && strings.HasPrefix(name, "tunnel_") {
			values[name] = value
		}
	}
	return values, err
}

// measures waits until the control node's metrics tell of so many addresses in each family, ports by where they go to, and
// problems, of all other reasons none.
func (w *tunnelWorld) measures(addresses, secure, insecure float64, problems map[plan.Reason]float64) {
	w.Helper()
	want := map[string]float64{}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		want[fmt.Sprintf("tunnel_node_addresses{ip_family=%q}", family)] = addresses
		want[fmt.Sprintf("tunnel_ports{address=\"secure\",ip_family=%q}", family)] = secure
		want[fmt.Sprintf("tunnel_ports{address=\"insecure\",ip_family=%q}", family)] = insecure
	}
	for _, reason := range plan.Reasons {
		want[fmt.Sprintf("tunnel_problems{reason=%q}", reason)] = problems[reason]
	}
	w.eventually(func() error {
		got, err := w.tunnelMetrics()
		for name, value := range want {
			if measured, exists := got[name]; !exists || measured != value {
				return errors.Join(err, fmt.Errorf("%s is %g (%v), want %g", name, measured, exists, value))
			}
		}
		return err
	})
}

// measuredSyncs fails unless the metrics tell of syncs since a time, all of which succeeded, and of connections that ended.
func (w *tunnelWorld) measuredSyncs(since time.Time, ended float64) {
	w.Helper()
	got, err := w.tunnelMetrics()
	w.must(err)
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		number := func(format string) float64 { return got[fmt.Sprintf(format, family)] }
		if number("tunnel_conntrack_deletions_total{ip_family=%q}") < ended ||
			number("tunnel_sync_duration_seconds_count{ip_family=%q,result=\"success\"}") == 0 ||
			number("tunnel_sync_duration_seconds_count{ip_family=%q,result=\"error\"}") > 0 ||
			number("tunnel_last_sync_success_timestamp_seconds{ip_family=%q}") < float64(since.Unix()) {
			w.Errorf("%s: the metrics are wrong; want %g connections that ended: %v", family, ended, got)
		}
	}
}

// inKernel returns the lines of the control node's rules and sets that have a text.
func (w *tunnelWorld) inKernel(text string) (lines string) {
	w.Helper()
	for _, command := range [][]string{{"iptables-save"}, {"ip6tables-save"}, {"nft", "list", "ruleset"}} {
		out, err := w.control.Host.Run(w.Context(), command[0], command[1:]...)
		w.must(err)
		for line := range strings.Lines(out) {
			if strings.Contains(strings.ToLower(line), text) {
				lines += line
			}
		}
	}
	return lines
}
