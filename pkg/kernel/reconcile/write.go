package reconcile

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

// steerUnread writes the steering alone if the rules cannot be read: where packets are sent does not depend on them. The flows are judged when
// all is written. Until then, what the table gives up stays on record and is dropped.
func (s *run) steerUnread(ctx context.Context, found observation) error {
	if found.steered == nil || ctx.Err() != nil {
		return nil
	}
	stood := found.steered()
	if stood.Unread {
		return nil // the record of an earlier process would be lost
	}
	s.noteStanding(stood)
	s.unplanned = stood.All()
	desired := s.wanted.Desired(nil)
	s.oweAll(desired)
	return s.writeSteering(ctx, desired)
}

// writeSteering writes what steers packets. A fault of that is no error.
func (s *run) writeSteering(ctx context.Context, desired kernel.Desired) error {
	changed, err := s.steering.writeSteering(ctx, desired, s.debt.Removed)
	if changed {
		s.result.Written, s.fingerprint = true, ""
	}
	return err
}

// writeChange writes the change alone. If that is refused, somebody may have removed what it is a
// change of.
func (s *run) writeChange(ctx context.Context) (event any, err error) {
	s.owe(s.change)
	changed, size, err := s.driver.update(ctx, s.change, s.debt.Removed)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		s.logger.Info("Cannot write the change alone; writing all egress SNAT rules", "reason", err)
		s.refused = true
		return Refused{}, nil
	}
	s.wroteNow(s.change, changed, size)
	return nil, nil
}

// writeAll writes what is wanted into a kernel that may hold other bindings than were written.
func (s *run) writeAll(ctx context.Context) error {
	desired := s.wanted.Desired(nil)
	change := s.oweAll(desired)
	changed, size, err := s.driver.write(ctx, desired, s.debt.Removed)
	if err != nil {
		return err
	}
	s.wroteNow(change, changed, size)
	return nil
}

// oweAll adds the flows that are to be judged when all is written, and returns what differs from what was written last.
func (s *run) oweAll(desired kernel.Desired) kernel.Change {
	change := kernel.Change{Networks: desired.Networks, Steering: desired.Steering}
	written := slices.SortedFunc(maps.Keys(s.belief.since), kernel.CompareBindings)
	change.Added, change.Removed = kernel.Diff(written, desired.Bindings)
	missing, unwanted := kernel.Diff(kernel.Sorted(s.unplanned), desired.Bindings)
	found, _ := kernel.Diff(missing, change.Added)
	s.owe(change)
	s.oweUnplanned(unwanted, desired.Steering)
	s.oweFound(found, desired)
	s.oweLed(desired.Steering)
	return change
}

// oweLed adds the flows of bindings that the table sends to another node than is wanted now: also by ways that it got while not all could be
// written, of which the last write does not know.
func (s *run) oweLed(now kernel.Steering) {
	if !steers(now) {
		return
	}
	stood := s.whatStood()
	for b, node := range s.stood.Ways {
		if stood(b) && now.Ways[b.EgressIP] != (kernel.Way{Kind: kernel.ToNode, Node: node}) {
			s.debt.Steered = append(s.debt.Steered, b)
		}
	}
	s.debt.Steered = kernel.Sorted(s.debt.Steered)
}

// owe adds the flows that a change is about to those that are to be judged.
func (s *run) owe(change kernel.Change) {
	s.oweBlocks(change)
	s.oweRemoved(change.Removed, func(b kernel.Binding) bool { return s.belief.steering.HasWay(b.EgressIP) })
	if before, now := s.belief.networks, change.Networks; !now.Equal(before) {
		if len(kernel.Without(before.ClusterCIDRs, now.ClusterCIDRs))+len(kernel.Without(before.Exclusions, now.Exclusions)) > 0 {
			s.debt.All = true // what was excluded is not any more
		}
		s.oweExcluded(slices.Concat(before.ClusterCIDRs, before.Exclusions), s.sent(), now)
	}
	s.owePods(change.Added)
	s.oweWays(change.Steering)
}

