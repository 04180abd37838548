//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// World is a lab with a control plane.
type World struct {
	*lab.Lab
	*ControlPlane
}

// NewWorld makes both for a program that runs at the top of the repository, and gives nodes their rights. Config's Host is
// the lab's own; its Binaries, if empty, are the environment's.
func NewWorld(ctx context.Context, network lab.Config, config Config) (w World, err error) {
	network.Control = true
	if w.Lab, err = lab.New(ctx, network); err != nil {
		return World{}, err
	}
	config.Host = w.Control()
	if config.Binaries == "" {
		config.Binaries = os.Getenv(BinariesVariable)
	}
	if w.ControlPlane, err = New(ctx, config); err != nil {
		return World{}, errors.Join(err, w.Lab.Close())
	}
	if err := w.Apply(ctx, "images/node/rbac.yaml"); err != nil {
		return World{}, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close ends both. It does nothing with a zero World.
func (w World) Close() error {
	if w.Lab == nil {
		return nil
	}
	return errors.Join(w.ControlPlane.Close(), w.Lab.Close())
}

// endTime is how long a kubelet may take to end.
const endTime = 10 * time.Second

// RunPods runs the cluster's pods as hosts of the lab that serve at the port, and returns how to end that; the pods
// stay. The nodes are hosts of the lab, by the names of their Node objects.
func (w World) RunPods(ctx context.Context, nodes map[string]*lab.Host, port int) (pods *Pods, end func() error) {
	pods = &Pods{Lab: w.Lab, Nodes: nodes, Port: port}
	kubelet := &Kubelet{ControlPlane: w.ControlPlane, Start: pods.Start, Stop: pods.Stop, Nodes: slices.Sorted(maps.Keys(nodes))}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- kubelet.Run(ctx) }()
	return pods, func() error {
		cancel()
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the kubelet: %w", err)
			}
			return nil
		case <-time.After(endTime):
			return fmt.Errorf("the kubelet has not ended within %s", endTime)
		}
	}
}
