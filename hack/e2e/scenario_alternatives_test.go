package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// alternatives is a pool of six nodes in three zones, and a Service with several egress IPs.
type alternatives struct {
	*poolWorld
	// named are the egress IPs that the Service has, of both families.
	named []string
	zones map[*lab.Host]string
}

// TestAnnotation_SeveralEgressIPs: the pool puts a Service's three egress IPs into three zones, each pod leaves by its zone's, and abides by
// that whatever comes, goes, fails or restarts.
func TestAnnotation_SeveralEgressIPs(t *testing.T) {
	belongsTo(t, usual)
	w := &alternatives{newIdlePoolWorldOf(t, settings{nodes: 6, arguments: `
egress-snat-namespace-cidrs: ["shop=192.0.2.96/27", "shop=2001:db8:0:2::100/120"]
`}), nil, map[*lab.Host]string{}}
	w.placeInZones()
	w.start()
	w.named = slices.Concat(w.lanIPs(100), w.lanIPs(101), w.lanIPs(102))
	w.egressIPs = slices.Concat(w.named, w.lanIPs(103))
	w.assignable = addrs(w.named)
	svc := cluster.NewService("shop", "web", web, nil, tcp80, udp80)
	namedEgressIPs(w.named...)(svc)
	w.pods = w.shopOf(svc)
	for i, m := range w.members {
		w.pods = append(w.pods, w.runPod("shop", fmt.Sprintf("more-%d", i+1), m, web))
	}
	w.bound("shop", "web", len(w.pods))
	w.scenario("each zone has an address, by which its pods leave", w.byZone)
	w.scenario("pods say why", w.explained)
	w.scenario("processes restart", w.restarted)
	w.scenario("a holder fails", w.holderFails)
	w.scenario("an address comes, and one goes", w.comesAndGoes)
}

// placeInZones puts two nodes into each zone.
func (w *alternatives) placeInZones() {
	for i, m := range w.members {
		w.zones[m.Host] = string(rune('a' + i/2))
		w.label(m, v1.LabelTopologyZone, w.zones[m.Host])
	}
}

// leave returns the egress IPs that each pod leaves from, of both families, by asking; it waits until all are answered.
func (w *alternatives) leave() map[*lab.Host][]string {
	w.Helper()
	leave := map[*lab.Host][]string{}
	w.eventually(func() error {
		for _, pod := range w.pods {
			leave[pod] = nil
			for _, to := range w.outside() {
				seen, err := pod.Ask(w.Context(), network("tcp", to), to, 0)
				if err != nil {
					return err
				}
				if !slices.Contains(w.named, seen.String()) {
					return fmt.Errorf("%s leaves as %s", pod.Name, seen)
				}
				leave[pod] = append(leave[pod], seen.String())
			}
		}
		return nil
	})
	return leave
}

// byZone makes as many flows from each pod, and counts them by egress IP: holders share what one would have to do.
func (w *alternatives) byZone() {
	for _, ip := range w.named {
		w.holderOf(ip, nil)
	}
	w.eventually(func() error { return w.inZones(w.leave()) })
	w.settled()
	before := w.leave()
	const each = 50
	flows, total := map[netip.Addr]int{}, 0
	for _, pod := range w.pods {
		for range each {
			for _, to := range w.outside() {
				seen := w.asks("tcp", pod, to)
				if !slices.Contains(before[pod], seen.String()) {
					w.Fatalf("%s leaves as %s, and before as %v", pod.Name, seen, before[pod])
				}
				flows[seen]++
				total++
			}
		}
	}
	busiest := 0
	for ip, n := range flows {
		busiest = max(busiest, n)
		w.Logf("%d of %d flows left as %s", n, total, ip)
	}
	ratio := float64(total) / float64(len(w.outside())) / float64(busiest)
	w.Logf("The three holders of a family carry %.2f times what the busiest of them does; 0 flows have left by another zone", ratio)
	if ratio < 2.7 {
		w.Errorf("the holders carry %.2f times what one does, want 2.7", ratio)
	}
}

// inZones returns an error unless each pod leaves by a holder in its zone.
func (w *alternatives) inZones(leave map[*lab.Host][]string) error {
	for pod, ips := range leave {
		for _, ip := range ips {
			if holder := w.holderOf(ip, nil); w.zones[holder.Host] != w.zones[pod.Node] {
				return fmt.Errorf("%s in zone %s leaves as %s by %s in zone %s", pod.Name, w.zones[pod.Node], ip, holder.Name, w.zones[holder.Host])
			}
		}
	}
	return nil
}

