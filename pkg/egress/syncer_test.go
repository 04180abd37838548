package egress

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// iptablesStub puts programs in iptables' place, of which the next lines tell what they
// do: fail, or record that they ran. What the real ones do is tested in hack/netns.
func iptablesStub(t *testing.T, save, restore string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range map[string]string{
		"iptables": "echo 'iptables v1.8.9 (nf_tables)'", "ip6tables": "echo 'ip6tables v1.8.9 (nf_tables)'",
		"iptables-save": save, "ip6tables-save": save, "iptables-restore": restore, "ip6tables-restore": restore,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin") // without the other back end's programs
	return dir
}

func onePlan() plan.Plan {
	return plan.Build(plan.Input{ClusterCIDRs: testConfig.ClusterCIDRs[:1], Claims: []plan.Claim{{
		Service: plan.Service{Namespace: "ns", Name: "web"}, EgressIP: netip.MustParseAddr("203.0.113.1"),
		Protocols: []plan.Protocol{plan.TCP}, Endpoints: []netip.Addr{netip.MustParseAddr("10.128.0.5")},
	}}})
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	dir := iptablesStub(t, "exit 4", "exit 4")
	s := newSyncer(v1.IPv4Protocol, klog.Background(), Config{SyncPeriod: 4 * time.Second})
	try := func() time.Duration {
		s.nextTry = time.Time{}
		return s.trySync(t.Context(), onePlan(), nil)
	}
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		if got := try(); got < want || got > want+want/5 {
			t.Errorf("wait %s, want %s and up to a fifth more", got, want)
		}
	}
	if got := s.trySync(t.Context(), onePlan(), nil); got < 3*time.Second {
		t.Errorf("tried again after %s without waiting", got)
	}
	s.noteFullSync()
	for _, name := range []string{"iptables-save", "iptables-restore"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.trySync(t.Context(), onePlan(), func() {}); got != 0 {
		t.Errorf("the proxier's full sync did not end the backoff, %s left", got)
	}
	if !s.complete || !s.known {
		t.Errorf("complete %v, known %v; want both", s.complete, s.known)
	}
}

// TestRepairIsAskedForAgain: as long as rules of the proxier are missing, and not faster
// than the kernel is looked at.
func TestRepairIsAskedForAgain(t *testing.T) {
	s := newSyncer(v1.IPv4Protocol, klog.Background(), Config{SyncPeriod: time.Hour})
	asked := 0
	check := func() { s.checkProxier("*nat\nCOMMIT\n", func() { asked++ }) }
	check()
	check()
	if asked != 1 {
		t.Errorf("asked %d times at once, want once", asked)
	}
	s.repairAsked = time.Now().Add(-s.config.SyncPeriod / 2)
	check()
	if asked != 2 {
		t.Errorf("asked %d times, want again at the next look", asked)
	}
}

// recorder stands for a proxier that has nothing to do.
type recorder struct {
	proxy.Provider
	syncs chan struct{}
}

func (r *recorder) OnServiceAdd(*v1.Service)           {}
func (r *recorder) OnServiceSynced()                   {}
func (r *recorder) OnEndpointSlicesSynced()            {}
func (r *recorder) OnTopologyChange(map[string]string) {}
func (r *recorder) Sync()                              { r.syncs <- struct{}{} }
func (r *recorder) SyncLoop()                          {}

// TestBurstsCoalesce: many changes at once are few writes, and the last one counts.
func TestBurstsCoalesce(t *testing.T) {
	record := filepath.Join(t.TempDir(), "writes")
	iptablesStub(t, "", "cat >>"+record)
	config := testConfig
	config.MinSyncPeriod, config.SyncPeriod = 50*time.Millisecond, time.Hour
	e := New(t.Context(), config)
	inner := &recorder{syncs: make(chan struct{}, 10)}
	p := e.Wrap(inner, v1.IPv4Protocol)
	p.SyncLoop()
	if _, err := e.state.setSlice(newSlice("web-1", "web", "10.128.0.5")); err != nil {
		t.Fatal(err)
	}
	p.OnServiceSynced()
	if len(inner.syncs) != 0 {
		t.Error("the proxier is asked for a sync before everything is known")
	}
	p.OnEndpointSlicesSynced()
	if len(inner.syncs) != 1 {
		t.Error("the proxier's runner is not given the first sync, so it would not be tried again")
	}
	began := time.Now()
	const changes = 200
	for i := range changes {
		p.OnServiceAdd(newService("web", func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i)}).String()}
		}))
	}
	written := func() string {
		text, err := os.ReadFile(record)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t, "the last change is written", func() bool { return strings.Contains(written(), "203.0.113.200 ") })
	most := 2 + int(time.Since(began)/config.MinSyncPeriod)
	if got := strings.Count(written(), "COMMIT"); got > most {
		t.Errorf("%d changes were %d writes, want %d at most", changes, got, most)
	}
	eventually(t, "nothing is due", func() bool { return e.Status().DueSince.IsZero() })
	if status := e.Status(); status.Bindings != 1 || status.Ready {
		t.Errorf("status %+v; want one binding, not ready before the proxier has synced", status)
	}
	e.AfterSync(v1.IPv4Protocol, true)
	eventually(t, "ready after the proxier has synced", func() bool { return e.Status().Ready })
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
