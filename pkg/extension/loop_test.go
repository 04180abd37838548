package extension

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// looped is a Loop that runs in a bubble, whose clock goes on when everybody waits. It notes the syncs;
// times are those since the Loop was started.
type looped struct {
	*Loop
	start        time.Time
	count        int // of syncs, also of those that are forgotten
	began, ended []time.Duration
	regular      []bool
	done         [][]time.Time
	stop         context.CancelFunc
	stopped      chan struct{}
}

// runLoop runs a Loop until the test ends. do says what the nth sync does, from 0 on; nil for nothing.
func runLoop(t *testing.T, minPeriod, lookPeriod time.Duration, do func(l *looped, n int) (again time.Time, failed bool)) *looped {
	ctx, cancel := context.WithCancel(t.Context())
	l := &looped{Loop: NewLoop(minPeriod, lookPeriod), start: time.Now(), stop: cancel, stopped: make(chan struct{})}
	sync := func(_ context.Context, regular bool) (again time.Time, failed bool) {
		l.began, l.regular = append(l.began, time.Since(l.start)), append(l.regular, regular)
		l.count++
		if do != nil {
			again, failed = do(l, l.count-1)
		}
		l.ended = append(l.ended, time.Since(l.start))
		return again, failed
	}
	go func() {
		defer close(l.stopped)
		l.Run(ctx, sync, func(changes []time.Time) { l.done = append(l.done, changes) })
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

// forget forgets the syncs so far.
func (l *looped) forget() { l.began, l.ended, l.regular, l.done = nil, nil, nil, nil }

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
				value, seen := 0, 0
				l := runLoop(t, minPeriod, time.Hour, func(*looped, int) (time.Time, bool) {
					seen = value
					return time.Time{}, false
				})
				l.after(time.Minute)
				l.forget()
				for value = 1; value <= changes; value++ {
					l.Changed(time.Now())
					l.after(test.every)
				}
				value = changes
				l.after(time.Second)
				if len(l.began) == 0 || len(l.began) > test.most || seen != changes {
					t.Errorf("%d changes were %d syncs, want 1 to %d; the last saw the change %d", changes, len(l.began), test.most, seen)
				}
				if told := slices.Concat(l.done...); len(told) != changes || !slices.IsSortedFunc(told, time.Time.Compare) {
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
	for name, test := range map[string]struct{ takes, rest time.Duration }{
		"short":     {0, minPeriod},
		"long":      {400 * time.Millisecond, 400 * time.Millisecond},
		"very long": {20 * time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLoop(t, minPeriod, time.Hour, func(l *looped, _ int) (time.Time, bool) {
					l.Request()
					time.Sleep(test.takes)
					return time.Time{}, false
				})
				l.after(2 * time.Minute)
				if len(l.began) < 5 {
					t.Fatalf("%d syncs although each asks for another", len(l.began))
				}
				for n, ended := range l.ended[:len(l.began)-1] {
					if rest := l.began[n+1] - ended; rest != test.rest+pause {
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
		l.forget()
		l.Changed(time.Now())
		asked := time.Now()
		l.after(30 * time.Second)
		later := time.Now()
		l.Changed(later)
		l.after(10 * time.Second)
		if len(l.began) == 0 || l.done != nil {
			t.Fatalf("%d syncs, %d of them were told as done; want some, which failed", len(l.began), len(l.done))
		}
		if due := l.DueSince(); !due.Equal(asked) {
			t.Errorf("due since %s, want since %s, when the change came", due, asked)
		}
		l.after(2 * time.Minute)
		if diff := cmp.Diff([]time.Time{asked, later}, slices.Concat(l.done...)); diff != "" {
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
		healthy := false
		l := runLoop(t, 50*time.Millisecond, time.Hour, func(l *looped, _ int) (time.Time, bool) {
			for range mostChanges { // while the sync goes on
				l.Changed(time.Now())
			}
			return time.Time{}, !healthy
		})
		l.after(time.Second)
		healthy = true
		l.forget()
		l.after(100 * time.Millisecond)
		if len(l.done) == 0 {
			t.Fatal("no sync has succeeded")
		}
		if got := len(l.done[0]); got != mostChanges {
			t.Errorf("the first sync that succeeded tells of %d changes, want %d", got, mostChanges)
		}
	})
}

// TestLoop_FailureWithoutARequestIsDue, too, since the sync that failed began.
func TestLoop_FailureWithoutARequestIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLoop(t, 50*time.Millisecond, 15*time.Second, func(_ *looped, n int) (time.Time, bool) { return time.Time{}, n == 1 })
		l.after(20 * time.Second)
		if want := l.start.Add(l.began[1]); !l.DueSince().Equal(want) {
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
		l.forget()
		first := time.Now()
		l.Changed(first)
		l.after(pause + takes/2)
		second := time.Now()
		l.Changed(second)
		l.after(takes / 2)
		if len(l.ended) != 1 || l.DueSince().IsZero() || l.DueSince().After(second) {
			t.Errorf("%d syncs have ended, due since %s; want one, and due since %s or earlier", len(l.ended), l.DueSince(), second)
		}
		l.after(time.Second)
		if due := l.DueSince(); len(l.began) != 2 || !due.IsZero() {
			t.Errorf("%d syncs, due since %s; want two, and nothing due", len(l.began), due)
		}
		if diff := cmp.Diff([][]time.Time{{first}, {second}}, l.done); diff != "" {
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
		if diff := cmp.Diff(want, l.began); diff != "" {
			t.Errorf("syncs began (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]bool{false, true, false, true, false}, l.regular); diff != "" {
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
		if changes := l.take(); len(changes) != 0 {
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
				before := len(l.began)
				l.stop()
				synctest.Wait()
				select {
				case <-l.stopped:
				default:
					t.Error("it goes on")
				}
				if after := len(l.began); after != before {
					t.Errorf("%d syncs began after the end", after-before)
				}
			})
		})
	}
}
