package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// The tunnel's ports beside egress SNAT: node-1 is a control node with a stand-in tunnel server, which tells the destination
// that was asked for. All nodes have kubelets that answer, and the host outside has the addresses of all edge nodes, so
// that a connection that goes there directly is answered, and seen.

// tunnelWays are how rules are written.
var tunnelWays = map[string]settings{
	"iptables-legacy": {backend: lab.Legacy}, "iptables-nft": {backend: lab.NFT}, "nftables": {nftables: true}, "nftables beside iptables": {beside: true},
}

// TestTunnel_BesideEgress: connections to kubelets go by the tunnel, or not, while nodes and ports change, the process is killed and rules
// are taken away.
func TestTunnel_BesideEgress(t *testing.T) {
	for name, s := range tunnelWays {
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
			w.scenario("nodes with addresses of others", w.claimed)
			w.scenario("the API server is away", w.away)
			w.scenario("connections of pods", func() { w.pods(pods[0], pods[1]) })
			w.scenario("'openshift tunnel' shows the current state", w.tells)
			stop()
			w.period = process.SyncPeriod // a repair waits for the next look at the kernel
			w.scenario("a tunnel server elsewhere", func() { w.elsewhere(pods[0]) })
			w.scenario("a tunnel server in one IP family", w.oneFamily)
			w.scenario("any destination", w.anyDestination)
			w.scenario("somebody takes rules away", w.harmed)
			w.scenario("switched off it leaves nothing, and egress SNAT does not notice", w.off)
			w.undisturbed(shoppers)
		})
	}
}

// TestTunnel_WithoutEgress: egress SNAT is switched off, and the tunnel's ports do not notice.
func TestTunnel_WithoutEgress(t *testing.T) {
	belongsTo(t, usual)
	for name, s := range tunnelWays {
		t.Run(name, func(t *testing.T) {
			w := newTunnelWorld(t, s)
			stop := w.load()
			w.scenario("egress SNAT is switched off", func() { w.arguments(`egress-snat: ["false"]`) })
			w.scenario("nodes come, go, and change", w.nodesChange)
			w.scenario("'openshift tunnel' shows the current state", w.tells)
			w.scenario("it may not read the ConfigMap", w.forbidden)
			stop()
			w.scenario("it ends, and its rules are removed", w.cleanedUp)
		})
	}
}

func (w *tunnelWorld) nodesChange() {
	began, control := time.Now(), w.control.Host
	w.measures(3, 2, 2, nil) // the process may have been started just now
	steady := append(w.streams(control, "edge-1"), w.streams(control, "node-2")...)
	w.edge(4)
	w.follows("edge-4", true)
	w.deleteNode("edge-4")
	w.follows("edge-4", false)

	through := w.streams(control, "edge-2")
	w.label("edge-2", "null")
	w.follows("edge-2", false)
	w.end(through)
	direct := w.streams(control, "edge-2")
	w.label("edge-2", `"true"`)
	w.follows("edge-2", true)
	w.end(direct)

	w.answered("edge-5")
	w.renumber("edge-2", "edge-5")
	w.follows("edge-5", true)
	w.follows("edge-2", false)
	w.renumber("edge-2", "edge-2")
	w.follows("edge-2", true)
	w.follows("edge-5", false)

	w.ready(w.members[2], v1.ConditionFalse)
	w.follows("node-3", true)
	w.ready(w.members[2], v1.ConditionTrue)
	w.follows("node-3", false)
	w.goOn(steady)
	w.measuredSyncs(began, 2)
}

func (w *tunnelWorld) portsChange() {
	w.goes("edge-1", true, 9100, 9443)
	w.goes("node-2", false, 9100, 9443)
	w.configMap(map[string]string{"dnat-ports-pair": "9443=10264,70000=10264,9100=1,none", "http-proxy-ports": "0"})
	w.follows("edge-1", false, 9100)
	w.follows("edge-1", true, 9443)
	w.told("ConfigMap", "yurt-tunnel-server-cfg", "InvalidPort", "InvalidPair")
	w.measures(3, 1, 2, map[plan.Reason]float64{plan.InvalidPort: 2, plan.InvalidPair: 2})
	w.configMap(map[string]string{"dnat-port-pairs": "9100=10264"})
	w.follows("edge-1", false, 9443)
	w.told("ConfigMap", "yurt-tunnel-server-cfg", "MissingKey")
	w.configMap(map[string]string{"http-proxy-ports": "9100"})
	w.follows("edge-1", true, 9100)
	w.must(w.Client().CoreV1().ConfigMaps("kube-system").Delete(w.Context(), "yurt-tunnel-server-cfg", metav1.DeleteOptions{}))
	w.follows("edge-1", false, 9443, 9100)
	w.told("ConfigMap", "yurt-tunnel-server-cfg", "MissingConfigMap")
	w.control.Says(`reason="MissingConfigMap"`)
	w.measures(3, 1, 1, map[plan.Reason]float64{plan.MissingConfigMap: 1})
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"})
	w.follows("edge-1", true, 9443, 9100)
	w.measures(3, 2, 2, nil)
}

