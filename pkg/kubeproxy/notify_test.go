package kubeproxy

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openshift/origin-node/pkg/egress/report"
	"github.com/openshift/origin-node/pkg/extension"
)

var start = time.Unix(1_000_000, 0)

func at(seconds float64) float64 { return float64(start.Unix()) + seconds }

// clock drives a notifier with a sync period of 5 s, so a patience of 10 s.
type clock struct {
	notifier
	now    time.Time
	status report.Summary
	broken bool // its configuration
}

func newClock() *clock {
	c := &clock{notifier: notifier{mode: "iptables", syncPeriod: 5 * time.Second}, now: start}
	c.invalid = func() bool { return c.broken }
	c.extensions = []func() extension.Summary{func() extension.Summary { return c.status.Brief() }}
	return c
}

// after moves the time and returns the notifications.
func (c *clock) after(d time.Duration, queued, done map[string]float64) string {
	c.now = c.now.Add(d)
	return strings.Join(c.look(c.now, 30*time.Second, queued, done), "\n")
}

func TestNotifier_ReadyAfterEverythingHasSynced(t *testing.T) {
	c := newClock()
	both := map[string]float64{"IPv4": at(0), "IPv6": at(0)}
	for _, step := range []struct {
		name   string
		queued map[string]float64
		done   map[string]float64
		egress bool
		want   bool
	}{
		{"nothing runs", nil, nil, false, false},
		{"nothing synced", both, nil, false, false},
		{"one family", both, map[string]float64{"IPv4": at(1)}, true, false},
		{"both families, not egress", both, map[string]float64{"IPv4": at(1), "IPv6": at(1)}, false, false},
		{"all", both, map[string]float64{"IPv4": at(1), "IPv6": at(1)}, true, true},
		{"only once", both, map[string]float64{"IPv4": at(1), "IPv6": at(1)}, true, false},
	} {
		c.status.Ready = step.egress
		if got := strings.Contains(c.after(time.Second, step.queued, step.done), "READY=1"); got != step.want {
			t.Errorf("%s: READY=1 is %v, want %v", step.name, got, step.want)
		}
	}
}

func alive(told string) bool { return strings.Contains(told, "WATCHDOG=1") }

func TestNotifier_WatchdogWhileNothingIsDue(t *testing.T) {
	c := newClock()
	for range 100 {
		if told := c.after(10*time.Second, map[string]float64{"IPv4": at(0)}, map[string]float64{"IPv4": at(1)}); !alive(told) {
			t.Fatalf("no sign of life although nothing is due: %s", told)
		}
	}
}

// TestNotifier_WatchdogInABusyCluster: a change is always due, and a sync happens every few
// seconds.
func TestNotifier_WatchdogInABusyCluster(t *testing.T) {
	c := newClock()
	for i := range 400 {
		seconds := float64(i) / 4
		done := at(seconds - float64(i%20)/4 - 0.1) // every 5 s
		told := c.after(250*time.Millisecond, map[string]float64{"IPv4": at(seconds)}, map[string]float64{"IPv4": done})
		if strings.Contains(told, "not written") {
			t.Fatalf("after %gs: %s", seconds, told)
		}
	}
}

func TestNotifier_NoWatchdogWhileTheProxierIsStuck(t *testing.T) {
	c := newClock()
	queued, done := map[string]float64{"IPv4": at(5), "IPv6": at(1)}, map[string]float64{"IPv4": at(1), "IPv6": at(2)}
	c.after(0, queued, done)
	if told := c.after(9*time.Second, queued, done); strings.Contains(told, "not written") {
		t.Errorf("too early: %s", told)
	}
	if told := c.after(2*time.Second, queued, done); !strings.Contains(told, "have been due for 11s") || alive(told) {
		t.Errorf("got %q, want the status to tell and no sign of life", told)
	}
	done["IPv4"] = at(20)
	if told := c.after(time.Second, queued, done); !alive(told) {
		t.Errorf("got %q, want a sign of life after the sync", told)
	}
}

// TestNotifier_EndsANodeThatNobodyWatches: in a container there is no watchdog, and the kubelet's probe knows the proxier alone.
func TestNotifier_EndsANodeThatNobodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newClock()
		var knows atomic.Bool
		began := time.Now()
		c.queued = func() map[string]float64 { return map[string]float64{"IPv4": float64(began.Unix())} }
		var synced atomic.Int64
		c.synced = func() map[string]float64 { return map[string]float64{"IPv4": float64(synced.Load())} }
		c.knows = knows.Load
		var due atomic.Pointer[time.Time]
		due.Store(&time.Time{})
		c.extensions = []func() extension.Summary{func() extension.Summary { return extension.Summary{DueSince: *due.Load()} }}
		ended := make(chan error)
		go func() { ended <- c.watch(ctx) }()
		time.Sleep(time.Hour)
		late := time.Now()
		due.Store(&late)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "due for 2m") || time.Since(late) < mostLate || time.Since(late) > 2*mostLate {
			t.Errorf("ended with %v after %s", err, time.Since(late))
		}
		due.Store(&time.Time{})
		knows.Store(true)
		if err := c.watch(ctx); err == nil {
			t.Error("the proxier knows all objects, and has never written a rule")
		}
		knows.Store(false)
		go func() { ended <- c.watch(ctx) }()
		time.Sleep(time.Hour)
		knows.Store(true)
		time.Sleep(30 * time.Second) // its first try fails
		synced.Store(time.Now().Unix())
		time.Sleep(time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("rules were written soon after the objects came, and nothing was due then: %v", err)
		}
	})
}

