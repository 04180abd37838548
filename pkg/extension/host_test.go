package extension

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

// notes are what happened, in order.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(note string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, note)
}

// take returns the notes and forgets them.
func (n *notes) take() (taken []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken, n.list = n.list, nil
	return taken
}

// stubProxier notes what it is told. It holds its lock, so to say, as long as locked is not closed.
type stubProxier struct {
	proxy.Provider
	*notes
	locked chan struct{}
	labels []map[string]string
}

func newStubProxier(n *notes) *stubProxier {
	return &stubProxier{notes: n, locked: make(chan struct{})}
}

// unlocked is a proxier whose lock nobody holds.
func unlocked(n *notes) *stubProxier {
	p := newStubProxier(n)
	close(p.locked)
	return p
}

func (p *stubProxier) did(what string) {
	<-p.locked
	p.add("proxier " + what)
}

func (p *stubProxier) OnServiceAdd(s *v1.Service)                    { p.did("adds " + s.Name) }
func (p *stubProxier) OnServiceUpdate(_, s *v1.Service)              { p.did("updates " + s.Name) }
func (p *stubProxier) OnServiceDelete(s *v1.Service)                 { p.did("deletes " + s.Name) }
func (p *stubProxier) OnServiceSynced()                              { p.did("knows Services") }
func (p *stubProxier) OnEndpointSlicesSynced()                       { p.did("knows EndpointSlices") }
func (p *stubProxier) Sync()                                         { p.did("syncs") }
func (p *stubProxier) SyncLoop()                                     { p.did("loops") }
func (p *stubProxier) OnEndpointSliceAdd(s *discovery.EndpointSlice) { p.did("adds " + s.Name) }
func (p *stubProxier) OnEndpointSliceUpdate(_, s *discovery.EndpointSlice) {
	p.did("updates " + s.Name)
}
func (p *stubProxier) OnEndpointSliceDelete(s *discovery.EndpointSlice) { p.did("deletes " + s.Name) }

func (p *stubProxier) OnTopologyChange(labels map[string]string) {
	p.did("is told its labels")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.labels = append(p.labels, maps.Clone(labels))
}

// plain is an Extension that follows nothing.
type plain struct {
	*notes
	proxier Proxier
}

func (e *plain) Attach(p Proxier)                 { e.proxier = p }
func (e *plain) ProxierSynced(family v1.IPFamily) { e.add("extension is told of " + string(family)) }
func (e *plain) Run(ctx context.Context)          { <-ctx.Done(); e.add("extension ends") }

// follower is an Extension that follows what the proxier is told.
type follower struct{ plain }

func (f *follower) SetService(s *v1.Service)                    { f.add("follower sets " + s.Name) }
func (f *follower) DeleteService(s *v1.Service)                 { f.add("follower deletes " + s.Name) }
func (f *follower) ServicesKnown()                              { f.add("follower knows Services") }
func (f *follower) SetEndpointSlice(s *discovery.EndpointSlice) { f.add("follower sets " + s.Name) }
func (f *follower) DeleteEndpointSlice(s *discovery.EndpointSlice) {
	f.add("follower deletes " + s.Name)
}
func (f *follower) EndpointSlicesKnown() { f.add("follower knows EndpointSlices") }

