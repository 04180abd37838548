package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
)

// The tunnel's ports beside egress SNAT: node-1 is a control node with a stand-in tunnel server, which tells the destination
// that was asked for. node-2 and node-3 have kubelets that answer, and the host outside has the addresses of all
// edge nodes, so that a connection that goes there directly is answered, and seen.

// agentLabel is one of the default labels of a node with the tunnel's agent.
const agentLabel = "openyurt.io/is-edge-worker"

// kubelet are the ports that kubelets and others listen at, and tunnelled those of the tunnel server.
var kubelet, tunnelled = []uint16{10250, 10255, 9100, 9443}, []uint16{10263, 10264}

// tunnelWorld is a cluster with edge nodes behind a tunnel.
type tunnelWorld struct {
	*world
	control *member
	wrong   atomic.Int64
	asked   atomic.Int64
}

func TestTunnel_BesideEgress(t *testing.T) {
	for name, s := range map[string]settings{
		"iptables-legacy": {backend: lab.Legacy}, "iptables-nft": {backend: lab.NFT}, "nftables": {nftables: true}, "nftables beside iptables": {beside: true},
	} {
		t.Run(name, func(t *testing.T) {
			if !s.nftables {
				belongsTo(t, usual)
			}
			w := newTunnelWorld(t, s)
			pods := w.shop(w.ips(10)...)
			var i identities
			i.expect(w.ips(10), pods...)
			shoppers := w.ask(&i, pods...)
			stop := w.load()
			w.scenario("Nodes come, go, and change", w.nodesChange)
			w.scenario("ports change", w.portsChange)
			w.scenario("what a killed process missed is done at its next start", w.killed)
			w.scenario("somebody flushes the rules", w.flushed)
			w.scenario("'openshift tunnel' tells how things stand", w.tells)
			stop()
			w.scenario("switched off it leaves nothing, and egress SNAT does not notice", func() { w.off(shoppers) })
			w.undisturbed(shoppers)
		})
	}
}

// TestTunnel_WithoutEgress: egress SNAT is switched off, and the tunnel's ports do not notice.
func TestTunnel_WithoutEgress(t *testing.T) {
	belongsTo(t, usual)
	w := newTunnelWorld(t, settings{})
	stop := w.load()
	w.arguments(`egress-snat: ["false"]`)
	w.nodesChange()
	w.tells()
	stop()
}

func newTunnelWorld(t *testing.T, s settings) *tunnelWorld {
	t.Helper()
	w := &tunnelWorld{world: newIdleWorld(t, s)}
	w.control = w.members[0]
	w.must(w.Apply(t.Context(), "../../images/node/rbac-tunnel.yaml"))
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"})
	for _, port := range tunnelled {
		w.must(w.control.Host.ServeAsked(port))
	}
	for _, host := range []*lab.Host{w.members[1].Host, w.members[2].Host, w.Outside()} {
		for _, port := range kubelet {
			w.must(host.ServeAsked(port))
		}
	}
	for n := 1; n <= 3; n++ {
		w.edge(n, true)
	}
	w.control.Configure(w.tunnelArguments())
	w.start()
	w.goes("edge-1", true)
	return w
}

// tunnelArguments are those of the control node.
func (w *tunnelWorld) tunnelArguments() string {
	var secure, insecure []string
	for i, list := range []*[]string{&secure, &insecure} {
		for _, to := range at(w.control.Host, tunnelled[i]) {
			*list = append(*list, `"`+to.String()+`"`)
		}
	}
	return fmt.Sprintf("tunnel-ports: [\"true\"]\ntunnel-secure-address: [%s]\ntunnel-insecure-address: [%s]\n", strings.Join(secure, ", "), strings.Join(insecure, ", "))
}

// arguments gives the control node further arguments.
func (w *tunnelWorld) arguments(more string) {
	w.Helper()
	w.control.Configure(w.tunnelArguments() + more)
	w.restarted()
}

