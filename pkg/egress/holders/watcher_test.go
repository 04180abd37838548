package holders

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// told are the events that a watch has told.
type told struct {
	mu     sync.Mutex
	events []Event
}

func (l *told) tell(event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// tells fails the test unless exactly these events were told since the last call.
func (l *told) tells(t *testing.T, when string, want ...Event) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.events, compare); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	l.events = nil
}

func TestWatch_TellsWhatBecomesOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewed := time.Now().Add(-time.Hour)
		a := announcement{node: "node-a", Published: Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}}}
		s := newAPIServer(t, a.lease("origin-node", renewed), a.lease("elsewhere", renewed))
		var l told
		go s.leases().Watch(s.ctx, l.tell)
		time.Sleep(time.Second)
		l.tells(t, "at the start", Announced{"node-a", a.Statement, Lease, renewed}, LeasesKnown{})
		leases := s.CoordinationV1().Leases("origin-node")
		must := func(_ *coordinationv1.Lease, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(leases.Update(s.ctx, a.lease("origin-node", renewed.Add(time.Minute)), metav1.UpdateOptions{}))
		l.tells(t, "a renewal", Announced{"node-a", a.Statement, Lease, renewed.Add(time.Minute)})
		must(leases.Create(s.ctx, leaseOf("node-c", `{"203.0.113.11": {"epoch": 1}, "web": {"epoch": 1}}`), metav1.CreateOptions{}))
		l.tells(t, "half of it wrong", Announced{"node-c", Statement{Addresses: map[netip.Addr]uint64{ips[1]: 1}}, Lease, time.Time{}})
		must(leases.Update(s.ctx, leaseOf("node-c", `{"203.0.113.10": {"epoch": 1}, "web": {"epoch": 1}}`), metav1.UpdateOptions{}))
		l.tells(t, "the same half of it wrong", Announced{"node-c", Statement{Addresses: map[netip.Addr]uint64{ips[0]: 1}}, Lease, time.Time{}})
		if log := s.logged(); len(log) != 1 || !strings.Contains(log[0], "Lease origin-node/node-c: metadata.annotations") {
			t.Errorf("logged %q, want one line that names Lease and field", log)
		}
		if err := leases.Delete(s.ctx, "node-a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		l.tells(t, "deleted", LeaseDeleted{"node-a"})
	})
}

func leaseOf(node, text string) *coordinationv1.Lease {
	lease := leaseWith(map[string]string{Annotation: text})
	lease.Name = node
	return lease
}

// TestWatch_TellsWhetherItHears: what others do while the API server does not answer cannot be known.
func TestWatch_TellsWhetherItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		watches := make(chan *watch.FakeWatcher, 10)
		s.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refuses != nil {
				return true, nil, s.refuses
			}
			w := watch.NewFake()
			watches <- w
			return true, w, nil
		})
		var l told
		go s.leases().Watch(s.ctx, l.tell)
		time.Sleep(time.Second)
		l.tells(t, "at the start", LeasesKnown{})
		(<-watches).Stop()
		time.Sleep(time.Minute)
		l.tells(t, "a watch ends, as watches do")
		s.refuse(errors.New("connection refused"))
		(<-watches).Stop()
		time.Sleep(10 * time.Minute)
		l.tells(t, "the API server is away", Hearing{false})
		s.refuse(nil)
		time.Sleep(time.Minute)
		l.tells(t, "the API server is back", Hearing{true})
	})
}

func TestWatch_SaysOnceThatItIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		s.refuse(apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("User cannot list")))
		var l told
		go s.leases().Watch(s.ctx, l.tell)
		time.Sleep(10 * time.Minute)
		l.tells(t, "forbidden", Hearing{false})
		if log := s.logged(); len(log) != 1 || !strings.Contains(log[0], "Cannot learn") || !strings.Contains(log[0], "apply images/node/rbac.yaml") {
			t.Errorf("logged %q, want one line that says what to do", log)
		}
		s.refuse(nil)
		time.Sleep(time.Minute)
		l.tells(t, "allowed", Hearing{true}, LeasesKnown{})
		if log := s.logged(); len(log) != 1 || !strings.Contains(log[0], "known again") {
			t.Errorf("logged %q, want that it works again", log)
		}
	})
}

// TestWatch_FillsNoLog: a node may write something else that is wrong into a Lease, again and again.
func TestWatch_FillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		var l told
		go s.leases().Watch(s.ctx, l.tell)
		time.Sleep(time.Second)
		leases := s.leases().Client.CoordinationV1().Leases(s.leases().Namespace)
		lease, err := leases.Create(s.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 * linesAtOnce {
			lease.Annotations = map[string]string{Annotation: fmt.Sprintf("nonsense %d", i)}
			if _, err := leases.Update(s.ctx, lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if log := s.logged(); len(log) != linesAtOnce {
			t.Errorf("%d lines are logged, want %d", len(log), linesAtOnce)
		}
	})
}

func TestStripLease_LeavesWhatIsRead(t *testing.T) {
	lease := (announcement{node: "node-a", Published: Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}, NodeUID: "uid-1"}}).lease("origin-node", start)
	lease.ResourceVersion, lease.Annotations["a"], lease.ManagedFields = "7", "b", make([]metav1.ManagedFieldsEntry, 3)
	object, err := stripLease(lease)
	got, isLease := object.(*coordinationv1.Lease)
	if err != nil || !isLease {
		t.Fatalf("%+v, %v", object, err)
	}
	if statement, err := readLease(got); statement.Addresses[ips[0]] != 3 || statement.Revision != 5 || err != nil || !got.Spec.RenewTime.Equal(lease.Spec.RenewTime) || got.ResourceVersion != "7" {
		t.Errorf("%+v announces %v, %v", got, statement, err)
	}
	if len(got.Annotations) != 2 || got.ManagedFields != nil || got.OwnerReferences != nil {
		t.Errorf("%+v is more than what is read", got)
	}
}
