package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	process "github.com/openshift/origin-node/hack/node"
)

// TestSteering_KilledWhileTheAddressMoves: the process of a node, the old holder, the new one or another, at random moments
// around a move.
func TestSteering_KilledWhileTheAddressMoves(t *testing.T) {
	w := newSteeredWorld(t, settings{}, nil)
	traffic := w.crowd(100)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	times := by(t, 3, 10, 100)
	for i := range times {
		to := w.members[i%len(w.members)]
		if to == w.holder {
			to = w.members[(i+1)%len(w.members)]
		}
		w.killDuringMove(to, w.members[random.IntN(len(w.members))], time.Duration(random.Int64N(int64(200*time.Millisecond))))
	}
	t.Logf("killed %d times; %s; dropped: %s", times, w.noneWrong(traffic), dropsTold(w.allDrops()))
	w.clean(100 * times)
}

// killDuringMove moves the egress IPs to a node, kills a node's process so long after the start of that, starts it anew, and
// waits until all is well.
func (w *steeredWorld) killDuringMove(to, victim *member, after time.Duration) {
	w.Helper()
	killed := make(chan struct{})
	go func() {
		time.Sleep(after) // the moment
		victim.Kill()
		close(killed)
	}()
	w.move(to)
	<-killed
	victim.AnewReady()
	w.steered()
}

// TestSteering_SomethingInTheWay: a node that begins where others have what it needs says what to do. If it may, it goes on
// without steering, and its pods use their egress IPs where they run; if it must not, it does not begin, and what an earlier
// process has left goes on. No packet of a pod has another source.
func TestSteering_SomethingInTheWay(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{}, nil)
	traffic := w.crowd(100)
	m := w.members[1]
	for _, other := range []struct{ name, comes, goes, says string }{
		{"bits of the mark", "ip rule add pref 100 fwmark 0x40/0x40 lookup 5", "ip rule del pref 100", "ip rule 100, with fwmark 0x40/0x40, uses bits of egress SNAT's mark 0x7e"},
		{"the device's name", "ip link del steer0; ip link add steer0 type veth", "ip link del steer0", "interface steer0, of the type veth, is not egress SNAT's: rename or delete it"},
	} {
		does := func(script string) {
			_, err := m.Host.Run(w.Context(), "sh", "-c", script)
			w.must(err)
		}
		w.scenario(other.name, func() {
			m.Stop()
			does(other.comes)
			m.Configure(`egress-snat-steering: [required]`)
			m.Anew()
			m.Ends(1)
			m.Says(other.says)
			m.Configure("")
			m.AnewReady()
			m.Says(other.says)
			m.Says("use it here, and get no answers")
			by := w.sends(func() {
				for _, pod := range w.pods {
					_ = w.unanswered("udp", pod, w.outside()[0]) // the holder gets the answer
				}
			})
			if !slices.Contains(by, m.Host) {
				w.Errorf("packets leave by %v, want the pod's own node %s, too", by, m.Name)
			}
			does(other.goes)
			w.restart(m, "")
			w.steered()
		})
	}
	w.noneWrong(traffic)
	w.leaveByTheHolder()
	w.clean(500)
}

// TestSteering_KernelRefuses: what the kernel cannot do is found out when a node starts, and its log says it once; an Event, the metrics and
// verify tell it as long as the process runs. Without steering pods use their egress IPs where they run; a node that must steer ends.
func TestSteering_KernelRefuses(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{nodes: 2}, nil)
	m := w.members[1]
	end := m.Refuses("ip "+steeringTable+"-probe", "ip6 "+steeringTable+"-probe", "netdev "+portSecurityTable+"-try")
	w.restart(m, "")
	const steering, sources = "the kernel refuses what steering needs of nftables", "this kernel's nftables has no hook at the ingress of interfaces"
	w.tells(m, "EgressIPUnreachable", `egress_snat_steering_fault{reason="unavailable"} 1`, steering)
	w.tells(m, "PodSourcesUnchecked", `egress_snat_port_security_fault{reason="unavailable"} 1`, sources)
	w.goesAlone(m, steering)
	end()
	m.Configure("")
	m.AnewReady()
	w.steered()
	w.clean(10)
}

