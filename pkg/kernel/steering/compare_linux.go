package steering

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Numbers returns the numbers that the Writer has given to nodes, for [Compare].
func (w *Writer) Numbers() map[netip.Addr]int { return maps.Clone(w.numbers) }

// Compare says, for an operator and in a line each, how the kernel differs from what a [Writer] makes of it for d, if it
// has given nodes these numbers; nothing if it does not. It changes nothing.
func Compare(ctx context.Context, c Config, d kernel.Desired, given map[netip.Addr]int) ([]string, error) {
	w := NewWriter(c)
	defer w.Close()
	content := newContent(c, d, nil)
	assigned, _ := numbers(maps.Clone(given)).assign(content.holders())
	held, fault, err := w.table.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	content.before = recordOf(held)
	path := newPath(c)
	state, err := path.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	at := c.linksFor(state.uplink)
	differences := w.layout.spec.Differences(w.layout.stateOf(content, assigned, at), held, fault)
	if held.Sets == nil {
		differences = []string{fmt.Sprintf("table %s: is missing", Table)}
	}
	_, others, err := path.glance(ctx, assigned.holders())
	if err != nil {
		return nil, err
	}
	changes, err := c.settings(d.ClusterCIDRs)
	return slices.Concat(differences, others, describeSettings(changes)), err
}

// linksFor returns what the interfaces are for the table, once everything is as it should be.
func (c Config) linksFor(up uplink) links {
	switch {
	case c.Transport == Direct:
		return links{uplink: up.name}
	case up.name == "":
		return links{}
	}
	return links{mss: largestSegment(c.Family, up.mtu-overhead(c.NodeIP))}
}
