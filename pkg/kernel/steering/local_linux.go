package steering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// LocalTable is the name of the nftables table of a node that steers nothing, in either family. Such a node pays for one lookup, and needs
// no guard, so it has a table of its own. Changing the name orphans what earlier versions have written.
const LocalTable = "openshift-egress"

// LocalSourceNATPriority is that of its chain: behind that of [Table], also as former versions wrote that, and in front of everybody else's
// source NAT.
const LocalSourceNATPriority = SourceNATPriority + 2

// nearChain has the rules for destinations that may be an egress IP.
const nearChain = "near"

// localSets are sets of [Table]. Here the sources give egress IPs themselves: one rule alone depends on these.
func localSets() (local []nft.Set) {
	for _, set := range sets {
		switch set.Name {
		case exclusionsSet, ownSet, ownPodsSet, sourcesMap, podSourcesMap, removedSet:
			set.Chains = ""
			local = append(local, set)
		}
	}
	return local
}

// local is what never changes of the table in a family.
type local struct {
	spec nft.Spec
	// rules are that for the bindings of one protocol, and that for those of all. near are the same for destinations that may be an egress IP.
	rules, near []nft.Rule
}

func localOf(family kernel.Family) local {
	l := local{spec: nft.Spec{Name: LocalTable, Family: family, Sets: localSets(), Chains: []nft.Chain{{
		Name: postroutingChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPostrouting, Priority: nftables.ChainPriority(LocalSourceNATPriority),
	}}}}
	for _, k := range selectors(true) {
		l.rules = append(l.rules, l.spec.Commented("a bound pod's flow begins", toOutside+" "+k.giveLocally(family)))
		l.near = append(l.near, l.spec.Commented("a bound pod's flow begins", toOutside+" "+k.notToOwnLocally(family)+" "+k.giveLocally(family)))
	}
	return l
}

// state returns what the table should hold for a content: nothing if that binds nothing and has nothing on record.
func (l local) state(c *content) nft.State {
	if len(c.uses) == 0 && len(c.sets[removedSet]) == 0 {
		return nft.State{}
	}
	state := nft.State{Sets: nft.Content{}, Chains: l.chains(len(selectors(c.pods > 0)), c.network())}
	for _, set := range l.spec.Sets {
		state.Sets[set.Name] = c.sets[set.Name]
	}
	return state
}

// chains are those for so many selectors, where all egress IPs are in a network. A packet that goes elsewhere is not for an egress IP, so its
// pod's own one, of maybe a hundred thousand, need not be looked up.
func (l local) chains(selectors int, network netip.Prefix) map[string][]nft.Rule {
	rules, near := l.rules[:selectors], l.near[:selectors]
	if network.Bits() == 0 {
		return map[string][]nft.Rule{postroutingChain: near}
	}
	begin := l.spec.Commented("maybe to an egress IP", "IP daddr "+network.String()+" goto "+nearChain)
	return map[string][]nft.Rule{postroutingChain: append([]nft.Rule{begin}, rules...), nearChain: near}
}

