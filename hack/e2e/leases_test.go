package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
)

// announcing is a node that announces addresses, and one that learns of them, with the credentials of nodes.
type announcing struct {
	*world
	publisher *holders.Publisher
	ctx       context.Context

	mu        sync.Mutex
	published holders.Published
	directory *holders.Directory
	heard     []holders.Event
	log       []string
}

// TestLeases_NodesLearnWhoHasWhichAddress: what a node announces, others know, until it is withdrawn or the
// node is deleted.
func TestLeases_NodesLearnWhoHasWhichAddress(t *testing.T) {
	belongsTo(t, usual)
	a := newAnnouncing(t)
	ip := netip.MustParseAddr("203.0.113.10")
	node, err := a.Client().CoreV1().Nodes().Get(t.Context(), a.members[0].Name, metav1.GetOptions{})
	a.must(err)

	a.scenario("what is announced is known", func() {
		began := time.Now()
		a.publish(holders.Statement{Addresses: map[netip.Addr]uint64{ip: 3}, Revision: 1}, node.UID)
		a.holds(ip, holders.Remote)
		a.Logf("known after %s", time.Since(began).Round(time.Millisecond))
		if owners := a.lease().OwnerReferences; len(owners) != 1 || owners[0].UID != node.UID || owners[0].Kind != "Node" {
			a.Errorf("the Lease belongs to %+v, want the Node", owners)
		}
	})
	a.scenario("it is renewed", func() {
		before := a.lease().Spec.RenewTime
		a.eventually(func() error { return differ(before.String(), a.lease().Spec.RenewTime.String()) })
	})
	a.scenario("a Lease that somebody deletes comes back", func() {
		a.must(a.Client().CoordinationV1().Leases(leaseNamespace).Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
		a.holds(ip, holders.Lost)
		a.holds(ip, holders.Remote)
	})
	a.scenario("a lost connection is noticed, and its end", func() {
		link := a.members[1].link
		link.Refuse()
		link.Reset()
		a.eventually(func() error { return a.hears(false) })
		a.holds(ip, holders.Remote)
		a.must(link.Heal())
		a.eventually(func() error { return a.hears(true) })
	})
	a.scenario("what is withdrawn is unclaimed soon", func() {
		a.publish(holders.Statement{Revision: 2}, node.UID)
		a.holds(ip, holders.Lost)
		a.holds(ip, holders.Unclaimed)
	})
	a.scenario("the Lease goes with its Node", func() {
		a.publish(holders.Statement{Addresses: map[netip.Addr]uint64{ip: 4}, Revision: 3}, node.UID)
		a.holds(ip, holders.Remote)
		a.must(a.Client().CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
		a.holds(ip, holders.Lost) // told by the end of the Lease alone: nobody has told the directory of the Node's
	})
}

// TestLeases_SaysWhatIsMissing: a right, and a namespace.
func TestLeases_SaysWhatIsMissing(t *testing.T) {
	belongsTo(t, usual)
	a := newAnnouncing(t)
	one := holders.Statement{Addresses: map[netip.Addr]uint64{netip.MustParseAddr("203.0.113.10"): 1}, Revision: 1}
	for name, test := range map[string]struct {
		client kubernetes.Interface
		says   []string
	}{
		"rights":    {a.as(a.members[0].File("node.kubeconfig")).client, []string{`cannot patch resource \"leases\"`, `cannot list resource \"leases\"`}},
		"namespace": {a.Client(), []string{`namespaces \"elsewhere\" not found`}},
	} {
		a.scenario(name, func() {
			leases := holders.Leases{Client: test.client, Namespace: "elsewhere"}
			publisher := holders.NewPublisher(leases, a.members[0].Name, func() holders.Published { return holders.Published{Statement: one} })
			publisher.Changed()
			ctx, cancel := context.WithCancel(a.ctx)
			defer cancel()
			go publisher.Run(ctx)
			go leases.Watch(ctx, func(holders.Event) {})
			for _, says := range test.says {
				a.eventually(func() error { return a.says(says, "apply images/node/rbac.yaml") })
			}
		})
	}
}

// newAnnouncing has the first node announce, and the second one learn.
func newAnnouncing(t *testing.T) *announcing {
	t.Helper()
	a := &announcing{world: newIdleWorld(t, settings{nodes: 2})}
	first, second := a.members[0], a.members[1]
	a.directory = holders.NewDirectory(holders.Config{NodeName: second.Name, Outer: kernel.IPv4})
	a.tell(holders.NodeSeen{Name: first.Name, Ready: true, InternalIPs: []netip.Addr{first.Host.V4}})
	logger := funcr.New(func(_, args string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.log = append(a.log, args)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), logger))
	a.ctx = ctx
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	leases := func(m *member) holders.Leases {
		return holders.Leases{Client: a.as(m.File("node.kubeconfig")).client, Namespace: leaseNamespace}
	}
	a.publisher = holders.NewPublisher(leases(first), first.Name, func() holders.Published {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.published
	})
	running.Go(func() { a.publisher.Run(ctx) })
	watched := leases(second) // here, where no scenario is under way
	running.Go(func() { watched.Watch(ctx, a.tell) })
	return a
}

// publish has the first node announce this.
func (a *announcing) publish(statement holders.Statement, node types.UID) {
	a.mu.Lock()
	a.published = holders.Published{Statement: statement, NodeUID: node}
	a.mu.Unlock()
	a.publisher.Changed()
}

func (a *announcing) tell(event holders.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, event)
	a.directory.Apply(event, time.Now())
}

// holds waits until an address is in a state.
func (a *announcing) holds(ip netip.Addr, state holders.State) {
	a.Helper()
	a.eventually(func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if got := a.directory.Holder(ip, time.Now()); got.State != state {
			return fmt.Errorf("%s is %+v, want %s; heard %+v", ip, got, state, a.heard)
		}
		return nil
	})
}

// hears returns an error unless the last that was said of the connection is that it is there, or is not.
func (a *announcing) hears(now bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := true
	for _, event := range a.heard {
		if h, ok := event.(holders.Hearing); ok {
			last = h.Now
		}
	}
	if last != now {
		return fmt.Errorf("it hears of Leases: %v, want %v", last, now)
	}
	return nil
}

// says returns an error unless one line of the log has these texts.
func (a *announcing) says(texts ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
lines:
	for _, line := range a.log {
		for _, text := range texts {
			if !strings.Contains(strings.ReplaceAll(line, `\\\"`, `\"`), text) {
				continue lines
			}
		}
		return nil
	}
	return fmt.Errorf("no line of the log has %q: %q", texts, a.log)
}

func (a *announcing) lease() *coordinationv1.Lease {
	a.Helper()
	lease, err := a.Client().CoordinationV1().Leases(leaseNamespace).Get(a.Context(), a.members[0].Name, metav1.GetOptions{})
	a.must(err)
	return lease
}

func differ(before, after string) error {
	if before == after {
		return fmt.Errorf("still %s", before)
	}
	return nil
}