// killed changes nodes and ports, and kills the process at any moment of that: before, in the middle of, or after what
// it does. Until the next start connections go one of the two ways, and then the right one.
func (w *tunnelWorld) killed() {
	for _, after := range []time.Duration{0, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		through := append(w.streams(w.control.Host, "edge-2"), w.streamsTo(w.control.Host, "edge-1", 9100)...)
		w.label("edge-2", "null")
		w.configMap(map[string]string{"https-proxy-ports": "9443"})
		time.Sleep(after) // the moment is arbitrary
		w.control.Kill()
		w.goes("edge-1", true)
		w.control.Start()
		w.control.Ready()
		w.goes("edge-2", false)
		w.goes("edge-1", false, 9100)
		w.endAtLast(through)
		w.eventually(func() error {
			if left := w.inKernel("record"); left != "" {
				return fmt.Errorf("the record is left: %s", left)
			}
			return nil
		})
		w.label("edge-2", `"true"`)
		w.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"})
		w.follows("edge-2", true)
		w.follows("edge-1", true, 9100)
	}
}

// claimed makes nodes that claim addresses of this node, which are the tunnel server's, too, and of a direct node. Both are
// reached as before, and Events tell.
func (w *tunnelWorld) claimed() {
	w.claim("edge-11", w.addressesOf("node-1")...)
	w.claim("edge-12", w.addressesOf("node-2")...)
	w.told("Node", "edge-11", "AddressOfDirectNode")
	w.told("Node", "edge-12", "AddressOfDirectNode")
	w.measures(3, 2, 2, map[plan.Reason]float64{plan.AddressOfDirectNode: 4})
	w.goes("node-2", false)
	w.nothingOfItsOwn()
	w.deleteNode("edge-11")
	w.deleteNode("edge-12")
}

// away stops the API server. Connections go as before, also while the process starts anew, and what changes then is followed.
func (w *tunnelWorld) away() {
	w.must(w.APIServer.Stop(w.Context()))
	w.goes("edge-1", true)
	w.control.Kill()
	w.control.Start()
	w.control.Says("Waiting for")
	w.goes("edge-2", true)
	w.goes("node-2", false)
	w.must(w.APIServer.Start())
	w.must(w.APIServer.Ready(w.Context()))
	w.control.Ready()
	w.label("edge-2", "null")
	w.goes("edge-2", false)
	w.label("edge-2", `"true"`)
	w.goes("edge-2", true)
}

// pods has connections of the control node's pods go to the tunnel server, too. It is on their node and sees their own
// addresses, although they are bound. Those of a pod elsewhere go on as before, and so do those to other destinations.
func (w *tunnelWorld) pods(here, elsewhere *lab.Host) {
	w.podGoes(here, "edge-1", false, w.addressesOf("node-1")...)
	direct, other := w.streams(here, "edge-1"), w.streams(elsewhere, "edge-1")
	w.arguments(`tunnel-from-pods: ["true"]`)
	w.podGoes(here, "edge-1", true, here.V4, here.V6)
	w.end(direct)
	through := w.streams(here, "edge-1")
	w.podGoes(here, "node-2", false, w.addressesOf("node-1")...)
	w.podGoes(here, "node-1", false, here.V4, here.V6)
	w.podGoes(elsewhere, "edge-1", false, w.addressesOf("node-2")...)
	w.leaves("tcp", here, w.ips(10)...)
	w.label("edge-2", "null")
	w.follows("edge-2", false)
	w.podGoes(here, "edge-2", false, w.addressesOf("node-1")...)
	w.label("edge-2", `"true"`)
	w.follows("edge-2", true)
	w.podGoes(here, "edge-2", true, here.V4, here.V6)
	w.goOn(append(through, other...))
	w.arguments("")
	w.podGoes(here, "edge-1", false, w.addressesOf("node-1")...)
	w.end(through)
	w.goOn(other)
}

// elsewhere has a tunnel server outside the cluster, which a bound pod leaves for as for any destination there: from its Service's
// external IP, to which the answers come back. A node that claims the server's address is told of, and nothing to it is redirected.
func (w *tunnelWorld) elsewhere(pod *lab.Host) {
	w.answered("edge-30")
	w.server = w.addressesOf("edge-30")
	before := w.streams(w.control.Host, "edge-1")
	w.arguments(`tunnel-from-pods: ["true"]`)
	w.goes("edge-1", true)
	w.end(before)
	w.podGoes(pod, "edge-1", true, addrs(w.ips(10))...)
	w.podGoes(pod, "node-2", false, w.addressesOf("node-1")...)
	through := w.streams(pod, "edge-1")
	w.claim("edge-30", w.server...)
	w.told("Node", "edge-30", "AddressOfTunnel")
	w.measures(3, 2, 2, map[plan.Reason]float64{plan.AddressOfTunnel: 2})
	w.goes("edge-30", false)
	w.podGoes(pod, "edge-30", false, w.addressesOf("node-1")...) // nodes' addresses are excluded from egress SNAT
	w.goOn(through)
	w.deleteNode("edge-30")
}

