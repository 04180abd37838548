package egress

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/openshift/origin-node/pkg/extension"
)

// TestExtension_DueSinceAllIsKnown: what waits for objects is not late, nor was it before they came.
func TestExtension_DueSinceAllIsKnown(t *testing.T) {
	e := New(t.Context(), testConfig)
	e.SetService(newService("web", nil))
	var last time.Time
	for _, kind := range e.barrier.Missing() {
		if due := e.Summary().DueSince; !due.IsZero() {
			t.Fatalf("due since %s while %v are missing", due, e.Summary().Missing)
		}
		last = time.Now()
		e.known(kind)
	}
	if due := e.Summary().DueSince; due.Before(last) {
		t.Errorf("due since %s, before all was known at %s", due, last)
	}
}

// TestExtension_WaitsForAllKinds: nothing is planned, or written, as long as one of them is missing. It ends
// all the same.
func TestExtension_WaitsForAllKinds(t *testing.T) {
	t.Setenv("PATH", "") // for the case that it does not wait
	synctest.Test(t, func(t *testing.T) {
		config := testConfig
		config.MinSyncPeriod, config.SyncPeriod = time.Second, 24*time.Hour
		e := New(t.Context(), config)
		extension.NewHost(t.Context(), e).Wrap(&idle{}, families...)
		for _, kind := range e.barrier.Missing()[1:] {
			e.known(kind)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		time.Sleep(48 * time.Hour) // of the bubble's clock
		if got := e.Snapshot(); len(got.Missing) != 1 || got.Families != nil {
			t.Errorf("missing %v, families %+v; want one kind missing, and no plan", got.Missing, got.Families)
		}
		cancel()
		<-ended
	})
}

// TestExtension_EndpointsElsewhere: of these the status tells, so those who watch it are woken. The loops
// are not.
func TestExtension_EndpointsElsewhere(t *testing.T) {
	config := testConfig
	config.NodeName = "here"
	e := New(t.Context(), config)
	e.state.setService(newService("web", nil))
	for _, test := range []struct {
		what      string
		do        func()
		due, told bool
	}{
		{"one comes elsewhere", func() { e.SetEndpointSlice(placed("web-1", "web", "10.128.0.5@there")) }, false, true},
		{"the same again", func() { e.SetEndpointSlice(placed("web-1", "web", "10.128.0.5@there")) }, false, false},
		{"of a Service without a claim", func() { e.SetEndpointSlice(placed("db-1", "db", "10.128.0.6@here")) }, false, false},
		{"it goes", func() { e.DeleteEndpointSlice(newSlice("web-1", "web")) }, false, true},
		{"one comes here", func() { e.SetEndpointSlice(placed("web-1", "web", "10.128.0.5@here")) }, true, false}, // the sync tells
	} {
		changed := e.Changed()
		test.do()
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		for name, f := range e.families {
			if due := !f.loop.DueSince().IsZero(); due != test.due || told != test.told {
				t.Errorf("%s: a sync of %s is due: %v, want %v; the status's watchers are told: %v, want %v", test.what, name, due, test.due, told, test.told)
			}
		}
	}
}

// TestExtension_ProxierSyncedNeverBlocks: the proxier calls it with its lock held, which others wait for
// with these in their hands.
func TestExtension_ProxierSyncedNeverBlocks(t *testing.T) {
	e := New(t.Context(), testConfig)
	for _, lock := range []*sync.Mutex{&e.mu, &e.state.mu, &e.events.mu} {
		lock.Lock()
		defer lock.Unlock()
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 3 { // the first fills what a note may wait in
			e.ProxierSynced(v1.IPv4Protocol)
		}
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Error("the proxier waits, with its lock held")
	}
}

// TestChangeTime_OfTheController: what an EndpointSlice says of when it changed counts, if it can be.
func TestChangeTime_OfTheController(t *testing.T) {
	believable := started.Add(time.Since(started) / 2).Round(0)
	for name, test := range map[string]struct {
		annotation string
		want       time.Time // zero for now
	}{
		"said":                     {believable.Format(time.RFC3339Nano), believable},
		"not said":                 {"", time.Time{}},
		"nonsense":                 {"yesterday", time.Time{}},
		"before this process":      {started.Add(-time.Hour).Format(time.RFC3339Nano), time.Time{}},
		"in another clock's times": {time.Now().Add(time.Hour).Format(time.RFC3339Nano), time.Time{}},
	} {
		slice := newSlice("web-1", "web")
		slice.Annotations = map[string]string{v1.EndpointsLastChangeTriggerTime: test.annotation}
		before := time.Now()
		got := changeTime(slice)
		switch {
		case test.want.IsZero() && (got.Before(before) || got.After(time.Now())):
			t.Errorf("%s: %s, want now", name, got)
		case !test.want.IsZero() && !got.Equal(test.want):
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := changeTime(&discovery.EndpointSlice{}); time.Since(got) > time.Minute {
		t.Errorf("without annotations: %s, want now", got)
	}
}

// idle is a proxier that has nothing to do.
type idle struct{ deaf }

func (*idle) OnTopologyChange(map[string]string) {}
func (*idle) SyncLoop()                          {}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
