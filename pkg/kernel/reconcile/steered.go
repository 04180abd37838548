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

// steeredDriver writes the steering of packets, and the rules behind it. What is bound leaves under its egress IP or not at all as
// soon as the steering is written, so the rules may come later. What is removed is dropped from then on, and leaves the steering when its
// flows are gone: a flow that was steered would go on under the pod's own address. That packets cannot be carried to other nodes is a
// fault, and no error: bindings of addresses of this node do not depend on it.
//
// In the iptables back end, if only one of the two can be written, it is: neither lets a packet out that the other would not. Rules that
// cannot even be read do not keep the steering from being written either.
//
// In the nftables back end the table of the steering has the rules, too. So it alone is written as soon as the node's address is known,
// and the table of the driver is removed. That it cannot be written is an error.
type steeredDriver struct {
	driver
	config steering.Config
	// oneTable: the driver's rules are a table of nftables.
	oneTable bool
	// writer is nil until the node's address is known.
	writer *steering.Writer
	// failure is why the steering is incomplete, as far as this process knows.
	failure error
	// leaving are bindings that the rules do not have any more and the steering still has. The networks
	// and the ways are those of the last write.
	leaving  []kernel.Binding
	networks kernel.Networks
	ways     kernel.Steering
}

// writtenSteering is what [steering.Compare] needs to know of what was written.
type writtenSteering struct {
	config  steering.Config
	numbers map[netip.Addr]int
}

// errUnknown is the fault of a node that is not known to be reachable by others.
var errUnknown = errors.New("the address under which other nodes know this one is not known: its Node object is missing, or has no InternalIP that counts (see its Event NodeAddressIgnored)")

// errMoved and errPods have everything written anew.
var (
	errMoved = errors.New("the address under which other nodes know this one is new")
	errPods  = errors.New("the cluster CIDRs are others, and settings of interfaces follow from them")
)

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

// fingerprint begins with what steers: a comparison that follows goes by what that has seen, whatever comes of the rest.
func (d *steeredDriver) fingerprint(ctx context.Context) (path string, err error) {
	if d.writer != nil {
		if path, err = d.writer.Fingerprint(ctx); err != nil {
			return "", err
		}
	}
	rules, err := d.driver.fingerprint(ctx)
	return rules + "\n" + path, err
}

// untouched compares the steering as well. Of one that is incomplete the ways are written again anyway, which does not look at a table
// that is believed to be there.
func (d *steeredDriver) untouched(ctx context.Context) (bool, error) {
	same, err := d.driver.untouched(ctx)
	switch {
	case err != nil || !same || d.writer == nil:
		return same, err
	case d.failure == nil:
		return d.writer.Untouched(ctx)
	case d.writer.Known():
		return d.writer.TableUntouched(ctx)
	}
	return true, nil
}

// observe finds the bindings of the steering as well: those of an earlier process if this one has written nothing. If only the rules cannot be
// read, it returns what is steered with the error.
func (d *steeredDriver) observe(ctx context.Context) (observation, error) {
	o, err := d.driver.observe(ctx)
	if err != nil && d.oneTable {
		return o, err
	}
	steered, steeringErr := d.observeSteering(ctx, &o)
	if o.steered = steered; err != nil || steeringErr != nil {
		return o, errors.Join(err, steeringErr)
	}
	rules, steered := o.bindings, o.steered
	o.bindings = func() []kernel.Binding { return slices.Concat(rules(), steered().All()) }
	return o, nil
}

// observeSteering returns what the table of the steering has. Few looks ask for that.
func (d *steeredDriver) observeSteering(ctx context.Context, o *observation) (func() steering.Standing, error) {
	if d.writer == nil {
		stands, err := steering.Stands(ctx, d.config.Family)
		if err != nil {
			o.steering, stands.Unread = []string{unreadable(err)}, true
		}
		return func() steering.Standing { return stands }, nil
	}
	differences, err := d.writer.Read(ctx)
	switch {
	case err != nil && d.oneTable:
		return nil, err
	case err != nil:
		o.steering = []string{unreadable(err)}
	case d.oneTable:
		o.differences, o.altered = slices.Concat(differences.Table, o.differences), o.altered || len(differences.Table) > 0
		o.steering = differences.Path
	default:
		o.steering = slices.Concat(differences.Table, differences.Path)
	}
	return d.writer.Standing, nil
}

func unreadable(err error) string { return fmt.Sprintf("it cannot be read: %v", err) }

func (d *steeredDriver) write(ctx context.Context, desired kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	steered, err := d.writeSteering(ctx, desired, removed)
	switch {
	case err != nil:
		return steered, 0, err
	case d.aloneInTable(): // the table of the driver has no use any more
		changed, _, err = d.driver.write(ctx, kernel.Desired{}, nil)
		size = d.writer.Elements()
	default:
		changed, size, err = d.driver.write(ctx, desired, removed)
	}
	return changed || steered, size, err
}

// aloneInTable tells whether the table of the steering is the only one.
func (d *steeredDriver) aloneInTable() bool { return d.oneTable && d.writer != nil }

func (d *steeredDriver) unwritten() error {
	if !d.aloneInTable() || d.writer.Known() {
		return nil
	}
	return kept(d.failure)
}

func (d *steeredDriver) writeSteering(ctx context.Context, desired kernel.Desired, removed []kernel.Binding) (changed bool, err error) {
	d.leaving = unbound(removed, desired.Bindings)
	writer := d.writerFor(desired.Steering.Self)
	if writer == nil {
		d.failure = explained(errUnknown)
		return false, nil
	}
	writer.Record(removed)
	d.networks, d.ways = desired.Networks, desired.Steering
	changed, err = writer.Write(ctx, desired, d.leaving)
	d.failure = explained(err)
	return changed, d.unwritten()
}

func (d *steeredDriver) fault() error { return d.failure }

func (d *steeredDriver) written() *writtenSteering {
	if d.writer == nil {
		return nil
	}
	return &writtenSteering{d.config, d.writer.Numbers()}
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
	if change.NetworksChanged && !slices.Equal(change.Networks.ClusterCIDRs, d.networks.ClusterCIDRs) {
		return false, 0, errPods
	}
	d.leaving = kernel.Without(append(d.leaving, change.Removed...), change.Added)
	d.writer.Record(removed)
	steered, err := d.writer.Update(ctx, change, d.leaving)
	if err != nil && !d.writer.Known() { // somebody may have removed what it is a change of
		return false, 0, explained(err)
	}
	d.failed(err)
	d.networks, d.ways = change.Networks, change.Steering
	if d.oneTable {
		return steered, d.writer.Elements(), nil
	}
	changed, size, err = d.driver.update(ctx, change, removed)
	return changed || steered, size, err
}

// judged removes from the steering what has left the rules, and the record of what was removed.
func (d *steeredDriver) judged(ctx context.Context) error {
	if d.writer == nil || !d.writer.Known() || !d.writer.Record(nil) && len(d.leaving) == 0 {
		return nil
	}
	_, err := d.writer.Update(ctx, kernel.Change{Networks: d.networks, Steering: d.ways}, nil)
	if d.writer.Known() { // the table has it; what may be missing is a way
		d.leaving = nil
	}
	d.failed(err)
	return d.unwritten()
}

// failed notes why a change left the steering incomplete. Only writing all of it mends that.
func (d *steeredDriver) failed(err error) {
	if err != nil {
		d.failure = explained(err)
	}
}

func explained(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the steering of packets to the nodes that hold their egress IPs: %w", err)
}
