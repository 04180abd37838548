package egress

import (
	"context"
	"errors"
	"sync"

	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// lastFailure returns why the last sync of an IP family failed, or nil.
func (e *Extension) lastFailure() error {
	var errs []error
	for _, name := range cluster.Families {
		errs = append(errs, e.families[name].reconciler.Status().Failure)
	}
	return errors.Join(errs...)
}

// awaitAll returns when each loop has made a sync that began after the call.
func awaitAll(ctx context.Context, loops ...func(context.Context) error) error {
	errs := make([]error, len(loops))
	var waiting sync.WaitGroup
	for i, await := range loops {
		waiting.Go(func() { errs[i] = await(ctx) })
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// awaitSyncs returns when a sync that began after the call has succeeded in both IP families.
func (e *Extension) awaitSyncs(ctx context.Context, look bool) error {
	var loops []func(context.Context) error
	for _, f := range e.families {
		if look {
			f.reconciler.RequestFullLook()
		}
		loops = append(loops, f.loop.Await)
	}
	return awaitAll(ctx, loops...)
}