// oneFamily has a tunnel server that the IPv6 addresses of edge nodes cannot be redirected to.
func (w *tunnelWorld) oneFamily() {
	w.server = w.server[:1]
	w.arguments("")
	w.server = w.addressesOf("node-1")
	edge := w.addressesOf("edge-1")
	w.eventually(func() error {
		return errors.Join(w.waysTo(w.control.Host, edge[:1], true), w.waysTo(w.control.Host, edge[1:], false))
	})
	w.told("Node", "node-1", "NoTunnelAddress")
}

// anyDestination has connections go to the tunnel server that go to nobody's address, but none to direct nodes.
func (w *tunnelWorld) anyDestination() {
	const nobody = "edge-20"
	w.answered(nobody)
	w.goes(nobody, false)
	direct := w.streams(w.control.Host, nobody)
	w.arguments(`tunnel-any-destination: ["true"]`)
	w.goes(nobody, true)
	w.end(direct)
	w.goes("edge-1", true)
	w.goes("node-2", false)
	w.nothingOfItsOwn()
	w.measures(3, 2, 2, nil) // the direct nodes', of which one is the tunnel server's
	through := w.streams(w.control.Host, nobody)
	w.arguments("")
	w.goes(nobody, false)
	w.end(through)
	w.goes("edge-1", true)
}

// harmed takes away the tunnel's rules, and what these need, and waits until they are back.
func (w *tunnelWorld) harmed() {
	w.configMap(map[string]string{"dnat-ports-pair": "9100=10264"})
	w.goes("edge-2", false, 9443)
	for _, command := range []string{
		"nft delete element ip openshift-tunnel insecure-ports { 9100 }", "nft delete element ip6 openshift-tunnel insecure-ports { 9100 }",
		"nft flush chain ip openshift-tunnel to-tunnel", "nft delete table ip openshift-tunnel", "nft delete table ip6 openshift-tunnel",
	} {
		_, err := w.control.Host.Run(w.Context(), "sh", "-c", command)
		w.must(err)
		w.goes("edge-2", true, 10250, 10255, 9100)
		w.goes("node-2", false)
	}
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

// forbidden takes the right to read the ConfigMap away. The kubelet's ports do not need it.
func (w *tunnelWorld) forbidden() {
	bindings := w.Client().RbacV1().RoleBindings("kube-system")
	w.must(bindings.Delete(w.Context(), "origin-node-tunnel", metav1.DeleteOptions{}))
	w.control.Kill()
	w.control.Anew()
	w.control.Says(`reason="MissingConfigMap"`)
	w.control.Says("rbac-tunnel.yaml")
	w.goes("edge-1", false, 9100)
	w.goes("edge-1", true)
	w.must(w.Apply(w.Context(), "../../images/node/rbac-tunnel.yaml"))
	w.goes("edge-1", true, 9100)
}

// cleanedUp ends the process, whose rules stay, and has them printed and removed.
func (w *tunnelWorld) cleanedUp() {
	through := w.streams(w.control.Host, "edge-1")
	w.control.Stop()
	w.goes("edge-1", true)
	start := []string{"start", "node", "--config=" + w.control.Config()}
	out, errs, status := w.control.Openshift(append(start, "--dry-run")...)
	for _, want := range slices.Concat(w.addressesOf("edge-1"), w.server) {
		if status != 0 || !strings.Contains(out, want.String()) {
			w.Errorf("--dry-run: status %d, no %s: %s%s", status, want, out, errs)
		}
	}
	if _, errs, status := w.control.Openshift(append(start, "--cleanup")...); status != 0 {
		w.Errorf("--cleanup: status %d: %s", status, errs)
	}
	w.isGone(through)
}

// off switches the tunnel's ports off.
func (w *tunnelWorld) off() {
	through := w.streams(w.control.Host, "edge-1")
	w.control.Configure("")
	w.restarted()
	w.isGone(through)
}

// isGone waits until connections go directly, those that did not have ended, and the kernel holds nothing.
func (w *tunnelWorld) isGone(through []*lab.AskedConn) {
	w.Helper()
	w.goes("edge-1", false)
	w.end(through)
	w.eventually(func() error {
		if left := w.inKernel("openshift-tunnel"); left != "" {
			return fmt.Errorf("left behind:\n%s", left)
		}
		return nil
	})
}
