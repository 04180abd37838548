package holders

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
)

// apiServer is one that keeps Leases, refuses requests on demand, and has a log. What a real one does with
// the same requests is in hack/e2e.
type apiServer struct {
	*testing.T
	*fake.Clientset
	ctx context.Context

	mu       sync.Mutex
	refuses  error
	requests []string // the verbs of those that write
	log      []string
}

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	s := &apiServer{T: t, Clientset: fake.NewClientset(objects...)}
	s.ctx = klog.NewContext(t.Context(), funcr.New(func(_, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, args)
	}, funcr.Options{}))
	// ctx ends before the test's own clean-up: nothing of it may be left in a bubble of synctest.
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(s.ctx)
	t.Cleanup(cancel)
	s.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if verb := action.GetVerb(); verb != "list" && verb != "get" {
			s.requests = append(s.requests, verb)
		}
		return s.refuses != nil, nil, s.refuses
	})
	s.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refuses != nil, nil, s.refuses
	})
	return s
}

// refuse has all requests fail from now on, or none.
func (s *apiServer) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = err
}

func (s *apiServer) leases() Leases {
	return Leases{Client: s.Clientset, Namespace: "origin-node", Explain: func(err error) error { return errors.Join(err, errors.New("explained")) }}
}

// wrote returns the requests that wrote since it was called last, when nobody has anything to do.
func (s *apiServer) wrote() (requests []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, s.requests = s.requests, nil
	return requests
}

// logged returns what was logged since it was called last.
func (s *apiServer) logged() (log []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	log, s.log = s.log, nil
	return log
}

func (s *apiServer) lease() *coordinationv1.Lease {
	s.Helper()
	lease, err := s.CoordinationV1().Leases("origin-node").Get(s.ctx, me, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

// requests fails the test unless exactly these were made.
func (s *apiServer) made(when string, want ...string) {
	s.Helper()
	if got := s.wrote(); !slices.Equal(got, want) {
		s.Errorf("%s: requests %q, want %q", when, got, want)
	}
}

// publishing is a Publisher that announces what it was told last.
type publishing struct {
	*Publisher
	mu  sync.Mutex
	now Published
}

func newPublishing(leases Leases, nodeName string) *publishing {
	p := &publishing{}
	p.Publisher = NewPublisher(leases, nodeName, func() Published {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.now
	})
	return p
}

func (p *publishing) set(now Published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
	p.Changed()
}

// TestPublisher_PublishesTheConfiguration: and it is gone when the node steers no more.
func TestPublisher_PublishesTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		leases := s.leases()
		leases.Configuration = `{"cluster-cidr":["10.128.0.0/14"]}`
		p := newPublishing(leases, me)
		go p.Run(s.ctx)
		for revision := range uint64(2) { // it is made, and patched
			p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, revision + 1}, NodeUID: "uid-1"})
			synctest.Wait()
			if got := s.lease().Annotations[ConfigurationAnnotation]; got != leases.Configuration {
				t.Errorf("publishes %q, want %q", got, leases.Configuration)
			}
		}
		if err := leases.Withdraw(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		if got, there := s.lease().Annotations[ConfigurationAnnotation]; there {
			t.Errorf("%q is left", got)
		}
	})
}

func TestPublisher_WritesWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		s.made("nothing said")
		p.set(Published{Statement: Statement{Revision: 1}, NodeUID: "uid-1"})
		s.made("nothing to announce", "patch")
		time.Sleep(time.Minute)
		s.made("nor a minute later")
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}, NodeUID: "uid-1"})
		s.made("an address", "patch", "create")
		began := time.Now()
		want := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "origin-node", Name: me, Annotations: map[string]string{Annotation: `{"203.0.113.10":{"epoch":3}}`, RevisionAnnotation: "5"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: me, UID: "uid-1"}},
			},
			Spec: (announcement{node: me}).lease("", began).Spec,
		}
		if diff := cmp.Diff(want, s.lease(), cmpopts.IgnoreTypes(metav1.TypeMeta{}, []metav1.ManagedFieldsEntry{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}, NodeUID: "uid-1"})
		s.made("the same again")
		time.Sleep(101 * time.Second)
		if renewals := len(s.wrote()); renewals < 10 || renewals > 11 {
			t.Errorf("it renewed the Lease %d times in 101 s", renewals)
		}
		if renewed := s.lease().Spec.RenewTime.Time; !renewed.After(began.Add(90 * time.Second)) {
			t.Errorf("the Lease was renewed at %s, want a time of the last renewal", renewed)
		}
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3, ips[2]: 1}, 5}, NodeUID: "uid-1"})
		s.made("another address", "patch")
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{}, 5}, NodeUID: "uid-1"})
		s.made("no address any more", "patch")
		if got := s.lease().Annotations[Annotation]; got != "{}" {
			t.Errorf("the Lease announces %s, want {}", got)
		}
		time.Sleep(time.Minute)
		s.made("a minute later")
	})
}

