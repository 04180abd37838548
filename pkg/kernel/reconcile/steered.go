package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// steeredDriver writes rules, and before them the steering of the packets that they are about: from then
// on what is bound leaves under its egress IP or not at all, so the rules may come later. What is removed
// leaves the steering when its flows are gone: a flow that was steered would go on under the pod's own
// address. If only one of the two can be written, it is: neither lets a packet out that the other would not.
type steeredDriver struct {
	driver
	config steering.Config
	// writer is nil until the node's address is known.
	writer *steering.Writer
	// leaving are bindings that the rules do not have any more and the steering still has. The networks
	// and the ways are those of the last write.
	leaving  []kernel.Binding
	networks kernel.Networks
	ways     kernel.Steering
}

// errMoved has everything written anew.
var errMoved = errors.New("the address under which other nodes know this one is new")

// writerFor returns the writer for a node with an address; nil for a node that does not steer. An address
// that is not known any more, for the Node object is gone, leaves everything as it is.
func (d *steeredDriver) writerFor(self netip.Addr) *steering.Writer {
	if self.IsValid() && self != d.config.NodeIP {
		d.config.NodeIP = self
		if d.writer != nil {
			d.writer.Close()
		}
		d.writer = steering.NewWriter(d.config)
	}
	return d.writer
}

func (d *steeredDriver) fingerprint(ctx context.Context) (string, error) {
	rules, err := d.driver.fingerprint(ctx)
	if err != nil || d.writer == nil {
		return rules, err
	}
	path, err := d.writer.Fingerprint(ctx)
	return rules + "\n" + path, err
}

func (d *steeredDriver) untouched(ctx context.Context) (bool, error) {
	same, err := d.driver.untouched(ctx)
	if err != nil || !same || d.writer == nil {
		return same, err
	}
	return d.writer.Untouched(ctx)
}

func (d *steeredDriver) observe(ctx context.Context) (observation, error) {
	o, err := d.driver.observe(ctx)
	if err != nil || d.writer == nil {
		return o, err
	}
	differences, err := d.writer.Read(ctx)
	if err != nil {
		return observation{}, fmt.Errorf("read the steering of packets: %w", err)
	}
	o.differences = append(o.differences, differences...)
	o.altered = o.altered || len(differences) > 0
	return o, nil
}

func (d *steeredDriver) write(ctx context.Context, desired kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	steered, steeringErr := false, error(nil)
	if writer := d.writerFor(desired.Steering.Self); writer != nil {
		d.leaving = unbound(removed, desired.Bindings)
		guarded := desired
		guarded.Bindings = kernel.Sorted(slices.Concat(desired.Bindings, d.leaving))
		steered, steeringErr = writer.Write(ctx, guarded)
		d.networks, d.ways = desired.Networks, desired.Steering
	}
	changed, size, err = d.driver.write(ctx, desired, removed)
	return changed || steered, size, errors.Join(explained(steeringErr), err)
}

// unbound returns those of the removed bindings whose pods have no other one of the same protocol.
func unbound(removed, bindings []kernel.Binding) []kernel.Binding {
	type target struct {
		pod      netip.Addr
		protocol kernel.Protocol
	}
	bound := map[target]bool{}
	for _, b := range bindings {
		bound[target{b.Pod, b.Protocol}] = true
	}
	return slices.DeleteFunc(slices.Clone(removed), func(b kernel.Binding) bool {
		t := target{b.Pod, b.Protocol}
		was := bound[t]
		bound[t] = true // of two removed ones, one is enough
		return was
	})
}

func (d *steeredDriver) update(ctx context.Context, change kernel.Change, removed []kernel.Binding) (changed bool, size int, err error) {
	if self := change.Steering.Self; change.SteeringChanged && self.IsValid() && self != d.config.NodeIP {
		return false, 0, errMoved
	}
	if d.writer == nil {
		return d.driver.update(ctx, change, removed)
	}
	comes := change
	comes.Removed = nil
	comes.Added = without(change.Added, d.leaving) // those are still there
	steered, err := d.writer.Update(ctx, comes)
	if err != nil {
		return false, 0, explained(err)
	}
	d.leaving = without(append(d.leaving, change.Removed...), change.Added)
	d.networks, d.ways = change.Networks, change.Steering
	changed, size, err = d.driver.update(ctx, change, removed)
	return changed || steered, size, err
}

// without returns those of bindings that others are not.
func without(bindings, others []kernel.Binding) []kernel.Binding {
	if len(bindings) == 0 || len(others) == 0 {
		return bindings
	}
	known := make(map[kernel.Binding]bool, len(others))
	for _, b := range others {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(bindings), func(b kernel.Binding) bool { return known[b] })
}

// judged removes from the steering what the rules do not do any more.
func (d *steeredDriver) judged(ctx context.Context) error {
	if d.writer == nil || len(d.leaving) == 0 {
		return nil
	}
	_, err := d.writer.Update(ctx, kernel.Change{Removed: d.leaving, Networks: d.networks, Steering: d.ways})
	if err == nil {
		d.leaving = nil
	}
	return explained(err)
}

func explained(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the steering of packets to the nodes that hold their egress IPs: %w", err)
}
