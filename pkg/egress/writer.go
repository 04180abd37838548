package egress

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
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
	// others returns the other means by which earlier runs may have written.
	others() []other
}

// other is what earlier runs have written by some other means than a writer's, beside which it acts.
type other struct {
	// read returns its bindings, and whether there is anything at all to remove.
	read  func(ctx context.Context) (bindings []plan.Binding, left bool, err error)
	prune func(ctx context.Context) error
}

// held is what a look has found.
type held struct {
	bindings func() []plan.Binding
	// differences from what this writer has written last, if it has, in words.
	differences []string
	// altered: there are other rules than those, wherever they stand, or those of before were restored.
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
	h.altered = h.altered || kernel.Restored()
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

func (w *rulesWriter) others() []other { return []other{otherBackend(w.rules), otherTable(w.table)} }

// otherBackend is what stands in the iptables back end that is not the one on PATH.
func otherBackend(rules *iptables.Writer) other {
	return other{
		read: func(ctx context.Context) (bindings []plan.Binding, left bool, err error) {
			kernel, err := rules.OtherBackend(ctx)
			return kernel.Bindings(), !kernel.Empty(), err
		},
		prune: rules.PruneOtherBackend,
	}
}

// otherRules is what stands in the iptables on PATH.
func otherRules(rules *iptables.Writer) other {
	return other{
		read: func(ctx context.Context) (bindings []plan.Binding, left bool, err error) {
			kernel, _, err := rules.Read(ctx)
			return kernel.Bindings(), !kernel.Empty(), err
		},
		prune: func(ctx context.Context) error {
			_, err := rules.Write(ctx, nil)
			return err
		},
	}
}

// otherTable is what stands in the nftables table. A kernel without nftables holds nothing there.
func otherTable(table *nftables.Writer) other {
	unlessNone := func(err error) error {
		if errors.Is(err, nftables.ErrNone) {
			return nil
		}
		return err
	}
	return other{
		read: func(ctx context.Context) (bindings []plan.Binding, left bool, err error) {
			content, _, err := table.Read(ctx)
			return content.Bindings(), content != nil, unlessNone(err)
		},
		prune: func(ctx context.Context) error {
			_, err := table.Write(ctx, plan.Plan{}, nil)
			return unlessNone(err)
		},
	}
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

func (w *tableWriter) others() []other {
	if !w.rules.Installed() {
		return nil
	}
	return []other{otherRules(w.rules), otherBackend(w.rules)}
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
