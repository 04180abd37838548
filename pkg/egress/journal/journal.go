package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is how a journal is written.
type Config struct {
	// Node is the node's name.
	Node string
	// Size is how many bytes all files have together, about, [LeastSize] or more: 64 MiB are enough for 350,000 pods' lives.
	Size int64
	// Logger gets a line for each assignment and each end of one, besides what is wrong.
	Logger klog.Logger
	// Tell is called when writing has begun to fail, with why, and with nil when it has succeeded again; and with what was wrong with
	// the files when they were opened. It may be nil. It must not block, nor call the Journal.
	Tell func(Report)
}

// Report is what people should know of a journal.
type Report struct {
	// Failing is why it cannot be written now; nil if it can.
	Failing error
	// Healed is what was wrong with its last file, and does not matter to what is written now.
	Healed error
}

const (
	// LeastSize is the smallest one.
	LeastSize = 1 << 20
	// files is how many of them share the size. When the last one is full, the first one is removed.
	files = 8
	// beat is how often a quiet journal says that it has everything.
	beat = time.Minute
	// delay is how long it may take from what happens until the Recorder is called.
	delay = 5 * time.Second
	// retry is how often writing is tried again. An assignment tries at once.
	retry = time.Second
	// patience bounds how long Close waits for the disk.
	patience = 5 * time.Second
	// mostWaiting is how many lines wait at most. That is 30 MB.
	mostWaiting = 100_000
)

// Journal writes down who has which ports on this node. It is a [portblocks.Recorder].
type Journal struct {
	config Config
	// store is used by the writer alone.
	store *store

	mu sync.Mutex // protects the following fields
	// known is what has not ended, whether that is on the disk or not.
	known map[identity]portblocks.Assignment
	// waiting is to be written, in this order. Queued counts all lines that ever waited, done those of them that do not any more.
	waiting      []record
	queued, done uint64
	// covered is until when the files have everything, before is that of the process before. Lost: lines were given up,
	// which happened after since.
	covered, before, since time.Time
	lost                   bool
	// resumed: known has what the process before has left, too. Taken: it has what the files had.
	resumed, taken bool
	// attempts counts those to write. Failed is why the last one failed; nil if it did not. Tried is sent after each.
	attempts uint64
	failed   failure.Streak
	tried    *wake.Broadcast
	closed   bool

	// wake says that there is something to write.
	wake  wake.Signal
	stop  chan struct{}
	ended chan struct{}
}

var _ portblocks.Recorder = (*Journal)(nil)

// errClosed is that of what comes after Close.
var errClosed = errors.New("the journal is closed")

