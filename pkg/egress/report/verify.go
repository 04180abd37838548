package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/wake"
)

// pluginPart is what a verification calls the CNI plugin, beside the IP families.
const pluginPart = "CNI plugin"

// poolPart is the part of what Verify returns that is about this node's part in the pool.
const poolPart = "pool"

// portPart is what a verification calls the check of sources, beside the IP families.
const portPart = "port security"

// Verify compares the kernel with the plan and returns the differences by IP family: empty
// for one that agrees. What the loop is writing meanwhile is no difference: it looks again.
func (r *Reporter) Verify(ctx context.Context) (map[string][]string, error) {
	const looks, pause = 5, 200 * time.Millisecond
	for n := 1; ; n++ {
		changed, due := r.Changed(), !r.Summary().DueSince.IsZero()
		differences, agrees, err := r.compareWithKernel(ctx)
		if err != nil {
			return nil, err
		}
		r.parts().Ports.Check(ctx) // an interface that has gone meanwhile is no difference
		unguarded, err := r.parts().Ports.Differences(ctx)
		if err != nil {
			return nil, err
		}
		agrees = agrees && len(unguarded) == 0
		select {
		case <-changed: // there was a sync meanwhile
			due = true
		default:
			due = due || !r.Summary().DueSince.IsZero()
		}
		if !agrees && (!due || n == looks) {
			r.requestFullLook() // so that it is repaired, although a glance may not show it
			r.parts().Ports.Repair(ctx)
		}
		if agrees || !due || n == looks {
			r.addParts(ctx, differences, unguarded)
			return differences, nil
		}
		if !wake.Sleep(ctx.Done(), pause) {
			return nil, ctx.Err()
		}
	}
}

// addParts adds what a verification says beside the IP families.
func (r *Reporter) addParts(ctx context.Context, differences map[string][]string, unguarded []string) {
	for part, lines := range map[string][]string{
		pluginPart: r.parts().Attacher.Warnings(ctx), poolPart: r.poolWarnings(), betweenNodes: r.announcementWarnings(), fastPart: r.fastWarnings(),
		portPart: append(unguarded, r.parts().Ports.Warnings(ctx)...),
	} {
		if lines != nil || part == portPart && r.parts().Ports.Checks() {
			differences[part] = lines
		}
	}
}

func (r *Reporter) requestFullLook() {
	for _, f := range r.config.Families {
		f.Reconciler.RequestFullLook()
		f.Loop.Request()
	}
}

func (r *Reporter) compareWithKernel(ctx context.Context) (differences map[string][]string, agrees bool, err error) {
	snapshot := r.Snapshot()
	if len(snapshot.Families) == 0 {
		return nil, false, fmt.Errorf("the node has no plan yet because it waits for %s", strings.Join(snapshot.Missing, ", "))
	}
	differences, agrees = map[string][]string{}, true
	for _, f := range snapshot.Families {
		if f.Input.NoProxier {
			continue
		}
		name := v1.IPFamily(f.Family)
		desired := f.Plan.Desired()
		desired.Steering = r.parts().Steerer.Steering(name)
		rules, err := r.config.Families[name].Reconciler.Compare(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("read the %s rules: %w", f.Family, err)
		}
		steering, err := r.config.Families[name].Reconciler.CompareSteering(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("read what steers %s packets: %w", f.Family, err)
		}
		warnings, err := r.config.Families[name].Reconciler.SteeringWarnings(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("look for what is in the way of steered %s packets: %w", f.Family, err)
		}
		differences[f.Family] = append(rules, steering...)
		agrees = agrees && len(differences[f.Family]) == 0
		earlier, err := r.parts().Neighbours.Warnings(ctx, name)
		if err != nil {
			return nil, false, err
		}
		preferred, err := r.preferredWarnings(name)
		if err != nil {
			return nil, false, err
		}
		former, err := r.formerModeWarnings(ctx, name)
		if err != nil {
			return nil, false, err
		}
		differences[f.Family] = slices.Concat(differences[f.Family], r.nodeWarnings(name), earlier, preferred, former)
		for _, warning := range warnings {
			differences[f.Family] = append(differences[f.Family], status.Warning+warning)
		}
	}
	return differences, agrees, nil
}

