package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestPool_PartitionHeals: the holder of an address is among the fewer nodes; the others take the address, at no time does a host
// see two holders for long, and when the partition heals nothing moves.
func TestPool_PartitionHeals(t *testing.T) {
	belongsTo(t, usual)
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			w := newPoolWorld(t, nodes)
			for _, ip := range w.egressIPs {
				w.partition(ip, "switch split", true)
				w.partition(ip, "frames between the nodes filtered", false)
			}
		})
	}
}

// foundNext is by how much later each further member is found dead that is lost at the same moment: members are probed one after the other, and
// one that hears less itself takes twice the time for a probe.
const foundNext = 120 * time.Millisecond

// partition cuts the holder of an address off from most other nodes, with as many as are no majority with it; with all, from all
// other hosts, the control plane included. Then it ends that.
func (w *poolWorld) partition(ip, what string, all bool) {
	w.Helper()
	w.complete()
	holder := w.holderOf(ip, nil)
	fewer, most := []*member{holder}, []*member{}
	for _, m := range w.members {
		switch {
		case m == holder:
		case len(fewer) < (len(w.members)-1)/2:
			fewer = append(fewer, m)
		default:
			most = append(most, m)
		}
	}
	a, p := w.whoAnswers(ip), w.probeFrom(w.podsOn(most), ip)
	began := time.Now()
	w.must(w.Split(hosts(fewer), all))
	next := w.anotherHas(ip, holder)
	w.end(p, ip, what, began, w.fastest()+time.Duration(len(fewer)-1)*foundNext)
	if !slices.Contains(most, next) {
		w.Errorf("%s, %s: %s has taken it, which reaches no majority", ip, what, next.Name)
	}
	if !all || len(fewer) == 1 { // the outside host reaches the former holder, or it reaches nobody
		w.holderOf(ip, holder)
	}
	w.unmoved(what+", healed", func() {
		p = w.probeFrom(w.podsOn(most), ip)
		w.must(w.Heal())
		healed := time.Now()
		w.complete()
		w.servedAgain(p, ip, what+", healed", healed)
		if now := w.holderOf(ip, nil); now != next {
			w.Errorf("%s, %s: it has moved to %s", ip, what, now.Name)
		}
	})
	a.end(w, ip, what)
	w.answered()
}

func (w *poolWorld) podsOn(members []*member) []*lab.Host {
	return slices.DeleteFunc(slices.Clone(w.pods), func(pod *lab.Host) bool { return !slices.Contains(hosts(members), pod.Node) })
}

func hosts(members []*member) (list []*lab.Host) {
	for _, m := range members {
		list = append(list, m.Host)
	}
	return list
}