func TestNotifier_NoWatchdogWhileEgressIsStuck(t *testing.T) {
	c := newClock()
	c.status = report.Summary{Ready: true, Bindings: 2, EgressIPs: 1, Refusals: 3, DueSince: start}
	queued, done := map[string]float64{"IPv4": at(0)}, map[string]float64{"IPv4": at(1)}
	if told := c.after(5*time.Second, queued, done); !strings.Contains(told, "STATUS=iptables proxy synced; egress SNAT: 2 bindings to 1 egress IPs, 3 refused") || !alive(told) {
		t.Errorf("got %q", told)
	}
	if told := c.after(15*time.Second, queued, done); alive(told) {
		t.Errorf("a sign of life although egress rules are due for 20 s: %q", told)
	}
}

// TestNotifier_EveryExtensionCounts: the node is ready when all extensions are, and alive as long as none is stuck.
func TestNotifier_EveryExtensionCounts(t *testing.T) {
	c := newClock()
	c.status = report.Summary{Ready: true}
	other := extension.Summary{Name: "tunnel's ports", Missing: []string{"ConfigMap"}}
	c.extensions = append(c.extensions, func() extension.Summary { return other })
	queued, done := map[string]float64{"IPv4": at(0)}, map[string]float64{"IPv4": at(1)}
	if told := c.after(time.Second, queued, done); strings.Contains(told, "READY") || !strings.Contains(told, "; tunnel's ports waiting for ConfigMap") {
		t.Errorf("got %q", told)
	}
	other = extension.Summary{Name: "tunnel's ports", Ready: true, Numbers: "3 node addresses, 2 ports", DueSince: start}
	if told := c.after(time.Second, queued, done); !strings.Contains(told, "READY") || !strings.Contains(told, "; tunnel's ports: 3 node addresses, 2 ports") {
		t.Errorf("got %q", told)
	}
	if told := c.after(15*time.Second, queued, done); alive(told) {
		t.Errorf("a sign of life although the tunnel's rules are due for 17 s: %q", told)
	}
}

// TestNotifier_InvalidConfigurationIsTold: it is no reason to start the node again, which would not start then.
func TestNotifier_InvalidConfigurationIsTold(t *testing.T) {
	c := newClock()
	queued, done := map[string]float64{"IPv4": at(0)}, map[string]float64{"IPv4": at(1)}
	const note = "the changed configuration is not valid"
	c.broken = true
	c.extensions = append(c.extensions, func() extension.Summary { return extension.Summary{Ready: true, Numbers: "two\nlines"} })
	told := c.after(20*time.Second, queued, done)
	if status, _, _ := strings.Cut(told[strings.Index(told, "STATUS="):], "\n"); !strings.Contains(status, "two lines") || !strings.Contains(status, note) || !alive(told) {
		t.Errorf("got %q, want one line of status that tells, and a sign of life", told)
	}
	c.broken = false
	if told := c.after(time.Second, queued, done); !strings.Contains(told, "STATUS=") || strings.Contains(told, note) {
		t.Errorf("got %q, want another status when the configuration is right again", told)
	}
}

func TestNotifier_NothingNew(t *testing.T) {
	c := newClock()
	queued, done := map[string]float64{"IPv4": at(0)}, map[string]float64{"IPv4": at(1)}
	c.after(time.Second, queued, done)
	if told := c.look(c.now.Add(time.Second), 30*time.Second, queued, done); !slices.Equal(told, nil) {
		t.Errorf("told %q again", told)
	}
}

func TestSettledPeriod_IsOftenEnoughForTheWatchdog(t *testing.T) {
	for watchdog, want := range map[time.Duration]time.Duration{0: readyPeriod, 180 * time.Second: readyPeriod, 1500 * time.Millisecond: 500 * time.Millisecond} {
		if got := settledPeriod(watchdog); got != want {
			t.Errorf("watchdog %s: %s, want %s", watchdog, got, want)
		}
	}
}

// TestNotifier_NoWatchdogWithoutAFirstSync: a proxier that never gets to write is not alive.
func TestNotifier_NoWatchdogWithoutAFirstSync(t *testing.T) {
	c, queued := newClock(), map[string]float64{"IPv4": at(0)}
	c.after(0, queued, nil)
	if told := c.after(11*time.Second, queued, nil); !strings.Contains(told, "have been due for 11s") || alive(told) || strings.Contains(told, "READY=1") {
		t.Errorf("got %q", told)
	}
}
