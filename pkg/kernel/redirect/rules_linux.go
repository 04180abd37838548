package redirect

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// rulesDriver keeps the iptables chains.
type rulesDriver struct {
	family kernel.Family
	rules  *iptables.Writer
	// held are the rules that were written or read last, with the record; nil if that is unknown.
	held iptables.Ruleset
}

func newRulesDriver(family kernel.Family) *rulesDriver {
	return &rulesDriver{family: family, rules: iptables.NewWriterFor(Owner, family)}
}

func (d *rulesDriver) read(ctx context.Context) (holding, error) {
	same, err := d.rules.Unchanged(ctx)
	if same && err == nil && d.held != nil {
		return d.holding(d.held)
	}
	found, _, err := d.rules.Read(ctx)
	if err != nil {
		return holding{}, err
	}
	last := d.held
	d.held = iptables.Ruleset{} // found.Chains may be nil
	maps.Copy(d.held, found.Chains)
	h, err := d.holding(d.held)
	h.altered = last != nil && !maps.EqualFunc(last, d.held, slices.Equal)
	return h, err
}

// holding returns what rules stand for, with what the IP sets hold that those of former versions name.
func (d *rulesDriver) holding(rules iptables.Ruleset) (holding, error) {
	live, record := split(rules)
	sets, errs := map[string]formerSet{}, []error(nil)
	for _, rule := range slices.Concat(live[nodesChain], live[toChain]) {
		if name := valueOf(rule, setOption); slices.Contains(formerSets(d.family), name) {
			set, _, err := readSet(name)
			sets[name], errs = set, append(errs, err)
		}
	}
	return holding{redirects: heldBy(live, sets), record: record}, errors.Join(errs...)
}

// readOther returns what the iptables back end holds that is not the one on PATH.
func (d *rulesDriver) readOther(ctx context.Context) (holding, error) {
	found, err := d.rules.OtherBackend(ctx)
	if err != nil {
		return holding{}, err
	}
	return d.holding(found.Chains)
}

func (d *rulesDriver) write(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error) {
	d.held = withRecord(render(want), record)
	if changed, err = d.rules.Write(ctx, d.held); err != nil {
		d.held = nil
	}
	return changed, err
}

func (d *rulesDriver) compare(ctx context.Context, want kernel.Redirects) ([]string, error) {
	found, err := iptables.LookFor(ctx, Owner, d.family)
	if err != nil {
		return nil, err
	}
	found.Chains, _ = split(found.Chains)
	return iptables.Differences(render(want), found), nil
}
