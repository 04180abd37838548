package egress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

var _ status.Source = &Extension{}

// Snapshot returns the status. The caller must not change it. Each call makes it of all objects, at a
// cost that grows with the cluster; syncs do not.
func (e *Extension) Snapshot() status.Snapshot {
	summary, families := e.Summary(), e.familyStatus()
	return status.Snapshot{
		Node:      e.config.NodeName,
		Version:   e.config.Version,
		Time:      time.Now(),
		Ready:     summary.Ready,
		Missing:   summary.Missing,
		Families:  families,
		Steering:  e.config.Transport(),
		Addresses: e.addresses(families),
		FastPath:  e.fastStatus(),

		PortBlocks: e.sourcePorts.Assignments(),
		PortMap:    e.sourcePorts.PortMap(),

		SteeringProblems: e.steeringProblems(),
		PluginProblems:   summary.Problems,
	}
}

// Usage returns a [status.Usage].
func (e *Extension) Usage(ctx context.Context) (any, error) {
	looked, err := e.usage.Look(ctx)
	if err != nil {
		return nil, err
	}
	return looked, nil
}

// steeringProblems are the faults of steering, for people.
func (e *Extension) steeringProblems() (problems []string) {
	for _, f := range e.steeringFaults() {
		problems = append(problems, f.message)
	}
	return problems
}

// familyStatus returns what the status says of each IP family: nothing before the first plan.
func (e *Extension) familyStatus() (result []status.Family) {
	for _, name := range cluster.Families {
		f := e.families[name]
		if !f.planned.Load() {
			return nil
		}
		in, place := e.state.Input(name)
		p, s := plan.Build(place.Of(in)), f.reconciler.Status()
		told := status.Family{Family: string(name), Input: in, Plan: p, Scope: string(place.Scope), LastSync: s.LastSuccess, NFTable: f.reconciler.NFTable()}
		desired := p.Desired()
		desired.Steering = e.steerer.Steering(name)
		told.Since, told.Written = f.reconciler.Since(desired)
		if s.Failure != nil {
			told.Error = s.Failure.Error()
		}
		result = append(result, told)
	}
	return result
}

// Changed returns a channel that is closed at the next change of the status.
func (e *Extension) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watched == nil {
		e.watched = make(chan struct{})
	}
	return e.watched
}

func (e *Extension) statusChanged() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watched != nil {
		close(e.watched)
		e.watched = nil
	}
}

// pluginPart is what a verification calls the CNI plugin, beside the IP families.
const pluginPart = "CNI plugin"

// poolPart is the part of what Verify returns that is about this node's part in the pool.
const poolPart = "pool"

// portPart is what a verification calls the check of sources, beside the IP families.
const portPart = "port security"

// Verify compares the kernel with the plan and returns the differences by IP family: empty
// for one that agrees. What the loop is writing meanwhile is no difference: it looks again.
func (e *Extension) Verify(ctx context.Context) (map[string][]string, error) {
	const looks, pause = 5, 200 * time.Millisecond
	for n := 1; ; n++ {
		changed, due := e.Changed(), !e.Summary().DueSince.IsZero()
		differences, agrees, err := e.compareWithKernel(ctx)
		if warnings := e.attacher.Warnings(ctx); err == nil && warnings != nil {
			differences[pluginPart] = warnings
		}
		if absence := e.pool.Absent(); err == nil && absence != nil {
			differences[poolPart] = []string{status.Warning + absence.Error()}
		}
		if warnings := e.announcementWarnings(); err == nil && warnings != nil {
			differences[betweenNodes] = warnings
		}
		if err == nil {
			var lines []string
			if lines, err = e.ports.Differences(ctx); lines != nil {
				differences[portPart] = lines
			}
		}
		if warnings := e.fastWarnings(); err == nil && warnings != nil {
			differences[fastPart] = warnings
		}
		select {
		case <-changed: // there was a sync meanwhile
			due = true
		default:
			due = due || !e.Summary().DueSince.IsZero()
		}
		if err != nil || agrees {
			return differences, err
		}
		if !due || n == looks {
			e.requestFullLook() // so that it is repaired, although a glance may not show it
			return differences, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (e *Extension) requestFullLook() {
	for _, f := range e.families {
		f.reconciler.RequestFullLook()
		f.loop.Request()
	}
}

func (e *Extension) compareWithKernel(ctx context.Context) (differences map[string][]string, agrees bool, err error) {
	snapshot := e.Snapshot()
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
		desired.Steering = e.steerer.Steering(name)
		rules, err := e.families[name].reconciler.Compare(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("read the %s rules: %w", f.Family, err)
		}
		steering, err := e.families[name].reconciler.CompareSteering(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("read what steers %s packets: %w", f.Family, err)
		}
		warnings, err := e.families[name].reconciler.SteeringWarnings(ctx, desired)
		if err != nil {
			return nil, false, fmt.Errorf("look for what is in the way of steered %s packets: %w", f.Family, err)
		}
		differences[f.Family] = append(rules, steering...)
		agrees = agrees && len(differences[f.Family]) == 0
		earlier, err := e.neighbours.Warnings(ctx, name)
		if err != nil {
			return nil, false, err
		}
		preferred, err := e.preferredWarnings(name)
		if err != nil {
			return nil, false, err
		}
		former, err := e.formerModeWarnings(ctx, name)
		if err != nil {
			return nil, false, err
		}
		differences[f.Family] = slices.Concat(differences[f.Family], e.nodeWarnings(name), earlier, preferred, former)
		if f.Family == snapshot.Families[0].Family {
			differences[f.Family] = append(differences[f.Family], e.pool.LabelWarnings()...)
		}
		for _, warning := range warnings {
			differences[f.Family] = append(differences[f.Family], status.Warning+warning)
		}
	}
	return differences, agrees, nil
}
