package portblocks

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

var (
	egressIP  = netip.MustParseAddr("203.0.113.10")
	egressIP6 = netip.MustParseAddr("2001:db8::10")
)

// apiServer keeps Leases as a real one does: a patch with a version changes that version alone. What a real one does with the same
// requests is in hack/e2e.
type apiServer struct {
	*testing.T
	*fake.Clientset

	mu       sync.Mutex
	versions int
	refuses  error
	// refused are the names of Leases that nobody may create, told what keepers have said that fails.
	refused map[string]bool
	told    []error
	// loses is how many patches are applied without an answer.
	loses int
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{T: t, Clientset: fake.NewClientset()}
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	s.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refuses != nil {
			return true, nil, s.refuses
		}
		s.versions++
		version := strconv.Itoa(100 + s.versions)
		switch action := action.(type) {
		case clienttesting.CreateAction:
			lease := action.GetObject().(*coordinationv1.Lease).DeepCopy()
			if s.refused[lease.Name] {
				return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), lease.Name, nil)
			}
			lease.ResourceVersion = version
			err := s.Tracker().Create(leases, lease, "origin-node")
			return true, lease, err
		case clienttesting.PatchAction:
			object, err := s.Tracker().Get(leases, "origin-node", action.GetName())
			if err != nil {
				return true, nil, err
			}
			lease := object.(*coordinationv1.Lease).DeepCopy()
			var patched coordinationv1.Lease
			if err := json.Unmarshal(action.GetPatch(), &patched); err != nil {
				return true, nil, err
			}
			if patched.ResourceVersion != lease.ResourceVersion {
				return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), action.GetName(), fmt.Errorf("version %s, not %s", lease.ResourceVersion, patched.ResourceVersion))
			}
			lease.ResourceVersion, lease.Annotations = version, patched.Annotations
			if err := s.Tracker().Update(leases, lease, "origin-node"); err != nil || s.loses == 0 {
				return true, lease, err
			}
			s.loses--
			return true, nil, context.DeadlineExceeded
		}
		return false, nil, nil
	})
	return s
}

// keeper returns the running Keeper of a node, which knows all Leases, and what it says that fails.
func (s *apiServer) keeper(ctx context.Context, node string) (*Keeper, func() error) {
	var failing error
	k := NewKeeper(Config{
		Namespace: "origin-node", NodeName: node, Explain: func(err error) error { return err }, Changed: func() {},
		Failing: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			failing, s.told = err, append(s.told, err)
		},
	})
	k.Listed()
	go k.Run(ctx, s.Clientset)
	return k, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return failing
	}
}

// TestKeeper_TwoNodes claim blocks of an egress IP, and learn of each other's claims by their conflicts alone.
func TestKeeper_TwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, _ := s.keeper(ctx, "node-a")
		b, _ := s.keeper(ctx, "node-b")
		had := map[kernel.Ports]string{}
		var mu sync.Mutex
		var starting sync.WaitGroup
		for i := range 40 {
			k := []*Keeper{a, b}[i%2]
			starting.Go(func() {
				id := fmt.Sprintf("pod-%d", i)
				given, err := k.Assign(ctx, id, []netip.Addr{egressIP, egressIP6}, 512)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || len(given.Of) != 2 || had[given.Ports] != "" {
					t.Errorf("%s got %v, %v, which %q has", id, given, err, had[given.Ports])
				}
				had[given.Ports] = id
			})
		}
		starting.Wait()
	})
}

