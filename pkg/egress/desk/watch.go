package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/wake"
)

// pace is the least time between two snapshots of a watch. A snapshot costs as much as the cluster is large, so the time
// that one took is waited as well.
const pace = 300 * time.Millisecond

// Watch calls see with the current state, at once and after each change, until see returns an error, which it returns, or ctx
// ends, when it returns nil, or a kind may not be watched, which is an error. Changes that come fast are taken together.
func (d *Desk) Watch(ctx context.Context, see func(status.Snapshot) error) error {
	found, err := d.find(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	changed := wake.New()
	stores, synced := make([]cache.Store, len(found)), []cache.InformerSynced{}
	for i, a := range found {
		if !a.readable {
			continue
		}
		informer := a.informer(stop, changed.Send)
		stores[i], synced = informer.GetStore(), append(synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		err = d.follow(ctx, found, stores, changed, see)
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return nil
	default:
		return cause
	}
}

// follow calls see until ctx ends or an error comes.
func (d *Desk) follow(ctx context.Context, found []access, stores []cache.Store, changed <-chan struct{}, see func(status.Snapshot) error) error {
	for {
		began := time.Now()
		lists := make([][]runtime.Object, len(found))
		for i, store := range stores {
			if store == nil {
				continue
			}
			for _, object := range store.List() {
				lists[i] = append(lists[i], object.(runtime.Object))
			}
		}
		read, err := d.build(found, lists, began)
		if err == nil {
			err = see(read.Snapshot)
		}
		if err != nil {
			return err
		}
		if !wake.Sleep(ctx.Done(), max(pace, time.Since(began))) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// informer returns one of a kind that calls changed, and stop if the kind may not be watched.
func (a access) informer(stop context.CancelCauseFunc, changed func()) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(a.listWatch(), a.example, 0, nil)
	// These fail for a running informer only.
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			stop(fmt.Errorf("watch %s: %w", a.resource, err))
		}
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, now any) {
			if !isRenewal(before, now) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	return informer
}

// isRenewal tells whether a Lease says nothing new. Nodes renew theirs every few seconds.
func isRenewal(before, now any) bool {
	a, ok := before.(*coordinationv1.Lease)
	b, also := now.(*coordinationv1.Lease)
	return ok && also && maps.Equal(a.Annotations, b.Annotations)
}
