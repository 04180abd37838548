package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// world is a cluster full of Services, of which one node runs.
type world struct {
	by      way
	size    objects.Size
	dir     string
	lab     *lab.Lab
	control *cluster.ControlPlane
	// slices are the EndpointSlices as they are now, by their Services' numbers.
	slices []*discovery.EndpointSlice
	// changes is how many EndpointSlices have changed.
	changes int
}

// newWorld returns when all objects are there.
func newWorld(ctx context.Context, by way, size objects.Size) (w *world, err error) {
	w = &world{by: by, size: size, slices: make([]*discovery.EndpointSlice, size.Services)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return w, err
	}
	if w.lab, err = lab.New(ctx, lab.Config{Control: true, Backend: by.iptables}); err != nil {
		return w, err
	}
	config := cluster.Config{Host: w.lab.Control(), Binaries: os.Getenv(cluster.BinariesVariable), Dir: filepath.Join(w.dir, "control-plane")}
	if w.control, err = cluster.New(ctx, config); err != nil {
		return w, err
	}
	// Nothing needs its controllers, and their work would disturb the measurement.
	if err := w.control.ControllerManager.Kill(); err != nil {
		return w, err
	}
	if err := w.control.Apply(ctx, "images/node/rbac.yaml"); err != nil {
		return w, err
	}
	if err := w.control.NodeKubeconfig(ctx, w.file("kubeconfig"), nodeName, ""); err != nil {
		return w, err
	}
	return w, w.populate(ctx)
}

// nodeName is the node that programs run as.
var nodeName = objects.Node(0)

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// populate creates the Nodes, the Services and the EndpointSlices.
func (w *world) populate(ctx context.Context) error {
	address := w.lab.Node().V4
	for i := range w.size.Nodes {
		if _, err := w.control.CreateNode(ctx, objects.Node(i), address); err != nil {
			return err
		}
		address = address.Next()
	}
	const workers = 16
	client := w.control.Client()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, w.size.Services, func(i int) {
		service, slice := w.size.Service(i), w.size.Slice(i)
		_, err := client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
		if err == nil {
			w.slices[i], err = client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
		}
		if err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// change replaces a pod in each of so many EndpointSlices, one after the other at an even pace. The share of
// Services with external IPs is the cluster's.
func (w *world) change(ctx context.Context, count int, pause time.Duration) error {
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for range count {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// All numbers in turn, but not side by side.
		i := w.changes % w.size.Every
		i += (w.changes / w.size.Every * 7919 % w.size.External()) * w.size.Every
		i %= w.size.Services
		changed := w.size.Replace(w.slices[i], w.changes, *w.slices[i].Endpoints[0].NodeName)
		w.changes++
		updated, err := w.control.Client().DiscoveryV1().EndpointSlices(changed.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		w.slices[i] = updated
	}
	return nil
}

func (w *world) close() error {
	var errs []error
	if w.control != nil {
		errs = append(errs, w.control.Close())
	}
	if w.lab != nil {
		errs = append(errs, w.lab.Close())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}