// restarted waits for the control node to end, for its configuration has changed, and starts it anew.
func (w *tunnelWorld) restarted() {
	w.Helper()
	if status := w.control.Exit(); status != 75 {
		w.Fatalf("it ended with status %d, want 75", status)
	}
	w.control.Start()
	w.control.Ready()
}

func edgeName(n int) string { return fmt.Sprintf("edge-%d", n) }

// edge makes an edge node, whose addresses the host outside has.
func (w *tunnelWorld) edge(n int, agent bool) {
	w.Helper()
	addrs := addrs(w.lanIPs(150 + n))
	for _, addr := range addrs {
		w.must(w.Outside().TakeAddr(addr))
	}
	_, err := w.CreateNode(w.Context(), edgeName(n), addrs...)
	w.must(err)
	if agent {
		w.label(edgeName(n), `"true"`)
	}
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

// addressesOf returns a node's, by its name.
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

// way opens a connection from the control node, and tells whether the tunnel server answers. It is an error if it answers
// for another destination than was asked for.
func (w *tunnelWorld) way(ctx context.Context, to netip.AddrPort) (tunnelled bool, err error) {
	c, asked, err := w.control.Host.DialAsked(context.WithoutCancel(ctx), to)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }() // it has said what it had to
	if asked.For != to {
		return false, fmt.Errorf("%s is answered by %s for %s", to, asked.By, asked.For)
	}
	return asked.By == w.control.Host.Name, nil
}

// goes waits until connections to these ports of a node, the kubelet's if none are given, go by the tunnel, or directly.
func (w *tunnelWorld) goes(node string, want bool, ports ...uint16) {
	w.Helper()
	if len(ports) == 0 {
		ports = []uint16{10250, 10255}
	}
	began := time.Now()
	w.eventually(func() error {
		for _, addr := range w.addressesOf(node) {
			for _, port := range ports {
				to := netip.AddrPortFrom(addr, port)
				if got, err := w.way(w.Context(), to); err != nil || got != want {
					return errors.Join(err, fmt.Errorf("%s %s: through the tunnel: %v, want %v", node, to, got, want))
				}
			}
		}
		return nil
	})
	if took := time.Since(began); took > time.Second {
		w.Logf("%s: the change was followed after %s", node, took.Truncate(time.Millisecond))
	}
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
						got, err := w.way(ctx, netip.AddrPortFrom(addr, port))
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
	}
}

