package redirect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// driver keeps what one back end has of an IP family.
type driver interface {
	// read looks at the kernel, so that the next write repairs whatever differs, and returns what it holds.
	read(ctx context.Context) (holding, error)
	// write makes the kernel hold want and a record. What goes with it does not go before the record is there.
	write(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error)
	// compare says how the kernel differs from want. It looks at all of it.
	compare(ctx context.Context, want kernel.Redirects) ([]string, error)
}

// holding is what the kernel holds.
type holding struct {
	redirects kernel.Redirects
	// record is what [encode] made of redirects that a write has taken away; none if the connections were judged since.
	record []string
	// altered: the rules are others than were written or read last.
	altered bool
}

// Writer keeps the redirects of one IP family. It must not be used by two goroutines at once.
type Writer struct {
	family kernel.Family
	rules  *rulesDriver
	table  *tableDriver
	flows  *conntrack.Table
	// driver is one of these, other the other one.
	driver, other driver
	// pruned: what earlier runs have left in the other back ends is gone. It is false again if the rules were altered or could not be
	// written: the iptables on PATH may be another one now, and what was written is in the other back end.
	pruned bool
	// foreign: the rules are the other driver, of iptables-nft, which cannot show a table nat because of what others have there.
	foreign bool
	// judged: all connections were judged since the last change.
	judged bool
	// cleared: there are no IP sets of former versions. kept is what was last logged of why there are.
	cleared bool
	kept    string
}

// Available returns why this kernel's nftables cannot redirect connections in one of these IP families; nil if they can. It has the kernel
// make a table with everything in it, and take it away in the same transaction.
func Available(ctx context.Context, families ...kernel.Family) error {
	for _, family := range families {
		if err := available(ctx, family); err != nil {
			return fmt.Errorf("redirects of %s need nftables: %w", family, err)
		}
	}
	return nil
}

func available(ctx context.Context, family kernel.Family) error {
	d := newTableDriver(family)
	d.spec.Name += "-probe"
	w := nft.NewWriter(d.spec)
	defer w.Close()
	lo := map[kernel.Family]netip.Addr{kernel.IPv4: netip.MustParseAddr("127.0.0.1"), kernel.IPv6: netip.IPv6Loopback()}[family]
	to := kernel.Target{To: netip.AddrPortFrom(lo, 1), Ports: []uint16{1}}
	all := kernel.Redirects{Nodes: []netip.Addr{lo}, Secure: to, Insecure: to, Sources: []netip.Prefix{netip.PrefixFrom(lo, lo.BitLen())}}
	return w.Try(ctx, d.stateOf(all, encode([]kernel.Redirects{all})))
}

