package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestNobodyNoticesThatTheAPIServerIsAway: for a while there is none, and nodes are restarted
// and killed in that time. What changes as soon as it is back arrives on all of them.
func TestNobodyNoticesThatTheAPIServerIsAway(t *testing.T) {
	to := newTown(t, settings{})
	away := by(t, 15*time.Second, 15*time.Second, time.Minute)
	to.must(to.APIServer.Stop(t.Context()))
	began := time.Now()
	stopped, killed := to.members[1], to.members[2]
	stopped.Stop()
	killed.Kill()
	for _, m := range []*member{stopped, killed} {
		m.Printed.Reset()
		m.Start()
		m.Says("Waiting for caches to sync")
	}
	time.Sleep(time.Until(began.Add(away))) // the fault is its length
	to.round(to.residents, to.blog)
	for _, m := range []*member{stopped, killed} {
		m.Says("Waiting for the API server; the rules in the kernel stay as they are")
		if strings.Contains(m.Printed.String(), inPlace) {
			t.Errorf("%s says that its rules are in place, without knowing what they should be", m.Name)
		}
	}

	to.must(to.APIServer.Start())
	to.must(to.APIServer.Ready(t.Context()))
	back := time.Now()
	to.publish()
	to.published()
	to.calm(fmt.Sprintf("API server away for %s, nodes up to date %s after it was back", back.Sub(began).Round(time.Second), since(back)))
}

// TestNobodyNoticesThatEtcdRestarts: in an orderly way, and killed.
func TestNobodyNoticesThatEtcdRestarts(t *testing.T) {
	belongsTo(t, usual)
	to := newTown(t, settings{})
	for _, restart := range []func() error{
		func() error { return to.Etcd.Restart(t.Context()) },
		func() error {
			if err := to.Etcd.Kill(); err != nil {
				return err
			}
			if err := to.Etcd.Start(); err != nil {
				return err
			}
			return to.Etcd.Ready(t.Context())
		},
	} {
		to.must(restart())
		back := time.Now()
		to.publish()
		to.published()
		t.Logf("nodes up to date %s after etcd's restart", since(back))
	}
	to.calm("etcd restarted, and killed")
}

// TestANodeWhoseConnectionsAreResetFollows: its connections to the API server end every second,
// in the middle of changes, all of which it learns.
func TestANodeWhoseConnectionsAreResetFollows(t *testing.T) {
	to := newTown(t, settings{})
	resetting := repeatedly(time.Second, to.members[1].link.Reset)
	defer resetting.end()
	began := time.Now()
	for range 3 {
		to.publish()
		to.published()
	}
	followed := since(began)
	resetting.end()
	to.published()
	to.calm(fmt.Sprintf("three changes followed in %s with connections that are reset every second", followed))
}

// TestNodesWithoutNewsStayAsTheyAre: five of six nodes have five different troubles with
// their connections to the API server, in the middle of changes. Each goes on with what
// it knew last, or learns it late, and catches up when its trouble is over.
func TestNodesWithoutNewsStayAsTheyAre(t *testing.T) {
	belongsTo(t, usual)
	to := newTown(t, settings{nodes: 6})
	well, dropped, delayed, reset, refused, held := to.members[0], to.members[1], to.members[2], to.members[3], to.members[4], to.members[5]
	blind := []*member{dropped, refused, held}
	to.publish()
	to.published()
	last := to.blogIPs()

	dropped.link.Drop()
	delayed.link.Delay(2 * time.Second)
	resetting := repeatedly(time.Second, reset.link.Reset)
	defer resetting.end()
	refused.link.Refuse()
	refused.link.Reset() // what it had, too
	held.link.Hold()
	for range 3 {
		to.publish()
		to.published(well)
	}
	to.replaceShop(well)
	to.published(well, delayed, reset)
	for _, m := range blind {
		for _, pod := range to.podsOn(to.blog, m) {
			for i, at := range to.outside() {
				m.Sees([]string{"tcp4", "tcp6"}[i], pod, at, netip.MustParseAddr(last[i]))
			}
		}
	}
	to.round(to.residents, to.blog)

	healed := time.Now()
	resetting.end()
	for _, m := range to.members {
		to.must(m.link.Heal())
	}
	for _, m := range []*member{held, refused, dropped} {
		to.published(m)
		t.Logf("%s up to date %s after its link was mended", m.Name, since(healed))
	}
	to.published()
	to.calm("links dropped, delayed, reset, refused, held")
}

// replaceShop lets a Service come, and go again, with a pod on a node whose address another
// pod takes over.
func (to *town) replaceShop(on *member) {
	to.Helper()
	for i, namespace := range []string{"first", "second"} {
		_, err := to.CreateNamespace(to.Context(), namespace)
		to.must(err)
		_, err = to.CreateService(to.Context(), cluster.NewService(namespace, "web", web, []string{"203.0.113.99"}, tcp80))
		to.must(err)
		pod := to.runPod(namespace, "web", on, web)
		on.Sees("tcp4", pod, to.outside()[0], netip.MustParseAddr("203.0.113.99"))
		if i == 0 {
			to.must(to.DeleteNamespace(to.Context(), namespace))
		}
	}
}
