package redirect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/ipset"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// rulesDriver keeps the iptables chains, and the IP sets.
type rulesDriver struct {
	family      kernel.Family
	rules       *iptables.Writer
	generations [2]generation
	// held are the rules that were written or read last, with the record; nil if that is unknown.
	held iptables.Ruleset
	// tree: there are no IP sets, or iptables does not know of them. usedSets: it does, for rules name them.
	tree, usedSets bool
	// alone: the other flavour of iptables has no rules that name the sets.
	alone bool
}

func newRulesDriver(family kernel.Family) *rulesDriver {
	return &rulesDriver{family: family, rules: iptables.NewWriterFor(Owner, family), generations: generationsOf(family)}
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
	now, _ := d.generationsIn(d.held)
	d.usedSets = d.usedSets || now.isIn(d.held)
	h, err := d.holding(d.held)
	h.altered = last != nil && !maps.EqualFunc(last, d.held, slices.Equal)
	d.alone = d.alone && !h.altered
	return h, err
}

// holding returns what rules stand for.
func (d *rulesDriver) holding(rules iptables.Ruleset) (h holding, err error) {
	live, record := split(rules)
	sets := map[ipset.Set][]ipset.Element{}
	now, _ := d.generationsIn(live)
	if now.isIn(live) {
		sets, err = readAll(now)
	}
	return holding{redirects: heldBy(live, now, sets), record: record}, err
}

func readAll(g generation) (map[ipset.Set][]ipset.Element, error) {
	contents, errs := map[ipset.Set][]ipset.Element{}, []error(nil)
	for _, set := range g.all() {
		elements, _, err := set.Read()
		contents[set], errs = elements, append(errs, err)
	}
	return contents, errors.Join(errs...)
}

// generationsIn returns the generation that rules name, if they name one, and the other one.
func (d *rulesDriver) generationsIn(rules iptables.Ruleset) (now, next generation) {
	a, b := d.generations[0], d.generations[1]
	if a.isIn(rules) {
		return a, b
	}
	return b, a
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
	if want.Empty() || d.tree {
		return d.writeTree(ctx, want, record)
	}
	changed, err = d.writeSets(ctx, want, record)
	if err == nil {
		d.usedSets = true
	}
	if d.usedSets {
		return changed, err
	}
	changed, treeErr := d.writeTree(ctx, want, record)
	if treeErr != nil {
		return false, errors.Join(err, treeErr)
	}
	klog.FromContext(ctx).Info("Connections are redirected by a tree of chains because the kernel's IP sets cannot be used", "ipFamily", d.family, "err", err)
	d.tree = true
	return changed, nil
}

// writeTree writes rules that name no sets, and removes these.
func (d *rulesDriver) writeTree(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error) {
	changed, err = d.writeRules(ctx, renderTree(want), record)
	if err == nil {
		err = d.destroyUnused(d.generations[:]...)
	}
	return changed, err
}

// writeSets writes rules that name sets, in the order that the package's documentation shows.
func (d *rulesDriver) writeSets(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error) {
	if d.held == nil {
		if _, err := d.read(ctx); err != nil {
			return false, err
		}
	}
	now, next := d.generationsIn(d.held)
	live, _ := split(d.held)
	if rules := renderSets(want, now); maps.EqualFunc(rules, live, slices.Equal) {
		recorded, err := d.writeRules(ctx, rules, record)
		if err != nil {
			return false, err
		}
		filled, err := now.fill(want)
		return recorded || filled, err
	}
	if _, err := next.fill(want); err != nil {
		return false, err
	}
	if changed, err = d.writeRules(ctx, renderSets(want, next), record); err != nil {
		return false, err
	}
	return changed, d.destroyUnused(now)
}

// fill makes the sets and changes them, element by element: see the package's documentation for the order.
func (g generation) fill(want kernel.Redirects) (changed bool, err error) {
	for _, set := range g.all() {
		if err := set.Create(); err != nil {
			return false, err
		}
	}
	held, err := readAll(g)
	if err != nil {
		return false, err
	}
	wanted := g.contents(want)
	lacks := func(set ipset.Set) []ipset.Element { return kernel.Without(wanted[set], held[set]) }
	excess := func(set ipset.Set) []ipset.Element { return kernel.Without(held[set], wanted[set]) }
	stop, start := step{g.nodes.Delete, excess(g.nodes)}, step{g.nodes.Add, lacks(g.nodes)}
	if want.Others {
		stop, start = start, stop
	}
	for _, s := range []step{
		stop,
		{g.secure.Add, lacks(g.secure)}, {g.insecure.Add, lacks(g.insecure)},
		{g.secure.Delete, excess(g.secure)}, {g.insecure.Delete, excess(g.insecure)},
		start,
	} {
		if err := s.change(s.elements); err != nil {
			return true, err
		}
		changed = changed || len(s.elements) > 0
	}
	return changed, nil
}

// step is a change of a set.
type step struct {
	change   func([]ipset.Element) error
	elements []ipset.Element
}

// destroyUnused removes sets that no rule of this flavour names. As long as those of the other one may name them, prune does so.
func (d *rulesDriver) destroyUnused(generations ...generation) error {
	if !d.alone {
		return nil
	}
	return d.destroySets(generations...)
}

// destroySets removes sets that no rule names. Where the kernel has no IP sets there are none.
func (d *rulesDriver) destroySets(generations ...generation) error {
	if !ipset.Available() {
		return nil
	}
	var errs []error
	for _, g := range generations {
		for _, set := range g.all() {
			errs = append(errs, set.Destroy())
		}
	}
	return errors.Join(errs...)
}

func (d *rulesDriver) writeRules(ctx context.Context, rules iptables.Ruleset, record []string) (changed bool, err error) {
	d.held = withRecord(rules, record)
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
	now, _ := d.generationsIn(found.Chains)
	if !now.isIn(found.Chains) && len(found.Chains) > 0 {
		return iptables.Differences(renderTree(want), found), nil
	}
	differences := iptables.Differences(renderSets(want, now), found)
	held, err := readAll(now)
	if err != nil || want.Empty() {
		return differences, err
	}
	for set, wanted := range now.contents(want) {
		for _, element := range kernel.Without(wanted, held[set]) {
			differences = append(differences, fmt.Sprintf("the IP set %s lacks the element %s", set.Name, ipset.Text(element)))
		}
		for _, element := range kernel.Without(held[set], wanted) {
			differences = append(differences, fmt.Sprintf("the IP set %s has an unexpected element: %s", set.Name, ipset.Text(element)))
		}
	}
	slices.Sort(differences)
	return differences, nil
}

// prune removes what earlier runs have written through the iptables back end that is not the one on PATH, and the sets
// that no rule names then.
func (d *rulesDriver) prune(ctx context.Context) error {
	if err := d.rules.PruneOtherBackend(ctx); err != nil {
		return err
	}
	if d.alone = true; d.held == nil {
		return nil
	}
	live, _ := split(d.held)
	now, unused := d.generationsIn(live)
	if !now.isIn(live) {
		return d.destroySets(d.generations[:]...)
	}
	return d.destroySets(unused)
}
