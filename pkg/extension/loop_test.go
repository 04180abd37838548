package extension

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// looped is a Loop that runs in a bubble, whose clock goes on when everybody waits.
type looped struct {
	*Loop
	start   time.Time
	stop    context.CancelFunc
	stopped chan struct{}

	noting sync.Mutex // protects what follows
	notes  syncNotes
}

// syncNotes are what syncs were made. Times are those since the Loop was started.
type syncNotes struct {
	began, ended []time.Duration
	regular      []bool
	done         [][]time.Time
}

// note changes the notes.
func (l *looped) note(change func(*syncNotes)) {
	l.noting.Lock()
	defer l.noting.Unlock()
	change(&l.notes)
}

// syncs returns the notes since the last call.
func (l *looped) syncs() (taken syncNotes) {
	l.note(func(n *syncNotes) { taken, *n = *n, syncNotes{} })
	return taken
}

// runLoop runs a Loop until the test ends. do says what the nth sync does, from 0 on; nil for nothing.
func runLoop(t *testing.T, minPeriod, lookPeriod time.Duration, do func(l *looped, n int) (again time.Time, failed bool)) *looped {
	ctx, cancel := context.WithCancel(t.Context())
	l := &looped{Loop: NewLoop(minPeriod, lookPeriod), start: time.Now(), stop: cancel, stopped: make(chan struct{})}
	count := 0
	sync := func(_ context.Context, regular bool) (again time.Time, failed bool) {
		l.note(func(n *syncNotes) {
			n.began, n.regular = append(n.began, time.Since(l.start)), append(n.regular, regular)
		})
		if do != nil {
			again, failed = do(l, count)
		}
		count++
		l.note(func(n *syncNotes) { n.ended = append(n.ended, time.Since(l.start)) })
		return again, failed
	}
	done := func(changes []time.Time) { l.note(func(n *syncNotes) { n.done = append(n.done, changes) }) }
	go func() {
		defer close(l.stopped)
		l.Run(ctx, sync, done)
	}()
	t.Cleanup(func() {
		cancel()
		<-l.stopped
	})
	return l
}

// after lets time pass, and waits until the Loop has done what was to be done by then.
func (l *looped) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestLoop_BurstsCoalesce: many changes are few syncs, and the last one of them comes after the last
// change. Each change is told once to whoever measures how long it took.
func TestLoop_BurstsCoalesce(t *testing.T) {
	const changes, minPeriod = 200, 50 * time.Millisecond
	for name, test := range map[string]struct {
		every time.Duration
		most  int
	}{
		"at once":              {0, 1},
		"one each millisecond": {time.Millisecond, 3}, // 200 ms; minPeriod to rest, and as long for changes to pause
		"with pauses":          {pause + time.Millisecond, 37},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var value, seen atomic.Int32
				l := runLoop(t, minPeriod, time.Hour, func(*looped, int) (time.Time, bool) {
					seen.Store(value.Load())
					return time.Time{}, false
				})
				l.after(time.Minute)
				l.syncs()
				for range changes {
					value.Add(1)
					l.Changed(time.Now())
					l.after(test.every)
				}
				l.after(time.Second)
				got := l.syncs()
				if len(got.began) == 0 || len(got.began) > test.most || seen.Load() != changes {
					t.Errorf("%d changes were %d syncs, want 1 to %d; the last saw the change %d", changes, len(got.began), test.most, seen.Load())
				}
				if told := slices.Concat(got.done...); len(told) != changes || !slices.IsSortedFunc(told, time.Time.Compare) {
					t.Errorf("told of %d changes, want each of %d, in order", len(told), changes)
				}
				if due := l.DueSince(); !due.IsZero() {
					t.Errorf("due since %s although all is done", due)
				}
			})
		})
	}
}

// TestLoop_RestsBetweenSyncs for as long as the last one took, within limits, although there is more to do.
func TestLoop_RestsBetweenSyncs(t *testing.T) {
	const minPeriod = 50 * time.Millisecond
	for name, test := range map[string]struct{ takes, limit, rest time.Duration }{
		"short":           {0, 0, minPeriod},
		"long":            {400 * time.Millisecond, 0, 400 * time.Millisecond},
		"very long":       {20 * time.Second, 0, time.Second},
		"limited":         {20 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond},
		"limit too small": {20 * time.Second, time.Millisecond, minPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLoop(t, minPeriod, time.Hour, func(l *looped, _ int) (time.Time, bool) {
					l.LimitRest(test.limit)
					l.Request()
					time.Sleep(test.takes)
					return time.Time{}, false
				})
				l.after(2 * time.Minute)
				got := l.syncs()
				if len(got.began) < 5 {
					t.Fatalf("%d syncs although each asks for another", len(got.began))
				}
				for n, ended := range got.ended[:len(got.began)-1] {
					if rest := got.began[n+1] - ended; rest != test.rest+pause {
						t.Errorf("%s from the end of sync %d to the next, want %s, and %s for changes to come", rest, n, test.rest, pause)
					}
				}
			})
		})
	}
}

