package egress

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// knownPods are the labels of pods by UID.
type knownPods map[string]map[string]string

func (p knownPods) Pod(_ context.Context, pod attachments.Pod) (labels map[string]string, ended, known bool) {
	labels, known = p[pod.UID]
	return labels, false, known
}

// attacherTest is an attacher of a node whose kernel takes every plan at once, unless broken.
type attacherTest struct {
	*testing.T
	*attacher
	folder string
	broken error
}

// newAttacherTest returns one for the files in a folder, as a process that has just been started has it. The Service
// shop/web claims an egress IP and selects app=web.
func newAttacherTest(t *testing.T, folder string, pods Pods) *attacherTest {
	t.Helper()
	store, err := attachments.Open(filepath.Join(folder, "attachments"))
	if err != nil {
		t.Fatal(err)
	}
	a := &attacherTest{T: t, folder: folder}
	a.attacher = &attacher{
		state: newState(testConfig), store: store, pods: pods,
		released: filepath.Join(folder, "released"), claims: filepath.Join(folder, "claims"),
		missing: func() []string { return nil },
		await: func(context.Context, bool) error {
			for _, family := range families {
				a.attacher.state.update(family)
			}
			return a.broken
		},
	}
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	a.attacher.state.setService(newService("web", func(s *v1.Service) {
		s.Namespace, s.Spec.Selector, s.Spec.IPFamilies = "shop", map[string]string{"app": "web"}, []v1.IPFamily{v1.IPv4Protocol}
	}))
	return a
}

// slice tells of an EndpointSlice of shop/web that names pods at 10.128.0.5 by UID.
func (a *attacherTest) slice(uids ...string) {
	slice := newSlice("web-1", "web")
	slice.Namespace = "shop"
	for _, uid := range uids {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses: []string{"10.128.0.5"}, TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "pod-" + uid, UID: types.UID(uid)},
		})
	}
	if _, err := a.attacher.state.setSlice(slice); err != nil {
		a.Fatal(err)
	}
}

// attached is the attachment of a pod of shop at 10.128.0.5.
func attached(id, uid string) attachments.Attachment {
	return attachments.Attachment{
		ContainerID: id, IfName: "eth0", Netns: "/run/netns/" + id, Since: time.Now(),
		Pod: attachments.Pod{Namespace: "shop", Name: "pod-" + uid, UID: uid}, IPs: []netip.Addr{netip.MustParseAddr("10.128.0.5")},
	}
}

// expect expects whether 10.128.0.5 is bound after the next sync.
func (a *attacherTest) expect(what string, bound bool) {
	a.Helper()
	a.attacher.state.update(v1.IPv4Protocol)
	if got := a.attacher.state.bindingsOf(netip.MustParseAddr("10.128.0.5")); (len(got) > 0) != bound {
		a.Errorf("%s: bindings %v, expected some: %v", what, got, bound)
	}
}

func (a *attacherTest) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func reasonOf(err error) cni.Reason {
	var failure *cni.Failure
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

var someLabels = knownPods{"u1": {"app": "web"}, "u2": {"app": "db"}}

func TestAttacher_Decides(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*attacherTest)
		attach  attachments.Attachment
		want    string
		reason  cni.Reason
	}{
		{"a pod of the Service", func(*attacherTest) {}, attached("c1", "u1"), cni.Bound, ""},
		{"another pod", func(*attacherTest) {}, attached("c2", "u2"), cni.Unbound, ""},
		{"another pod at an address that EndpointSlices give to one before", func(a *attacherTest) { a.slice("u0") }, attached("c2", "u2"), cni.Unbound, ""},
		{"labels unknown", func(*attacherTest) {}, attached("c3", "u3"), "", cni.PodUnknown},
		{"labels unknown in a namespace without claims", func(a *attacherTest) {
			a.attacher.state.deleteService(&v1.Service{ObjectMeta: newService("web", func(s *v1.Service) { s.Namespace = "shop" }).ObjectMeta})
		}, attached("c3", "u3"), cni.Unbound, ""},
		{"objects are missing", func(a *attacherTest) { a.missing = func() []string { return []string{services} } }, attached("c1", "u1"), "", cni.WaitingFor},
		{"nothing can be written", func(a *attacherTest) { a.broken = errors.New("nft said no") }, attached("c1", "u1"), "", cni.NotWritten},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAttacherTest(t, t.TempDir(), someLabels)
			test.prepare(a)
			decision, err := a.Attach(t.Context(), test.attach)
			if decision.Decision != test.want || reasonOf(err) != test.reason {
				t.Errorf("decision %+v, err %v; expected %q, %q", decision, err, test.want, test.reason)
			}
		})
	}
}

