package redirect

import (
	"context"
	"errors"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// driver keeps what one back end has of an IP family.
type driver interface {
	// read looks at the kernel, so that the next write repairs whatever differs, and returns what it holds.
	read(ctx context.Context) (kernel.Redirects, error)
	write(ctx context.Context, want kernel.Redirects) (changed bool, err error)
	// compare says how the kernel differs from want. It looks at all of it.
	compare(ctx context.Context, want kernel.Redirects) ([]string, error)
}

// Writer keeps the redirects of one IP family. It must not be used by two goroutines at once.
type Writer struct {
	rules *rulesDriver
	table *tableDriver
	// driver is one of these, other the other one.
	driver, other driver
	// pruned: what earlier runs have left in the other back ends is gone.
	pruned bool
}

// NewWriter returns a Writer for the network namespace of the process.
func NewWriter(backend reconcile.Backend, family kernel.Family) *Writer {
	w := &Writer{rules: newRulesDriver(family), table: newTableDriver(family)}
	w.driver, w.other = w.rules, w.table
	if backend == reconcile.NFTables {
		w.driver, w.other = w.table, w.rules
	}
	return w
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() { w.table.table.Close() }

// Read looks at the kernel, so that the next Write repairs whatever differs. It returns what the kernel holds, and
// before the first Write what earlier runs have left in the other back end.
func (w *Writer) Read(ctx context.Context) (held []kernel.Redirects, err error) {
	drivers := []driver{w.driver}
	if !w.pruned && w.usable(w.other) {
		drivers = append(drivers, w.other)
	}
	for _, d := range drivers {
		redirects, err := d.read(ctx)
		if err = unlessNone(err); err != nil {
			return nil, err
		}
		if !redirects.Empty() {
			held = append(held, redirects)
		}
	}
	return held, nil
}

// Write makes the kernel hold want, and tells whether it had to change anything. The first one removes what earlier
// runs have left in other back ends, once the rules are there. After an error the next Write begins anew.
func (w *Writer) Write(ctx context.Context, want kernel.Redirects) (changed bool, err error) {
	changed, err = w.driver.write(ctx, want)
	if err == nil && !w.pruned {
		err = w.prune(ctx)
		w.pruned = err == nil
	}
	return changed, err
}

func (w *Writer) prune(ctx context.Context) error {
	if w.rules.rules.Installed() {
		if err := w.rules.prune(ctx); err != nil {
			return err
		}
	}
	if !w.usable(w.other) {
		return nil
	}
	_, err := w.other.write(ctx, kernel.Redirects{})
	return unlessNone(err)
}

// usable: without the programs of iptables there are no rules of it.
func (w *Writer) usable(d driver) bool { return d != w.rules || w.rules.rules.Installed() }

// unlessNone: a kernel without nftables holds nothing there.
func unlessNone(err error) error {
	if errors.Is(err, table.ErrNone) {
		return nil
	}
	return err
}

// Compare says, for an operator and in a line each, how the kernel differs from what it should hold; nothing if
// it does not. It changes nothing.
func Compare(ctx context.Context, backend reconcile.Backend, family kernel.Family, want kernel.Redirects) ([]string, error) {
	w := NewWriter(backend, family)
	defer w.Close()
	return w.driver.compare(ctx, want)
}

// Withdraw removes all redirects of both families, through every back end that is installed, and returns what they were.
// Where there are none it runs no program.
func Withdraw(ctx context.Context) (withdrawn map[kernel.Family][]kernel.Redirects, err error) {
	withdrawn = map[kernel.Family][]kernel.Redirects{}
	var errs []error
	hasRules := false
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		w := NewWriter(reconcile.NFTables, family)
		has, err := iptables.HasChain(ctx, family, nodesChain)
		errs = append(errs, err)
		hasRules, w.pruned = hasRules || has, !has // without a chain there is nothing to read
		held, err := w.Read(ctx)
		withdrawn[family] = held
		_, tableErr := w.table.write(ctx, kernel.Redirects{})
		errs = append(errs, err, unlessNone(tableErr))
		w.Close()
	}
	var rulesErr error
	if hasRules {
		rulesErr = iptables.Cleanup(ctx, Owner)
	}
	if errs = append(errs, rulesErr); rulesErr == nil { // else a rule may name the sets
		errs = append(errs, destroyAll(kernel.IPv4), destroyAll(kernel.IPv6))
	}
	return withdrawn, errors.Join(errs...)
}
