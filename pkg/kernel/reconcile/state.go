package reconcile

import (
	"slices"
	"time"
)

// Step is something that a [Reconciler] does to the kernel.
type Step string

// The steps.
const (
	// Glance compares the kernel with what the last look has seen, without reading everything.
	Glance Step = "glance"
	// Look reads what the kernel holds.
	Look Step = "look"
	// RepairProxier has the proxier write all of its rules.
	RepairProxier Step = "repair proxier"
	// WriteChange writes what differs from what was written last.
	WriteChange Step = "write change"
	// WriteAll writes all, whatever the kernel holds.
	WriteAll Step = "write all"
	// WriteSteering writes what steers packets, whatever the kernel holds of it.
	WriteSteering Step = "write steering"
	// PruneStale removes the rules that earlier runs have left in other back ends.
	PruneStale Step = "prune stale back ends"
	// DeleteFlows ends the tracked flows that have the wrong source address.
	DeleteFlows Step = "delete flows"
)

// Order is the order of the steps of a sync. See the package's comment for why.
var Order = []Step{Glance, Look, RepairProxier, WriteChange, WriteAll, WriteSteering, PruneStale, DeleteFlows}

// inOrder returns these steps in their order.
func inOrder(steps ...Step) []Step {
	slices.SortFunc(steps, func(a, b Step) int { return slices.Index(Order, a) - slices.Index(Order, b) })
	return slices.Compact(steps)
}

// Proxier is how far the proxier has come.
type Proxier int

// The stages of the proxier.
const (
	// BeforeFirstSync: its first rules are still to come, perhaps in front of ours.
	BeforeFirstSync Proxier = iota
	// Synced: its first sync is over, and the kernel was not looked at since.
	Synced
	// Checked: its first sync is over, and the kernel was looked at since.
	Checked
)

// Belief is what is known of the kernel.
type Belief int

// The beliefs.
const (
	// Unknown: the kernel may hold anything.
	Unknown Belief = iota
	// Holds: the kernel holds what was written last, as far as this process knows.
	Holds
)

// Times are the periods that a [State] goes by.
type Times struct {
	// SyncPeriod is the time within which rules that somebody else has removed are back.
	SyncPeriod time.Duration
	// FullLook is the longest time between two looks that read everything.
	FullLook time.Duration
}

// The first times to wait after a failure, and for the proxier's jump. Each further one is twice as
// long, up to a limit that follows from the sync period.
const (
	firstRetry = 500 * time.Millisecond
	firstLook  = 100 * time.Millisecond
)

// glanceShare bounds the share of the time that glances take to one part in so many.
const glanceShare = 60

// State is where the reconciliation of one IP family stands. The zero State, with its Times, is the
// one at the start of a process.
type State struct {
	Times   Times
	Proxier Proxier
	Belief  Belief
	// Ready: the rules were in place, once, in front of all rules of the proxier's first sync.
	Ready bool
	// JumpInFront: the proxier will not write in front of our rules, as the last look has shown.
	JumpInFront bool
	// StaleGone: the last look has found no rules of earlier runs in other back ends, or one before it, if it is known what the kernel
	// holds. StaleUnreadable: that cannot be told; the next full look tries again.
	StaleGone, StaleUnreadable bool
	// ProxierTampered: somebody else has changed rules of ours, and perhaps of the proxier's, which
	// has not written all of its own since, nor been asked to.
	ProxierTampered bool
	// RepairAsked is when the proxier was asked to write all of its rules, which have not been
	// seen whole since; zero if they have.
	RepairAsked time.Time
	// Failures counts those in a row, and RetryAt is when to try again; zero for at once.
	Failures int
	RetryAt  time.Time
	// SteeringFailures counts the tries that have left the steering of packets incomplete, in a row, and
	// SteerAt is when to try again; zero for never. The rules do not wait for that.
	SteeringFailures int
	SteerAt          time.Time
	// LookAt is when to look at the kernel next, beside every so often; zero for never. Looks
	// counts those that were made to wait for the proxier's jump.
	LookAt time.Time
	Looks  int
	// FullLookAt is when the next look has to be a full one, and GlanceAt the time before which there is no
	// glance, for the last was costly.
	FullLookAt, GlanceAt time.Time
	// Due is what was requested and not done.
	Due Requests
}

