package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestAPIServer_Away: for a while there is none, and nodes are restarted
// and killed in that time. What changes as soon as it is back arrives on all of them.
func TestAPIServer_Away(t *testing.T) {
	w := newWatchedWorld(t, settings{})
	away := by(t, 15*time.Second, 15*time.Second, time.Minute)
	w.must(w.APIServer.Stop(t.Context()))
	began := time.Now()
	stopped, killed := w.members[1], w.members[2]
	stopped.Stop()
	killed.Kill()
	for _, m := range []*member{stopped, killed} {
		m.Anew()
		m.Says("Waiting for caches to sync")
	}
	time.Sleep(time.Until(began.Add(away))) // the fault is its length
	w.round(w.residents, w.blog)
	for _, m := range []*member{stopped, killed} {
		m.Says("Waiting for the API server; the rules in the kernel stay as they are")
		if strings.Contains(m.Printed.String(), inPlace) {
			t.Errorf("%s says that its rules are in place, without knowing what they should be", m.Name)
		}
	}

	w.must(w.APIServer.Start())
	w.must(w.APIServer.Ready(t.Context()))
	back := time.Now()
	w.publish()
	w.published()
	w.calm(fmt.Sprintf("API server away for %s, nodes up to date %s after it was back", back.Sub(began).Round(time.Second), since(back)))
}

// TestEtcd_Restarts: in an orderly way, and killed.
func TestEtcd_Restarts(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{})
	for _, restart := range []func() error{
		func() error { return w.Etcd.Restart(t.Context()) },
		func() error {
			if err := w.Etcd.Kill(); err != nil {
				return err
			}
			if err := w.Etcd.Start(); err != nil {
				return err
			}
			return w.Etcd.Ready(t.Context())
		},
	} {
		w.must(restart())
		back := time.Now()
		w.publish()
		w.published()
		t.Logf("nodes up to date %s after etcd's restart", since(back))
	}
	w.calm("etcd restarted, and killed")
}

// TestConnections_BrokenInFiveWays: five of six nodes have five different troubles with
// their connections to the API server, in the middle of changes. Each goes on with what
// it knew last, or learns it late, and catches up when its trouble is over.
func TestConnections_BrokenInFiveWays(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{nodes: 6})
	well, dropped, delayed, reset, refused, held := w.members[0], w.members[1], w.members[2], w.members[3], w.members[4], w.members[5]
	blind := []*member{dropped, refused, held}
	w.publish()
	w.published()
	last := w.blogIPs()

	dropped.link.Drop()
	delayed.link.Delay(2 * time.Second)
	resetting := repeatedly(time.Second, reset.link.Reset)
	defer resetting.end()
	refused.link.Refuse()
	refused.link.Reset() // what it had, too
	held.link.Hold()
	for range 3 {
		w.publish()
		w.published(well, reset)
	}
	w.replaceShop(well)
	w.published(well, delayed, reset)
	for _, m := range blind {
		for _, pod := range w.podsOn(w.blog, m) {
			for i, at := range w.outside() {
				m.Sees([]string{"tcp4", "tcp6"}[i], pod, at, netip.MustParseAddr(last[i]))
			}
		}
	}
	w.round(w.residents, w.blog)

	healed := time.Now()
	resetting.end()
	for _, m := range w.members {
		w.must(m.link.Heal())
	}
	for _, m := range []*member{held, refused, dropped} {
		w.published(m)
		t.Logf("%s up to date %s after its link was mended", m.Name, since(healed))
	}
	w.published()
	w.calm("links dropped, delayed, reset, refused, held")
}

// replaceShop lets a Service come, and go again, with a pod on a node whose address another
// pod takes over.
func (w *watchedWorld) replaceShop(on *member) {
	w.Helper()
	for i, namespace := range []string{"first", "second"} {
		_, err := w.CreateNamespace(w.Context(), namespace)
		w.must(err)
		_, err = w.CreateService(w.Context(), cluster.NewService(namespace, "web", web, []string{"203.0.113.99"}, tcp80))
		w.must(err)
		pod := w.runPod(namespace, "web", on, web)
		on.Sees("tcp4", pod, w.outside()[0], netip.MustParseAddr("203.0.113.99"))
		if i == 0 {
			w.must(w.DeleteNamespace(w.Context(), namespace))
		}
	}
}