// TestAttacher_Life of an address that one pod has after another, with EndpointSlices that are late.
func TestAttacher_Life(t *testing.T) {
	folder := t.TempDir()
	a := newAttacherTest(t, folder, someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	a.expect("before any EndpointSlice", true)
	a.slice("u1")
	a.expect("the EndpointSlice agrees", true)
	if _, err := a.Check(t.Context(), "c1"); err != nil {
		t.Error(err)
	}

	a = newAttacherTest(t, folder, knownPods{})
	a.expect("a process later, which knows neither EndpointSlices nor pods", true)
	_, err := a.SetPod(attached("c1", "u1").Pod, map[string]string{"app": "db"}, false)
	a.must(err)
	a.expect("another label", false)
	_, err = a.SetPod(attached("c1", "u1").Pod, map[string]string{"app": "web"}, false)
	a.must(err)
	a.expect("the label again", true)

	a.slice("u1")
	a.must(a.Detach(t.Context(), "c1"))
	a.expect("given back; the EndpointSlice is late", false)
	if _, err := a.Check(t.Context(), "c1"); reasonOf(err) != cni.NotAttached {
		t.Errorf("check: %v", err)
	}
	a = newAttacherTest(t, folder, someLabels)
	a.slice("u1")
	a.expect("another process later", false)
	a.slice("u9")
	a.expect("the EndpointSlice names a pod that was started without the plugin", true)
}

// TestAttacher_TakesNotes of pods that ended while no process answered, before it decides about the next.
func TestAttacher_TakesNotes(t *testing.T) {
	folder := t.TempDir()
	a := newAttacherTest(t, folder, someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	a.must(attachments.Leave(a.released, attached("c1", "u1")))
	a = newAttacherTest(t, folder, someLabels)
	a.expect("a process later", false)
	a.must(attachments.Leave(a.released, attached("c0", "u1")))
	if decision, err := a.Attach(t.Context(), attached("c2", "u2")); err != nil || decision.Decision != cni.Unbound {
		t.Errorf("decision %+v, err %v", decision, err)
	}
	if left, err := attachments.Peek(a.released); err != nil || len(left) != 0 {
		t.Errorf("left %v, err %v", left, err)
	}
}

func TestAttacher_Sweeps(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	sweep := func(exists bool, later time.Duration) {
		t.Helper()
		a.must(a.Sweep(t.Context(), func(string) bool { return exists }, time.Now().Add(later)))
	}
	known := func() (ids []string) {
		for _, attachment := range a.store.All() {
			ids = append(ids, attachment.ContainerID)
		}
		return ids
	}
	sweep(true, time.Hour)
	a.expect("its network namespace is there", true)
	a.must(a.Collect(t.Context(), nil, time.Now()))
	a.expect("young, so a list of sandboxes may be without it", true)
	sweep(false, 0)
	a.expect("its network namespace is gone", false)
	a.slice("u1")
	sweep(false, time.Hour)
	if diff := cmp.Diff([]string{"c1"}, known()); diff != "" {
		t.Errorf("an EndpointSlice names it (-want +got):\n%s", diff)
	}
	a.slice()
	sweep(false, time.Minute)
	if diff := cmp.Diff([]string{"c1"}, known()); diff != "" {
		t.Errorf("an EndpointSlice may come yet (-want +got):\n%s", diff)
	}
	sweep(false, time.Hour)
	if len(known()) != 0 {
		t.Errorf("still known: %v", known())
	}
}

// TestAttacher_CollectsOldAttachments that no sandbox has.
func TestAttacher_CollectsOldAttachments(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	a.must(a.Collect(t.Context(), []string{"c1"}, time.Now().Add(time.Hour)))
	a.expect("it is valid", true)
	a.must(a.Collect(t.Context(), []string{"c2"}, time.Now().Add(time.Hour)))
	a.expect("it is not", false)
}

// TestAttacher_WritesClaims when all objects are known; until then those of the process before hold.
func TestAttacher_WritesClaims(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.must(attachments.WriteClaims(a.claims, []string{"bank"}))
	claims := func(want ...string) {
		t.Helper()
		a.must(a.WriteClaims())
		got, err := attachments.ReadClaims(a.claims)
		if err != nil || len(got) != len(want) || len(want) > 0 && !got[want[0]] {
			t.Errorf("claims %v, err %v; expected %v", got, err, want)
		}
	}
	all := a.missing
	a.missing = func() []string { return []string{services} }
	claims("bank")
	a.missing = all
	claims("shop")
	a.attacher.state.deleteService(newService("web", func(s *v1.Service) { s.Namespace = "shop" }))
	claims()
}
