package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// knownPods are the labels of pods by UID.
type knownPods map[string]map[string]string

func (p knownPods) Known(pod attachments.Pod) (podObject, bool) {
	labels, known := p[pod.UID]
	return podObject{Pod: pod, labels: labels}, known
}

func (p knownPods) Find(context.Context, attachments.Pod) (podObject, error) {
	return podObject{}, errNoSource
}

func (p knownPods) All(context.Context) ([]podObject, error) { return nil, errNoSource }

func (p knownPods) Available(context.Context) error { return nil }

// attacherTest is an attacher of a node whose kernel takes every plan at once, unless broken. Network namespaces exist
// that are not gone.
type attacherTest struct {
	*testing.T
	*Attacher
	folder string
	broken error
	gone   bool
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
	a.Attacher = &Attacher{
		ctx:     t.Context(),
		leading: func(interfaces []string) []string { return interfaces },
		state:   cluster.New(cluster.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd00:10::/32")}}), store: store, pods: pods,
		released: filepath.Join(folder, "released"), claims: openClaims(filepath.Join(folder, "claims")),
		exists: func(path string) bool {
			return path != "" && (!a.gone || path == filepath.Dir(attached("c1", "u1").Netns))
		},
		node: Node{
			Missing:  func() []string { return nil },
			Failure:  func([]v1.IPFamily) error { return a.broken },
			Via:      func(netip.Addr) string { return "" },
			Attached: func(context.Context) {},
			Await: func(context.Context, []v1.IPFamily, bool) error {
				for _, family := range cluster.Families {
					a.Attacher.state.Update(family)
				}
				return a.broken
			},
			FaultsChanged: func() {},
			Event:         func(plan.Reason, string) {},
		},
	}
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	a.Attacher.state.SetService(clustertest.NewService("web", func(s *v1.Service) {
		s.Namespace, s.Spec.Selector, s.Spec.IPFamilies = "shop", map[string]string{"app": "web"}, []v1.IPFamily{v1.IPv4Protocol}
	}))
	return a
}

// withoutService deletes shop/web.
func (a *attacherTest) withoutService() {
	a.Attacher.state.DeleteService(clustertest.NewService("web", func(s *v1.Service) { s.Namespace = "shop" }))
}

// label gives the pod u1 another label app.
func (a *attacherTest) label(app string) {
	a.Helper()
	if _, err := a.setPod(podObject{Pod: attached("c1", "u1").Pod, labels: map[string]string{"app": app}}); err != nil {
		a.Fatal(err)
	}
}

// slice tells of an EndpointSlice of shop/web that names pods at 10.128.0.5 by UID.
func (a *attacherTest) slice(uids ...string) {
	slice := clustertest.NewSlice("web-1", "web")
	slice.Namespace = "shop"
	for _, uid := range uids {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses: []string{"10.128.0.5"}, TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "pod-" + uid, UID: types.UID(uid)},
		})
	}
	if _, err := a.Attacher.state.SetSlice(slice); err != nil {
		a.Fatal(err)
	}
}

// endpointOf returns the endpoint of a pod.
func endpointOf(namespace, name, uid, ip string) []discovery.Endpoint {
	return []discovery.Endpoint{{Addresses: []string{ip}, TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(uid)}}}
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
	a.Attacher.state.Update(v1.IPv4Protocol)
	if got := a.Attacher.state.BindingsOf(netip.MustParseAddr("10.128.0.5")); (len(got) > 0) != bound {
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
			a.withoutService()
		}, attached("c3", "u3"), cni.Unbound, ""},
		{"objects are missing", func(a *attacherTest) { a.node.Missing = func() []string { return []string{cluster.Services} } }, attached("c1", "u1"), "", cni.WaitingFor},
		{"the file of claims cannot be written", func(a *attacherTest) { a.claims.path = "/proc/none/claims" }, attached("c1", "u1"), "", cni.NotNoted},
		{"nor for another namespace", func(a *attacherTest) {
			a.claims.path = "/proc/none/claims"
			a.withoutService()
		}, attached("c1", "u1"), cni.Unbound, ""},
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

