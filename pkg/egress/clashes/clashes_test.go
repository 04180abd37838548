package clashes

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEnder_AreLookedForAfterAnArrival: some times, for all that came lately; and from the beginning when another one comes.
func TestEnder_AreLookedForAfterAnArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		type look struct {
			after time.Duration
			count int
		}
		var mu sync.Mutex
		var looks []look
		began, c := time.Now(), New(Config{})
		go c.during(ctx, func(_ context.Context, came map[netip.Addr]time.Time) {
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, look{time.Since(began), len(came)})
		})
		first, second := map[netip.Addr]bool{netip.MustParseAddr("203.0.113.1"): true}, map[netip.Addr]bool{netip.MustParseAddr("203.0.113.2"): true}
		sees := func(during time.Duration, want ...look) {
			t.Helper()
			mu.Lock()
			began, looks = time.Now(), nil
			mu.Unlock()
			time.Sleep(during)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, looks, cmp.AllowUnexported(look{})); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		}
		sees(time.Hour)
		c.Expect(nil, time.Now())
		sees(time.Hour)
		c.Expect(first, time.Now())
		sees(3*time.Second, look{500 * time.Millisecond, 1}, look{2 * time.Second, 1})
		c.Expect(nil, time.Now()) // which begins nothing anew
		c.Expect(second, time.Now())
		sees(time.Hour, look{500 * time.Millisecond, 2}, look{2 * time.Second, 2}, look{5 * time.Second, 2}, look{15 * time.Second, 2}, look{time.Minute, 2}, look{5 * time.Minute, 2})
		c.Expect(first, time.Now())
		sees(time.Second, look{500 * time.Millisecond, 1})
	})
}

// TestAmong_WhatHasGoneAgain is not looked for, nor what is no egress IP.
func TestAmong_WhatHasGoneAgain(t *testing.T) {
	one, two, three := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3")
	at := time.Now()
	got := among([]netip.Addr{one, two}, map[netip.Addr]time.Time{one: at, two: at, three: at}, map[netip.Addr]bool{one: true, three: true})
	if len(got) != 1 || got[one] != at {
		t.Errorf("got %v, want %s alone", got, one)
	}
}

// TestEnder_SaysWhenEachCame: another one that comes makes none younger.
func TestEnder_SaysWhenEachCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		first, second := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
		c, ages := New(Config{}), make(chan [2]time.Duration, 20)
		go c.during(ctx, func(_ context.Context, came map[netip.Addr]time.Time) {
			ages <- [2]time.Duration{time.Since(came[first]), time.Since(came[second])}
		})
		c.Expect(map[netip.Addr]bool{first: true}, time.Now())
		time.Sleep(59 * time.Second)
		synctest.Wait()
		c.Expect(map[netip.Addr]bool{second: true}, time.Now())
		for len(ages) > 0 {
			<-ages // of the first alone
		}
		if got, want := <-ages, [2]time.Duration{59*time.Second + 500*time.Millisecond, 500 * time.Millisecond}; got != want {
			t.Errorf("they came %v ago, want %v", got, want)
		}
	})
}