func (w *alternatives) explained() {
	pod := w.pods[0]
	ip := w.leave()[pod][0]
	out, errs, status := w.members[0].Openshift("egress", "explain", pod.V4.String(), "--socket="+w.members[0].Socket())
	for _, want := range []string{
		"one of the Service's 3 egress IPs, chosen by the pod's node", ip + ", on " + w.holderOf(ip, nil).Name + " in the pod's zone a; the pod keeps it", "in the zone b", "in the zone c",
	} {
		if status != 0 || !strings.Contains(out, want) {
			w.Errorf("explain says %d\n%s%s\nwant %q", status, out, errs, want)
		}
	}
}

// keep fails unless all pods leave as before after do, and no address has moved.
func (w *alternatives) keep(what string, do func()) {
	w.Helper()
	before := w.leave()
	do()
	after := w.leave()
	for _, pod := range w.pods {
		if !slices.Equal(before[pod], after[pod]) {
			w.Errorf("%s: %s leaves as %v, and before as %v", what, pod.Name, after[pod], before[pod])
		}
	}
}

func (w *alternatives) restarted() {
	w.keep("restarts", func() {
		w.unmoved("restarts", w.restartAll)
	})
	w.keep("Leases are deleted and changed", func() {
		leases := w.Client().CoordinationV1().Leases("origin-node")
		before, err := w.chosen()
		w.must(err)
		w.must(leases.Delete(w.Context(), w.members[0].Name, metav1.DeleteOptions{}))
		_, err = leases.Patch(w.Context(), w.members[1].Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"network.openshift.io/egress-choices":"{}"}}}`), metav1.PatchOptions{})
		w.must(err)
		w.eventually(func() error {
			if after, err := w.chosen(); err != nil || !cmp.Equal(before, after, cmpopts.EquateComparable(netip.Addr{})) {
				return errors.Join(fmt.Errorf("the Leases say %v, want %v", after, before), err)
			}
			return nil
		})
		w.settled()
	})
}

// holderFails loses the holder of a zone: its pods go on by the next one, with their addresses and connections, and the others notice
// nothing.
func (w *alternatives) holderFails() {
	ip := w.lanIPs(100)[0]
	leave, holder := w.leave(), w.holderOf(ip, nil)
	w.pods = slices.DeleteFunc(w.pods, func(pod *lab.Host) bool { return pod.Node == holder.Host })
	of := func(ip string) (pods []*lab.Host) {
		for _, pod := range w.pods {
			if slices.Contains(leave[pod], ip) {
				pods = append(pods, pod)
			}
		}
		return pods
	}
	var ends []func()
	for _, other := range w.named {
		if netip.MustParseAddr(other).Is4() && other != ip && w.holderOf(other, nil) != holder {
			p := w.probeFrom(of(other), other)
			ends = append(ends, func() {
				if r, _ := w.judged(p, other, "the holder of another address fails", time.Now()); r.late+r.failed+r.wrong > 0 {
					w.Errorf("%s: %d connections were late, %d failed and %d had another address, though its holder is another one: %v", other, r.late, r.failed, r.wrong, r.failure)
				}
			})
		}
	}
	if len(ends) == 0 {
		w.Fatal(errors.New("one node holds all addresses"))
	}
	c, p, began := w.keepConnections(ip, of(ip)), w.probeFrom(of(ip), ip), time.Now()
	w.must(w.SetLink(holder.Host, false))
	w.holderOf(ip, holder)
	w.end(p, ip, "its holder fails", began, w.fastest())
	c.end(w.poolWorld, ip, "its holder fails", 95)
	for _, end := range ends {
		end()
	}
	w.keep("the holder returns", func() {
		w.must(w.SetLink(holder.Host, true))
		w.complete()
		w.settled()
	})
}

// comesAndGoes: an address that comes takes no pod from another one, and gets new pods; one that goes gives away its own pods alone.
func (w *alternatives) comesAndGoes() {
	w.assignable = addrs(w.egressIPs)
	w.keep("an address comes", func() {
		w.named = w.egressIPs
		w.editService("shop", "web", namedEgressIPs(w.named...))
		for _, ip := range w.named {
			w.holderOf(ip, nil)
		}
		w.settled()
	})
	before, gone := w.leave(), w.lanIPs(102)
	w.named = slices.DeleteFunc(slices.Clone(w.named), func(ip string) bool { return slices.Contains(gone, ip) })
	w.assignable = addrs(w.named)
	w.editService("shop", "web", namedEgressIPs(w.named...))
	w.settled()
	after, moved := w.leave(), 0
	for _, pod := range w.pods {
		for i := range before[pod] {
			if had := slices.Contains(gone, before[pod][i]); had {
				moved++
			} else if after[pod][i] != before[pod][i] {
				w.Errorf("%s leaves as %s, and before as %s, which the Service still has", pod.Name, after[pod][i], before[pod][i])
			}
		}
	}
	if moved == 0 {
		w.Error("no pod left from the address that has gone; the test shows nothing")
	}
}
