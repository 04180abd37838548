package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// world is a cluster full of Services, of which one node runs.
type world struct {
	cluster.World
	by   way
	size objects.Size
	dir  string
	// slices are the EndpointSlices as they are now, by their Services' numbers.
	slices []*discovery.EndpointSlice
	// changes is how many EndpointSlices have changed.
	changes int
}

// newWorld returns when all objects are there.
func newWorld(ctx context.Context, by way, size objects.Size) (w *world, err error) {
	w = &world{by: by, size: size}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return w, err
	}
	if w.World, err = cluster.NewWorld(ctx, lab.Config{Backend: by.iptables}, cluster.Config{Dir: w.file("control-plane")}); err != nil {
		return w, err
	}
	// Nothing needs its controllers, and their work would disturb the measurement.
	if err := w.ControllerManager.Kill(); err != nil {
		return w, err
	}
	if err := w.NodeKubeconfig(ctx, w.file("kubeconfig"), nodeName, ""); err != nil {
		return w, err
	}
	return w, w.populate(ctx)
}

// nodeName is the node that programs run as.
var nodeName = objects.Node(0)

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// populate creates the Nodes, the Services and the EndpointSlices.
func (w *world) populate(ctx context.Context) error {
	address := w.Node().V4
	for i := range w.size.Nodes {
		if _, err := w.CreateNode(ctx, objects.Node(i), address); err != nil {
			return err
		}
		address = address.Next()
	}
	var err error
	w.slices, err = w.size.Create(ctx, w.Client())
	return err
}

// change replaces a pod in each of so many EndpointSlices, one after the other at an even pace. The share of
// Services with external IPs is the cluster's.
func (w *world) change(ctx context.Context, count int, pause time.Duration) error {
	return objects.AtPace(ctx, count, pause, func() error {
		// All numbers in turn, but not side by side.
		i := w.changes % w.size.Every
		i += (w.changes / w.size.Every * 7919 % w.size.External()) * w.size.Every
		i %= w.size.Services
		changed := w.size.Replace(w.slices[i], w.changes, *w.slices[i].Endpoints[0].NodeName)
		w.changes++
		updated, err := w.Client().DiscoveryV1().EndpointSlices(changed.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
		if err == nil {
			w.slices[i] = updated
		}
		return err
	})
}

func (w *world) close() error {
	return errors.Join(w.World.Close(), os.RemoveAll(w.dir))
}
