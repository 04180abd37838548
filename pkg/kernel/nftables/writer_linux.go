package nftables

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// answerTime is how long nft may take to check a payload.
const answerTime = 30 * time.Second

// ErrNone is returned where the kernel has no nftables.
var ErrNone = nft.ErrNone

// Writer keeps the table of one IP family. It must not be used by two goroutines at once, and
// not in two network namespaces.
type Writer struct {
	family kernel.Family
	layout layout
	table  *nft.Writer
	// state is that of the plan which was written last, if the kernel is known to hold it.
	state *state
}

// NewWriter returns a Writer for family, for the network namespace of the process.
func NewWriter(family kernel.Family) *Writer {
	return &Writer{family: family, layout: newLayout(family), table: nft.NewWriter(specOf(family))}
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() { w.table.Close() }

// Read looks at what the kernel holds, so that the next Write repairs whatever differs.
// It returns that, and in words for a log how it differs from what was written last. A
// process that has written nothing yet gets no differences.
func (w *Writer) Read(ctx context.Context) (content Content, differences []string, err error) {
	held, differences, err := w.table.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(differences) > 0 || !w.table.Known() {
		w.state = nil
	}
	return Content(held.Sets), differences, nil
}

// Generation returns the number of the kernel's ruleset in the network namespace, which each
// transaction of anybody raises by one. It is 0 where the kernel has no nftables.
func (w *Writer) Generation(ctx context.Context) (uint32, error) { return w.table.Generation(ctx) }

// Write makes the kernel hold the content for p and the journal of removed bindings, and tells
// whether it had to change anything. It looks at the kernel first if it does not know
// it. After an error the kernel holds what it held before, and the next Write replaces the table.
func (w *Writer) Write(ctx context.Context, p kernel.Desired, removed []kernel.Binding) (changed bool, err error) {
	w.state = newState(p, removed)
	changed, err = w.table.Write(ctx, w.layout.stateOf(w.state.content))
	return changed, w.forgetAfter(err)
}

// Update is Write for what differs by c from what was written last. It costs what c is about, and
// does not look at the kernel: an error may mean that somebody else has changed the table.
func (w *Writer) Update(ctx context.Context, c kernel.Change, removed []kernel.Binding) (changed bool, err error) {
	if w.state == nil {
		return false, fmt.Errorf("write the nftables table %s: what it holds is not known", Table)
	}
	differs := w.follow(c, removed)
	changed, err = w.table.Change(ctx, w.layout.stateOf(w.state.content), differs)
	return changed, w.forgetAfter(err)
}

// follow brings the state to what c leads to, and returns how that differs from what is written.
func (w *Writer) follow(c kernel.Change, removed []kernel.Binding) nft.Change {
	left := w.state.bindings - len(c.Removed)
	if w.state.bindings > 0 && left+len(c.Added) > 0 {
		return w.state.follow(c, removed)
	}
	// There were no bindings before, or there are none now.
	before := w.state.content
	w.state = newState(kernel.Desired{Networks: c.Networks, Bindings: c.Added}, removed)
	return nft.Between(nft.Content(before), nft.Content(w.state.content))
}

// forgetAfter forgets what was to be written if that failed.
func (w *Writer) forgetAfter(err error) error {
	if err != nil {
		w.state = nil
	}
	return err
}

// Available returns why egress SNAT cannot be done with this kernel's nftables; nil if it can. It
// has the kernel make a table with everything in it, and take it away in the same transaction.
func Available(ctx context.Context) error {
	spec := specOf(kernel.IPv4)
	spec.Name = Table + "-probe"
	w := nft.NewWriter(spec)
	defer w.Close()
	pod, egressIP := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2") // RFC 5737
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{netip.PrefixFrom(pod, 24).Masked()}}}
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
		p.Bindings = append(p.Bindings, kernel.Binding{Pod: pod, Protocol: protocol, EgressIP: egressIP})
	}
	err := w.Try(ctx, newLayout(kernel.IPv4).stateOf(Render(p)))
	if err != nil && !errors.Is(err, ErrNone) {
		return fmt.Errorf("the kernel refuses what egress SNAT needs of nftables: %w", err)
	}
	return err
}

// Elements returns the number of elements that were written last.
func (w *Writer) Elements() int { return w.table.Held().Sets.Elements() }

// Compare says, for an operator and in a line each, how the kernel differs from what it
// should hold for p; nothing if it does not.
func Compare(ctx context.Context, family kernel.Family, p kernel.Desired) ([]string, error) {
	w := NewWriter(family)
	defer w.Close()
	held, fault, err := w.table.Look(ctx)
	if err != nil {
		return nil, err
	}
	want := Render(p)
	differences := specOf(family).Differences(w.layout.stateOf(want), held)
	switch {
	case fault != "":
		return append([]string{fault}, differences...), nil
	case len(want) == 0 && held.Sets != nil && len(held.Sets[removedSet]) == 0:
		return append(differences, fmt.Sprintf("table %s is unexpected", Table)), nil
	}
	return differences, nil
}

// MissingFromProxier returns what kube-proxy's nftables proxier has written and is not there any
// more, in words for a log; nothing if all is there. The proxier itself does not look.
func MissingFromProxier(ctx context.Context, family kernel.Family) ([]string, error) {
	c, err := nft.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	proxier := &nftables.Table{Name: ProxierTable, Family: newLayout(family).Table}
	var missing []string
	for _, name := range proxierChains {
		// A chain that is not there has no rules. There may be a hundred thousand others.
		rules, err := c.GetRules(proxier, &nftables.Chain{Name: name, Table: proxier})
		if err != nil {
			return nil, fmt.Errorf("list the rules of the nftables chain %s: %w", name, err)
		}
		if len(rules) == 0 {
			missing = append(missing, "table "+ProxierTable+": rules of "+name)
		}
	}
	return missing, nil
}

// ProxierTable and proxierChains are what the vendored nftables proxier always has (kubeProxyTable and nftablesBaseChains in
// pkg/proxy/nftables/proxier.go).
const ProxierTable = "kube-proxy"

var proxierChains = []string{"nat-prerouting", "nat-output", "nat-postrouting", "filter-forward", "filter-output", "services"}

// Withdraw takes all bindings of both families out of the kernel, but leaves them in the journal.
// It returns them; [Cleanup] removes the journal when nothing depends on it any more.
func Withdraw(ctx context.Context) (map[kernel.Family][]kernel.Binding, error) {
	withdrawn := map[kernel.Family][]kernel.Binding{}
	err := everywhere(func(w *Writer) error {
		held, _, err := w.Read(ctx)
		if err == nil && len(held.Bindings()) > 0 {
			_, err = w.Write(ctx, kernel.Desired{}, held.Bindings())
		}
		withdrawn[w.family] = held.Bindings()
		return err
	})
	return withdrawn, err
}

// Cleanup removes the tables of both families, whatever they hold.
func Cleanup(ctx context.Context) error {
	return everywhere(func(w *Writer) error {
		_, err := w.Write(ctx, kernel.Desired{}, nil)
		return err
	})
}

// everywhere calls do for both families. A kernel without nftables holds nothing.
func everywhere(do func(*Writer) error) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		w := NewWriter(family)
		err := do(w)
		w.Close()
		if !errors.Is(err, ErrNone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