// TestLoop_FailedSyncIsStillDue since it was asked for, and its changes are told with the sync that
// succeeds.
func TestLoop_FailedSyncIsStillDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(_ *looped, n int) (time.Time, bool) {
			return time.Now().Add(time.Minute), 1 <= n && n <= 2
		})
		l.after(time.Second)
		l.syncs()
		asked := time.Now()
		l.Changed(asked)
		l.after(30 * time.Second)
		later := time.Now()
		l.Changed(later)
		l.after(10 * time.Second)
		if got := l.syncs(); len(got.began) == 0 || got.done != nil {
			t.Fatalf("%d syncs, %d of them were told as done; want some, which failed", len(got.began), len(got.done))
		}
		if due := l.DueSince(); !due.Equal(asked) {
			t.Errorf("due since %s, want since %s, when the change came", due, asked)
		}
		l.after(2 * time.Minute)
		if diff := cmp.Diff([]time.Time{asked, later}, slices.Concat(l.syncs().done...)); diff != "" {
			t.Errorf("told of changes (-want +got):\n%s", diff)
		}
		if due := l.DueSince(); !due.IsZero() {
			t.Errorf("due since %s although all is done", due)
		}
	})
}

// TestLoop_KeepsSoManyChanges: where nothing can be written for a long time, the times of changes take no
// more and more memory.
func TestLoop_KeepsSoManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var healthy atomic.Bool
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(l *looped, _ int) (time.Time, bool) {
			for range mostChanges { // while the sync goes on
				l.Changed(time.Now())
			}
			return time.Time{}, !healthy.Load()
		})
		l.after(time.Second)
		healthy.Store(true)
		l.after(100 * time.Millisecond)
		done := l.syncs().done
		if len(done) == 0 {
			t.Fatal("no sync has succeeded")
		}
		if got := len(done[0]); got != mostChanges {
			t.Errorf("the first sync that succeeded tells of %d changes, want %d", got, mostChanges)
		}
	})
}

// TestLoop_FailureWithoutARequestIsDue, too, since the sync that failed began.
func TestLoop_FailureWithoutARequestIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLoop(t, 50*time.Millisecond, 15*time.Second, func(_ *looped, n int) (time.Time, bool) { return time.Time{}, n == 1 })
		l.after(20 * time.Second)
		if want := l.start.Add(l.syncs().began[1]); !l.DueSince().Equal(want) {
			t.Errorf("due since %s, want since %s", l.DueSince(), want)
		}
		l.after(15 * time.Second)
		if due := l.DueSince(); !due.IsZero() {
			t.Errorf("due since %s although a regular sync has succeeded", due)
		}
	})
}

// TestLoop_RequestDuringSync is answered by another one, and due until then: the sync may have begun
// without it.
func TestLoop_RequestDuringSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 100 * time.Millisecond
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(*looped, int) (time.Time, bool) {
			time.Sleep(takes)
			return time.Time{}, false
		})
		l.after(time.Minute)
		l.syncs()
		first := time.Now()
		l.Changed(first)
		l.after(pause + takes/2)
		second := time.Now()
		l.Changed(second)
		l.after(takes / 2)
		before := l.syncs()
		if len(before.ended) != 1 || l.DueSince().IsZero() || l.DueSince().After(second) {
			t.Errorf("%d syncs have ended, due since %s; want one, and due since %s or earlier", len(before.ended), l.DueSince(), second)
		}
		l.after(time.Second)
		after := l.syncs()
		if due := l.DueSince(); len(before.began)+len(after.began) != 2 || !due.IsZero() {
			t.Errorf("%d syncs, due since %s; want two, and nothing due", len(before.began)+len(after.began), due)
		}
		if diff := cmp.Diff([][]time.Time{{first}, {second}}, append(before.done, after.done...)); diff != "" {
			t.Errorf("told of changes (-want +got):\n%s", diff)
		}
	})
}

// TestLoop_SyncsWithoutARequest: one at the start, a regular one every lookPeriod, and when a sync wants it.
func TestLoop_SyncsWithoutARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := runLoop(t, 50*time.Millisecond, 15*time.Second, func(_ *looped, n int) (time.Time, bool) {
			switch n {
			case 1:
				return time.Now().Add(2 * time.Second), false
			case 3:
				return start, false // that is over
			}
			return time.Time{}, false
		})
		l.after(32 * time.Second)
		want := []time.Duration{pause, 15*time.Second + pause, 17*time.Second + 2*pause, 30*time.Second + pause}
		want = append(want, want[3]+50*time.Millisecond+pause)
		got := l.syncs()
		if diff := cmp.Diff(want, got.began); diff != "" {
			t.Errorf("syncs began (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]bool{false, true, false, true, false}, got.regular); diff != "" {
			t.Errorf("regular (-want +got):\n%s", diff)
		}
	})
}