// Requests are what others want of the next sync.
type Requests struct {
	// Look: others may have changed the kernel. FullLook: somebody has seen that, so a glance is
	// not enough.
	Look, FullLook bool
	// FullSync: the proxier has written all of its rules.
	FullSync bool
}

// The events of a sync.
type (
	// Began says that somebody has asked for a sync. Changed tells whether what is wanted has changed.
	Began struct {
		Requests
		Changed bool
	}
	// Glanced says that the kernel was compared with what the last look has seen. Moved tells whether it
	// differs, or that this cannot be told, Cost how long it took.
	Glanced struct {
		Moved, Changed bool
		Cost           time.Duration
	}
	// Looked says what reading the kernel has found.
	Looked struct {
		// Altered: it has other rules of ours than were written last.
		Altered bool
		// SteeringAltered: what steers packets is not as it was written last.
		SteeringAltered bool
		// JumpInFront is that of [State].
		JumpInFront bool
		// ProxierLacks: rules of the proxier are missing. ProxierUnknown: that cannot be told.
		ProxierLacks, ProxierUnknown bool
		// Stale is what earlier runs have left in other back ends.
		Stale Stale
	}
	// Refused says that a change alone could not be written.
	Refused struct{}
	// Succeeded says that all steps are done. Looked tells whether the kernel was read or glanced at,
	// Steered whether all of the steering of packets was written, or was tried to be, and Unsteered whether it is incomplete.
	Succeeded struct{ Looked, Steered, Unsteered bool }
	// Failed says that a step was not done.
	Failed struct{}
)

// Stale is what earlier runs have left in other back ends.
type Stale int

// What can be left.
const (
	// Gone: nothing.
	Gone Stale = iota
	// Unreadable: that cannot be told.
	Unreadable
	// Left: something that binds nothing.
	Left
	// Binds: rules that decide about flows.
	Binds
)

// Next returns the state after an event, and the steps that it asks for. An event of the middle of a
// sync replaces the steps that are left of it.
func (s State) Next(event any, now time.Time) (State, []Step) {
	switch e := event.(type) {
	case Began:
		return s.began(e, now)
	case Glanced:
		return s.glanced(e, now)
	case Looked:
		return s.looked(e, now)
	case Refused:
		s.Belief = Unknown
		return s, inOrder(Look)
	case Succeeded:
		return s.succeeded(e, now), nil
	case Failed:
		return s.failed(now), nil
	}
	return s, nil
}

func (s State) began(e Began, now time.Time) (State, []Step) {
	s.Due.Look = s.Due.Look || e.Look || e.FullLook
	if e.FullLook {
		s.FullLookAt = time.Time{}
	}
	if e.FullSync {
		s.Due.FullSync, s.ProxierTampered = true, false
		s.RetryAt = time.Time{} // what made the last try fail may be over
		s.Proxier = max(s.Proxier, Synced)
	}
	if now.Before(s.RetryAt) {
		return s, nil // the failure has made the belief unknown: no change is lost
	}
	look, fullSync := s.needsLook(now), s.Due.FullSync
	regular := s.Proxier == Checked && s.Belief == Holds && !fullSync && (s.StaleGone || s.StaleUnreadable) && s.RepairAsked.IsZero() && now.Before(s.FullLookAt)
	s.Due = Requests{}
	if look && regular && now.Before(s.GlanceAt) {
		look, s.Due.Look = false, true // later
	}
	switch {
	case look && regular:
		return s, inOrder(Glance)
	case look:
		return s, inOrder(Look)
	case fullSync || e.Changed:
		return s, inOrder(append(s.steeringDue(now), WriteChange, DeleteFlows)...)
	}
	return s, s.steeringDue(now)
}

// steeringDue returns the steps that are due because the steering of packets is incomplete. A change alone does not complete it.
func (s State) steeringDue(now time.Time) []Step {
	if s.SteerAt.IsZero() || now.Before(s.SteerAt) {
		return nil
	}
	return inOrder(WriteSteering, DeleteFlows)
}

// needsLook tells whether the kernel has to be looked at before anything is written.
func (s State) needsLook(now time.Time) bool {
	switch {
	case s.Due.Look || s.Belief == Unknown:
		return true
	case s.Due.FullSync: // the first can do without, if nothing is left to be moved or removed
		return s.Ready || !s.JumpInFront || !s.StaleGone
	}
	return !s.LookAt.IsZero() && !now.Before(s.LookAt)
}

