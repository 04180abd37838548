package steering

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Script returns the shell script that makes of this kernel what a [Writer] makes of it for d, where there is nothing of it yet:
// first what carries marked packets, in the order in which it is added, then the table, but for what nft has no words for ([nft.Spec.Text]): with
// port blocks, the rules that give their ports. table is that part alone. It is for readers, and for an administrator who steers by
// hand. It changes nothing.
func Script(ctx context.Context, c Config, d kernel.Desired) (script, table []byte, err error) {
	path := newPath(c)
	state, err := path.look(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	if state.uplink.name == "" {
		return nil, nil, state.conflicts
	}
	given, err := path.known(ctx, d.Steering.Nodes)
	if err != nil {
		return nil, nil, err
	}
	content := newContent(c, d, nil)
	assigned, _ := given.assign(content.holders())
	var out bytes.Buffer
	for _, conflict := range state.conflicts {
		fmt.Fprintf(&out, "# In the way: %s\n", conflict)
	}
	holders := assigned.holders()
	for _, number := range slices.Sorted(maps.Keys(holders)) {
		fmt.Fprintf(&out, "# Number %d is the node %s.\n", number, holders[number])
	}
	for _, node := range d.Steering.Nodes {
		if _, known := d.Steering.Senders[node]; c.Transport == Direct && !known {
			fmt.Fprintf(&out, "# The hardware address of the node %s is not known yet, so what it sends here would be dropped.\n", node)
		}
	}
	for _, p := range c.parts(state.uplink, holders) {
		fmt.Fprintln(&out, command(p))
	}
	l := newLayout(c)
	if content.before, err = l.record(ctx); err != nil {
		return nil, nil, err
	}
	changes, err := c.settings(d.ClusterCIDRs)
	if err != nil {
		return nil, nil, err
	}
	content.before.add(changes)
	for _, s := range changes {
		fmt.Fprintln(&out, command(sysctl{s.path, s.now}))
	}
	at := c.linksFor(state.uplink)
	text, err := l.spec.Text(l.stateOf(content, assigned, at))
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(&out, "nft -f - <<'END'\n%sEND\n", text)
	return out.Bytes(), []byte(text), nil
}

// record returns the settings that the kernel's table has on record.
func (l layout) record(ctx context.Context) (settings, error) {
	w := nft.NewWriter(l.spec)
	defer w.Close()
	held, _, err := w.Inspect(ctx)
	return recordOf(held), err
}

// command returns the shell command that adds a part, in the place of what is in its slot.
func command(p part) string {
	text := p.String()
	replace := func(verb string) string { // the second word is the kind of object, or the third after -6
		words := strings.Fields(text)
		at := 2
		if words[1] == "-6" {
			at = 3
		}
		return strings.Join(slices.Insert(words, at, verb), " ")
	}
	switch p := p.(type) {
	case device:
		made := strings.Replace(text, "ip link "+Device, "ip link add "+Device, 1)
		return fmt.Sprintf("ip link show %s >/dev/null 2>&1 || %s\nip link set %s up", Device, strings.Replace(made, " up type", " type", 1), Device)
	case deviceAddr:
		return replace("replace") + " scope link"
	case sysctl:
		return "sysctl -w " + strings.TrimPrefix(p.String(), "sysctl ")
	case ipRule:
		return replace("add")
	}
	return replace("replace")
}