// sent returns the bindings whose packets went to another node, or nowhere, or came from one.
func (s *run) sent() (sent []kernel.Binding) {
	for b := range s.belief.since {
		if s.belief.steering.HasWay(b.EgressIP) || s.belief.steering.Elsewhere(b.Pod) {
			sent = append(sent, b)
		}
	}
	return sent
}

// oweExcluded adds the flows of these bindings, as sent returns them, whose destinations were not excluded before. They would go on under the
// pods' own addresses, and nobody would tell the far side.
func (s *run) oweExcluded(before []netip.Prefix, sent []kernel.Binding, now kernel.Networks) {
	if len(sent) == 0 || len(kernel.Without(slices.Concat(now.ClusterCIDRs, now.Exclusions), before)) == 0 {
		return
	}
	if len(s.debt.Sent) == 0 {
		s.debt.Excluded = before
	}
	s.debt.Sent = kernel.Sorted(append(s.debt.Sent, sent...))
}

// oweBlocks adds the ports that pods have had, whose flows the far side may have made known here, if any of these are to be judged. A pod
// may lose its ports before its binding.
func (s *run) oweBlocks(change kernel.Change) {
	before := s.belief.steering
	if !slices.Equal(before.Blocks, change.Steering.Blocks) {
		s.lostBlocks = append(s.lostBlocks, kernel.Without(before.Blocks, change.Steering.Blocks)...)
	}
	if len(change.Removed) > 0 || !maps.Equal(before.Ways, change.Steering.Ways) {
		s.oweFlowsOf(before.Blocks)
		s.oweFlowsOf(s.lostBlocks)
	}
	if len(s.lostBlocks) == 0 {
		return
	}
	added, removed := kernel.SetOf(change.Added), kernel.SetOf(change.Removed)
	s.lostBlocks = sortedBlocks(slices.DeleteFunc(s.lostBlocks, func(b kernel.Block) bool { return !s.staysBound(b, added, removed) }))
}

// staysBound tells whether the pod of a block is bound to its egress IP after a change.
func (s *run) staysBound(b kernel.Block, added, removed map[kernel.Binding]bool) bool {
	for _, p := range []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.All} {
		binding := kernel.Binding{Pod: b.Pod, Protocol: p, EgressIP: b.EgressIP}
		if _, bound := s.belief.since[binding]; (bound || added[binding]) && !removed[binding] {
			return true
		}
	}
	return false
}

// oweFlowsOf adds the flows that the far side may have made known here because of these ports.
func (s *run) oweFlowsOf(blocks []kernel.Block) {
	s.debt.Blocks = sortedBlocks(append(s.debt.Blocks, blocks...))
}

func sortedBlocks(blocks []kernel.Block) []kernel.Block {
	slices.SortFunc(blocks, kernel.CompareBlocks)
	return slices.Compact(blocks)
}

// oweUnplanned is owe for the removal of bindings that this process has not written. If there is steering, packets of those in its table may
// have left through another node.
func (s *run) oweUnplanned(removed []kernel.Binding, now kernel.Steering) {
	stood := s.whatStood()
	s.oweRemoved(removed, func(b kernel.Binding) bool { return steers(now) && stood(b) })
}

// whatStood tells which bindings the table of the steering had before this process; all may have, if nobody can tell.
func (s *run) whatStood() func(kernel.Binding) bool {
	stood := kernel.SetOf(s.stood.All())
	return func(b kernel.Binding) bool { return stood[b] || s.stood.Unread }
}

// oweFound adds the flows of bindings that the table of the steering had before this process. They may have left through another node, and
// the far side knows them by the egress IP then. Those that are sent to the same node as before go on by themselves, and to nudge their pods
// at each start would use up answers that others need. If an earlier process has sent them there and ended before it nudged them, nobody
// does.
func (s *run) oweFound(found []kernel.Binding, now kernel.Desired) {
	if !steers(now.Steering) {
		return
	}
	stood := s.whatStood()
	found = slices.DeleteFunc(found, func(b kernel.Binding) bool { return !stood(b) })
	s.oweExcluded(s.stood.Exclusions, found, now.Networks)
	moved := slices.DeleteFunc(found, func(b kernel.Binding) bool {
		way := now.Steering.Ways[b.EgressIP]
		return way.Kind == kernel.ToNode && s.stood.Ways[b] == way.Node
	})
	s.debt.Steered = kernel.Sorted(append(s.debt.Steered, moved...))
}