// streams are connections to a node that stay open.
func (w *tunnelWorld) streams(node string) (streams []*lab.AskedConn) {
	w.Helper()
	for _, addr := range w.addressesOf(node) {
		c, _, err := w.control.Host.DialAsked(w.Context(), netip.AddrPortFrom(addr, 10250))
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

func (w *tunnelWorld) nodesChange() {
	steady := append(w.streams("edge-1"), w.streams("node-2")...)
	w.edge(4, false)
	w.goes("edge-4", false)
	direct := w.streams("edge-4")
	w.label("edge-4", `"true"`)
	w.goes("edge-4", true)
	w.end(direct)
	w.must(w.Client().CoreV1().Nodes().Delete(w.Context(), "edge-4", metav1.DeleteOptions{}))
	w.goes("edge-4", false)
	for _, addr := range w.addressesOf("edge-4") {
		w.must(w.Outside().DropAddr(addr))
	}

	through := w.streams("edge-2")
	w.label("edge-2", "null")
	w.goes("edge-2", false)
	w.end(through)
	w.label("edge-2", `"true"`)
	w.goes("edge-2", true)

	w.ready(w.members[2], v1.ConditionFalse)
	w.goes("node-3", true)
	w.ready(w.members[2], v1.ConditionTrue)
	w.goes("node-3", false)
	for _, c := range steady {
		if _, err := c.Ask(w.Context()); err != nil {
			w.Errorf("a connection that goes the right way: %v", err)
		}
	}
}

func (w *tunnelWorld) portsChange() {
	w.goes("edge-1", true, 9100, 9443)
	w.goes("node-2", false, 9100, 9443)
	w.configMap(map[string]string{"dnat-ports-pair": "9443=10264,70000=10264,9100=1,none", "http-proxy-ports": "0"})
	w.goes("edge-1", false, 9100)
	w.goes("edge-1", true, 9443)
	w.eventually(func() error {
		list, err := w.Client().CoreV1().Events("kube-system").List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=ConfigMap"})
		if err != nil {
			return err
		}
		for _, reason := range []string{"InvalidPort", "InvalidPair"} {
			if !slices.ContainsFunc(list.Items, func(e v1.Event) bool { return e.Reason == reason && e.InvolvedObject.Name == "yurt-tunnel-server-cfg" }) {
				return fmt.Errorf("no Event of the reason %s: %v", reason, list.Items)
			}
		}
		return nil
	})
	w.must(w.Client().CoreV1().ConfigMaps("kube-system").Delete(w.Context(), "yurt-tunnel-server-cfg", metav1.DeleteOptions{}))
	w.goes("edge-1", false, 9443, 9100)
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"})
	w.goes("edge-1", true, 9443, 9100)
}

// killed changes nodes while nothing runs: the rules stay, and connections go as before.
func (w *tunnelWorld) killed() {
	through := w.streams("edge-2")
	w.control.Kill()
	w.label("edge-2", "null")
	w.goes("edge-2", true)
	w.control.Start()
	w.goes("edge-2", false)
	w.end(through)
	w.label("edge-2", `"true"`)
	w.goes("edge-2", true)
	w.control.Ready()
}

// flushed removes a rule, or the table; connections to edge-2 tell, for load would see it.
func (w *tunnelWorld) flushed() {
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264"})
	w.goes("edge-2", false, 9443)
	if w.control.Backend == "nftables" {
		w.run(w.control.Host, "nft delete element ip openshift-tunnel insecure-ports { 9100 }", "nft delete element ip6 openshift-tunnel insecure-ports { 9100 }")
	} else {
		w.run(w.control.Host, "ipset del openshift-tunnel-4-insecure 9100", "ipset del openshift-tunnel-6-insecure 9100")
	}
	w.goes("edge-2", true, 9100)
}

func (w *tunnelWorld) tells() {
	socket := "--socket=" + w.control.Socket()
	w.eventually(func() error {
		out, errs, status := w.control.Openshift("tunnel", "verify", socket)
		if status != 0 || strings.Count(out, "in agreement") != 2 {
			return fmt.Errorf("verify: status %d: %s%s", status, out, errs)
		}
		return nil
	})
	out, errs, status := w.control.Openshift("tunnel", "list", socket)
	for _, want := range []string{"edge-1", "it has a label of the tunnel's agent", "node-2", "direct", "10250"} {
		if status != 0 || !strings.Contains(out, want) {
			w.Errorf("list: status %d, no %q: %s%s", status, want, out, errs)
		}
	}
	out, errs, status = w.control.Openshift("tunnel", "explain", "edge-1:10250", socket)
	if status != 0 || !strings.Contains(out, "to the tunnel server") {
		w.Errorf("explain: status %d: %s%s", status, out, errs)
	}
	out, _, status = w.control.Openshift("tunnel", "explain", "node-2:10250", socket)
	if status != 0 || strings.Contains(out, "to the tunnel server") {
		w.Errorf("explain: status %d: %s", status, out)
	}
}

// off switches the tunnel's ports off. Traffic is that of pods behind Services.
func (w *tunnelWorld) off(*lab.Traffic) {
	through := w.streams("edge-1")
	w.control.Configure("")
	w.restarted()
	w.goes("edge-1", false)
	w.end(through)
	for _, command := range [][]string{{"iptables-save"}, {"ip6tables-save"}, {"nft", "list", "ruleset"}, {"ipset", "list"}} {
		out, err := w.control.Host.Run(w.Context(), command[0], command[1:]...)
		w.must(err)
		if strings.Contains(strings.ToLower(out), "openshift-tunnel") {
			w.Errorf("%q prints what was left behind:\n%s", command, out)
		}
	}
}
