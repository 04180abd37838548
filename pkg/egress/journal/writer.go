package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/wake"
)

// run writes what waits until the Journal is closed.
func (j *Journal) run() {
	defer close(j.ended)
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for {
		again := j.attempt()
		select {
		case <-j.wake:
		case <-beats.C:
			j.sayAlive(time.Now().Add(-delay))
		case <-again:
		case <-j.stop:
			j.attempt()
			j.sayAlive(time.Now())
			j.attempt()
			return
		}
	}
}

// sayAlive lets a line wait that says that the files have everything until a time, unless others wait, which may be older. Before
// Resume nobody knows.
func (j *Journal) sayAlive(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.resumed && len(j.waiting) == 0 && at.After(j.store.covered) {
		j.queue(record{kind: alive, at: precise(at)})
	}
}

// attempt writes what waits. It returns what tells when to try again; nil if all has been written.
func (j *Journal) attempt() (again <-chan time.Time) {
	now := time.Now()
	if err := j.store.open(now); err != nil {
		j.note(0, 0, err)
		return time.After(retry)
	}
	j.takeOver()
	j.mu.Lock()
	records, lost, since := slices.Clip(j.waiting), j.lost, j.since
	count := j.done
	var current []portblocks.Assignment
	if lost {
		current = slices.Collect(maps.Values(j.known))
	}
	j.mu.Unlock()
	if lost {
		// What waits is in what is assigned, or has ended.
		if err := j.store.begin(now, current, since); err != nil {
			j.note(0, 0, err)
			return time.After(retry)
		}
	}
	written, err := j.store.write(records, now)
	j.mu.Lock()
	if j.done == count {
		j.lost = false
	}
	j.mu.Unlock()
	j.note(count, written, err)
	if err != nil {
		return time.After(retry)
	}
	return nil
}

// note notes what came of an attempt: so many lines after this one do not wait any more, unless the queue was given up meanwhile.
func (j *Journal) note(after uint64, written int, err error) {
	j.mu.Lock()
	if j.done != after {
		written = 0
	}
	j.waiting = j.waiting[written:]
	j.done += uint64(written)
	if j.store.file != nil {
		j.covered = j.store.covered
		journalBytes.WithLabelValues().Set(float64(j.store.size))
	}
	changed := j.failed.Turns(err)
	j.attempts++
	j.tried.Send()
	waitingLines.WithLabelValues().Set(float64(len(j.waiting)))
	j.mu.Unlock()
	switch {
	case !changed:
		return
	case err != nil:
		failing.WithLabelValues().Set(1)
		j.config.Logger.Error(err, "The journal of source ports cannot be written; pods start all the same, lines wait in memory; will retry, further failures are not logged")
	default:
		failing.WithLabelValues().Set(0)
		j.config.Logger.Info("The journal of source ports can be written again, and is up to date")
	}
	j.tell(Report{Failing: err})
}

func (j *Journal) tell(r Report) {
	if j.config.Tell != nil {
		j.config.Tell(r)
	}
}

// Close writes what waits, if that is possible, and ends writing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed
	}
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	if wake.Sleep(j.ended, patience) {
		return fmt.Errorf("the disk has not answered within %s", patience)
	}
	return errors.Join(j.failed.Err(), j.store.close())
}