// network returns the smallest network that has all egress IPs of bindings: a /24, in IPv6 a /64, or one that is larger. It is that of all
// addresses if there are no bindings.
func (c *content) network() (network netip.Prefix) {
	smallest, all := 24, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if c.config.Family == kernel.IPv6 {
		smallest, all = 64, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	for egressIP := range c.uses {
		if !network.IsValid() {
			network = netip.PrefixFrom(egressIP, smallest).Masked()
		}
		for !network.Contains(egressIP) {
			network = netip.PrefixFrom(network.Addr(), network.Bits()-1).Masked()
		}
	}
	return cmp.Or(network, all)
}

// localContent is that for the bindings and networks of d.
func localContent(family kernel.Family, d kernel.Desired) *content {
	return newContent(Config{Family: family}, kernel.Desired{Networks: d.Networks, Bindings: d.Bindings}, nil)
}

// LocalWriter keeps the table of one IP family where nothing is steered: pods leave from their egress IPs where they run. It must not be used
// by two goroutines at once, and not in two network namespaces.
type LocalWriter struct {
	local
	table *nft.Writer
	belief
}

// NewLocalWriter returns a LocalWriter for the network namespace of the process.
func NewLocalWriter(family kernel.Family) *LocalWriter {
	l := localOf(family)
	return &LocalWriter{local: l, table: nft.NewWriter(l.spec)}
}

// Close gives back what the LocalWriter has from the kernel. What it has written stays.
func (w *LocalWriter) Close() { w.table.Close() }

// Read looks at what the kernel holds, so that the next Write repairs whatever differs. It returns in words for a log how that differs from
// what was written last. A process that has written nothing yet gets no differences.
func (w *LocalWriter) Read(ctx context.Context) (differences []string, err error) {
	_, differences, err = w.table.Read(ctx)
	if err == nil && (len(differences) > 0 || !w.table.Known()) {
		w.content = nil
	}
	return differences, err
}

// Standing returns what the table had when it was read or written last, and whether there was one.
func (w *LocalWriter) Standing() (s Standing, stands bool) {
	held := w.table.Held().Sets
	return standingOf(held, nil), held != nil
}

// Generation returns the number of the kernel's ruleset in the network namespace, which each transaction of anybody raises by one. It is 0
// where the kernel has no nftables.
func (w *LocalWriter) Generation(ctx context.Context) (uint32, error) {
	return w.table.Generation(ctx)
}

// Elements returns the number of elements that were written last.
func (w *LocalWriter) Elements() int { return w.table.Held().Sets.Elements() }

// Write makes the kernel hold what d asks for, with the removed bindings on record, and tells whether it had to change anything. It looks at
// the kernel first if it does not know it. After an error the kernel holds what it held before, and the next Write replaces the table.
func (w *LocalWriter) Write(ctx context.Context, d kernel.Desired, removed []kernel.Binding) (changed bool, err error) {
	w.content = localContent(w.spec.Family, d)
	w.content.sets[removedSet] = journalOf(removed)
	changed, err = w.table.Write(ctx, w.state(w.content))
	return changed, w.forgetAfter(err)
}

// Update is Write for what differs by c from what was written last. It costs what c is about, and a look at each egress IP. It does
// not look at the kernel: an error may mean that somebody else has changed the table.
func (w *LocalWriter) Update(ctx context.Context, c kernel.Change, removed []kernel.Binding) (changed bool, err error) {
	if w.content == nil {
		return false, fmt.Errorf("write the nftables table %s: what it holds is not known", LocalTable)
	}
	c.SteeringChanged = false
	edit := w.content.follow(c, nil)
	edit.Replace(removedSet, journalOf(removed))
	change := edit.Change()
	for _, sets := range []map[string]nft.Elements{change.Removed, change.Added} {
		maps.DeleteFunc(sets, func(set string, _ nft.Elements) bool {
			return !slices.ContainsFunc(w.spec.Sets, func(s nft.Set) bool { return s.Name == set })
		})
	}
	changed, err = w.table.Change(ctx, w.state(w.content), change)
	return changed, w.forgetAfter(err)
}

// LocalAvailable returns why pods cannot get egress IPs by this kernel's nftables; nil if they can. It has the kernel make a table with
// everything in it, and take it away in the same transaction.
func LocalAvailable(ctx context.Context) error {
	l := localOf(kernel.IPv4)
	l.spec.Name = LocalTable + "-probe"
	w := nft.NewWriter(l.spec)
	defer w.Close()
	d, _, _ := probe(kernel.IPv4)
	err := w.Try(ctx, l.state(localContent(kernel.IPv4, d)))
	if err != nil && !errors.Is(err, nft.ErrNone) {
		return fmt.Errorf("the kernel refuses what egress SNAT needs of nftables: %w", err)
	}
	return err
}

// CompareLocal says, for an operator and in a line each, how the table of a node that steers nothing differs from what it should hold for d;
// nothing if it does not.
func CompareLocal(ctx context.Context, family kernel.Family, d kernel.Desired) ([]string, error) {
	l := localOf(family)
	w := nft.NewWriter(l.spec)
	defer w.Close()
	held, fault, err := w.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	content := localContent(family, d)
	if journal := held.Sets[removedSet]; len(journal) > 0 { // it is no difference, and keeps the table there
		content.sets[removedSet] = journal
	}
	return l.spec.Differences(l.state(content), held, fault), nil
}

// LocalText returns the input of nft -f that makes the table for d in a kernel that has none; "" if d binds nothing. The element that gives a
// binding its egress IP has the binding's comment behind it, if there is one. It is for readers: the [LocalWriter] speaks netlink.
func LocalText(family kernel.Family, d kernel.Desired, comments map[kernel.Binding]string) (string, error) {
	if len(d.Bindings) == 0 {
		return "", nil
	}
	l := localOf(family)
	byKey := map[string]map[nft.Key]string{sourcesMap: {}, podSourcesMap: {}}
	for b, comment := range comments {
		at := placesOf(b)
		byKey[at.sources][at.key] = kernel.Printable(comment)
	}
	return l.spec.TextWith(l.state(localContent(family, d)), byKey)
}

// WithdrawLocal takes all bindings of both families out of the table, but leaves them on record. It returns them; [CleanupLocal] removes the
// record when nothing depends on it any more.
func WithdrawLocal(ctx context.Context) (map[kernel.Family][]kernel.Binding, error) {
	withdrawn := map[kernel.Family][]kernel.Binding{}
	err := everywhere(func(family kernel.Family) error {
		w := NewLocalWriter(family)
		defer w.Close()
		_, err := w.Read(ctx)
		standing, _ := w.Standing()
		all := standing.All()
		if err == nil && len(all) > 0 {
			_, err = w.Write(ctx, kernel.Desired{}, all)
		}
		withdrawn[family] = all
		return err
	})
	return withdrawn, err
}

// CleanupLocal removes the tables of both families, whatever they hold.
func CleanupLocal(ctx context.Context) error {
	return everywhere(func(family kernel.Family) error {
		w := NewLocalWriter(family)
		defer w.Close()
		_, err := w.Write(ctx, kernel.Desired{}, nil)
		return err
	})
}

// everywhere calls do for both families. A kernel without nftables holds nothing.
func everywhere(do func(kernel.Family) error) error {
	return errors.Join(nft.UnlessNone(do(kernel.IPv4)), nft.UnlessNone(do(kernel.IPv6)))
}