// TestAttacher_ReadyForTheClustersFamilies: an IP family that pods have no addresses of keeps none from starting.
func TestAttacher_ReadyForTheClustersFamilies(t *testing.T) {
	for cidrs, want := range map[string]cni.Reason{"10.128.0.0/14": "", "10.128.0.0/14 fd00:10::/32": cni.NotWritten, "": cni.NotWritten} {
		a := newAttacherTest(t, t.TempDir(), someLabels)
		var config cluster.Config
		for _, cidr := range strings.Fields(cidrs) {
			config.ClusterCIDRs = append(config.ClusterCIDRs, netip.MustParsePrefix(cidr))
		}
		a.Attacher.state = cluster.New(config)
		a.node.Failure = func(families []v1.IPFamily) error {
			if slices.Contains(families, v1.IPv6Protocol) {
				return errors.New("ip6tables said no")
			}
			return nil
		}
		if err := a.Ready(); reasonOf(err) != want {
			t.Errorf("with the networks %q: %v, want %q", cidrs, err, want)
		}
	}
}

// TestAttacher_InterfaceIsLookedAt: the interfaces of a pod that starts are looked at once its attachment is known, and before what is written
// for it is awaited.
func TestAttacher_InterfaceIsLookedAt(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	var did []string
	a.node.Attached = func(context.Context) {
		did = append(did, fmt.Sprintf("looked with %d attachment in the store", len(a.store.All())))
	}
	await := a.node.Await
	a.node.Await = func(ctx context.Context, families []v1.IPFamily, look bool) error {
		did = append(did, "awaited")
		return await(ctx, families, look)
	}
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"looked with 1 attachment in the store", "awaited"}, did); diff != "" {
		t.Errorf("what was done (-want +got):\n%s", diff)
	}
}