// NewWriter returns a Writer for the network namespace of the process.
func NewWriter(backend reconcile.Backend, family kernel.Family) *Writer {
	w := &Writer{family: family, rules: newRulesDriver(family), table: newTableDriver(family), flows: conntrack.NewTable(family)}
	w.driver, w.other = w.rules, w.table
	if backend == reconcile.NFTables {
		w.driver, w.other = w.table, w.rules
	}
	return w
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() {
	w.table.table.Close()
	w.flows.Close()
}

// Result is what a sync has done.
type Result struct {
	// Changed: the kernel did not hold what it should.
	Changed bool
	// Ended is how many connections were ended because they did not go where they should.
	Ended int
}

// Sync makes the kernel hold want, whatever it holds, and ends the connections that go elsewhere than want says, as
// [conntrack.Table.DeleteMisdirected] does. The first Sync removes what earlier runs have left in other back ends, once
// the rules are there; so does one that finds other rules than were written, or follows one that could not write. A Sync that fails, or
// whose process dies, leaves a record of what it has taken away in the kernel: the next one, of whatever process, judges the connections
// by it.
func (w *Writer) Sync(ctx context.Context, want kernel.Redirects) (result Result, err error) {
	if result, err = w.sync(ctx, want); err == nil && !w.cleared {
		w.clear(ctx)
	}
	return result, err
}

// clear removes the IP sets of former versions. A set stays as long as somebody else's rule names it, which harms nobody.
func (w *Writer) clear(ctx context.Context) {
	err := destroySets(w.family)
	if w.cleared = err == nil; !w.cleared && w.kept != err.Error() {
		w.kept = err.Error()
		klog.FromContext(ctx).Info("IP sets of a former version stay; remove the rules that name them", "ipFamily", w.family, "err", err)
	}
}

func (w *Writer) sync(ctx context.Context, want kernel.Redirects) (result Result, err error) {
	before, err := w.before(ctx, want)
	if err != nil {
		return result, err
	}
	if result.Changed, err = w.write(ctx, want, encode(before)); err != nil {
		w.judged = false // something may have changed
		return result, err
	}
	if w.judged = w.judged && !result.Changed && len(before) == 0; w.judged {
		return result, nil
	}
	deleted, err := w.flows.DeleteMisdirected(ctx, conntrack.Redirection{After: want, Before: before})
	result.Ended = deleted.Ended
	if err == nil && len(before) > 0 {
		_, err = w.write(ctx, want, nil)
	}
	w.judged = err == nil
	return result, err
}

// before returns what the kernel holds that want does not say, and what it held when a Sync did not end.
func (w *Writer) before(ctx context.Context, want kernel.Redirects) (before []kernel.Redirects, err error) {
	held, err := w.driver.read(ctx)
	if err = nft.UnlessNone(err); err != nil {
		return nil, err
	}
	w.pruned = w.pruned && !held.altered
	holdings := []holding{held}
	var reads []func(context.Context) (holding, error)
	if !w.pruned && w.usable(w.other) {
		reads = append(reads, w.other.read)
	}
	if !w.pruned && w.usable(w.rules) {
		reads = append(reads, w.rules.readOther)
	}
	for i, read := range reads {
		held, err := read(ctx)
		if errors.Is(err, iptables.ErrIncompatible) && !iptables.HasChainsOf(ctx, Owner, w.family) {
			w.foreign = w.foreign || i == 0 && w.usable(w.other) // else it was the rules of the iptables that is not on PATH
			continue
		}
		if err = nft.UnlessNone(err); err != nil {
			return nil, err
		}
		holdings = append(holdings, held)
	}
	for _, held := range holdings {
		for _, r := range append(decode(held.record), held.redirects.Without(want)) {
			if !r.Empty() && !slices.ContainsFunc(before, r.Equal) {
				before = append(before, r)
			}
		}
	}
	return before, nil
}

func (w *Writer) write(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error) {
	changed, err = w.driver.write(ctx, want, record)
	if err == nil && !w.pruned {
		err = w.prune(ctx)
	}
	w.pruned = err == nil || w.pruned && w.driver == driver(w.table) // nothing strands what is in a table
	return changed, err
}

func (w *Writer) prune(ctx context.Context) error {
	if w.usable(w.rules) {
		if err := w.rules.rules.PruneOtherBackend(ctx); err != nil {
			return err
		}
	}
	if !w.usable(w.other) || w.foreign {
		return nil
	}
	_, err := w.other.write(ctx, kernel.Redirects{}, nil)
	return nft.UnlessNone(err)
}

// usable: without the programs of iptables there are no rules of it.
func (w *Writer) usable(d driver) bool { return d != w.rules || w.rules.rules.Installed() }

// Compare says, for an operator and in a line each, how the kernel differs from what it should hold; nothing if
// it does not. It changes nothing.
func Compare(ctx context.Context, backend reconcile.Backend, family kernel.Family, want kernel.Redirects) ([]string, error) {
	w := NewWriter(backend, family)
	defer w.Close()
	return w.driver.compare(ctx, want)
}

// Withdraw removes all redirects of both families, through every back end that is installed, and ends the connections that
// go where these sent them. Where there are none it runs no program.
func Withdraw(ctx context.Context) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		hasRules, err := hasChains(ctx, family)
		errs = append(errs, err, withdraw(ctx, family, hasRules, hasNFTables(ctx, family)))
	}
	return errors.Join(errs...)
}

func hasChains(ctx context.Context, family kernel.Family) (bool, error) {
	redirects, err := iptables.HasChain(ctx, family, nodesChain)
	recorded, recordErr := iptables.HasChain(ctx, family, recordChain)
	return redirects || recorded, errors.Join(err, recordErr)
}

func hasNFTables(ctx context.Context, family kernel.Family) bool {
	d := newTableDriver(family)
	defer d.table.Close()
	_, err := d.read(ctx)
	return !errors.Is(err, nft.ErrNone)
}

func withdraw(ctx context.Context, family kernel.Family, hasRules, hasNFTables bool) error {
	backend := reconcile.IPTables
	if hasNFTables {
		backend = reconcile.NFTables
	}
	w := NewWriter(backend, family)
	defer w.Close()
	w.pruned, w.judged = !hasRules, true
	if hasRules || hasNFTables {
		if _, err := w.Sync(ctx, kernel.Redirects{}); err != nil {
			return err
		}
	}
	return destroySets(family) // a process may have died before its rules named them
}
