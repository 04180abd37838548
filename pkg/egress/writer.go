package egress

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/iptables"
	"github.com/openshift/origin-node/pkg/egress/nftables"
	"github.com/openshift/origin-node/pkg/egress/plan"
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

// writer brings the plans of one IP family into the kernel. It is for one goroutine.
type writer interface {
	// read looks at what the kernel holds, so that the next write repairs whatever differs.
	read(ctx context.Context) (held, error)
	// write makes the kernel hold p, with the removed bindings on record, and tells whether it
	// had to change anything, and how much the kernel holds: rules, or elements of sets.
	// After an error the kernel holds what it held before.
	write(ctx context.Context, p plan.Plan, removed []plan.Binding) (changed bool, size int, err error)
	// update is write for a plan that differs by change from the one that was written last.
	// Networks has the plan's ClusterCIDRs and Exclusions. After an error only write will do.
	update(ctx context.Context, change plan.Change, networks plan.Plan, removed []plan.Binding) (changed bool, size int, err error)
	// others returns the bindings that earlier runs have written by other means, which act
	// beside this writer's until prune removes them, and whether there is anything at all to
	// remove.
	others(ctx context.Context) (bindings []plan.Binding, left bool, err error)
	prune(ctx context.Context) error
}

// held is what a look has found.
type held struct {
	bindings func() []plan.Binding
	// differences from what this writer has written last, if it has, in words.
	differences []string
	// altered: there are other rules than those, wherever they stand.
	altered bool
	// placed: the proxier will not write in front of this writer's rules, once these have been
	// written after this look.
	placed bool
	// missing returns the rules of the proxier that are not there, in words, or an error if
	// that cannot be told.
	missing func(context.Context) ([]string, error)
}

func newWriter(family v1.IPFamily, config Config) writer {
	rules, table := iptables.NewWriter(iptables.Family(family)), nftables.NewWriter(nftables.Family(family))
	if config.Backend == NFTables {
		return &tableWriter{family: nftables.Family(family), table: table, rules: rules, proxier: config.Proxier}
	}
	return &rulesWriter{rules: rules, table: table}
}

// rulesWriter writes iptables rules.
type rulesWriter struct {
	rules   *iptables.Writer
	table   *nftables.Writer
	written *iptables.Rendering // nil if nothing is
}

func (w *rulesWriter) read(ctx context.Context) (held, error) {
	kernel, missing, err := w.rules.Read(ctx)
	if err != nil {
		return held{}, err
	}
	h := held{bindings: kernel.Bindings, placed: kernel.HasProxierJump()}
	h.missing = func(context.Context) ([]string, error) { return missing, nil }
	if w.written != nil {
		h.differences, h.altered = iptables.Differences(w.written.Ruleset(), kernel), iptables.Altered(w.written.Ruleset(), kernel)
	}
	return h, nil
}

func (w *rulesWriter) write(ctx context.Context, p plan.Plan, removed []plan.Binding) (changed bool, size int, err error) {
	w.written = iptables.NewRendering(p)
	rules := w.written.Ruleset()
	rules.Record(removed)
	changed, err = w.rules.Write(ctx, rules)
	return changed, rules.Rules(), w.forgetAfter(err)
}

func (w *rulesWriter) update(ctx context.Context, change plan.Change, networks plan.Plan, removed []plan.Binding) (changed bool, size int, err error) {
	touched := w.written.Follow(change, networks, removed)
	rules := w.written.Ruleset()
	changed, err = w.rules.WriteChains(ctx, rules, touched)
	return changed, rules.Rules(), w.forgetAfter(err)
}

// forgetAfter forgets what was to be written if that failed.
func (w *rulesWriter) forgetAfter(err error) error {
	if err != nil {
		w.written = nil
	}
	return err
}

func (w *rulesWriter) others(ctx context.Context) (bindings []plan.Binding, left bool, err error) {
	kernel, err := w.rules.OtherBackend(ctx)
	content, tableErr := readTable(ctx, w.table)
	return append(kernel.Bindings(), content.Bindings()...), !kernel.Empty() || content != nil, errors.Join(err, tableErr)
}

func (w *rulesWriter) prune(ctx context.Context) error {
	return errors.Join(w.rules.PruneOtherBackend(ctx), removeTable(ctx, w.table))
}

// readTable and removeTable take a kernel without nftables for one that holds nothing there.
func readTable(ctx context.Context, table *nftables.Writer) (nftables.Content, error) {
	content, _, err := table.Read(ctx)
	if errors.Is(err, nftables.ErrNone) {
		return nil, nil
	}
	return content, err
}

func removeTable(ctx context.Context, table *nftables.Writer) error {
	_, err := table.Write(ctx, plan.Plan{}, nil)
	if errors.Is(err, nftables.ErrNone) {
		return nil
	}
	return err
}

// tableWriter writes an nftables table.
type tableWriter struct {
	family  nftables.Family
	table   *nftables.Writer
	rules   *iptables.Writer
	proxier Backend
}

func (w *tableWriter) read(ctx context.Context) (held, error) {
	content, differences, err := w.table.Read(ctx)
	if err != nil {
		return held{}, err
	}
	return held{bindings: content.Bindings, differences: differences, altered: len(differences) > 0, placed: true, missing: w.missingFromProxier}, nil
}

func (w *tableWriter) missingFromProxier(ctx context.Context) (missing []string, err error) {
	if w.proxier == NFTables {
		return nftables.MissingFromProxier(ctx, w.family)
	}
	_, missing, err = w.rules.Read(ctx)
	return missing, err
}

func (w *tableWriter) write(ctx context.Context, p plan.Plan, removed []plan.Binding) (changed bool, size int, err error) {
	changed, err = w.table.Write(ctx, p, removed)
	return changed, w.table.Elements(), err
}

func (w *tableWriter) update(ctx context.Context, change plan.Change, networks plan.Plan, removed []plan.Binding) (changed bool, size int, err error) {
	changed, err = w.table.Update(ctx, change, networks, removed)
	return changed, w.table.Elements(), err
}

func (w *tableWriter) others(ctx context.Context) (bindings []plan.Binding, left bool, err error) {
	if !w.rules.Installed() {
		return nil, false, nil
	}
	kernel, _, err := w.rules.Read(ctx)
	other, otherErr := w.rules.OtherBackend(ctx)
	return append(kernel.Bindings(), other.Bindings()...), !kernel.Empty() || !other.Empty(), errors.Join(err, otherErr)
}

func (w *tableWriter) prune(ctx context.Context) error {
	if !w.rules.Installed() {
		return nil
	}
	_, err := w.rules.Write(ctx, nil)
	return errors.Join(err, w.rules.PruneOtherBackend(ctx))
}

// compare says how the kernel differs from a plan.
func compare(ctx context.Context, backend Backend, family string, p plan.Plan) ([]string, error) {
	if backend == NFTables {
		return nftables.Compare(ctx, nftables.Family(family), p)
	}
	kernel, err := iptables.Look(ctx, iptables.Family(family))
	if err != nil {
		return nil, err
	}
	return iptables.Differences(iptables.Render(p), kernel), nil
}