// TestKeeper_NoAPIServer: a pod gets the spare block at once, and the next one shares within Patience.
func TestKeeper_NoAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k, failing := s.keeper(ctx, "node-a")
		if given, err := k.Assign(ctx, "first", []netip.Addr{egressIP}, 512); err != nil || isNone(given.Ports) {
			t.Fatalf("%v, %v", given, err)
		}
		synctest.Wait()
		s.mu.Lock()
		s.refuses = errors.New("connection refused")
		s.mu.Unlock()
		before := time.Now()
		if given, err := k.Assign(ctx, "second", []netip.Addr{egressIP}, 512); err != nil || isNone(given.Ports) || time.Since(before) > 0 {
			t.Errorf("%v, %v after %s", given, err, time.Since(before))
		}
		if given, err := k.Assign(ctx, "third", []netip.Addr{egressIP}, 512); err != nil || !isNone(given.Ports) || time.Since(before) > Patience {
			t.Errorf("%v, %v after %s", given, err, time.Since(before))
		}
		if failing() == nil {
			t.Error("nobody is told that nothing can be claimed")
		}
		s.mu.Lock()
		s.refuses = nil
		s.mu.Unlock()
		time.Sleep(2 * longestRetry)
		if given, _ := k.Of("third"); !isNone(given.Ports) || failing() != nil {
			t.Errorf("a pod that shares got %v; failing %v", given, failing())
		}
		if given, err := k.Assign(ctx, "fourth", []netip.Addr{egressIP}, 512); err != nil || isNone(given.Ports) {
			t.Errorf("%v, %v", given, err)
		}
	})
}

// TestKeeper_LostAnswer: what was written although nobody said so is no failure any more as soon as that is known.
func TestKeeper_LostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k, failing := s.keeper(ctx, "node-a")
		assign := func(id string) {
			if given, err := k.Assign(ctx, id, []netip.Addr{egressIP}, 512); err != nil || isNone(given.Ports) {
				t.Errorf("%s: %v, %v", id, given, err)
			}
			synctest.Wait()
		}
		assign("first")
		s.mu.Lock()
		s.loses = 1
		s.mu.Unlock()
		for i := 0; failing() == nil && i < 100; i++ {
			assign(fmt.Sprintf("pod-%d", i)) // until a claim is needed
		}
		if failing() == nil {
			t.Fatal("an answer was lost, and nobody is told")
		}
		object, err := s.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "origin-node", LeaseName(egressIP))
		if err != nil {
			t.Fatal(err)
		}
		k.SetLease(object.(*coordinationv1.Lease))
		synctest.Wait()
		if err := failing(); err != nil {
			t.Errorf("the claim is there, and this is told: %v", err)
		}
	})
}

// TestKeeper_RefusedLeases: what is told of Leases that nobody may create stays the same, whatever becomes of other ones, until nothing is to be
// written there.
func TestKeeper_RefusedLeases(t *testing.T) {
	for name, both := range map[string]bool{"both": true, "one, and the other is written": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t)
				s.refused = map[string]bool{LeaseName(egressIP): true, LeaseName(egressIP6): both}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				k, failing := s.keeper(ctx, "node-a")
				for i := range 30 {
					for _, ip := range []netip.Addr{egressIP, egressIP6} {
						if _, err := k.Assign(ctx, fmt.Sprintf("pod-%d-%s", i, ip), []netip.Addr{ip}, 512); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(20 * time.Second)
				}
				s.mu.Lock()
				if len(s.told) == 0 {
					t.Error("nobody is told")
				}
				for i, err := range s.told {
					if err == nil || i > 0 && !both || i > 1 {
						t.Errorf("told as number %d: %v", i, err)
					}
				}
				s.mu.Unlock()
				for i := range 30 {
					k.Release(fmt.Sprintf("pod-%d-%s", i, egressIP))
					k.Release(fmt.Sprintf("pod-%d-%s", i, egressIP6))
				}
				time.Sleep(2 * keepSpare)
				if err := failing(); err != nil {
					t.Errorf("nothing is to be written, and this is told: %v", err)
				}
			})
		})
	}
}

// TestKeeper_WrongLease: nothing is claimed where it cannot be read what is.
func TestKeeper_WrongLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k, failing := s.keeper(ctx, "node-a")
		lease := Write{EgressIP: egressIP}.lease("origin-node")
		lease.ResourceVersion, lease.Annotations[Annotation] = "7", `{"1000-1500": {}}`
		k.SetLease(lease)
		given, err := k.Assign(ctx, "first", []netip.Addr{egressIP}, 512)
		if synctest.Wait(); err != nil || !isNone(given.Ports) || failing() == nil {
			t.Errorf("%v, %v, failing %v", given, err, failing())
		}
		lease = lease.DeepCopy()
		lease.ResourceVersion, lease.Annotations[Annotation] = "8", `{}`
		if err := s.Tracker().Create(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "origin-node"); err != nil {
			t.Fatal(err)
		}
		k.SetLease(lease)
		synctest.Wait()
		if failing() != nil {
			t.Error(failing())
		}
	})
}