func TestPublisher_TakesOverALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := "somebody"
		s := newAPIServer(t, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "origin-node", Name: me, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{Annotation: `{"203.0.113.99":{"epoch":1}}`, "c": "d"}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &other},
		})
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}, NodeUID: "uid-1"})
		s.made("there is a Lease", "patch")
		lease := s.lease()
		want := map[string]string{Annotation: `{"203.0.113.10":{"epoch":3}}`, RevisionAnnotation: "5", "c": "d"}
		if diff := cmp.Diff(want, lease.Annotations); diff != "" || lease.Labels["a"] != "b" || *lease.Spec.HolderIdentity != me {
			t.Errorf("labels %v, holder %s, annotations (-want +got):\n%s", lease.Labels, *lease.Spec.HolderIdentity, diff)
		}
	})
}

func TestPublisher_RetriesAndSaysSoOnce(t *testing.T) {
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), me, errors.New("User cannot patch"))
	noNamespace := apierrors.NewNotFound(coordinationv1.Resource("namespaces"), "origin-node")
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"forbidden":    {forbidden, "apply images/node/rbac.yaml"},
		"no namespace": {noNamespace, "apply images/node/rbac.yaml"},
		"out of order": {apierrors.NewServiceUnavailable("starting"), "explained"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				s.refuse(test.err)
				p := newPublishing(s.leases(), me)
				go p.Run(s.ctx)
				p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}})
				time.Sleep(time.Minute)
				attempts := len(slices.DeleteFunc(s.wrote(), func(verb string) bool { return verb == "create" }))
				if attempts < 8 || attempts > 14 {
					t.Errorf("%d attempts in a minute", attempts)
				}
				log := s.logged()
				if len(log) != 1 || !strings.Contains(log[0], "Cannot announce") || !strings.Contains(log[0], test.says) {
					t.Errorf("logged %q, want one line with %q", log, test.says)
				}
				s.refuse(nil)
				time.Sleep(time.Minute)
				if got := s.lease().Annotations[Annotation]; !strings.Contains(got, "203.0.113.10") {
					t.Errorf("the Lease announces %s", got)
				}
				if log := s.logged(); len(log) != 1 || !strings.Contains(log[0], "announced to the other nodes again") {
					t.Errorf("logged %q, want that it works again", log)
				}
				s.wrote()
				s.refuse(test.err)
				p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[1]: 3}, 5}})
				time.Sleep(retries.Duration * 3 / 2)
				if attempts := slices.DeleteFunc(s.wrote(), func(verb string) bool { return verb == "create" }); len(attempts) != 2 {
					t.Errorf("%d attempts soon after the next failure, want 2", len(attempts))
				}
				if log := s.logged(); len(log) != 1 {
					t.Errorf("logged %q, want one line on the next failure", log)
				}
			})
		})
	}
}

// TestPublisher_ChangeDoesNotWaitForARetry: who waits to try again writes what is new at once.
func TestPublisher_ChangeDoesNotWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		s.refuse(apierrors.NewServiceUnavailable("starting"))
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[0]: 3}, 5}})
		time.Sleep(time.Minute)
		s.refuse(nil)
		s.wrote()
		p.set(Published{Statement: Statement{map[netip.Addr]uint64{ips[1]: 1}, 5}})
		s.made("at once", "patch", "create")
	})
}

func TestWithdraw_Leases(t *testing.T) {
	lease := func(node string, addresses map[netip.Addr]uint64) *coordinationv1.Lease {
		return announcement{node: node, Published: Published{Statement: Statement{addresses, 5}}}.lease("origin-node", start)
	}
	one := map[netip.Addr]uint64{ips[0]: 3}
	for name, test := range map[string]struct {
		leases   []runtime.Object
		made     []string
		revision uint64
	}{
		"none":               {nil, nil, 0},
		"another node's":     {[]runtime.Object{lease("node-a", one)}, nil, 0},
		"withdrawn already":  {[]runtime.Object{lease(me, nil)}, nil, 0},
		"one with addresses": {[]runtime.Object{lease(me, one), lease("node-a", one)}, []string{"patch"}, 6},
		"a revision that no node gets to": {[]runtime.Object{
			announcement{node: me, Published: Published{Statement: Statement{one, maxRevision}}}.lease("origin-node", start), lease("node-a", one)}, []string{"patch"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, test.leases...)
				if err := s.leases().Withdraw(s.ctx, me); err != nil {
					t.Fatal(err)
				}
				s.made("withdrawn", test.made...)
				if len(test.made) == 0 {
					return
				}
				if got, err := readLease(s.lease()); err != nil || len(got.Addresses) != 0 || got.Revision != test.revision {
					t.Errorf("the Lease says %v, %v; want nothing, as revision %d", got, err, test.revision)
				}
				other, err := s.CoordinationV1().Leases("origin-node").Get(s.ctx, "node-a", metav1.GetOptions{})
				if got, _ := readLease(other); err != nil || !got.equal(Statement{one, 5}) {
					t.Errorf("the other node's says %v, %v", got, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, lease(me, one))
		s.refuse(apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("User cannot list")))
		if err := s.leases().Withdraw(s.ctx, me); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want that it is forbidden", err)
		}
	})
}
