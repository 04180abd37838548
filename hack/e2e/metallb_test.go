package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/egress/metallb"
)

type metalFault struct {
	name      string
	share     share
	end, mend func(*metalWorld, *member)
	silent    time.Duration // how long MetalLB itself takes to find another node, and a second
	cutOff    bool
}

// metalFaults are what happens to the node that announces the egress IPs.
var metalFaults = []metalFault{
	{"speaker killed", inCI, func(w *metalWorld, m *member) { w.speakers[m].end(syscall.SIGKILL) }, (*metalWorld).speak, 8 * time.Second, false},
	{"speaker ended", usual, func(w *metalWorld, m *member) { w.speakers[m].end(syscall.SIGTERM) }, (*metalWorld).speak, 3 * time.Second, false},
	{
		"link cut", long, func(w *metalWorld, m *member) { w.must(w.SetLink(m.Host, false)) },
		func(w *metalWorld, m *member) { w.must(w.SetLink(m.Host, true)) }, 12 * time.Second, true,
	},
}

// TestMetalLB_PodsLeaveFromTheAnnouncer: MetalLB gives a Service its addresses and announces them in layer 2 mode. Pods on all nodes
// leave by the node that announces them, and are answered; also when that moves, because the speaker is killed or ended, or the node's
// link is cut. Connections that were established before go on.
func TestMetalLB_PodsLeaveFromTheAnnouncer(t *testing.T) {
	for _, way := range []struct {
		name  string
		share share
		settings
	}{
		{"auto", inCI, settings{}},
		{"required", usual, settings{arguments: "egress-snat-steering: [required]"}},
		{"nftables", long, settings{nftables: true}},
	} {
		t.Run(way.name, func(t *testing.T) {
			belongsTo(t, way.share)
			w := newMetalWorld(t, way.settings, true)
			w.begin(true)
			w.announcedBy(w.elected())
			w.answered()
			for _, fault := range metalFaults {
				if wanted(t) < fault.share {
					continue
				}
				ip := w.egressIPs[0]
				c, p := w.keepConnections(ip, w.podsOff(w.holder)), w.probe(ip, w.holder)
				began := time.Now()
				fault.end(w, w.holder)
				before := w.holder
				w.announcedBy(w.elected(before))
				what := fmt.Sprintf("%s, %s to %s", fault.name, before.Name, w.holder.Name)
				w.gap(p, ip, what, began, fault.silent)
				c.endWithin(w.poolWorld, ip, what, 95, 2*fault.silent)
				if w.answeredAt(w.podsOff(before)); !fault.cutOff {
					w.answered()
				}
				fault.mend(w, before)
				w.announcedBy(before)
				w.answered()
			}
		})
	}
}

// TestMetalLB_PoolHoldsItsAddresses: MetalLB's controller gives a Service its addresses, no speaker announces them, and the pool holds
// them. New and established connections go on when the holder fails.
func TestMetalLB_PoolHoldsItsAddresses(t *testing.T) {
	belongsTo(t, usual)
	w := newMetalWorld(t, settings{arguments: poolArguments}, false)
	w.joinPool()
	w.begin(false)
	for _, ip := range w.egressIPs {
		holder := w.holderOf(ip, nil)
		w.settled()
		w.answered()
		w.complete()
		c, p := w.keepConnections(ip, w.podsOff(holder)), w.probe(ip, holder)
		began := time.Now()
		w.must(w.SetLink(holder.Host, false))
		w.holderOf(ip, holder)
		w.end(p, ip, "link cut", began, w.fastest())
		c.end(w.poolWorld, ip, "link cut", 95)
		w.must(w.SetLink(holder.Host, true))
		w.complete()
	}
}

// TestMetalLB_PoolLeavesAnnouncedAddresses: MetalLB announces addresses that the pool could hold, too. No node of the pool takes one, also
// when it starts, and while no speaker announces them. What the pool had before it gives up.
func TestMetalLB_PoolLeavesAnnouncedAddresses(t *testing.T) {
	belongsTo(t, usual)
	w := newMetalWorld(t, settings{arguments: poolArguments}, false)
	w.joinPool()
	w.begin(false)
	for _, ip := range w.egressIPs {
		w.holderOf(ip, nil)
	}
	w.answered()
	w.must(w.Apply(w.Context(), "testdata/metallb-layer2.yaml"))
	w.eventually(func() error {
		for _, m := range w.members {
			for _, ip := range w.egressIPs {
				if w.has(m, ip) {
					return fmt.Errorf("%s has still %s", m.Name, ip)
				}
			}
		}
		return nil
	})
	for _, m := range w.members {
		m.Printed.Reset()
		w.speak(m)
	}
	before := w.elected()
	w.announcedBy(before)
	w.answered()
	for _, m := range w.members {
		m.Kill()
		m.Start()
		m.Ready()
	}
	w.answered()
	w.speakers[before].end(syscall.SIGKILL)
	w.announcedBy(w.elected(before))
	w.answered()
	for _, m := range w.members {
		if strings.Contains(m.Printed.String(), "Took an egress IP") {
			t.Errorf("%s has taken an address that MetalLB announces", m.Name)
		}
	}
}

// TestMetalLB_RightIsMissing: a node that may not read which node announces what says so, in the log, by its metric and to verify, and
// does everything else. With the right it goes on by itself.
func TestMetalLB_RightIsMissing(t *testing.T) {
	belongsTo(t, usual)
	w := newMetalWorld(t, settings{nodes: 2}, true)
	w.must(w.Client().RbacV1().RoleBindings(metallb.DefaultNamespace).Delete(w.Context(), "origin-node", metav1.DeleteOptions{}))
	w.assignable = nil // nodes do not know that they may announce them
	w.begin(true)
	told := func(want bool) func(verify, metrics string) error {
		return func(verify, metrics string) error {
			metric := fmt.Sprintf("egress_snat_steering_fault{reason=\"load_balancer\"} %d\n", map[bool]int{true: 1}[want])
			if strings.Contains(verify, "rbac-metallb.yaml") != want || !strings.Contains(metrics, metric) {
				return fmt.Errorf("want %s; verify says %s", metric, verify)
			}
			return nil
		}
	}
	w.allTell(told(true))
	for _, m := range w.members {
		m.Says("Cannot read objects of MetalLB: it is not known which load-balancer IPs MetalLB announces from this node")
	}
	w.must(w.Apply(w.Context(), "../../images/node/rbac-metallb.yaml"))
	w.allTell(told(false))
	w.assignable = addrs(w.egressIPs)
	w.settled()
	w.announcedBy(w.elected())
	w.answered()
}
