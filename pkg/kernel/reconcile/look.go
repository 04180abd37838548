package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// glance tells whether others may have changed what a look is about. In a busy cluster the proxier changes
// the tables all the time, so another fingerprint alone does not tell.
func (s *run) glance(ctx context.Context) Glanced {
	s.result.Looked = true
	began := s.config.Clock.Now()
	now, err := s.driver.fingerprint(ctx)
	same := err == nil && s.fingerprint != "" && now == s.fingerprint
	if err == nil && !same {
		if same, err = s.driver.untouched(ctx); same {
			s.fingerprint = now // of before, so that what has changed meanwhile shows at the next glance
		}
	}
	if err != nil {
		s.logger.V(2).Info("Cannot tell whether the kernel's tables have changed; will read them", "err", err)
	}
	return Glanced{Moved: !same, Changed: !s.change.Empty(), Cost: s.config.Clock.Since(began)}
}

// lookAtKernel reads the kernel. Bindings that it holds and this process has not written, or not as
// far as it knows, are unplanned: all flows have to be judged then.
func (s *run) lookAtKernel(ctx context.Context) (Looked, error) {
	s.result.Looked = true
	// Before the look: what changes meanwhile shows at the next glance.
	before, err := s.driver.fingerprint(ctx)
	if err != nil {
		before = ""
	}
	found, err := s.driver.observe(ctx)
	if err != nil {
		return Looked{}, errors.Join(err, s.steerUnread(ctx, found))
	}
	s.fingerprint = before
	event := Looked{Altered: found.altered || s.refused && !s.wrote(found.bindings()), JumpInFront: found.jumpInFront}
	event.ProxierLacks, event.ProxierUnknown = s.proxierLacks(ctx, found)
	var left []kernel.Binding
	known := s.state.Belief == Holds && !event.Altered
	left, event.Stale = s.readStale(ctx, known)
	switch {
	case !known:
		s.unplanned = slices.Concat(found.bindings(), left)
		if found.steered != nil {
			s.noteStanding(found.steered())
		}
	default:
		s.unplanned = left
	}
	s.debt.All = s.debt.All || !known || len(found.differences) > 0 || len(left) > 0
	s.logDifferences(event, found.differences)
	s.lookAtSteering(&event, found.steering)
	return event, nil
}

func (s *run) noteStanding(stood steering.Standing) {
	s.stood = stood
	s.oweFlowsOf(stood.Blocks)
	s.lostBlocks = append(s.lostBlocks, stood.Blocks...) // as long as the pods stay bound
}

// lookAtSteering has the steering written if it differs. Nobody knows what packets did meanwhile.
func (s *run) lookAtSteering(event *Looked, differences []string) {
	event.SteeringAltered = len(differences) > 0
	if !event.SteeringAltered || s.unsteered.Err() != nil {
		return
	}
	s.debt.All = true
	if s.state.Belief != Unknown {
		s.logger.Info("Somebody else has changed what steers packets; repairing it", "differences", len(differences), "first", differences[0])
	}
}

func (s *run) logDifferences(event Looked, differences []string) {
	switch {
	case s.state.Belief == Unknown || len(differences) == 0:
	case event.Altered:
		s.logger.Info("Somebody else has changed egress SNAT rules; repairing them", "differences", len(differences), "first", differences[0])
	default:
		s.logger.Info("The jump to the egress SNAT rules is not in front; moving it there", "found", differences[0])
	}
}

// wrote tells whether these are the bindings that this process has written last, and perhaps some on record, or of the change that was
// refused: the steering may have taken it.
func (s *run) wrote(bindings []kernel.Binding) bool {
	written := slices.Collect(maps.Keys(s.belief.since))
	bindings = kernel.Without(bindings, kernel.Without(append(slices.Clone(s.change.Added), s.pendingRemovals...), written))
	return slices.Equal(kernel.Sorted(bindings), kernel.Sorted(written))
}

// proxierLacks tells whether rules of the proxier are missing, or that this cannot be told.
func (s *run) proxierLacks(ctx context.Context, found observation) (lacks, unknown bool) {
	if s.state.Proxier == BeforeFirstSync {
		return false, false
	}
	missing, err := found.missing(ctx)
	if err != nil {
		s.logger.Error(err, "Cannot tell whether the proxier's rules are in the kernel; will retry with the next look")
		return false, true
	}
	if len(missing) > 0 {
		s.logger.Info("Rules of the proxier are missing from the kernel", "missing", strings.Join(missing, "; "), "repairAskedBefore", !s.state.RepairAsked.IsZero())
	}
	return len(missing) > 0, false
}

// readStale returns the bindings that earlier runs have written by other means, as long as they are
// there, and again if it is not known what the kernel holds: the iptables on PATH may be another one now, and what this process has written
// stands in the other back end. What of that may be removed, for all bindings of it are known, is kept for prune.
func (s *run) readStale(ctx context.Context, known bool) (bindings []kernel.Binding, stale Stale) {
	s.prunable = map[int]staleBackend{}
	if s.state.StaleGone && known {
		return nil, Gone
	}
	for i, backend := range s.driver.staleBackends() {
		found, left, err := backend.read(ctx)
		bindings = append(bindings, found...)
		s.complainOfStale(i, err)
		switch {
		case err != nil:
			stale = max(stale, Unreadable)
		case left:
			stale = max(stale, Left)
			s.prunable[i] = backend
		}
	}
	if len(bindings) > 0 {
		stale = Binds // which of the two rules decided about a flow nobody knows
	}
	return bindings, stale
}

// prune removes what earlier runs have written by other means. The next look finds it gone.
func (s *run) prune(ctx context.Context) {
	for i, backend := range s.prunable {
		s.complainOfStale(i, backend.prune(ctx))
	}
}

func (s *run) complainOfStale(number int, err error) {
	left := s.staleErrors[number]
	if left.Changes(err) && err != nil {
		s.logger.Error(err, "Cannot read or remove egress SNAT rules of an earlier run in another back end (iptables-legacy, iptables-nft or nftables); will retry, further failures are not logged")
	}
	s.staleErrors[number] = left
}