// TestKeeper_ReadableLeases: nothing fails, however many there are.
func TestKeeper_ReadableLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k, failing := s.keeper(ctx, "node-a")
		for ip := egressIP; ip != netip.MustParseAddr("203.0.113.14"); ip = ip.Next() {
			lease := Write{EgressIP: ip}.lease("origin-node")
			lease.ResourceVersion = "7"
			k.SetLease(lease)
		}
		synctest.Wait()
		if err := failing(); err != nil {
			t.Error(err)
		}
	})
}

func TestLeaseName(t *testing.T) {
	for ip, want := range map[netip.Addr]string{
		egressIP:                          "egress-ports-203-0-113-10",
		netip.MustParseAddr("2001:db8::"): "egress-ports-2001-0db8-0000-0000-0000-0000-0000-0000",
	} {
		got := LeaseName(ip)
		if back, is := EgressIPOf(got); got != want || !is || back != ip {
			t.Errorf("%s is %s, and back %s, %t", ip, got, back, is)
		}
	}
	for _, other := range []string{"node-1", "egress-ports-", "egress-ports-203-0-113", "egress-ports-203-0-113-010", "egress-ports-2001-db8-0-0-0-0-0-1"} {
		if ip, is := EgressIPOf(other); is {
			t.Errorf("%s is the Lease of %s", other, ip)
		}
	}
}

func TestReadClaims_Wrong(t *testing.T) {
	for text, kept := range map[string]int{
		`{"1024-1535": {"node": "a"}, "2048-2559": 7}`:  2, // nobody gets the second
		`{"1024-1535": {"node": "a"}, "2048-2600": {}}`: 0,
		`{"1024-1535`: 0, `[]`: 0, `{"0-511": {}}`: 0, `{"61440-61951": {}}`: 0, `{"1025-1536": {}}`: 0, `{"1024-1535 ": {}}`: 0,
	} {
		lease := Write{EgressIP: egressIP}.lease("origin-node")
		lease.ResourceVersion, lease.Annotations[Annotation] = "7", text
		if _, claims, err := readClaims(lease); err == nil || len(claims) != kept || claims != nil && kept == 0 {
			t.Errorf("%s: %v, %v", text, claims, err)
		}
	}
}

// TestAssigned_Since: a node's Lease says since when a pod has ports. A list that would be too long with it is without, as earlier versions
// wrote it, which is read, too. Only one that is too long also then says nothing.
func TestAssigned_Since(t *testing.T) {
	since := time.Date(2026, 11, 27, 9, 0, 0, 123456789, time.FixedZone("", 3600))
	list := func(pods int) (list []Assignment) {
		for i := range pods {
			ip := netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)})
			list = append(list, Assignment{
				Pod:     Pod{"shop", "web-7d9f8b6c5d-x2x4k", "6f1c2e7a-0b5e-4a53-9a3e-0d4a1c9d7f11", ip},
				Service: "shop/web", EgressIP: egressIP, Ports: kernel.Ports{First: 39936, Last: 40447}, Node: "node-a", Since: since,
			})
		}
		return list
	}
	tests := []struct {
		pods        int
		told, since bool
	}{{1, true, true}, {410, true, true}, {470, true, false}, {520, false, false}}
	for _, tt := range tests {
		text := FormatAssigned(list(tt.pods))
		if told := text != TooManyAssigned; told != tt.told || len(text) > mostAssigned {
			t.Errorf("%d pods: %d bytes: %.100s", tt.pods, len(text), text)
		}
		if !tt.told {
			continue
		}
		read, err := ParseAssigned("node-a", text)
		want := list(tt.pods)
		for i := range want {
			want[i].Since = time.Time{}
			if tt.since {
				want[i].Since = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
			}
		}
		if diff := cmp.Diff(want, read, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
			t.Errorf("%d pods: %v (-want +got):\n%s", tt.pods, err, diff)
		}
		if blocks, err := ParseBlocks(text); err != nil || len(blocks) != tt.pods {
			t.Errorf("%d pods: %d blocks, %v", tt.pods, len(blocks), err)
		}
	}
	if with := FormatAssigned(list(1)); !strings.Contains(with, `"since":"2026-11-27T08:00:00Z"`) || strings.Contains(WithoutNames(with), "since") {
		t.Errorf("%s, for nodes %s", with, WithoutNames(with))
	}
	earlier := `[{"pod":{"namespace":"shop","name":"web-0","uid":"u1","ip":"10.128.0.5"},"service":"shop/web","egressIP":"203.0.113.10","ports":{"first":1024,"last":1535},"node":"node-a"}]`
	if read, err := ParseAssigned("node-a", earlier); err != nil || len(read) != 1 || !read[0].Since.IsZero() || read[0].Node != "node-a" {
		t.Errorf("of an earlier version: %+v, %v", read, err)
	}
}

