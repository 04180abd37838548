package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestAnnounce_APIServerAwayWhileTheAddressMoves: nodes learn of the new holder from itself, so their pods are answered
// again at once, and leave as nobody else. All is as ever when the API server is back.
func TestAnnounce_APIServerAwayWhileTheAddressMoves(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{}, nil)
	traffic := w.crowd(100)
	w.must(w.APIServer.Stop(t.Context()))
	away := time.Now()
	for _, to := range []*member{w.members[1], w.members[2]} {
		w.scenario("moved to "+to.Name, func() { w.movesWithin(to, atLast) })
		time.Sleep(by(t, 15*time.Second, 15*time.Second, 30*time.Second)) // the fault is its length
	}
	w.scenario("a process that is started anew still holds the address", func() {
		w.holder.Kill()
		w.answersWithin(time.Now(), atLast)
	})
	w.Logf("the API server was away for %s", since(away))
	w.must(w.APIServer.Start())
	w.must(w.APIServer.Ready(t.Context()))
	w.holder.AnewReady()
	back := time.Now()
	w.steered()
	t.Logf("all well %s after the API server was back", since(back))
	w.noneWrong(traffic)
	w.clean(100)
}

// TestAnnounce_PortFiltered: nodes learn of a new holder from its Lease.
func TestAnnounce_PortFiltered(t *testing.T) {
	belongsTo(t, usual)
	filter := fmt.Sprintf("nft add table inet filtered; nft add chain inet filtered input '{ type filter hook input priority 0; }'; nft add rule inet filtered input udp dport %d drop", lab.AnnouncePort)
	w := newSteeredWorld(t, settings{}, func(w *world) {
		for _, m := range w.members {
			_, err := m.Host.Run(w.Context(), "sh", "-c", filter)
			w.must(err)
		}
	})
	traffic := w.crowd(100)
	for _, to := range []*member{w.members[1], w.members[2], w.members[0]} {
		w.movesWithin(to, atLast)
		w.knownBy("lease")
	}
	w.noneWrong(traffic)
	w.clean(100)
}

// TestAnnounce_Keys: nodes that have the same key hear each other; one that has another is not believed, which a node says
// once, and learns of holders from their Leases.
func TestAnnounce_Keys(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{families: families[:1]}, func(w *world) {
		for i, key := range []string{"a key that all nodes share", "a key that all nodes share", "a key that nobody else has"} {
			m := w.members[i]
			m.Write(m.File("egress.key"), []byte(key))
			m.Arguments = map[string]any{"egress-snat-key-file": []string{m.File("egress.key")}}
			m.Configure("")
		}
	})
	for range 2 {
		w.movesWithin(w.members[1], atLast)
		w.knownBy("both", w.members[0])
		w.knownBy("lease", w.members[2])
		w.movesWithin(w.members[0], atLast)
	}
	w.members[2].Says("egress-snat-key-file")
	if told := strings.Count(w.members[2].Printed.String(), "Ignored a direct announcement"); told != 1 {
		t.Errorf("node-3 says %d times that it does not believe others, want once", told)
	}
	if w.metric(w.members[2], `egress_snat_announcements_total{result="unauthenticated"}`) == 0 {
		t.Error("node-3 does not count what it does not believe")
	}
}

// TestAnnounce_SteeringSwitchedOff: a node that does not steer any more, or is cleaned up, announces nothing.
func TestAnnounce_SteeringSwitchedOff(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{families: families[:1]}, nil)
	holder := w.holder
	restart := func(arguments string) {
		holder.Stop()
		holder.Configure(arguments)
		holder.Anew()
	}
	for _, off := range []string{"egress-snat-steering: ['off']", "egress-snat: ['false']"} {
		w.scenario(off, func() {
			restart(off)
			w.heldBy(nil, w.egressIPs...)
			restart("")
			holder.Ready()
			w.steered()
		})
	}
	w.scenario("--cleanup", func() {
		holder.Stop()
		if _, errs, status := holder.Openshift("start", "node", "--config="+holder.Config(), "--cleanup"); status != 0 {
			w.Fatal(errs)
		}
		w.heldBy(nil, w.egressIPs...)
	})
	w.scenario("the Lease goes with its Node", func() {
		lease := func() error {
			_, err := w.Client().CoordinationV1().Leases(leaseNamespace).Get(t.Context(), holder.Name, metav1.GetOptions{})
			return err
		}
		w.must(lease())
		w.must(w.Client().CoreV1().Nodes().Delete(t.Context(), holder.Name, metav1.DeleteOptions{}))
		w.eventually(func() error {
			err := lease()
			if err == nil {
				return errors.New("the Lease is still there")
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	})
}

// atLast is within which pods are answered again when an address has moved. It takes some hundred milliseconds, and more on a
// machine that is busy with other tests.
const atLast = 3 * time.Second

// movesWithin moves the egress IPs to a node, and fails unless all pods are answered again within a time.
func (w *steeredWorld) movesWithin(to *member, limit time.Duration) {
	w.Helper()
	began := time.Now()
	w.move(to)
	w.answersWithin(began, limit)
}

// answersWithin fails unless each pod is answered as the egress IPs by all hosts outside, within a time since then.
func (w *steeredWorld) answersWithin(then time.Time, limit time.Duration) {
	w.Helper()
	var wg sync.WaitGroup
	for _, pod := range w.pods {
		for _, to := range w.everywhere() {
			wg.Go(func() {
				if seen := w.asksOften(pod, to); seen != identity(pod, to, w.egressIPs) {
					w.Errorf("%s to %s is seen as %s", pod.Name, to, seen)
				}
			})
		}
	}
	wg.Wait()
	took := since(then)
	w.Logf("all pods are answered %s after the move to %s", took, w.holder.Name)
	if took > limit {
		w.Errorf("all pods are answered after %s, want %s at most", took, limit)
	}
}

// asksOften returns the address that a new flow of a pod is seen from, and asks anew if it is not answered soon: what is
// lost while an address moves is not repeated.
func (w *steeredWorld) asksOften(from *lab.Host, to netip.AddrPort) (seen netip.Addr) {
	w.eventually(func() (err error) {
		seen, err = w.askWithin(100*time.Millisecond, "udp", from, to)
		return err
	})
	return seen
}

// knownBy waits until nodes, all but the holder if none is named, say that they know in this way who has the egress IPs.
func (w *steeredWorld) knownBy(how string, members ...*member) {
	w.Helper()
	if len(members) == 0 {
		members = slices.DeleteFunc(slices.Clone(w.members), func(m *member) bool { return m == w.holder })
	}
	w.eventually(func() error {
		for _, m := range members {
			out, errs, status := m.Openshift("egress", "addresses", "--socket="+m.Socket(), "--no-headers")
			if status != 0 {
				return fmt.Errorf("%s: %s", m.Name, errs)
			}
			for line := range strings.Lines(out) {
				if fields := strings.Fields(line); len(fields) < 5 || fields[2] != w.holder.Name || fields[4] != how {
					return fmt.Errorf("%s: %q, want that %s has it, as is known by %q", m.Name, line, w.holder.Name, how)
				}
			}
		}
		return nil
	})
}
