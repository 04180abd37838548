package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// Desk reads a cluster's API.
type Desk struct {
	// Client reaches the API server.
	Client *rest.Config
	// Namespace is that whose objects are read where the user may not read all.
	Namespace string
	// LeaseNamespace is where nodes have their Leases.
	LeaseNamespace string
	// Plan is what the plan depends on in the nodes' configuration; nil if it is that which the nodes publish.
	Plan *egress.Config
	// Parse reads what a node publishes of its configuration. The source says where it is, for messages.
	Parse func(source, published string) (egress.Config, error)
}

// Snapshot returns the current state.
func (d *Desk) Snapshot(ctx context.Context) (status.Snapshot, error) {
	read, err := d.Read(ctx)
	return read.Snapshot, err
}

// Pool returns the nodes that egress IPs are put on.
func (d *Desk) Pool(ctx context.Context) (status.Pool, error) {
	read, err := d.Read(ctx)
	if err != nil {
		return status.Pool{}, err
	}
	return PoolFromAPI(read.Config, read.Objects, read.Snapshot)
}

// Read is everything that a plan is made from, and the current state.
type Read struct {
	Config  egress.Config
	Objects cluster.Objects
	status.Snapshot
}

// Read reads everything once.
func (d *Desk) Read(ctx context.Context) (Read, error) {
	found, err := d.find(ctx)
	if err != nil {
		return Read{}, err
	}
	lists := make([][]runtime.Object, len(found))
	err = inParallel(len(found), func(i int) (err error) {
		if found[i].readable {
			lists[i], err = found[i].list(ctx)
		}
		return err
	})
	if err != nil {
		return Read{}, err
	}
	return d.build(found, lists, time.Now())
}

// find returns where each kind may be read.
func (d *Desk) find(ctx context.Context) ([]access, error) {
	kinds, err := kindsOf(d.Client, d.LeaseNamespace)
	if err != nil {
		return nil, err
	}
	found := make([]access, len(kinds))
	err = inParallel(len(kinds), func(i int) (err error) {
		found[i], err = kinds[i].find(ctx, d.Namespace)
		return err
	})
	if err == nil && !found[0].readable && !found[1].readable {
		err = fmt.Errorf("the user may list Services and EndpointSlices neither in all namespaces nor in %q: name another namespace with --namespace, or another user with --context", d.Namespace)
	}
	return found, err
}

// inParallel calls f with the numbers below n, at the same time, and returns the first error by number: an API server that
// does not answer is told once.
func inParallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = f(i) })
	}
	running.Wait()
	return cmp.Or(errs...)
}

// list returns all objects that may be read.
func (a access) list(ctx context.Context) ([]runtime.Object, error) {
	list, _, err := pager.New(a.listWatch().ListWithContext).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", a.resource, err)
	}
	return meta.ExtractList(list)
}

// build makes a Read of the objects of each kind.
func (d *Desk) build(found []access, lists [][]runtime.Object, now time.Time) (Read, error) {
	var leftOut []string
	objects := cluster.Objects{}
	for i, a := range found {
		if a.leftOut != "" {
			leftOut = append(leftOut, a.leftOut)
		}
		if a.readable {
			a.add(&objects, lists[i])
		}
	}
	config, doubts, err := d.config(objects)
	if err != nil {
		for _, text := range leftOut {
			err = errors.Join(err, errors.New(text))
		}
		return Read{}, err
	}
	snapshot, err := FromAPI(config, objects, now)
	if err != nil {
		doubts = append(doubts, err.Error())
	}
	snapshot.LeftOut, snapshot.Doubts = leftOut, doubts
	snapshot.Partly = slices.ContainsFunc(found, func(a access) bool { return a.partial && a.leftOut != "" })
	return Read{config, objects, snapshot}, nil
}

// add adds the objects of a kind.
func (a access) add(objects *cluster.Objects, list []runtime.Object) {
	switch a.example.(type) {
	case *v1.Node:
		objects.Nodes = []*v1.Node{} // they are known, if there is none
	case *coordinationv1.Lease:
		objects.Leases = []*coordinationv1.Lease{}
	}
	for _, object := range list {
		switch object := object.(type) {
		case *v1.Service:
			objects.Services = append(objects.Services, object)
		case *discovery.EndpointSlice:
			objects.EndpointSlices = append(objects.EndpointSlices, object)
		case *v1.Node:
			objects.Nodes = append(objects.Nodes, object)
		case *networkingv1.ServiceCIDR:
			objects.ServiceCIDRs = append(objects.ServiceCIDRs, object.Spec.CIDRs...)
		case *configv1.Network:
			objects.Network = object
		case *coordinationv1.Lease:
			objects.Leases = append(objects.Leases, object)
		}
	}
}
