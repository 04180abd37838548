package redirect

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// The comments of rules tell what [redirectsIn] reads of them.
const (
	othersComment = "to others than nodes"
	secureComment = "secure: "
	plainComment  = "insecure: "
)

// targetComment is that of a target in a mark. Earlier versions had no hash behind it.
var targetComment = regexp.MustCompile("(" + plainComment + "|" + secureComment + `)([^ \x00]+)`)

// tableDriver keeps the nftables table.
type tableDriver struct {
	spec  nft.Spec
	table *nft.Writer
}

func newTableDriver(family kernel.Family) *tableDriver {
	chain := func(name string, hook *nftables.ChainHook) nft.Chain {
		return nft.Chain{Name: name, Type: nftables.ChainTypeNAT, Hook: hook, Priority: *nftables.ChainPriorityNATDest - 1}
	}
	spec := nft.Spec{
		Name: tableName, Family: family,
		Sets:   []nft.Set{{Name: nodesSet}, {Name: securePorts, Port: true}, {Name: insecurePorts, Port: true}, {Name: sourcesSet, Ranges: true}},
		Chains: []nft.Chain{chain(outputChain, nftables.ChainHookOutput), chain(preroutingChain, nftables.ChainHookPrerouting)},
	}
	return &tableDriver{spec: spec, table: nft.NewWriter(spec)}
}

func (d *tableDriver) read(ctx context.Context) (holding, error) {
	held, _, err := d.table.Read(ctx)
	return holding{redirects: redirectsIn(held), record: held.Chains[tableRecord]}, err
}

func (d *tableDriver) write(ctx context.Context, want kernel.Redirects, record []string) (changed bool, err error) {
	return d.table.Write(ctx, d.stateOf(want, record))
}

func (d *tableDriver) compare(ctx context.Context, want kernel.Redirects) ([]string, error) {
	held, fault, err := d.table.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	delete(held.Chains, tableRecord)
	return d.spec.Differences(d.stateOf(want, nil), held, fault), nil
}

// stateOf returns what the table should hold.
func (d *tableDriver) stateOf(want kernel.Redirects, record []string) nft.State {
	if want.Empty() && len(record) == 0 {
		return nft.State{}
	}
	sets := nft.Content{nodesSet: {}, securePorts: portElements(want.Secure), insecurePorts: portElements(want.Insecure), sourcesSet: nft.Ranges(want.Sources)}
	for _, addr := range want.Nodes {
		sets[nodesSet][nft.Key{Pod: addr}] = netip.Addr{}
	}
	chains := map[string][]nft.Rule{}
	for _, part := range record {
		chains[tableRecord] = append(chains[tableRecord], nft.Rule{Mark: part}) // nothing leads to it
	}
	if !want.Empty() {
		chains[outputChain] = []nft.Rule{d.toNodes(want.Others, "")}
	}
	if !want.Empty() && len(want.Sources) > 0 {
		chains[preroutingChain] = []nft.Rule{d.toNodes(want.Others, "IP saddr @"+sourcesSet+" ")}
	}
	for _, t := range []struct {
		kernel.Target
		comment, set string
	}{{want.Secure, secureComment, securePorts}, {want.Insecure, plainComment, insecurePorts}} {
		if len(t.Ports) > 0 {
			chains[redirectChain] = append(chains[redirectChain], d.spec.Commented(t.comment+t.To.String(), fmt.Sprintf("tcp dport @%s dnat to %s", t.set, t.To)))
		}
	}
	return nft.State{Sets: sets, Chains: chains}
}

func portElements(t kernel.Target) nft.Elements {
	elements := make(nft.Elements, len(t.Ports))
	for _, port := range t.Ports {
		elements[nft.Key{Port: port}] = netip.Addr{}
	}
	return elements
}

// toNodes is the rule for TCP packets, of some sources, to nodes, or to others than these.
func (d *tableDriver) toNodes(others bool, sources string) nft.Rule {
	comment, not := "to nodes", ""
	if others {
		comment, not = othersComment, "!= "
	}
	return d.spec.Commented(comment, fmt.Sprintf("%smeta l4proto tcp IP daddr %s@%s fib daddr type != local goto %s", sources, not, nodesSet, redirectChain))
}

// redirectsIn returns what a table stands for.
func redirectsIn(held nft.Held) kernel.Redirects {
	var r kernel.Redirects
	for key := range held.Sets[nodesSet] {
		r.Nodes = append(r.Nodes, key.Pod)
	}
	slices.SortFunc(r.Nodes, netip.Addr.Compare)
	r.Others = slices.ContainsFunc(held.Chains[outputChain], func(mark string) bool { return strings.Contains(mark, othersComment) })
	r.Sources = nft.Prefixes(held.Sets[sourcesSet])
	for _, mark := range held.Chains[redirectChain] {
		switch found := targetComment.FindStringSubmatch(mark); {
		case found == nil: // somebody else's rule
		case found[1] == secureComment:
			r.Secure = targetIn(found[2], held.Sets[securePorts])
		default:
			r.Insecure = targetIn(found[2], held.Sets[insecurePorts])
		}
	}
	return r
}

func targetIn(text string, ports nft.Elements) kernel.Target {
	to, err := netip.ParseAddrPort(text)
	if err != nil {
		return kernel.Target{}
	}
	t := kernel.Target{To: to}
	for key := range maps.Keys(ports) {
		t.Ports = append(t.Ports, key.Port)
	}
	slices.Sort(t.Ports)
	return t
}
