package reconcile

import (
	"context"
	"fmt"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Backend is the means by which rules are written.
type Backend string

// The back ends.
const (
	// IPTables writes into iptables' nat table, as kube-proxy does in its mode of that name.
	IPTables Backend = "iptables"
	// NFTables writes a table of its own.
	NFTables Backend = "nftables"
)

// driver brings what is desired of one IP family into the kernel. It is for one goroutine.
type driver interface {
	// fingerprint returns a text that changes with the kernel's tables, whoever changes them. It
	// costs no program. Some changes do not show: see [iptables.LegacyFingerprint].
	fingerprint(ctx context.Context) (string, error)
	// untouched tells whether the kernel has all that a look is about as it was seen or written last, whatever
	// others do elsewhere. It costs what these rules cost. It is false where that cannot be told: then observe
	// can.
	untouched(ctx context.Context) (bool, error)
	// observe reads what the kernel holds, so that the next write repairs whatever differs. With an error only what is steered may be known.
	observe(ctx context.Context) (observation, error)
	// write makes the kernel hold d, with the removed bindings on record, and tells whether it
	// had to change anything, and how much the kernel holds: rules, or elements of sets.
	// After an error the rules in the kernel are those of before, unless the error says otherwise.
	write(ctx context.Context, d kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error)
	// update is write for what differs by change from what was written last. After an error only
	// write will do.
	update(ctx context.Context, change kernel.Change, removed []kernel.Binding) (changed bool, size int, err error)
	// judged says that the flows that the last write is about have been judged.
	judged(ctx context.Context) error
	// staleBackends returns the other means by which earlier runs may have written.
	staleBackends() []staleBackend
}

// observation is what a look has found.
type observation struct {
	bindings func() []kernel.Binding
	// steered returns what the table of the steering has; nil: there is none, or it is not known.
	steered func() steering.Standing
	// differences from what this driver has written last, if it has, in words.
	differences []string
	// steering has those of what steers packets, or why it cannot be told.
	steering []string
	// altered: there are other rules than those, wherever they stand, or those of before were restored.
	altered bool
	// jumpInFront: the proxier will not write in front of this driver's rules, once these have
	// been written after this look.
	jumpInFront bool
	// missing returns the rules of the proxier that are not there, in words, or an error if
	// that cannot be told.
	missing func(context.Context) ([]string, error)
}

// staleBackend is what earlier runs have written by some other means than a driver's, beside which
// it acts.
type staleBackend struct {
	// read returns its bindings, and whether there is anything at all to remove.
	read  func(ctx context.Context) (bindings []kernel.Binding, left bool, err error)
	prune func(ctx context.Context) error
}

// steeringDriver brings what steers packets into the kernel. What keeps packets from being carried to other nodes is no error: pods that
// leave from this node go on.
type steeringDriver interface {
	// fault says why packets are not carried to other nodes; nil if they are. Packets that need it are dropped.
	fault() error
	// unwritten says why nothing is known of that, because the only table is not as it should be; nil if it is, or if there are others.
	unwritten() error
	// writeSteering makes the kernel hold what steers packets, whatever it holds of it, with the removed bindings on record, and tells
	// whether it had to change anything. The error is for what no other rules do in its place.
	writeSteering(ctx context.Context, d kernel.Desired, removed []kernel.Binding) (changed bool, err error)
	// written returns how it was configured and which numbers it has given to nodes; nil if nothing was written.
	written() *writtenSteering
}

// newDriver returns the driver for what a Reconciler is configured to write, and that of the steering; nil
// without any.
func newDriver(c Config) (driver, steeringDriver) {
	rules, table := iptables.NewWriter(c.Family), steering.NewLocalWriter(c.Family)
	var d driver = &rulesDriver{family: c.Family, rules: rules, table: table}
	if c.Backend == NFTables {
		d = &tableDriver{family: c.Family, table: table, rules: rules, proxier: c.Proxier}
	}
	if c.Steering == nil {
		return d, nil
	}
	config := *c.Steering
	config.Family = c.Family
	steered := &steeredDriver{driver: d, config: config, oneTable: c.Backend == NFTables}
	return steered, steered
}

func fingerprint(ctx context.Context, family kernel.Family, table *steering.LocalWriter) (string, error) {
	generation, err := table.Generation(ctx)
	if err != nil {
		return "", err
	}
	legacy, err := iptables.LegacyFingerprint(family)
	return fmt.Sprintf("nftables generation %d\n%s", generation, legacy), err
}

// rulesDriver writes iptables rules.
type rulesDriver struct {
	family  kernel.Family
	rules   *iptables.Writer
	table   *steering.LocalWriter
	written *iptables.Rendering // nil if nothing is
}

func (d *rulesDriver) fingerprint(ctx context.Context) (string, error) {
	return fingerprint(ctx, d.family, d.table)
}

func (d *rulesDriver) untouched(ctx context.Context) (bool, error) {
	return d.rules.Untouched(ctx)
}

func (d *rulesDriver) observe(ctx context.Context) (observation, error) {
	found, missing, err := d.rules.Read(ctx)
	if err != nil {
		return observation{}, err
	}
	o := observation{bindings: found.Bindings, jumpInFront: found.HasProxierJump()}
	o.missing = func(context.Context) ([]string, error) { return missing, nil }
	if d.written != nil {
		o.differences, o.altered = iptables.Differences(d.written.Ruleset(), found), iptables.Altered(d.written.Ruleset(), found)
	}
	o.altered = o.altered || found.Restored()
	return o, nil
}

func (d *rulesDriver) write(ctx context.Context, desired kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	d.written = iptables.NewRendering(desired)
	rules := d.written.Ruleset()
	rules.Record(removed)
	changed, err = d.rules.Write(ctx, rules)
	return changed, rules.Rules(), kept(d.forgetAfter(err))
}

func (d *rulesDriver) update(ctx context.Context, change kernel.Change, removed []kernel.Binding) (changed bool, size int, err error) {
	touched := d.written.Follow(change, removed)
	rules := d.written.Ruleset()
	changed, err = d.rules.WriteChains(ctx, rules, touched)
	return changed, rules.Rules(), d.forgetAfter(err)
}

// kept says what becomes of rules that could not be written.
func kept(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the rules in the kernel stay as they are: %w", err)
}

// forgetAfter forgets what was to be written if that failed.
func (d *rulesDriver) forgetAfter(err error) error {
	if err != nil {
		d.written = nil
	}
	return err
}

func (d *rulesDriver) judged(context.Context) error { return nil }

func (d *rulesDriver) staleBackends() []staleBackend {
	return []staleBackend{staleOtherIPTables(d.rules), staleTable(d.table)}
}

// staleOtherIPTables is what stands in the iptables back end that is not the one on PATH.
func staleOtherIPTables(rules *iptables.Writer) staleBackend {
	return staleBackend{
		read: func(ctx context.Context) (bindings []kernel.Binding, left bool, err error) {
			found, err := rules.OtherBackend(ctx)
			return found.Bindings(), !found.Empty(), err
		},
		prune: rules.PruneOtherBackend,
	}
}

// staleIPTables is what stands in the iptables on PATH.
func staleIPTables(rules *iptables.Writer) staleBackend {
	return staleBackend{
		read: func(ctx context.Context) (bindings []kernel.Binding, left bool, err error) {
			found, _, err := rules.Read(ctx)
			return found.Bindings(), !found.Empty(), err
		},
		prune: func(ctx context.Context) error {
			_, err := rules.Write(ctx, nil)
			return err
		},
	}
}

// staleTable is what stands in the nftables table. A kernel without nftables holds nothing there.
func staleTable(table *steering.LocalWriter) staleBackend {
	return staleBackend{
		read: func(ctx context.Context) (bindings []kernel.Binding, left bool, err error) {
			_, err = table.Read(ctx)
			standing, stands := table.Standing()
			return standing.All(), stands, nft.UnlessNone(err)
		},
		prune: func(ctx context.Context) error {
			_, err := table.Write(ctx, kernel.Desired{}, nil)
			return nft.UnlessNone(err)
		},
	}
}

// tableDriver writes an nftables table.
type tableDriver struct {
	family  kernel.Family
	table   *steering.LocalWriter
	rules   *iptables.Writer
	proxier Backend
}

func (d *tableDriver) fingerprint(ctx context.Context) (string, error) {
	return fingerprint(ctx, d.family, d.table)
}

// untouched is false: to observe costs no program, unless it is the proxier that lacks something, nor what
// others have.
func (d *tableDriver) untouched(context.Context) (bool, error) { return false, nil }

func (d *tableDriver) observe(ctx context.Context) (observation, error) {
	differences, err := d.table.Read(ctx)
	if err != nil {
		return observation{}, err
	}
	bindings := func() []kernel.Binding { // few looks ask for them
		standing, _ := d.table.Standing()
		return standing.All()
	}
	return observation{bindings: bindings, differences: differences, altered: len(differences) > 0, jumpInFront: true, missing: d.missingFromProxier}, nil
}

func (d *tableDriver) missingFromProxier(ctx context.Context) (missing []string, err error) {
	if d.proxier == NFTables {
		return MissingFromProxier(ctx, d.family)
	}
	if whole, err := d.rules.HasProxier(ctx); whole || err != nil {
		return nil, err
	}
	_, missing, err = d.rules.Read(ctx)
	return missing, err
}

func (d *tableDriver) write(ctx context.Context, desired kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	changed, err = d.table.Write(ctx, desired, removed)
	return changed, d.table.Elements(), kept(err)
}

func (d *tableDriver) update(ctx context.Context, change kernel.Change, removed []kernel.Binding) (changed bool, size int, err error) {
	changed, err = d.table.Update(ctx, change, removed)
	return changed, d.table.Elements(), err
}

func (d *tableDriver) judged(context.Context) error { return nil }

func (d *tableDriver) staleBackends() []staleBackend {
	if !d.rules.Installed() {
		return nil
	}
	return []staleBackend{staleIPTables(d.rules), staleOtherIPTables(d.rules)}
}
