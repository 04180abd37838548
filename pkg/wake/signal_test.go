package wake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignal_OnceForAll: nobody waits to send it, what is sent before it is received is received once, and what is sent afterwards again.
func TestSignal_OnceForAll(t *testing.T) {
	s := New()
	if len(s) != 0 {
		t.Fatal("a new one was sent")
	}
	for range 2 {
		for range 3 {
			s.Send()
		}
		<-s
		if len(s) != 0 {
			t.Fatal("sent three times before it was received, and received twice")
		}
	}
}

// TestSignal_Follow: it is followed until the context ends.
func TestSignal_Follow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, came, ended := New(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.Follow(ctx, func() { came <- struct{}{} })
	}()
	for range 3 {
		s.Send()
		<-came
	}
	cancel()
	<-ended
}

// TestSignal_FollowAt: it is also called at the time that it returned last, at once if that has passed, and an earlier one does not count any more.
func TestSignal_FollowAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, came, began := New(), make(chan time.Duration, 10), time.Now()
		returns := []time.Duration{time.Hour, 2 * time.Minute, time.Minute, 0}
		go s.FollowAt(ctx, func() time.Time {
			came <- time.Since(began)
			if len(returns) == 0 {
				return time.Time{}
			}
			next := began.Add(returns[0])
			returns = returns[1:]
			return next
		})
		sees := func(want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			for _, at := range want {
				if len(came) == 0 {
					t.Fatalf("not called after %s", at)
				}
				if got := <-came; got != at {
					t.Errorf("called after %s, want %s", got, at)
				}
			}
			if len(came) > 0 {
				t.Errorf("called after %s", <-came)
			}
		}
		time.Sleep(time.Second)
		sees()
		s.Send()
		sees(time.Second) // again after an hour
		s.Send()
		sees(time.Second) // again after two minutes
		time.Sleep(time.Hour)
		sees(2*time.Minute, 2*time.Minute, 2*time.Minute) // two of them because the time had passed
		s.Send()
		sees(time.Hour + time.Second)
	})
}

func TestSleep(t *testing.T) {
	done := make(chan struct{})
	if began := time.Now(); !Sleep(done, time.Millisecond) || time.Since(began) < time.Millisecond {
		t.Error("has not slept for a millisecond")
	}
	close(done)
	if Sleep(done, time.Hour) {
		t.Error("has slept for an hour")
	}
}

// TestBroadcast_ReachesAll: all who wait go on, and who waits afterwards waits for the next time.
func TestBroadcast_ReachesAll(t *testing.T) {
	b := NewBroadcast()
	first, second := b.Next(), b.Next()
	b.Send()
	<-first
	<-second
	select {
	case <-b.Next():
		t.Error("who waits after the change does not wait for another one")
	default:
	}
}