// poolWarnings returns what a verification says of this node's part in the pool, and of the Nodes that are in it.
func (r *Reporter) poolWarnings() (warnings []string) {
	if absence := r.parts().Pool.Absent(); absence != nil {
		warnings = append(warnings, status.Warning+absence.Error())
	}
	return append(warnings, r.parts().Pool.LabelWarnings()...)
}

// preferredWarnings returns what a verification says of egress IPs on this node that its kernel may give to any packet.
func (r *Reporter) preferredWarnings(family v1.IPFamily) (warnings []string, err error) {
	if family != v1.IPv6Protocol {
		return nil, nil // the first IPv4 address of a subnet counts, whoever adds others
	}
	preferred, err := holders.PreferredNow()
	if err != nil {
		return nil, fmt.Errorf("look for preferred egress IPs: %w", err)
	}
	for _, ip := range r.config.State.EgressIPs(family) {
		if device, is := preferred[ip]; is && !r.config.State.IsPrimary(ip) {
			warnings = append(warnings, fmt.Sprintf("%sthe egress IP %s is on %s with a preferred lifetime, so MASQUERADE of other software may give it to pods that are not bound; run: ip addr change %s/128 dev %s preferred_lft 0",
				status.Warning, ip, device, ip, device))
		}
	}
	return warnings, nil
}

// formerModeWarnings returns what a verification says of rules that kube-proxy, or this program, has left in another mode. Nobody keeps
// them up to date.
func (r *Reporter) formerModeWarnings(ctx context.Context, name v1.IPFamily) ([]string, error) {
	left := ""
	if r.config.Proxier == reconcile.NFTables {
		chains, err := iptables.ProxierChains(ctx, kernel.Family(name))
		if err != nil {
			return nil, fmt.Errorf("look for the rules of another proxy mode: %w", err)
		}
		if len(chains) > 0 {
			left = fmt.Sprintf("%d chains in the nat table of iptables, the first is %s", len(chains), chains[0])
		}
	} else {
		there, err := reconcile.HasProxierTable(ctx, kernel.Family(name))
		if err != nil {
			return nil, fmt.Errorf("look for the rules of another proxy mode: %w", err)
		}
		if there {
			left = "the nftables table " + reconcile.ProxierTable
		}
	}
	if left == "" {
		return nil, nil
	}
	return []string{status.Warning + fmt.Sprintf("rules of another proxy mode are there: %s. They send packets to endpoints that may be gone. "+
		"If other software refers to them, change that: the node removes what it could not remove at its start once in a sync period. Otherwise, and for what the mode ipvs has left, restart the node", left)}, nil
}

// nodeWarnings returns what Nodes should not tell, for 'openshift egress verify'.
func (r *Reporter) nodeWarnings(family v1.IPFamily) (warnings []string) {
	for _, fault := range r.config.State.NodeFaults(family) {
		warnings = append(warnings, status.Warning+fault.Message)
	}
	return warnings
}

// betweenNodes is what a verification calls what nodes say to each other, beside the IP families.
const betweenNodes = "between nodes"

// announcementWarnings returns what a verification says of it, of Leases, of what a load balancer announces, of blocks of source ports, and of a
// node that sends others no packets. Nil if all is well.
func (r *Reporter) announcementWarnings() (warnings []string) {
	for _, f := range r.steeringFaults() {
		if slices.Contains([]faultKind{unavailable, unheard, unsaid, keyless, rekeying, unannounced, unfollowed, unclaimable}, f.kind) {
			warnings = append(warnings, status.Warning+f.message)
		}
	}
	return warnings
}