func (s State) glanced(e Glanced, now time.Time) (State, []Step) {
	// What somebody else has removed is back within the sync period all the same.
	s.GlanceAt = now.Add(min(e.Cost*glanceShare, s.Times.SyncPeriod*3/4))
	switch {
	case e.Moved:
		return s, inOrder(Look)
	case e.Changed:
		return s, inOrder(append(s.steeringDue(now), WriteChange, DeleteFlows)...)
	}
	return s, s.steeringDue(now)
}

func (s State) looked(e Looked, now time.Time) (State, []Step) {
	steps := []Step{DeleteFlows}
	s.JumpInFront, s.StaleGone, s.StaleUnreadable = e.JumpInFront, e.Stale == Gone, e.Stale == Unreadable
	if s.FullLookAt = now.Add(s.Times.FullLook); e.ProxierUnknown {
		s.FullLookAt = now
	}
	s.ProxierTampered = s.ProxierTampered || e.Altered
	if e.Altered {
		s.Belief = Unknown
	}
	if s.Proxier != BeforeFirstSync {
		var repair bool
		if s, repair = s.checkProxier(e, now); repair {
			steps = append(steps, RepairProxier)
		}
		if e.Stale >= Left {
			steps = append(steps, PruneStale)
		}
	}
	if s.Belief == Unknown || e.Stale == Binds {
		return s, inOrder(append(steps, WriteAll)...)
	}
	if e.SteeringAltered {
		steps = append(steps, WriteSteering)
	}
	return s, inOrder(append(append(steps, s.steeringDue(now)...), WriteChange)...)
}

// checkProxier tells whether to have the proxier write all of its rules: if some are missing, or if
// ours were changed, for a restored state of the tables has the proxier's rules of then, too, and
// the proxier does not look. The looks that the repair brings about do not ask again, so rules that
// somebody removes again and again are written again and again, and no faster.
func (s State) checkProxier(e Looked, now time.Time) (next State, repair bool) {
	switch {
	case e.ProxierUnknown && !s.ProxierTampered:
		return s, false
	case !e.ProxierLacks && !s.ProxierTampered:
		s.RepairAsked = time.Time{}
		return s, false
	case now.Sub(s.RepairAsked) < s.Times.SyncPeriod/4:
		return s, false
	}
	s.RepairAsked, s.ProxierTampered = now, false
	return s, true
}

func (s State) succeeded(e Succeeded, now time.Time) State {
	s.Belief, s.Failures, s.RetryAt = Holds, 0, time.Time{}
	switch {
	case !e.Unsteered:
		s.SteeringFailures, s.SteerAt = 0, time.Time{}
	case s.SteerAt.IsZero() || e.Steered:
		s.SteerAt = now.Add(doubled(firstRetry, s.SteeringFailures, max(s.Times.SyncPeriod, time.Second)))
		s.SteeringFailures++
	}
	s.Ready = s.Ready || s.Proxier != BeforeFirstSync && (e.Looked || s.JumpInFront)
	switch {
	case s.Proxier != BeforeFirstSync && e.Looked:
		s.Proxier, s.LookAt = Checked, time.Time{}
	case s.Proxier == Synced:
		s.LookAt = now
	case s.JumpInFront:
		s.LookAt = time.Time{}
	case e.Looked:
		// The sooner the jump is put in front, the smaller are the tables that have to be written.
		s.LookAt = now.Add(doubled(firstLook, s.Looks, max(s.Times.SyncPeriod/2, time.Second)))
		s.Looks++
	}
	return s
}

func (s State) failed(now time.Time) State {
	s.Belief = Unknown
	s.RetryAt = now.Add(doubled(firstRetry, s.Failures, max(s.Times.SyncPeriod, time.Second)))
	s.Failures++
	return s
}

// Wake returns when a sync is due without an event; zero for never.
func (s State) Wake() time.Time {
	if !s.RetryAt.IsZero() {
		return s.RetryAt
	}
	look := s.LookAt
	if s.Due.Look {
		look = s.GlanceAt
	}
	if look.IsZero() || !s.SteerAt.IsZero() && s.SteerAt.Before(look) {
		return s.SteerAt
	}
	return look
}

// doubled returns a time after so many doublings, at most a limit.
func doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	for range times {
		if first >= limit {
			break
		}
		first *= 2
	}
	return min(first, limit)
}
