package redirect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// rulesDriver keeps the iptables chains, and the IP sets.
type rulesDriver struct {
	family kernel.Family
	rules  *iptables.Writer
	sets   ipSets
	// held are the rules that were written or read last; known tells that there was a look.
	held  iptables.Ruleset
	known bool
	// contents are what the last look saw in the IP sets, until the next write.
	contents *setContents
	// tree: there are no IP sets, or iptables does not know of them. usedSets: it does.
	tree, usedSets bool
}

func newRulesDriver(family kernel.Family) *rulesDriver {
	return &rulesDriver{family: family, rules: iptables.NewWriterFor(Owner, family), sets: ipSets{family, setNamesOf(family)}}
}

func (d *rulesDriver) read(ctx context.Context) (kernel.Redirects, error) {
	same, err := d.rules.Unchanged(ctx)
	if err != nil || !same || !d.known {
		found, _, err := d.rules.Read(ctx)
		if err != nil {
			return kernel.Redirects{}, err
		}
		d.held, d.known = found.Chains, true
	}
	contents, err := d.readSets()
	d.contents = &contents
	return heldBy(d.held, d.sets.names, contents), err
}

func (d *rulesDriver) readSets() (setContents, error) {
	if d.tree {
		return setContents{}, nil
	}
	contents, err := d.sets.read()
	if err != nil && !d.usedSets {
		return setContents{}, nil // there are none
	}
	return contents, err
}

func (d *rulesDriver) write(ctx context.Context, want kernel.Redirects) (changed bool, err error) {
	switch {
	case want.Empty():
		changed, err = d.writeRules(ctx, nil)
		if err == nil {
			err = destroyAll(d.family)
		}
		return changed, err
	case d.tree:
		return d.writeRules(ctx, renderTree(want))
	}
	changed, err = d.writeSets(ctx, want)
	if err == nil || d.usedSets {
		d.usedSets = true
		return changed, err
	}
	changed, treeErr := d.writeRules(ctx, renderTree(want))
	if treeErr != nil {
		return false, errors.Join(err, treeErr)
	}
	klog.FromContext(ctx).Info("Connections are redirected by a tree of chains because the kernel's IP sets cannot be used", "ipFamily", d.family, "err", err)
	d.tree = true
	return changed, destroyAll(d.family)
}

// writeSets writes the rules that use IP sets: the sets first, so that no rule names one that does not exist.
func (d *rulesDriver) writeSets(ctx context.Context, want kernel.Redirects) (changed bool, err error) {
	if d.contents == nil {
		if _, err := d.read(ctx); err != nil {
			return false, err
		}
	}
	filled, err := d.sets.write(*d.contents, want)
	d.contents = nil
	if err != nil {
		return false, err
	}
	wrote, err := d.writeRules(ctx, renderSets(want, d.sets.names))
	if err != nil {
		return filled, err
	}
	unused := d.sets.names.direct
	if want.Others {
		unused = d.sets.names.nodes
	}
	return filled || wrote, destroy(unused)
}

func (d *rulesDriver) writeRules(ctx context.Context, rules iptables.Ruleset) (changed bool, err error) {
	changed, err = d.rules.Write(ctx, rules)
	if d.known = err == nil; d.known {
		d.held = rules
	}
	return changed, err
}

func (d *rulesDriver) compare(ctx context.Context, want kernel.Redirects) ([]string, error) {
	found, err := iptables.LookFor(ctx, Owner, d.family)
	if err != nil {
		return nil, err
	}
	bySets := iptables.Differences(renderSets(want, d.sets.names), found)
	if byTree := iptables.Differences(renderTree(want), found); len(byTree) < len(bySets) {
		return byTree, nil
	}
	contents, err := d.sets.read()
	if err != nil {
		return nil, err
	}
	nodes, name := contents.nodes, d.sets.names.nodes
	if want.Others {
		nodes, name = contents.direct, d.sets.names.direct
	}
	return append(append(append(bySets,
		setDifferences(name, want.Nodes, nodes)...),
		setDifferences(d.sets.names.secure, want.Secure.Ports, contents.secure)...),
		setDifferences(d.sets.names.insecure, want.Insecure.Ports, contents.insecure)...), nil
}

func setDifferences[T comparable](name string, want, have []T) (differences []string) {
	for _, element := range without(want, have) {
		differences = append(differences, fmt.Sprintf("the IP set %s lacks the element %v", name, element))
	}
	for _, element := range without(have, want) {
		differences = append(differences, fmt.Sprintf("the IP set %s has an unexpected element: %v", name, element))
	}
	return differences
}

// prune removes what earlier runs have written through the iptables back end that is not the one on PATH.
func (d *rulesDriver) prune(ctx context.Context) error { return d.rules.PruneOtherBackend(ctx) }