func TestParseAssigned_WhatIsFormatted(t *testing.T) {
	assigned := []Assignment{
		{Pod: Pod{"shop", "web-0", "u1", netip.MustParseAddr("10.128.0.5")}, Service: "shop/web", EgressIP: egressIP, Ports: kernel.Ports{First: 1024, Last: 1535}, Node: "node-a", Since: time.Now()},
		{Pod: Pod{"shop", "web-1", "u2", netip.MustParseAddr("10.128.0.6")}, Service: "shop/web", EgressIP: egressIP, Ports: Shared, Shared: true, Node: "node-a"},
	}
	text := FormatAssigned(assigned)
	short := WithoutNames(text)
	if strings.Contains(short, "web-0") || WithoutNames(short) != short || WithoutNames("{") != "{" {
		t.Errorf("%s is left of %s", short, text)
	}
	if blocks, err := ParseBlocks(short); err != nil || len(blocks) != 1 {
		t.Errorf("%v, %v", blocks, err)
	}
	blocks, err := ParseBlocks(text)
	if want := (kernel.Block{Pod: assigned[0].Pod.IP, EgressIP: egressIP, Ports: assigned[0].Ports}); err != nil || len(blocks) != 1 || blocks[0] != want {
		t.Errorf("%v, %v; want %v", blocks, err, want)
	}
	if blocks, err := ParseBlocks(`[{"pod": {"ip": "fd00::5"}, "egressIP": "203.0.113.10", "ports": {"first": 1024, "last": 1535}}]`); err == nil || len(blocks) > 0 {
		t.Errorf("%v, %v", blocks, err)
	}
}

// TestWithdraw_GivesBackOwnBlocks, of all egress IPs, and no others; what cannot be read stays, and is told.
func TestWithdraw_GivesBackOwnBlocks(t *testing.T) {
	s := newAPIServer(t)
	lease := func(name, text string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		l.Namespace, l.Name, l.ResourceVersion, l.Annotations = "origin-node", name, "7", map[string]string{Annotation: text}
		return l
	}
	const both = `{"1024-1535":{"node":"node-1","since":"2026-11-27T08:00:00Z"},"1536-2047":{"node":"node-2","since":"2026-11-27T08:00:00Z"}}`
	const others = `{"1536-2047":{"node":"node-2","since":"2026-11-27T08:00:00Z"}}`
	const broken = `{"1024-1535":{"node":"node-1"},"1536-2047":7}`
	before := map[string]string{LeaseName(egressIP): both, LeaseName(egressIP6): broken, "node-1": both}
	for name, text := range before {
		if err := s.Tracker().Add(lease(name, text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Withdraw(t.Context(), s.Clientset, "origin-node", "node-1"); err == nil || !strings.Contains(err.Error(), "1536-2047") {
		t.Errorf("of what cannot be read: %v", err)
	}
	for name, want := range map[string]string{LeaseName(egressIP): others, LeaseName(egressIP6): broken, "node-1": both} {
		got, err := s.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "origin-node", name)
		if err != nil {
			t.Fatal(err)
		}
		if text := got.(*coordinationv1.Lease).Annotations[Annotation]; text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