// TestHost_FollowersFirst: whatever the proxier is told, those who follow it know before.
func TestHost_FollowersFirst(t *testing.T) {
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	slice := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	for name, test := range map[string]struct {
		tell func(proxy.Provider)
		want []string
	}{
		"Service added":         {func(p proxy.Provider) { p.OnServiceAdd(service) }, []string{"follower sets web", "proxier adds web"}},
		"Service updated":       {func(p proxy.Provider) { p.OnServiceUpdate(&v1.Service{}, service) }, []string{"follower sets web", "proxier updates web"}},
		"Service deleted":       {func(p proxy.Provider) { p.OnServiceDelete(service) }, []string{"follower deletes web", "proxier deletes web"}},
		"EndpointSlice added":   {func(p proxy.Provider) { p.OnEndpointSliceAdd(slice) }, []string{"follower sets web-1", "proxier adds web-1"}},
		"EndpointSlice updated": {func(p proxy.Provider) { p.OnEndpointSliceUpdate(&discovery.EndpointSlice{}, slice) }, []string{"follower sets web-1", "proxier updates web-1"}},
		"EndpointSlice deleted": {func(p proxy.Provider) { p.OnEndpointSliceDelete(slice) }, []string{"follower deletes web-1", "proxier deletes web-1"}},
		"Services known":        {func(p proxy.Provider) { p.OnServiceSynced() }, []string{"follower knows Services", "proxier knows Services"}},
		"EndpointSlices known":  {func(p proxy.Provider) { p.OnEndpointSlicesSynced() }, []string{"follower knows EndpointSlices", "proxier knows EndpointSlices"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &notes{}
			h := NewHost(t.Context(), &plain{notes: n}, &follower{plain{notes: n}})
			test.tell(h.Wrap(unlocked(n), Families...))
			if diff := cmp.Diff(test.want, n.take()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHost_FirstSyncIsTriedAgain, in whichever of the two calls it failed, which come side by side. As
// long as one of them goes on, nobody knows whether it fails.
func TestHost_FirstSyncIsTriedAgain(t *testing.T) {
	knowServices, knowSlices := proxy.Provider.OnServiceSynced, proxy.Provider.OnEndpointSlicesSynced
	both, onlyIPv4 := Families, Families[:1]
	for name, test := range map[string]struct {
		early, late    func(proxy.Provider)
		served, synced []v1.IPFamily
		again          bool
	}{
		"fails with the Services":       {knowSlices, knowServices, both, nil, true},
		"fails with the EndpointSlices": {knowServices, knowSlices, both, nil, true},
		"fails in one IP family":        {knowServices, knowSlices, both, onlyIPv4, true},
		"succeeds":                      {knowServices, knowSlices, both, both, false},
		"succeeds in the one that runs": {knowSlices, knowServices, onlyIPv4, onlyIPv4, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &notes{}
				p, h := newStubProxier(n), NewHost(t.Context())
				h.Wrap(p, test.served...)
				go test.late(h)
				synctest.Wait() // in the proxier
				syncing := p.locked
				p.locked = unlocked(n).locked
				test.early(h)
				if n.take(); h.told.Load() != 1 {
					t.Fatalf("%d kinds are told, want one", h.told.Load())
				}
				for _, family := range test.synced {
					h.AfterSync(family, true)
				}
				close(syncing)
				synctest.Wait()
				if again := slices.Contains(n.take(), "proxier syncs"); again != test.again {
					t.Errorf("tried again: %v, want %v", again, test.again)
				}
			})
		})
	}
}

func TestHost_PartialSyncTellsNobody(t *testing.T) {
	n := &notes{}
	h := NewHost(t.Context(), &plain{notes: n}, &plain{notes: n})
	h.Wrap(unlocked(n), Families...)
	for _, step := range []struct {
		what   string
		family v1.IPFamily
		full   bool
		told   []string
	}{
		{"partial sync", v1.IPv6Protocol, false, nil},
		{"full sync", v1.IPv4Protocol, true, []string{"extension is told of IPv4", "extension is told of IPv4"}},
		{"partial sync after it", v1.IPv4Protocol, false, nil},
	} {
		h.AfterSync(step.family, step.full)
		if diff := cmp.Diff(step.told, n.take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// looping is an Extension that asks its Loop for a sync, as extensions do.
type looping struct {
	plain
	loop *Loop
}

func (e *looping) ProxierSynced(v1.IPFamily) { e.loop.Wake() }

// TestHost_AfterSyncNeverBlocks: the proxier holds its lock, and others wait for that with locks of
// their own in their hands.
func TestHost_AfterSyncNeverBlocks(t *testing.T) {
	e := &looping{plain{notes: &notes{}}, NewLoop(time.Second, time.Hour)}
	h := NewHost(t.Context(), e)
	h.Wrap(unlocked(e.notes), Families...)
	e.loop.mu.Lock()
	defer e.loop.mu.Unlock()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 3 { // the first fills what a note may wait in
			h.AfterSync(v1.IPv4Protocol, true)
		}
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Error("the proxier waits for an extension, with its lock held")
	}
}

// TestHost_Repair has the proxier write all of its rules, by the labels that it was told last, and does
// not wait for its lock. Where they change meanwhile, the proxier ends with the new ones, whichever
// of the two gets the lock first.
func TestHost_Repair(t *testing.T) {
	old, last, newer := map[string]string{"zone": "old"}, map[string]string{"zone": "last"}, map[string]string{"zone": "newer"}
	for name, test := range map[string]struct {
		before []map[string]string
		// during are told while the proxier's lock keeps the repair waiting.
		during []map[string]string
		want   map[string]string
	}{
		"without labels":     {nil, nil, nil},
		"of the last change": {[]map[string]string{old, last}, nil, last},
		"while they change":  {[]map[string]string{last}, []map[string]string{newer}, newer},
		"while they come":    {nil, []map[string]string{newer}, newer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &plain{notes: &notes{}}
				p, h := unlocked(e.notes), NewHost(t.Context(), e)
				h.Wrap(p, Families...)
				for _, labels := range test.before {
					h.OnTopologyChange(labels)
				}
				p.labels, p.locked = nil, make(chan struct{})
				e.proxier.Repair() // returns although the lock is held
				synctest.Wait()
				for _, labels := range test.during {
					go h.OnTopologyChange(labels)
				}
				synctest.Wait()
				close(p.locked)
				synctest.Wait()
				if len(p.labels) == 0 {
					t.Fatal("the proxier was told nothing")
				}
				if diff := cmp.Diff(test.want, p.labels[len(p.labels)-1]); diff != "" {
					t.Errorf("the proxier was told last (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestHost_RunsExtensionsBesideTheProxier, from its loop on, until the context ends; Wait returns when
// the last of them has ended.
func TestHost_RunsExtensionsBesideTheProxier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &notes{}
		e := &plain{notes: n}
		h := NewHost(ctx, e, &plain{notes: n})
		h.Wrap(unlocked(n), v1.IPv6Protocol)
		if diff := cmp.Diff([]v1.IPFamily{v1.IPv6Protocol}, e.proxier.Served()); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
		h.SyncLoop()
		synctest.Wait()
		if diff := cmp.Diff([]string{"proxier loops"}, n.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		cancel()
		h.Wait()
		if diff := cmp.Diff([]string{"extension ends", "extension ends"}, n.take()); diff != "" {
			t.Errorf("after Wait (-want +got):\n%s", diff)
		}
	})
}
