package wake

import (
	"context"
	"testing"
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
