package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	start = time.Unix(1_000_000, 0)
	times = Times{SyncPeriod: 30 * time.Second, FullLook: 10 * time.Minute}
)

// scenario takes a State through events, with a clock of its own.
type scenario struct {
	*testing.T
	state State
	now   time.Time
}

func newScenario(t *testing.T, state State) *scenario {
	state.Times = times
	return &scenario{T: t, state: state, now: start}
}

// after lets time pass.
func (s *scenario) after(d time.Duration) *scenario {
	s.now = s.now.Add(d)
	return s
}

// on has an event happen and wants these steps to follow.
func (s *scenario) on(event any, want ...Step) *scenario {
	s.Helper()
	var got []Step
	s.state, got = s.state.Next(event, s.now)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("%T %+v (-want +got):\n%s", event, event, diff)
	}
	return s
}

// settled is the state of a node that runs: the proxier has synced, and all was looked at.
var settled = State{
	Proxier: Checked, Belief: Holds, Ready: true, JumpInFront: true, StaleGone: true, FullLookAt: start.Add(10 * time.Minute),
}

// TestState_StepsInOrder: what comes after what, in every kind of sync. Rules come before the flows that
// they decide about, and what earlier runs left goes in between.
func TestState_StepsInOrder(t *testing.T) {
	stale := settled
	stale.StaleGone = false
	young := settled
	young.Proxier, young.Ready = BeforeFirstSync, false
	unsteered := settled
	unsteered.SteerAt = start
	for _, test := range []struct {
		name  string
		state State
		event any
		want  []Step
	}{
		{"start of the process", State{}, Began{Changed: true}, []Step{Look}},
		{"nothing is asked for", settled, Began{}, nil},
		{"a change", settled, Began{Changed: true}, []Step{WriteChange, DeleteFlows}},
		{"a regular look", settled, Began{Requests: Requests{Look: true}}, []Step{Glance}},
		{"a regular look and a change", settled, Began{Requests{Look: true}, true}, []Step{Glance}},
		{"a regular look while stale rules are left", stale, Began{Requests: Requests{Look: true}}, []Step{Look}},
		{"a regular look before the proxier's first sync", young, Began{Requests: Requests{Look: true}}, []Step{Look}},
		{"a full sync of the proxier", settled, Began{Requests: Requests{FullSync: true}}, []Step{Look}},
		{"its first full sync, behind our jump", young, Began{Requests: Requests{FullSync: true}}, []Step{WriteChange, DeleteFlows}},
		{"somebody has seen a change", settled, Began{Requests: Requests{FullLook: true}}, []Step{Look}},
		{"the tables are as they were", settled, Glanced{}, nil},
		{"the tables are as they were, and a change", settled, Glanced{Changed: true}, []Step{WriteChange, DeleteFlows}},
		{"the tables have changed", settled, Glanced{Moved: true}, []Step{Look}},
		{"the kernel holds what was written", settled, Looked{JumpInFront: true}, []Step{WriteChange, DeleteFlows}},
		{"somebody has changed our rules", settled, Looked{Altered: true}, []Step{RepairProxier, WriteAll, DeleteFlows}},
		{"rules of the proxier are missing", settled, Looked{ProxierLacks: true}, []Step{RepairProxier, WriteChange, DeleteFlows}},
		{"the kernel may hold anything", State{}, Looked{}, []Step{WriteAll, DeleteFlows}},
		{"rules of an earlier run bind pods", stale, Looked{Stale: Binds}, []Step{WriteAll, PruneStale, DeleteFlows}},
		{"an earlier run left what binds nothing", stale, Looked{Stale: Left}, []Step{WriteChange, PruneStale, DeleteFlows}},
		{"an earlier run left what cannot be read", stale, Looked{Stale: Unreadable}, []Step{WriteChange, DeleteFlows}},
		{"rules of an earlier run, before the proxier's first sync", young, Looked{Stale: Binds}, []Step{WriteAll, DeleteFlows}},
		{"the steering is to be written again", unsteered, Began{}, []Step{WriteSteering, DeleteFlows}},
		{"the steering is to be written again, and a change", unsteered, Began{Changed: true}, []Step{WriteChange, WriteSteering, DeleteFlows}},
		{"the steering is to be written again, and a glance finds nothing", unsteered, Glanced{}, []Step{WriteSteering, DeleteFlows}},
		{"the steering is to be written again, and a look finds nothing", unsteered, Looked{}, []Step{WriteChange, WriteSteering, DeleteFlows}},
		{"somebody has changed what steers packets", settled, Looked{SteeringAltered: true}, []Step{WriteChange, WriteSteering, DeleteFlows}},
		{"somebody has changed that and our rules", settled, Looked{Altered: true, SteeringAltered: true}, []Step{RepairProxier, WriteAll, DeleteFlows}},
		{"a change alone is refused", settled, Refused{}, []Step{Look}},
	} {
		t.Run(test.name, func(t *testing.T) { newScenario(t, test.state).on(test.event, test.want...) })
	}
}