// TestAttacher_Behind: who is behind which interface is told of pods whose interfaces the plugin has named, until they end.
func TestAttacher_Behind(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	named, unnamed := attached("c1", "u1"), attached("c2", "u2")
	named.Interfaces, unnamed.IPs = []string{"veth1"}, []netip.Addr{netip.MustParseAddr("10.128.0.6")}
	for _, attachment := range []attachments.Attachment{named, unnamed} {
		if _, err := a.Attach(t.Context(), attachment); err != nil {
			t.Fatal(err)
		}
	}
	behind := func(when string, want ...portsecurity.Told) {
		t.Helper()
		if diff := cmp.Diff(want, a.Behind(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	behind("attached", portsecurity.Told{Interfaces: named.Interfaces, Addresses: named.IPs})
	a.must(a.Detach(t.Context(), "c1"))
	behind("detached")
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
	all := a.node.Missing
	a.node.Missing = func() []string { return []string{cluster.Services} }
	if _, err := a.Check(t.Context(), "c1"); reasonOf(err) != cni.WaitingFor {
		t.Errorf("objects are not known: %v", err)
	}
	a.node.Missing = all

	a = newAttacherTest(t, folder, knownPods{})
	a.expect("a process later, which knows neither EndpointSlices nor pods", true)
	a.label("db")
	a.expect("another label", false)
	a.label("web")
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

// TestAttacher_SweepsPods whose network namespace is gone; what is released is remembered for a while.
func TestAttacher_SweepsPods(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	a.slice("u1")
	a.must(a.Sweep(t.Context(), time.Now().Add(time.Hour)))
	a.expect("its network namespace is there", true)
	a.gone = true
	a.must(a.Sweep(t.Context(), time.Now()))
	a.expect("its network namespace is gone", false)
	if got, _ := a.store.Get("c1"); !got.Cleared {
		t.Errorf("attachment %+v, expected that nothing is for it any more", got)
	}
	a.must(a.Sweep(t.Context(), time.Now().Add(keepReleased/2)))
	a.expect("the EndpointSlice may be late", false)
	a.must(a.Sweep(t.Context(), time.Now().Add(keepReleased+time.Minute)))
	a.expect("the EndpointSlice says for long that it runs", true)
	if all := a.store.All(); len(all) != 0 {
		t.Errorf("still known: %v", all)
	}
}

// TestAttacher_UnseenNamespace: what the node process never saw has not ended because it does not see it.
func TestAttacher_UnseenNamespace(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.gone = true
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	a.must(a.Sweep(t.Context(), time.Now()))
	a.expect("unseen", true)
}

// TestAttacher_NextProcessIsBlind: that of a DaemonSet may not see what the one of the unit has seen.
func TestAttacher_NextProcessIsBlind(t *testing.T) {
	folder := t.TempDir()
	a := newAttacherTest(t, folder, someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	next := newAttacherTest(t, folder, someLabels)
	next.exists = func(string) bool { return false }
	next.must(next.Sweep(t.Context(), time.Now()))
	for _, a := range next.store.All() {
		if !a.Released.IsZero() {
			t.Errorf("%s was released because this process does not see network namespaces", a.Pod)
		}
	}
	if len(next.store.All()) != 1 {
		t.Errorf("there are %d attachments, want one", len(next.store.All()))
	}
}

// TestAttacher_NamespaceOfAProcess: whether one is gone, who does not see all processes cannot tell.
func TestAttacher_NamespaceOfAProcess(t *testing.T) {
	for _, sees := range []bool{false, true} {
		a := newAttacherTest(t, t.TempDir(), someLabels)
		a.seesProcesses = func() bool { return sees }
		of := attached("c1", "u1")
		of.Netns = "/proc/4711/ns/net"
		if _, err := a.Attach(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		a.gone = true
		a.must(a.Sweep(t.Context(), time.Now()))
		a.expect(fmt.Sprintf("sees processes: %v", sees), !sees)
	}
}

// TestAttacher_Collects attachments that no sandbox has and whose network namespace is gone.
func TestAttacher_Collects(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name  string
		gone  bool
		valid []string
		later time.Duration
		bound bool
	}{
		{"valid", true, []string{"c1"}, time.Hour, true},
		{"young, so the list may be without it", true, nil, 0, true},
		{"its network namespace is there", false, nil, time.Hour, true},
		{"gone", true, nil, time.Hour, false},
	} {
		a.gone = step.gone
		a.must(a.Collect(t.Context(), step.valid, time.Now().Add(step.later)))
		a.expect(step.name, step.bound)
	}
}

// TestAttacher_StaticPod: its kubelet has another UID for it than the API, whose object may be made anew.
func TestAttacher_StaticPod(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), knownPods{})
	a.withoutService()
	if _, err := a.Attach(t.Context(), attached("c1", "hash")); err != nil {
		t.Fatal(err)
	}
	a.Attacher.state.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Namespace = "shop" })) // known by slices alone
	for _, uid := range []string{"u1", "u2"} {
		mirror := podObject{Pod: attachments.Pod{Namespace: "shop", Name: "pod-hash", UID: uid}, isStatic: true, static: "hash", labels: map[string]string{}}
		if _, err := a.setPod(mirror); err != nil {
			t.Fatal(err)
		}
		slice := clustertest.NewSlice("web-1", "web")
		slice.Namespace = "shop"
		slice.Endpoints = endpointOf("shop", "pod-hash", uid, "10.128.0.5")
		if _, err := a.Attacher.state.SetSlice(slice); err != nil {
			t.Fatal(err)
		}
		a.expect("the mirror "+uid, true)
	}
}

// TestAttacher_LateAttach: after the runtime has given up, and may have told of the end, nothing is attached.
func TestAttacher_LateAttach(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Attach(ctx, attached("c1", "u1")); err == nil || len(a.store.All()) != 0 {
		t.Errorf("err %v, attachments %v", err, a.store.All())
	}
}

