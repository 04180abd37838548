package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Journal is where this node writes down which pod has which source ports.
type Journal struct {
	Folder string
	// Size is how many bytes it takes, about.
	Size int64
}

// Reasons of Events about a Node.
const (
	journalFailing plan.Reason = "PortJournalFailing"
	journalWritten plan.Reason = "PortJournalWritten"
	journalDamaged plan.Reason = "PortJournalDamaged"
)

// openJournal opens the journal of a node. What is wrong with it is told, by Events about the Node.
func openJournal(j Journal, node string, logger klog.Logger, tell func(reason plan.Reason, note string)) (*journal.Journal, error) {
	return journal.Open(j.Folder, journal.Config{
		Node: node, Size: j.Size, Logger: klog.LoggerWithName(logger, "egress-journal"),
		Tell: func(r journal.Report) {
			switch {
			case r.Healed != nil:
				tell(journalDamaged, "The journal of source ports was damaged. It goes on, and says of which time it has not everything: "+r.Healed.Error())
			case r.Failing != nil:
				tell(journalFailing, "The journal of source ports cannot be written: who has which ports of egress IPs is in memory only, until it can. Pods start all the same: "+r.Failing.Error())
			default:
				tell(journalWritten, "The journal of source ports is written again, and has everything")
			}
		},
	})
}

// keepJournal writes down which pod has which source ports from now on.
func (s *sourcePorts) keepJournal(j Journal) {
	var err error
	if s.journal, err = openJournal(j, s.state.Config.NodeName, s.config.Logger, s.config.TellNode); err != nil {
		s.recorder = unopened{err}
		return
	}
	s.recorder, s.resume = s.journal, s.journal.Resume
}

// close ends the journal. Call it when all else has ended; after an error it may lack its last lines.
func (s *sourcePorts) close() error {
	if s == nil || s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// unopened is a [portblocks.Recorder] that writes nothing down, for this reason.
type unopened struct{ err error }

func (u unopened) Assigned(context.Context, portblocks.Assignment) error { return u.err }

func (u unopened) Released(context.Context, portblocks.Assignment, time.Time) error { return u.err }

// recordPatience bounds how long a pod waits for what is written down of it: the disk may hang.
const recordPatience = 2 * time.Second

// begin tells the recorder who has ports when this process begins, once.
func (s *sourcePorts) begin(ctx context.Context) {
	s.resumed.Do(func() {
		if s.resume == nil {
			return
		}
		var has []portblocks.Assignment
		for _, a := range s.config.Attachments().All() {
			for _, p := range a.Ports {
				if !a.Recorded {
					has = append(has, s.assignment(a, p))
				}
			}
		}
		if err := s.resume(ctx, has); err != nil {
			s.unrecorded(err, "pods that ran before this process")
		}
	})
}

// unrecorded tells that it is not written down which source ports somebody has.
func (s *sourcePorts) unrecorded(err error, whose string) {
	unrecordedPorts.WithLabelValues().Inc()
	s.config.Logger.Error(err, "It is not written down which source ports pods have", "pods", whose)
	s.config.TellNode(portsUnrecorded, fmt.Sprintf("it is not written down which source ports %s have, so it may not be found later who used them: %v", whose, err))
}

// beginRecording begins to write down what a pod gets that is about to run. Meanwhile the kernel is written, and reconcile leaves the pod
// alone. If this process ends now, the next one writes it down, or what is written down of a pod whose file has no ports has ended: see begin.
func (s *sourcePorts) beginRecording(ctx context.Context, a attachments.Attachment, ports []attachments.Ports) {
	done := make(chan struct{})
	s.mu.Lock()
	s.recording[a.ContainerID] = done
	s.mu.Unlock()
	go func() {
		s.record(context.WithoutCancel(ctx), a, nil, ports)
		s.mu.Lock()
		if s.recording[a.ContainerID] == done {
			delete(s.recording, a.ContainerID)
		}
		s.mu.Unlock()
		close(done)
		s.wake.Send()
	}()
}

func (s *sourcePorts) isRecording(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recording[id] != nil
}

// recorded returns when what a pod has got is on the disk, or cannot be, or ctx ends.
func (s *sourcePorts) recorded(ctx context.Context, id string) {
	s.mu.Lock()
	done := s.recording[id]
	s.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// record writes down what a pod has instead of what it had.
func (s *sourcePorts) record(ctx context.Context, a attachments.Attachment, before, after []attachments.Ports) {
	if s.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	s.begin(ctx)
	var errs []error
	at := a.Released
	if at.IsZero() {
		at = time.Now()
	}
	for _, p := range before {
		if !slices.Contains(after, p) {
			errs = append(errs, s.recorder.Released(ctx, s.assignment(a, p), at))
		}
	}
	var recorded sync.WaitGroup // at once: what waits for the disk together is written together
	assigned := make([]error, len(after))
	for i, p := range after {
		if !slices.Contains(before, p) {
			recorded.Go(func() { assigned[i] = s.recorder.Assigned(ctx, s.assignment(a, p)) })
		}
	}
	recorded.Wait()
	if err := errors.Join(append(errs, assigned...)...); err != nil {
		s.unrecorded(err, "the containers of the pod "+a.Pod.String())
	}
}

func (s *sourcePorts) assignment(a attachments.Attachment, p attachments.Ports) portblocks.Assignment {
	return portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: a.Pod.Namespace, Name: a.Pod.Name, UID: uidOf(a), IP: p.IP}, Service: p.Service, EgressIP: p.EgressIP,
		Ports: kernel.Ports{First: p.First, Last: p.Last}, Shared: p.Shared, Second: p.Second, Node: s.state.Config.NodeName, Since: p.Since,
	}
}