// TestState_LooksUntilTheJumpIsInFront: before the proxier's first sync is over, the kernel is looked at
// again and again, less and less often, for our jump has to be in front of the proxier's.
func TestState_LooksUntilTheJumpIsInFront(t *testing.T) {
	s := newScenario(t, State{})
	s.on(Began{Changed: true}, Look).on(Looked{}, WriteAll, DeleteFlows).on(Succeeded{Looked: true})
	for _, wait := range []time.Duration{100, 200, 400, 800} {
		wait *= time.Millisecond
		if got := s.state.Wake().Sub(s.now); got != wait {
			t.Fatalf("the next look is after %s, want %s", got, wait)
		}
		s.on(Began{}).after(wait).on(Began{}, Look).on(Looked{}, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
	}
	s.after(time.Minute).on(Began{}, Look).on(Looked{JumpInFront: true}, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
	if wake := s.state.Wake(); !wake.IsZero() || s.state.Ready {
		t.Errorf("wakes at %s, ready %v; want no more looks, and not ready before the proxier has synced", wake, s.state.Ready)
	}
}

// TestState_FirstFullSync: behind our jump it needs no look to be ready, but one at once afterwards: somebody
// may have flushed the tables meanwhile.
func TestState_FirstFullSync(t *testing.T) {
	s := newScenario(t, State{Belief: Holds, JumpInFront: true, StaleGone: true})
	s.on(Began{Requests: Requests{FullSync: true}}, WriteChange, DeleteFlows).on(Succeeded{})
	if !s.state.Ready || s.state.Wake() != s.now {
		t.Fatalf("ready %v, wakes at %s; want ready, and at once", s.state.Ready, s.state.Wake())
	}
	s.on(Began{}, Look).on(Looked{JumpInFront: true}, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
	if s.state.Proxier != Checked || !s.state.Wake().IsZero() {
		t.Errorf("proxier %v, wakes at %s; want checked, and no more looks", s.state.Proxier, s.state.Wake())
	}
	// Each later full sync may have moved our jump.
	s.on(Began{Requests: Requests{FullSync: true}}, Look)
}

// TestState_BackoffGrowsAndEnds at the limit of a sync period, or with a full sync of the proxier: what
// made the last try fail may be over then.
func TestState_BackoffGrowsAndEnds(t *testing.T) {
	s := newScenario(t, settled)
	for _, wait := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		s.on(Failed{})
		if got := s.state.Wake().Sub(s.now); got != wait {
			t.Fatalf("the next try is after %s, want %s", got, wait)
		}
		s.after(wait-time.Millisecond).on(Began{Changed: true}).after(time.Millisecond).on(Began{}, Look)
	}
	s.on(Failed{}).on(Began{Requests: Requests{FullSync: true}}, Look)
	s.on(Looked{JumpInFront: true}, WriteAll, DeleteFlows).on(Succeeded{Looked: true}).on(Failed{})
	if got := s.state.Wake().Sub(s.now); got != 500*time.Millisecond {
		t.Errorf("after a success the next try is after %s, want the first time", got)
	}
}

// TestState_SteeringBackoffIsItsOwn: steering that is incomplete is written again, less and less often, while the
// rules follow every change, and the node is ready.
func TestState_SteeringBackoffIsItsOwn(t *testing.T) {
	s := State{Times: Times{SyncPeriod: 30 * time.Second, FullLook: fullLook}, Proxier: Synced}
	now := start
	s, _ = s.Next(Succeeded{Looked: true, Unsteered: true}, now)
	if !s.Ready || s.Belief != Holds || !s.RetryAt.IsZero() {
		t.Errorf("ready %v, belief %v, retry at %v: the rules wait for the steering", s.Ready, s.Belief, s.RetryAt)
	}
	var waits []time.Duration
	for range 8 {
		wake := s.Wake()
		waits, now = append(waits, wake.Sub(now)), wake
		// A change in between puts nothing off, also if it takes until then.
		s, _ = s.Next(Succeeded{Unsteered: true}, now.Add(time.Millisecond))
		if s.Wake() != wake {
			t.Fatalf("a change has put the next try off from %v to %v", wake, s.Wake())
		}
		if _, steps := s.Next(Began{}, now); !slices.Equal(steps, []Step{WriteSteering, DeleteFlows}) {
			t.Fatalf("steps %v", steps)
		}
		s, _ = s.Next(Succeeded{Steered: true, Unsteered: true}, now)
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	if !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if s, _ = s.Next(Succeeded{}, now); !s.Wake().IsZero() || s.SteeringFailures != 0 {
		t.Errorf("after a success it goes on: %v", s.Wake())
	}
}

// TestState_RequestsOutliveBackoff: what was asked for while nothing may be tried is done afterwards.
func TestState_RequestsOutliveBackoff(t *testing.T) {
	s := newScenario(t, settled).on(Failed{})
	s.on(Began{Requests: Requests{Look: true}}).after(time.Second).on(Began{}, Look)
	if s.state.Due != (Requests{}) {
		t.Errorf("due %+v after it was begun", s.state.Due)
	}
}

// TestState_RepairIsAskedForAgain as long as rules of the proxier are missing, and no faster than a
// quarter of the sync period.
func TestState_RepairIsAskedForAgain(t *testing.T) {
	lacking := Looked{JumpInFront: true, ProxierLacks: true}
	s := newScenario(t, settled).on(lacking, RepairProxier, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
	s.after(7*time.Second).on(lacking, WriteChange, DeleteFlows)
	// Although the tables may be as they were: the proxier has not repaired them.
	s.after(time.Second).on(Began{Requests: Requests{Look: true}}, Look).on(lacking, RepairProxier, WriteChange, DeleteFlows)
	s.on(Looked{JumpInFront: true}, WriteChange, DeleteFlows)
	if !s.state.RepairAsked.IsZero() {
		t.Error("the repair is over, and the state does not know")
	}
}

// TestState_TamperingIsRemembered until the proxier was asked to write its own rules or has written them,
// whatever fails in between: a restored state of the tables has the proxier's rules of then, too.
func TestState_TamperingIsRemembered(t *testing.T) {
	altered := Looked{Altered: true, JumpInFront: true}
	fine := Looked{JumpInFront: true}
	for _, test := range []struct {
		name string
		do   func(*scenario)
	}{
		{"the write fails", func(s *scenario) {
			s.state.RepairAsked = s.now // so it cannot be asked now
			s.on(altered, WriteAll, DeleteFlows).on(Failed{}).after(10*time.Second).on(Began{}, Look).on(fine, RepairProxier, WriteAll, DeleteFlows)
		}},
		{"asked a moment ago", func(s *scenario) {
			s.on(altered, RepairProxier, WriteAll, DeleteFlows).on(Succeeded{Looked: true})
			s.after(time.Second).on(altered, WriteAll, DeleteFlows).on(Succeeded{Looked: true})
			s.after(10*time.Second).on(fine, RepairProxier, WriteChange, DeleteFlows)
		}},
		{"the proxier has written all of its own", func(s *scenario) {
			s.state.RepairAsked = s.now
			s.on(altered, WriteAll, DeleteFlows).on(Succeeded{Looked: true})
			s.after(10*time.Second).on(Began{Requests: Requests{FullSync: true}}, Look).on(fine, WriteChange, DeleteFlows)
		}},
		{"before the proxier's first sync", func(s *scenario) {
			s.state.Proxier, s.state.Ready = BeforeFirstSync, false
			s.on(altered, WriteAll, DeleteFlows).on(Succeeded{Looked: true})
			s.on(Began{Requests: Requests{FullSync: true}}, WriteChange, DeleteFlows)
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(newScenario(t, settled)) })
	}
}

// TestState_FullLookEveryTenMinutes, although nothing seems to have changed.
func TestState_FullLookEveryTenMinutes(t *testing.T) {
	s := newScenario(t, settled)
	looks := 0
	for range 80 { // 20 minutes of regular looks
		s.after(15 * time.Second)
		var steps []Step
		s.state, steps = s.state.Next(Began{Requests: Requests{Look: true}}, s.now)
		if steps[0] == Look {
			looks++
			s.on(Looked{JumpInFront: true}, WriteChange, DeleteFlows)
		}
		s.on(Succeeded{Looked: true})
	}
	if looks != 2 {
		t.Errorf("%d full looks in 20 minutes, want 2", looks)
	}
}

// TestState_CostlyGlancesAreRare, but what somebody else has changed is still seen within the sync period.
func TestState_CostlyGlancesAreRare(t *testing.T) {
	for _, test := range []struct{ cost, next time.Duration }{
		{10 * time.Millisecond, 15 * time.Second},
		{300 * time.Millisecond, 18 * time.Second},
		{2 * time.Second, 22500 * time.Millisecond},
	} {
		s := newScenario(t, settled)
		s.on(Began{Requests: Requests{Look: true}}, Glance).on(Glanced{Cost: test.cost}).on(Succeeded{Looked: true})
		s.after(15 * time.Second)
		if test.next > 15*time.Second {
			s.on(Began{Requests: Requests{Look: true}})
			if wake := s.state.Wake().Sub(start); wake != test.next {
				t.Errorf("after a glance of %s the next one is after %s, want %s", test.cost, wake, test.next)
			}
			// A change does not wait for it, nor does it end the waiting.
			s.on(Began{Changed: true}, WriteChange, DeleteFlows).on(Succeeded{})
		}
		s.after(test.next-15*time.Second).on(Began{Requests: Requests{Look: test.next == 15*time.Second}}, Glance)
	}
}

// TestState_UnknownProxierIsLookedAtAgain: a check of the proxier's rules that failed is none.
func TestState_UnknownProxierIsLookedAtAgain(t *testing.T) {
	unknown, asked := Looked{JumpInFront: true, ProxierUnknown: true}, settled
	asked.RepairAsked = start
	for _, state := range []State{settled, asked} {
		s := newScenario(t, state).after(15*time.Second).on(unknown, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
		s.after(15*time.Second).on(Began{Requests: Requests{Look: true}}, Look)
		if s.state.RepairAsked != state.RepairAsked {
			t.Error("the repair that was asked for is forgotten")
		}
	}
}

// TestState_UnreadableBackEndAllowsGlances: an idle node does not read everything twice in a sync period
// because what another back end holds cannot be read. The next full look tries again.
func TestState_UnreadableBackEndAllowsGlances(t *testing.T) {
	s := newScenario(t, settled).on(Looked{JumpInFront: true, Stale: Unreadable}, WriteChange, DeleteFlows).on(Succeeded{Looked: true})
	s.after(15*time.Second).on(Began{Requests: Requests{Look: true}}, Glance).after(10*time.Minute).on(Began{Requests: Requests{Look: true}}, Look)
}
