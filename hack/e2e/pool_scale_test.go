package e2e

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestPool_ManyAddresses: of a thousand on five nodes, those of a node that dies are served again at once, and those of two
// that die at the same time; the other nodes keep theirs.
func TestPool_ManyAddresses(t *testing.T) {
	belongsTo(t, long)
	const nodes, count = 5, 1000
	w := newPoolWorld(t, nodes)
	wanted := map[netip.Addr]bool{}
	for i := range count {
		ip := fmt.Sprintf("2001:db8:0:2::%x", 0x1000+i)
		_, err := w.CreateService(w.Context(), cluster.NewService("shop", fmt.Sprintf("many-%d", i), map[string]string{"app": "none"}, []string{ip}, tcp80))
		w.must(err)
		wanted[netip.MustParseAddr(ip)] = true
	}
	w.served(wanted, w.members)
	for _, m := range w.members {
		if held := len(w.manyOn(m, wanted)); held < count/nodes-2 || held > count/nodes+2 {
			t.Errorf("%s has %d of %d addresses, want a fifth", m.Name, held, count)
		}
	}
	for _, fault := range []struct {
		failed []*member
		within time.Duration
	}{{w.members[:1], time.Second}, {w.members[:2], 2 * time.Second}} {
		w.complete()
		rest, lost := w.members[len(fault.failed):], 0
		kept := map[*member]map[netip.Addr]bool{}
		for _, m := range w.members {
			kept[m] = w.manyOn(m, wanted)
		}
		began := time.Now()
		for _, m := range fault.failed {
			lost += len(kept[m])
			w.must(w.SetLink(m.Host, false))
		}
		w.served(wanted, rest)
		took := time.Since(began)
		if t.Logf("%d nodes fail at once: their %d addresses are on others after %v", len(fault.failed), lost, took.Round(time.Millisecond)); took > fault.within {
			t.Errorf("want %v", fault.within)
		}
		for _, m := range rest {
			now := w.manyOn(m, wanted)
			for ip := range kept[m] {
				if !now[ip] {
					t.Errorf("%s has lost %s although it has not failed", m.Name, ip)
				}
			}
		}
		for _, m := range fault.failed {
			w.must(w.SetLink(m.Host, true))
		}
	}
}

// manyOn are those of these addresses that a node has.
func (w *poolWorld) manyOn(m *member, of map[netip.Addr]bool) map[netip.Addr]bool {
	w.Helper()
	held, err := m.Host.Held()
	w.must(err)
	result := map[netip.Addr]bool{}
	for _, ip := range held {
		if of[ip] {
			result[ip] = true
		}
	}
	return result
}

// served waits until these nodes have all of these addresses.
func (w *poolWorld) served(wanted map[netip.Addr]bool, by []*member) {
	w.Helper()
	w.eventually(func() error {
		served := map[netip.Addr]bool{}
		for _, m := range by {
			for ip := range w.manyOn(m, wanted) {
				served[ip] = true
			}
		}
		if len(served) < len(wanted) {
			return fmt.Errorf("%d of %d addresses are served", len(served), len(wanted))
		}
		return nil
	})
}
