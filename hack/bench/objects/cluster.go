package objects

import (
	"context"
	"time"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// Create creates all Services and EndpointSlices, and returns these by the numbers of their Services.
func (s Size) Create(ctx context.Context, client kubernetes.Interface) ([]*discovery.EndpointSlice, error) {
	all := make([]*discovery.EndpointSlice, s.Services)
	return all, InParallel(ctx, s.Services, func(ctx context.Context, i int) error {
		service, slice := s.Service(i), s.Slice(i)
		_, err := client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
		if err == nil {
			all[i], err = client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
		}
		return err
	})
}

// InParallel does something n times.
func InParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	const workers = 32
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, n, func(i int) {
		if err := do(ctx, i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// AtPace does something so often, at an even pace.
func AtPace(ctx context.Context, count int, pace time.Duration, do func() error) error {
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for range count {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
