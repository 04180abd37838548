package sourceports

import (
	"cmp"
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
func openJournal(j Journal, node string, config Config) (*journal.Journal, error) {
	return journal.Open(j.Folder, journal.Config{
		Node: node, Size: j.Size, Logger: klog.LoggerWithName(config.Logger, "egress-journal"),
		Tell: func(r journal.Report) {
			switch {
			case r.Healed != nil:
				config.WarnNode(journalDamaged, "The journal of source ports was damaged. It goes on, and says in its files for which time entries may be missing: "+r.Healed.Error())
			case r.Failing != nil:
				config.WarnNode(journalFailing, "The journal of source ports cannot be written: until it can, which pods have which ports is recorded in memory only. Pods start all the same: "+r.Failing.Error())
			default:
				config.TellNode(journalWritten, "The journal of source ports is written again, and is up to date")
			}
		},
	})
}

// keepJournal writes down which pod has which source ports from now on.
func (al *Allocator) keepJournal(j Journal) {
	var err error
	if al.journal, err = openJournal(j, al.state.Config.NodeName, al.config); err != nil {
		al.recorder = unopened{err}
		return
	}
	al.recorder, al.resume = al.journal, al.journal.Resume
}

// Close ends the journal. Call it when all else has ended; after an error it may lack its last lines. What is being written down has
// recordPatience.
func (al *Allocator) Close() error {
	if al == nil {
		return nil
	}
	al.beingRecorded.Wait()
	if al.journal == nil {
		return nil
	}
	return al.journal.Close()
}

// unopened is a [portblocks.Recorder] that writes nothing down, for this reason.
type unopened struct{ err error }

func (u unopened) Assigned(context.Context, portblocks.Assignment) error { return u.err }

func (u unopened) Released(context.Context, portblocks.Assignment, time.Time) error { return u.err }

// recordPatience bounds how long a pod waits for what is written down of it: the disk may hang.
const recordPatience = 2 * time.Second

// begin tells the recorder who has ports when this process begins, once.
func (al *Allocator) begin(ctx context.Context) {
	al.resumed.Do(func() {
		if al.resume == nil {
			return
		}
		var has []portblocks.Assignment
		for _, a := range al.config.Attachments().All() {
			for _, p := range a.Ports {
				if !a.Recorded {
					has = append(has, al.assignment(a, p))
				}
			}
		}
		if err := al.resume(ctx, has); err != nil {
			al.unrecorded(err, "pods that ran before this process")
		}
	})
}

// unrecorded tells that it is not written down which source ports somebody has.
func (al *Allocator) unrecorded(err error, whose string) {
	unrecordedPorts.WithLabelValues().Inc()
	al.config.Logger.Error(err, "Failed to record which source ports pods have", "pods", whose)
	al.config.WarnNode(portsUnrecorded, fmt.Sprintf("the source ports of %s were not recorded, so it may be impossible to find out later who used them: %v", whose, err))
}

// beginRecording begins to write down what a pod gets that is about to run. Meanwhile the kernel is written, and reconcile leaves the pod
// alone. If this process ends now, the next one writes it down, or what is written down of a pod whose file has no ports has ended: see begin.
func (al *Allocator) beginRecording(ctx context.Context, a attachments.Attachment, ports []attachments.Ports) {
	done := make(chan struct{})
	al.mu.Lock()
	al.recording[a.ContainerID] = done
	al.mu.Unlock()
	al.beingRecorded.Go(func() {
		al.record(context.WithoutCancel(ctx), a, nil, ports)
		al.mu.Lock()
		if al.recording[a.ContainerID] == done {
			delete(al.recording, a.ContainerID)
		}
		al.mu.Unlock()
		close(done)
		al.wake.Send()
	})
}

func (al *Allocator) isRecording(id string) bool {
	al.mu.Lock()
	defer al.mu.Unlock()
	return al.recording[id] != nil
}

// Recorded is that of an [attach.Node]: it returns when what a pod has got is on the disk, or cannot be, or ctx ends.
func (al *Allocator) Recorded(ctx context.Context, id string) {
	al.mu.Lock()
	done := al.recording[id]
	al.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// record writes down what a pod has instead of what it had.
func (al *Allocator) record(ctx context.Context, a attachments.Attachment, before, after []attachments.Ports) {
	if al.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience) // what is queued is written at the end of the process, too
	defer cancel()
	al.begin(ctx)
	var errs []error
	at := cmp.Or(a.Left, a.Released)
	if now := time.Now(); at.IsZero() || at.After(now) { // the clock may have been set back
		at = now
	}
	for _, p := range before {
		if !slices.Contains(after, p) {
			errs = append(errs, al.recorder.Released(ctx, al.assignment(a, p), at))
		}
	}
	var recorded sync.WaitGroup // at once: what waits for the disk together is written together
	assigned := make([]error, len(after))
	for i, p := range after {
		if !slices.Contains(before, p) {
			recorded.Go(func() { assigned[i] = al.recorder.Assigned(ctx, al.assignment(a, p)) })
		}
	}
	recorded.Wait()
	if err := errors.Join(append(errs, assigned...)...); err != nil {
		al.unrecorded(err, "the containers of the pod "+a.Pod.String())
	}
}

func (al *Allocator) assignment(a attachments.Attachment, p attachments.Ports) portblocks.Assignment {
	return portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: a.Pod.Namespace, Name: a.Pod.Name, UID: uidOf(a), IP: p.IP}, Service: p.Service, EgressIP: p.EgressIP,
		Ports: kernel.Ports{First: p.First, Last: p.Last}, Shared: p.Shared, Second: p.Second, Node: al.state.Config.NodeName, Since: p.Since,
	}
}