func (s *run) oweRemoved(removed []kernel.Binding, steered func(kernel.Binding) bool) {
	owed := kernel.SetOf(s.stood.Removed) // by an earlier process
	for _, b := range removed {
		// Masqueraded, a pod of this node may go on with the node's own address.
		if b.EgressIP != s.nodeIP || s.belief.steering.Elsewhere(b.Pod) || owed[b] {
			s.debt.Removed = append(s.debt.Removed, b)
		}
		if steered(b) {
			s.debt.Steered = append(s.debt.Steered, b)
		}
	}
	s.debt.Removed, s.debt.Steered = kernel.Sorted(s.debt.Removed), kernel.Sorted(s.debt.Steered)
}

// oweWays adds the flows of the pods whose egress IPs take another way now. It costs nothing if none does,
// and goes through all bindings otherwise.
func (s *run) oweWays(now kernel.Steering) {
	before := s.belief.steering
	if maps.Equal(before.Ways, now.Ways) {
		return
	}
	var moved, steered []kernel.Binding
	for b := range s.belief.since {
		if before.Ways[b.EgressIP] == now.Ways[b.EgressIP] {
			continue
		}
		moved = append(moved, b)
		if before.HasWay(b.EgressIP) {
			steered = append(steered, b)
		}
	}
	s.owePods(moved)
	s.debt.Steered = kernel.Sorted(append(s.debt.Steered, steered...))
}

// steers tells whether there is steering.
func steers(s kernel.Steering) bool { return len(s.Nodes)+len(s.Ways) > 0 }

// owePods adds the flows of the pods of bindings.
func (s *run) owePods(bindings []kernel.Binding) {
	if s.debt.All {
		return
	}
	for _, b := range bindings {
		if s.debt.Pods == nil {
			s.debt.Pods = map[netip.Addr]bool{}
		}
		s.debt.Pods[b.Pod] = true
	}
}

// wroteNow notes that the kernel holds what change makes of what was written before.
func (s *run) wroteNow(change kernel.Change, changed bool, size int) {
	s.result.Written, s.result.Rules, s.result.Counted = s.result.Written || changed, size, true
	s.pendingRemovals = s.debt.Removed
	if changed {
		s.fingerprint = ""
	}
	s.believe(change)
	for _, b := range change.Removed {
		s.logger.V(4).Info("Unbound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP)
	}
	for _, b := range change.Added {
		s.logger.V(4).Info("Bound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP)
	}
}

func (s *run) believe(change kernel.Change) {
	now := s.config.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range change.Removed {
		delete(s.belief.since, b)
	}
	if len(s.belief.since) == 0 {
		s.belief.since = make(map[kernel.Binding]time.Time, len(change.Added)) // most come with the first write
	}
	for _, b := range change.Added {
		s.belief.since[b] = now
	}
	s.belief.networks, s.belief.steering = change.Networks, change.Steering
	s.status.FlowsJudged = false
}

// deleteFlows ends the flows of the debt that have the wrong source address. After an error the debt
// stays.
func (s *run) deleteFlows(ctx context.Context) error {
	if s.unsteered.Err() != nil && s.steering.fault() == nil {
		s.debt.All = true // flows may have begun that should have been steered
	}
	deleted, err := s.delete(ctx, s.wanted.Desired(s.concerned()), s.debt)
	s.result.FlowsDeleted += deleted.Ended
	s.result.FlowsUnbarred += deleted.Unbarred
	if deleted.Ended > 0 {
		s.logger.Info("Reset connections that used the wrong source address", "flows", deleted.Ended)
	}
	if err != nil {
		return err
	}
	s.debt = conntrack.Scope{}
	return s.driver.judged(ctx)
}

// concerned returns the pods whose flows are to be judged; nil for all.
func (s *run) concerned() map[netip.Addr]bool {
	if s.debt.All {
		return nil
	}
	pods := map[netip.Addr]bool{}
	maps.Copy(pods, s.debt.Pods)
	for _, b := range s.debt.Removed { // what else was steered is in Pods or All, and Sent is judged without its bindings
		pods[b.Pod] = true
	}
	return pods
}
