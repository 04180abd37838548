package e2e

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// realWays are the ways of TestRealNode_DeploymentsLeaveFromTheEgressIP, each with the commands by which its runtime calls the plugin.
var realWays = map[string]struct {
	settings
	calls []string
}{
	"nftables":              {settings{nftables: true}, []string{"ADD", "DEL"}},
	"nft":                   {settings{}, []string{"ADD", "DEL"}},
	"containerd 2":          {settings{runtime: "containerd"}, []string{"ADD", "DEL"}},
	"containerd 2, CNI 1.1": {settings{runtime: "containerd", cni: "1.1.0"}, []string{"ADD", "DEL", "STATUS"}},
	"CRI-O":                 {settings{runtime: "crio"}, []string{"ADD", "CHECK", "DEL", "VERSION"}},
	"CRI-O, CNI 1.1":        {settings{runtime: "crio", cni: "1.1.0"}, []string{"ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"}},
}

// TestRealNode_DeploymentsLeaveFromTheEgressIP: pods of real kubelets, on two nodes of which one has the egress IP.
func TestRealNode_DeploymentsLeaveFromTheEgressIP(t *testing.T) {
	for name, way := range realWays {
		t.Run(name, func(t *testing.T) {
			if !way.nftables {
				belongsTo(t, long)
			}
			s := way.settings
			s.backend = lab.NFT
			before := surroundings(t)
			w := newRealWorld(t, s)
			egressIPs := w.lanIPs(100)
			w.claim("shop", egressIPs...)
			w.claim("bank")
			w.holds(w.members[0], egressIPs)
			w.deploy("shop", 4)
			w.deploy("bank", 4)
			w.rollsOut("shop", "bank")
			w.scenario("both nodes", func() { w.leaveFrom(egressIPs) })
			w.scenario("from outside", func() { w.answers(egressIPs) })
			w.scenario("first packets", func() { w.firstPackets(egressIPs) })
			w.scenario("the address moves", func() {
				for _, addr := range addrs(egressIPs) {
					w.must(w.MoveAddr(addr, w.members[0].Host, w.members[1].Host))
				}
				w.heldBy(w.members[1], egressIPs...)
				w.leaveFrom(egressIPs)
			})
			if s.cni != "" {
				w.scenario("the node's process ends", func() {
					w.statusAndGC(s.runtime)
					w.leaveFrom(egressIPs)
				})
			}
			w.calls(way.calls)
			for _, m := range w.machines {
				m.Close()
			}
			unchanged(t, before)
		})
	}
}

// leaveFrom fails unless the pods of the Service with external IPs are on both nodes and leave from them, and the others from
// their nodes' addresses.
func (w *realWorld) leaveFrom(egressIPs []string) {
	w.Helper()
	on := map[string]int{}
	for _, pod := range w.pods("shop") {
		on[pod.on.Name]++
		w.seenAs(pod, egressIPs...)
	}
	if len(on) != len(w.members) {
		w.Errorf("pods of the Service run on %v, want some on each node", on)
	}
	for _, pod := range w.pods("bank") {
		w.seenAs(pod)
	}
}

// answers fails unless the pods answer clients outside at the external IPs.
func (w *realWorld) answers(egressIPs []string) {
	w.Helper()
	for _, addr := range addrs(egressIPs) {
		w.asks("tcp", w.Outside(), netip.AddrPortFrom(addr, 80))
	}
}

// firstPackets restarts both Deployments at the same time until enough pods have had the address of one of the other
// namespace. What each pod says as soon as it runs has to leave from where it should.
func (w *realWorld) firstPackets(egressIPs []string) {
	w.Helper()
	had, seen := map[netip.Addr]string{}, map[string]bool{} // an address's last namespace; pods by their UIDs
	inherited, slowest := 0, map[string]time.Duration{}
	look := func() {
		for namespace, as := range map[string][]string{"shop": egressIPs, "bank": nil} {
			for _, pod := range w.pods(namespace) {
				if seen[pod.uid] {
					continue
				}
				seen[pod.uid] = true
				if last := had[pod.ip]; last != "" && last != namespace {
					inherited++
				}
				had[pod.ip] = namespace
				slowest[namespace] = max(slowest[namespace], w.began(pod, as...))
			}
		}
	}
	look()
	for round := 0; round < 10 && inherited < by(w.T, 1, 1, 8); round++ {
		for _, namespace := range []string{"shop", "bank"} {
			w.must(w.RestartDeployment(w.Context(), namespace, "web"))
		}
		w.rollsOut("shop", "bank")
		look()
	}
	if inherited == 0 {
		w.Error("no address went from one namespace's pod to another's")
	}
	w.Logf("%d pods, %d of them with an address of the other namespace's; the slowest first answers: %v", len(seen), inherited, slowest)
}

// statusAndGC ends the process of a node that refuses pods then: STATUS tells the kubelet. When the process runs again, CRI-O has it drop
// an attachment that CRI-O does not know, and keep the others; containerd does not call GC.
func (w *realWorld) statusAndGC(runtime string) {
	w.Helper()
	m, known := w.members[0], map[string]bool{}
	for _, pod := range slices.Concat(w.pods("shop"), w.pods("bank")) {
		if pod.on == m {
			known[pod.uid] = true
		}
	}
	m.Stop()
	unknown := attachments.Attachment{
		ContainerID: "unknown", IfName: cni.Interface, Pod: attachments.Pod{Namespace: "shop", Name: "unknown", UID: "unknown"},
		IPs: []netip.Addr{m.Host.PodCIDRs()[0].Addr().Next()}, Since: time.Now().Add(-time.Hour),
	}
	w.must(attachments.Leave(attachments.Folder(m.File("cni.sock")), unknown))
	if runtime == "crio" {
		w.must(w.machines[0].Kill(runtime)) // it asks for STATUS from its start on, until the answer is yes; then it calls GC
	} else {
		known[unknown.Pod.UID] = true
	}
	w.reportsReady(m, v1.ConditionFalse, "origin-node-cni: the node cannot bind pods now")
	m.AnewReady()
	w.ready()
	w.knows(known)
}

// calls fails unless the runtime of the first node has called the plugin by these commands and no others.
func (w *realWorld) calls(want []string) {
	w.Helper()
	called := w.called(w.members[0])
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(called))); diff != "" {
		w.Errorf("the runtime has called the plugin (-want +got):\n%s", diff)
	}
	w.Logf("the runtime has called the plugin, with how often: %v", called)
}