// TestAttacher_EndedContainer is not attached, although its beginning is told after its end.
func TestAttacher_EndedContainer(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.must(attachments.Leave(a.released, attached("c1", "u1")))
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); reasonOf(err) != cni.Invalid {
		t.Errorf("err %v", err)
	}
	a.expect("ended", false)
	if _, err := a.Attach(t.Context(), attached("c2", "u1")); err != nil {
		t.Error(err)
	}
	a.expect("its next container", true)
}

// TestAttacher_AttachesBeforeAllIsKnown: a pod may start all the same.
func TestAttacher_AttachesBeforeAllIsKnown(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	all := a.node.Missing
	a.node.Missing = func() []string { return []string{cluster.Services} }
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); reasonOf(err) != cni.WaitingFor {
		t.Errorf("err %v", err)
	}
	a.node.Missing = all
	a.expect("when all is known", true)
}

// TestAttacher_NoDiskSpace: labels and ends hold although they cannot be written, and are written later.
func TestAttacher_NoDiskSpace(t *testing.T) {
	folder := t.TempDir()
	a := newAttacherTest(t, folder, someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	files, aside := filepath.Join(folder, "attachments"), filepath.Join(folder, "aside")
	a.must(os.Rename(files, aside))
	a.must(os.WriteFile(files, nil, 0o600))
	if _, err := a.setPod(podObject{Pod: attached("c1", "u1").Pod, labels: map[string]string{}}); err == nil {
		t.Error("labels were written into a file")
	}
	a.expect("other labels", false)
	a.must(os.Remove(files))
	a.must(os.Rename(aside, files))
	a.must(a.Sweep(t.Context(), time.Now()))
	newAttacherTest(t, folder, knownPods{}).expect("other labels, a process later", false)
}

// TestAttacher_WritesClaims when all objects are known; until then those of the process before hold.
func TestAttacher_WritesClaims(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.must(attachments.WriteClaims(a.claims.path, []string{"bank"}))
	claims := func(want ...string) {
		t.Helper()
		a.must(a.Sweep(t.Context(), time.Now()))
		got, err := attachments.ReadClaims(a.claims.path)
		if err != nil || len(got) != len(want) || len(want) > 0 && !got[want[0]] {
			t.Errorf("claims %v, err %v; expected %v", got, err, want)
		}
	}
	all := a.node.Missing
	a.node.Missing = func() []string { return []string{cluster.Services} }
	claims("bank")
	a.node.Missing = all
	claims("shop")
	a.withoutService()
	a.broken = errors.New("nft said no")
	if err := a.Sweep(t.Context(), time.Now()); err == nil {
		t.Error("no error")
	}
	if got, err := attachments.ReadClaims(a.claims.path); err != nil || !got["shop"] {
		t.Errorf("claims %v, err %v, although the kernel may hold bindings of shop", got, err)
	}
	a.broken = nil
	claims()
}

// TestAttacher_Unconfirmed counts pods that no EndpointSlice names, after a while in which none did, however long they have run.
func TestAttacher_Unconfirmed(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	unconfirmed := func(after time.Duration, want int) {
		t.Helper()
		a.Attacher.state.Update(v1.IPv4Protocol)
		if got := a.unconfirmed(time.Now().Add(after)); got != want {
			t.Errorf("%d unconfirmed after %s, want %d", got, after, want)
		}
	}
	unconfirmed(confirmedWithin/2, 0)
	unconfirmed(2*confirmedWithin, 1)
	a.slice("u1")
	unconfirmed(2*confirmedWithin, 0)
	a.slice()
	unconfirmed(10*confirmedWithin, 0)
	unconfirmed(21*confirmedWithin/2, 0)
	unconfirmed(12*confirmedWithin, 1)
}

// TestObserved_Results: what is counted is what the plugin was told.
func TestObservedNode_Results(t *testing.T) {
	for want, got := range map[string]string{
		cni.Bound:    resultOf(cni.Bound, nil),
		"PodUnknown": resultOf("", &cni.Failure{Reason: cni.PodUnknown}),
		"NotWritten": resultOf("", errors.New("no space")),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
