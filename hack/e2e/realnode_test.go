package e2e

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestRealNode_DeploymentsLeaveFromTheEgressIP: pods of real kubelets, on two nodes of which one has the egress IP.
func TestRealNode_DeploymentsLeaveFromTheEgressIP(t *testing.T) {
	for name, s := range map[string]settings{"nft": {backend: lab.NFT}, "nftables": {backend: lab.NFT, nftables: true}} {
		t.Run(name, func(t *testing.T) {
			if !s.nftables {
				belongsTo(t, long)
			}
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
			for _, m := range w.machines {
				m.Close()
			}
			unchanged(t, before)
		})
	}
}

// holds gives egress IPs to a node, and returns when all nodes know.
func (w *realWorld) holds(m *member, egressIPs []string) {
	w.Helper()
	for _, addr := range addrs(egressIPs) {
		w.must(m.Host.TakeAddr(addr))
	}
	w.heldBy(m, egressIPs...)
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
