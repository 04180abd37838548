package portguard

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// Config is what a Guard has to know.
type Config struct {
	// Enabled: sources are to be checked. Unavailable is why this kernel cannot; nil if it can.
	Enabled     bool
	Unavailable error
	// Keeper is that of what checks sources.
	Keeper portsecurity.Config
}

// Guard keeps other pods from using the addresses of bound pods, if that is wanted and this kernel can, and tells what is wrong with it.
type Guard struct {
	config Config
	// Keeper is nil if sources are not checked: it does nothing then.
	*portsecurity.Keeper
}

// New returns a Guard.
func New(config Config) *Guard {
	g := &Guard{config: config}
	if config.Enabled && config.Unavailable == nil {
		g.Keeper = portsecurity.NewKeeper(config.Keeper)
	}
	return g
}

// Checks tells whether sources are checked.
func (g *Guard) Checks() bool { return g.Keeper != nil }

// Reasons of Events about a Node.
const (
	sourcesUnchecked    plan.Reason = "PodSourcesUnchecked"
	addressClaimedTwice plan.Reason = "PodAddressClaimedTwice"
)

// fault is why sources are not checked as they should be.
type fault string

const (
	unavailable fault = "unavailable"   // this kernel cannot
	unwritten   fault = "unwritten"     // it cannot be written
	claimed     fault = "claimed_twice" // the address of a bound pod is behind another interface, too
	redirected  fault = "redirected"    // a tc filter takes packets past the check
)

// Troubles are what is wrong with the check of sources, for people.
func (g *Guard) Troubles() []tell.Trouble {
	_, told := g.now()
	return told
}

func (g *Guard) now() ([]fault, []tell.Trouble) {
	return troubles(g.config.Unavailable, g.Status())
}

func troubles(cannot error, now portsecurity.Status) (faults []fault, told []tell.Trouble) {
	add := func(f fault, reason plan.Reason, format string, args ...any) {
		faults, told = append(faults, f), append(told, tell.Trouble{Reason: reason, Note: fmt.Sprintf(format, args...)})
	}
	const unchecked = "other pods can use the addresses of this node's bound pods, because the sources of their packets are not checked: %v"
	if cannot != nil {
		add(unavailable, sourcesUnchecked, unchecked, cannot)
	}
	if now.Fault != nil {
		add(unwritten, sourcesUnchecked, unchecked, now.Fault)
	}
	for _, r := range now.Refused {
		add(claimed, addressClaimedTwice, "a pod claims the address of a bound pod, and its packets with this source address are dropped: %s. See which pod it is with 'ip -details link show %s' on the node", r, r.Interface)
	}
	if names := now.Redirected; len(names) > 0 {
		add(redirected, sourcesUnchecked, "the pods behind %s can use the addresses of this node's bound pods, because a tc filter redirects their packets before the check. "+
			"See 'tc filter show dev %s ingress' on the node; the CNI plugin bandwidth makes such a filter for a pod with the annotation kubernetes.io/egress-bandwidth", some(names), names[0])
	}
	return faults, told
}

// some names no more than a few: there may be one for each pod.
func some(names []string) string { return kernel.Listed(names, 5, "more interfaces") }

// uncheckedPods returns the addresses of bound pods of this node that are behind no interface that is known.
func (g *Guard) uncheckedPods(ctx context.Context) []netip.Addr {
	return slices.DeleteFunc(g.Unplaced(ctx), g.config.Keeper.Away)
}

// Differences returns how the kernel differs from what was written to check sources; nothing if it does not.
func (g *Guard) Differences(ctx context.Context) ([]string, error) {
	differences, err := g.Compare(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare the check of pods' sources with the kernel: %w", err)
	}
	return differences, nil
}

// Warnings returns what a verification says of the check of sources besides.
func (g *Guard) Warnings(ctx context.Context) (lines []string) {
	for _, t := range g.Troubles() {
		lines = append(lines, status.Warning+t.Note)
	}
	for _, address := range g.uncheckedPods(ctx) {
		lines = append(lines, fmt.Sprintf("%sother pods may be able to use the address of the bound pod %s, because it is not known behind which interface it is", status.Warning, address))
	}
	return lines
}