// TestLoop_HangingSyncShows in what is due, also where nobody has asked for anything.
func TestLoop_HangingSyncShows(t *testing.T) {
	for name, request := range map[string]func(*looped){
		"requested":                 func(l *looped) { l.Request() },
		"woken, by who cannot wait": func(l *looped) { l.Wake() },
		"regular":                   func(l *looped) { l.after(15 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangs := make(chan struct{})
				l := runLoop(t, 50*time.Millisecond, 15*time.Second, func(_ *looped, n int) (time.Time, bool) {
					if n > 0 {
						<-hangs
					}
					return time.Time{}, false
				})
				l.after(time.Second)
				if due := l.DueSince(); !due.IsZero() {
					t.Fatalf("due since %s although all is done", due)
				}
				request(l)
				l.after(time.Hour)
				if due := l.DueSince(); due.IsZero() || time.Since(due) < time.Hour-pause {
					t.Errorf("due since %s, want for an hour", due)
				}
				close(hangs)
				l.after(time.Second)
				if due := l.DueSince(); !due.IsZero() {
					t.Errorf("due since %s although all is done", due)
				}
			})
		})
	}
}

// TestLoop_Restart: what came before is not late, and its times are not measured.
func TestLoop_Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoop(50*time.Millisecond, time.Hour)
		l.Changed(time.Now())
		time.Sleep(time.Hour)
		l.Restart()
		if due := l.DueSince(); !due.Equal(time.Now()) {
			t.Errorf("due since %s, want since now", due)
		}
		if changes, _ := l.take(); len(changes) != 0 {
			t.Errorf("the times of %d changes are measured, want none", len(changes))
		}
	})
}

// TestLoop_EndsWithItsContext, whatever it waits for, and begins no sync after that.
func TestLoop_EndsWithItsContext(t *testing.T) {
	for name, at := range map[string]time.Duration{
		"idle": time.Minute, "in the pause before a sync": time.Minute + time.Second + pause/2, "resting after it": time.Minute + time.Second + pause + time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLoop(t, 50*time.Millisecond, time.Hour, nil)
				time.AfterFunc(time.Minute+time.Second, l.Request)
				l.after(at)
				l.syncs()
				l.stop()
				synctest.Wait()
				select {
				case <-l.stopped:
				default:
					t.Error("it goes on")
				}
				if after := l.syncs(); len(after.began) != 0 {
					t.Errorf("%d syncs began after the end", len(after.began))
				}
			})
		})
	}
}

// TestLoop_AwaitedSyncHurries: it begins at once, whatever the Loop rests or waits for. Those who come during a sync
// share the next.
func TestLoop_AwaitedSyncHurries(t *testing.T) {
	const takes = 5 * time.Millisecond
	for name, at := range map[string]time.Duration{
		"idle": time.Second, "in the pause before a sync": time.Minute + pause/2, "resting after it": time.Minute + pause + takes + time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLoop(t, 50*time.Millisecond, time.Hour, func(*looped, int) (time.Time, bool) {
					time.Sleep(takes)
					return time.Time{}, false
				})
				time.AfterFunc(time.Minute, l.Request)
				l.after(at)
				l.syncs()
				asked := time.Now()
				var waiting sync.WaitGroup
				for range 10 {
					waiting.Go(func() {
						if err := l.Await(t.Context()); err != nil || time.Since(asked) > 2*takes {
							t.Errorf("answered after %s, err %v", time.Since(asked), err)
						}
					})
				}
				waiting.Wait()
				l.after(10 * time.Second)
				if got := l.syncs(); len(got.began) < 1 || len(got.began) > 2 || !l.DueSince().IsZero() {
					t.Errorf("%d syncs, due since %s; want one, and one for those who came meanwhile", len(got.began), l.DueSince())
				}
			})
		})
	}
}

// TestLoop_AwaitedSyncBeginsLater than it is asked for: one that is under way may not have seen what is waited for. One
// that fails answers nobody.
func TestLoop_AwaitedSyncBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, again = 100 * time.Millisecond, time.Second
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(_ *looped, n int) (time.Time, bool) {
			time.Sleep(takes)
			return time.Now().Add(again), n == 2
		})
		l.after(pause + takes/2) // in the first
		asked := time.Now()
		if err := l.Await(t.Context()); err != nil || time.Since(asked) != takes/2+takes {
			t.Errorf("answered after %s, err %v; want by the sync after the one that was under way", time.Since(asked), err)
		}
		asked = time.Now()
		if err := l.Await(t.Context()); err != nil || time.Since(asked) < takes+again {
			t.Errorf("answered after %s, err %v; want not by the sync that failed", time.Since(asked), err)
		}
	})
}

// TestLoop_AwaitEndsWithItsContext and leaves nothing behind.
func TestLoop_AwaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(*looped, int) (time.Time, bool) { return time.Now().Add(time.Second), true })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := l.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err %v", err)
		}
		l.after(time.Millisecond)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.waiters) != 0 {
			t.Errorf("%d are said to wait", len(l.waiters))
		}
	})
}