// Open goes on with the journal in a folder, which it makes if it is missing. It is an error
// if path is no folder. If another process writes it still, or the disk is full or fails, the journal waits until that is over, and tells. Call Resume before anything
// else. Close it.
func Open(path string, config Config) (*Journal, error) {
	j := &Journal{
		config: config, store: &store{folder: path, node: config.Node, limit: config.Size / files, most: files},
		known: map[identity]portblocks.Assignment{}, tried: wake.NewBroadcast(), wake: wake.New(), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	ZeroMetrics()
	err := j.store.open(time.Now())
	if errors.Is(err, syscall.ENOTDIR) {
		failing.WithLabelValues().Set(1) // for good
		return nil, errors.Join(fmt.Errorf("open the journal: %w", err), j.store.close())
	}
	if err == nil {
		j.takeOver()
	}
	j.note(0, 0, err)
	go j.run()
	return j, nil
}

// takeOver takes what the files have as not ended, once they can be read.
func (j *Journal) takeOver() {
	if j.taken {
		return
	}
	j.taken = true
	if healed := j.store.healed; healed != nil {
		j.config.Logger.Error(healed, "The journal of source ports was damaged; it goes on, and says in its files for which time entries may be missing")
		j.tell(Report{Healed: healed})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.before = j.store.before; j.before.After(time.Now()) {
		j.before = time.Unix(0, 0) // the clock was set back: nobody knows how far the earlier process came
	}
	for k, w := range j.store.now {
		_, known := j.known[k]
		switch {
		case !known && j.resumed:
			at := later(precise(time.Now()), later(j.before, w.Since).Add(time.Millisecond))
			j.queue(record{kind: released, assignment: w.Assignment, at: at, seen: later(j.before, w.Since)})
			recordedLines.WithLabelValues("released").Inc()
		case !known:
			j.known[k] = w.Assignment
		}
	}
}

// Assigned writes down that a pod has ports, and returns when that is on the disk, or ctx has ended. What is written down already is
// not again. After an error it is not on the disk yet, but will be as soon as it can. What happened must be told within 5 seconds: then
// the journal says that nothing is missing.
func (j *Journal) Assigned(ctx context.Context, a portblocks.Assignment) error {
	t, err := j.assign(a)
	if err != nil {
		return err
	}
	return j.onDisk(ctx, t)
}

func (j *Journal) assign(a portblocks.Assignment) (t ticket, err error) {
	a.Since = precise(a.Since)
	if err := validate(a); err != nil {
		return ticket{}, err
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return ticket{}, errClosed
	}
	_, known := j.known[identityOf(a)]
	if !known {
		j.known[identityOf(a)] = a
		j.queue(record{kind: assigned, assignment: a})
	}
	t = j.ticket()
	j.mu.Unlock()
	if !known {
		recordedLines.WithLabelValues("assigned").Inc()
		j.config.Logger.Info("Source ports assigned", "pod", klog.KRef(a.Pod.Namespace, a.Pod.Name), "uid", a.Pod.UID, "podIP", a.Pod.IP,
			"service", a.Service, "egressIP", a.EgressIP, "ports", a.Ports.String(), "shared", a.Shared, "node", a.Node, "since", timeText(a.Since))
	}
	return t, nil
}

// Released writes down that a pod has ports no more, as Assigned does. What is not known to be assigned is not written.
func (j *Journal) Released(ctx context.Context, a portblocks.Assignment, at time.Time) error {
	t, err := j.release(a, at, time.Time{})
	if err != nil {
		return err
	}
	return j.onDisk(ctx, t)
}

func (j *Journal) release(a portblocks.Assignment, at, seen time.Time) (t ticket, err error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return ticket{}, errClosed
	}
	a, known := j.known[identityOf(a)]
	if known {
		delete(j.known, identityOf(a))
		at = later(precise(at), a.Since)
		if !seen.IsZero() {
			seen = later(precise(seen), a.Since)
			at = later(at, seen.Add(time.Millisecond))
		}
		j.queue(record{kind: released, assignment: a, at: at, seen: seen})
	}
	t = j.ticket()
	j.mu.Unlock()
	if known {
		recordedLines.WithLabelValues("released").Inc()
		j.config.Logger.Info("Source ports released", "pod", klog.KRef(a.Pod.Namespace, a.Pod.Name), "uid", a.Pod.UID, "podIP", a.Pod.IP,
			"service", a.Service, "egressIP", a.EgressIP, "ports", a.Ports.String(), "shared", a.Shared, "node", a.Node, "since", timeText(a.Since), "until", timeText(at))
	}
	return t, nil
}

// Resume says who has ports now, when a process begins: what the files have besides has ended at a time that nobody knows.
func (j *Journal) Resume(ctx context.Context, now []portblocks.Assignment) error {
	has := map[identity]bool{}
	for _, a := range now {
		has[identityOf(a)] = true
	}
	var gone []portblocks.Assignment
	j.mu.Lock()
	for k, a := range j.known {
		if !has[k] {
			gone = append(gone, a)
		}
	}
	seen := j.before
	j.resumed = true
	j.mu.Unlock()
	var errs []error
	for _, a := range gone {
		_, err := j.release(a, time.Now(), seen)
		errs = append(errs, err)
	}
	for _, a := range now {
		_, err := j.assign(a)
		errs = append(errs, err)
	}
	j.mu.Lock()
	t := j.ticket()
	j.mu.Unlock()
	return errors.Join(append(errs, j.onDisk(ctx, t))...)
}

// queue lets a record wait. j.mu is held.
func (j *Journal) queue(r record) {
	if len(j.waiting) >= mostWaiting {
		// The next file begins with what is assigned then.
		lostLines.WithLabelValues().Add(float64(len(j.waiting)))
		j.lost, j.since, j.done, j.waiting = true, j.covered, j.queued, nil
	}
	j.waiting = append(j.waiting, r)
	j.queued++
	j.wake.Send()
}

// ticket is a place in the queue: the lines until then, and the attempts before.
type ticket struct{ lines, attempts uint64 }

// ticket returns the place of the last line. j.mu is held.
func (j *Journal) ticket() ticket { return ticket{j.queued, j.attempts} }

// onDisk waits until the lines of a ticket are on the disk, or an attempt has failed since.
func (j *Journal) onDisk(ctx context.Context, t ticket) error {
	for {
		j.mu.Lock()
		done, failed, since, tried := j.done >= t.lines, j.failed.Err(), j.attempts > t.attempts, j.tried.Next()
		j.mu.Unlock()
		switch {
		case done:
			return nil
		case failed != nil && since:
			return fmt.Errorf("which pod has which source ports is not yet written to the disk: %w", failed)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("which pod has which source ports is not yet written to the disk: %w", errors.Join(ctx.Err(), failed))
		case <-tried:
		}
	}
}