// tells checks that a node tells once in its log what its kernel cannot do, and by an Event, a metric and verify.
func (w *steeredWorld) tells(m *member, event, metric, said string) {
	w.Helper()
	if times := strings.Count(m.Printed.String(), said); times != 1 {
		w.Errorf("the log says %d times that %s, want once", times, said)
	}
	w.eventTold(event, said)
	if !strings.Contains(w.metrics(m), metric) {
		w.Errorf("the metrics have not %s", metric)
	}
	if out, _, _ := m.Openshift("egress", "verify", "--socket="+m.Socket()); !strings.Contains(out, said) {
		w.Errorf("verify does not say that %s: %s", said, out)
	}
}

// goesAlone checks that a pod of the node 1, which cannot steer, uses its egress IP there. The node ends where it must steer; it is left so.
func (w *steeredWorld) goesAlone(m *member, reason string) {
	w.Helper()
	by := w.sends(func() { _ = w.unanswered("udp", w.pods[1], w.outside()[0]) }) // the holder gets the answer
	if !slices.Contains(by, m.Host) {
		w.Errorf("packets leave by %v, want the pod's own node", by)
	}
	m.Stop()
	m.Configure("egress-snat-steering: [required]")
	m.Anew()
	m.Ends(1)
	m.Says("proxyArguments.egress-snat-steering: packets cannot be sent to the nodes that have their egress IPs: " + reason)
}

// TestSteering_Repair: somebody deletes what steers on a pod's node, and on the holder. Packets are lost until the node has
// repaired it, within a sync period, but none leaves under another address.
func TestSteering_Repair(t *testing.T) {
	tunnel := []steeringDamage{{"the device deleted", "ip link del steer0"}, {"the device down", "ip link set steer0 down"}}
	t.Run("VXLAN", func(t *testing.T) { repairs(newSteeredWorld(t, settings{}, nil), tunnel) })
	t.Run("direct", func(t *testing.T) {
		belongsTo(t, usual)
		repairs(newSteeredWorld(t, settings{arguments: direct}, nil), nil)
	})
}

func repairs(w *steeredWorld, tunnel []steeringDamage) {
	t := w.T
	traffic := w.crowd(200)
	source := w.members[1]
	damages := slices.Concat(tunnel[:min(1, len(tunnel))], []steeringDamage{
		{"other tables flushed", "iptables -w -t nat -F; ip6tables -w -t nat -F"},
		{"rules deleted", `for family in -4 -6; do ip $family rule | sed -En 's/^(9[0-9]{2}|1000):.*/\1/p' | xargs -r -n1 ip $family rule del pref; done`},
		{"routes deleted", `for family in -4 -6; do for table in $(ip $family rule | sed -En 's/.* lookup (77[0-9]{2}).*/\1/p'); do ip $family route flush table $table; done; done`},
		{"flows forgotten", "conntrack -F"},
	}, tunnel[min(1, len(tunnel)):])
	for _, m := range []*member{source, w.holder} {
		for _, d := range damages[:by(t, 2, len(damages), len(damages))] {
			w.scenario(d.name+" on "+m.Name, func() { w.repaired(m, d) })
		}
	}
	t.Logf("%s; dropped: %s", w.noneWrong(traffic), dropsTold(w.allDrops()))
	w.clean(1000)
}

// steeringDamage is what somebody does on a node, as a script.
type steeringDamage struct{ name, script string }

// repaired does damage, and waits until a node is as it was.
func (w *steeredWorld) repaired(m *member, d steeringDamage) {
	w.Helper()
	state := func() string {
		w.Helper()
		return m.steering(w.world) + strings.Join(w.egressRules(m), "\n")
	}
	want := state()
	began := time.Now()
	_, err := m.Host.Run(w.Context(), "sh", "-c", d.script)
	w.must(err)
	process.Eventually(w.T, 3*process.SyncPeriod, func() error { // a sync takes time, too
		if diff := cmp.Diff(lines(want), lines(state())); diff != "" {
			return fmt.Errorf("%s: not as it was (-want +got):\n%s", m.Name, diff)
		}
		return nil
	})
	w.Logf("repaired after %s", since(began))
	w.steered()
}
