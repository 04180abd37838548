//go:build !(kube1.35 || kube1.34)

package attach

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/kubelettest"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
)

// fromKubelet returns a kubelet with these pods as the source.
func fromKubelet(t *testing.T, pods ...*v1.Pod) podSources {
	t.Helper()
	k := &kubelettest.Kubelet{}
	k.Set(pods...)
	return sourceOf(t, k)
}

func sourceOf(t *testing.T, k *kubelettest.Kubelet) podSources {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pods.sock")
	k.ServeTest(t, path)
	client, err := kubelet.New(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return podSources{kubelet: client}
}

// TestPodSources_Kubelet answers; where it does not know a pod, or is not there, the API server is asked, if it may be.
func TestPodSources_Kubelet(t *testing.T) {
	web := newPod("u1", nil)
	pod := attachments.Pod{Namespace: "shop", Name: "web-0", UID: "u1"}
	knows, doesNot := fromKubelet(t, web), fromKubelet(t, newPod("u2", nil))
	gone, err := kubelet.New(filepath.Join(t.TempDir(), "none.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gone.Close() })
	watch := newPodWatch(fake.NewClientset(web), "here")
	informed := newPodWatch(fake.NewClientset(), "here")
	if err := informed.informer.GetStore().Add(web); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		sources podSources
		known   bool
		within  time.Duration
	}{
		{"it knows the pod", knows, true, kubeletPatience},
		{"it knows another of the name", doesNot, false, time.Minute},
		{"there is none", podSources{kubelet: gone}, false, kubeletPatience},
		{"nobody is asked", podSources{}, false, kubeletPatience},
		{"the API server knows the pod", podSources{kubelet: gone, watch: watch}, true, time.Minute},
		{"it has no Pods API", failing(t, codes.Unimplemented), false, kubeletPatience / 2},
		{"the informer knows the pod first", podSources{kubelet: doesNot.kubelet, watch: informed}, true, kubeletPatience / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			object, err := test.sources.Find(t.Context(), pod)
			if known := err == nil; known != test.known || known && object.labels["app"] != "u1" || time.Since(began) > test.within {
				t.Errorf("%+v, err %v after %s", object, err, time.Since(began))
			}
		})
	}
}

// failing returns a kubelet that answers with a code as the source.
func failing(t *testing.T, code codes.Code) podSources {
	t.Helper()
	k := &kubelettest.Kubelet{}
	k.Fail(status.Error(code, "fails"))
	return sourceOf(t, k)
}

// TestPodSources_ManyAtOnce: more pods than the kubelet answers for at once are all found, with few requests that it
// refuses.
func TestPodSources_ManyAtOnce(t *testing.T) {
	k := &kubelettest.Kubelet{}
	sources := sourceOf(t, k)
	var finding sync.WaitGroup
	for i := range 60 {
		uid := strconv.Itoa(i)
		k.Set(newPod(uid, nil))
		finding.Go(func() {
			if _, err := sources.Find(t.Context(), attachments.Pod{Namespace: "shop", Name: "web-0", UID: uid}); err != nil {
				t.Error(err)
			}
		})
	}
	finding.Wait()
	if refused := k.Refused(); refused == 0 || refused > 400 {
		t.Errorf("%d requests were refused, want some, but at most 400", refused)
	}
}

// TestPodSources_Available if one source answers, whatever it knows; and all pods are those of one that does.
func TestPodSources_Available(t *testing.T) {
	watch := newPodWatch(fake.NewClientset(newPod("u1", nil)), "here")
	go watch.informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), watch.informer.HasSynced) {
		t.Fatal("the informer does not start")
	}
	unimplemented := failing(t, codes.Unimplemented)
	for _, test := range []struct {
		name    string
		sources podSources
		pods    int
		want    string
	}{
		{"the kubelet", fromKubelet(t), 0, ""},
		{"the informer", podSources{watch: watch}, 1, ""},
		{"the informer alone", podSources{kubelet: unimplemented.kubelet, watch: watch}, 1, ""},
		{"a kubelet without the API", unimplemented, 0, "fails"},
		{"the informer waits", podSources{watch: newPodWatch(fake.NewClientset(), "here")}, 0, errNotListed.Error()},
		{"nobody is asked", podSources{}, 0, errNoSource.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.sources.Available(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("err %v, expected %q", err, test.want)
			}
			if all, err := test.sources.All(t.Context()); len(all) != test.pods || (err == nil) != (test.want == "") {
				t.Errorf("pods %v, err %v; expected %d", all, err, test.pods)
			}
		})
	}
}

// TestUnasked_NoKubelet: only one that answers is asked less and less often.
func TestUnasked_NoKubelet(t *testing.T) {
	gone, err := kubelet.New(filepath.Join(t.TempDir(), "none.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gone.Close() })
	waits := newPodWatch(fake.NewClientset(), "here")
	for _, test := range []struct {
		name    string
		sources podSources
		want    bool
	}{
		{"no source", podSources{}, true},
		{"the informer waits", podSources{watch: waits}, true},
		{"the informer waits, and there is no kubelet", podSources{kubelet: gone, watch: waits}, true},
		{"a kubelet answers that it has no Pods API", failing(t, codes.Unimplemented), false},
		{"a kubelet knows the labels", fromKubelet(t), false},
	} {
		if err := test.sources.Available(t.Context()); unasked(err) != test.want {
			t.Errorf("%s: %v after %v, want %v", test.name, !test.want, err, test.want)
		}
	}
}

// TestRefreshes_Due takes some pods at once, and those less and less often that stay doubtful.
func TestRefreshes_Due(t *testing.T) {
	r, now := refreshes{}, time.Now()
	var doubtful []attachments.Pod
	for i := range 2 * mostRefreshed {
		doubtful = append(doubtful, attachments.Pod{Namespace: "shop", Name: "web", UID: strconv.Itoa(i)})
	}
	first, second := r.due(doubtful, now), r.due(doubtful, now)
	if diff := cmp.Diff(doubtful, slices.Concat(first, second)); diff != "" || len(first) != mostRefreshed {
		t.Errorf("first %d, then (-want +got):\n%s", len(first), diff)
	}
	one, times := doubtful[:1], 0
	for end := now.Add(5 * time.Minute); now.Before(end); now = now.Add(refreshPeriod) {
		times += len(r.due(one, now))
	}
	if times < 10 || times > 20 {
		t.Errorf("a doubtful pod is asked about %d times in five minutes", times)
	}
	r.due(nil, now)
	if due := r.due(one, now); len(due) != 1 {
		t.Error("a pod that is doubtful again has to wait")
	}
}

// TestPodSources_StaticPod: its kubelet does not know its mirror's UID, so that EndpointSlices may name any.
func TestPodSources_StaticPod(t *testing.T) {
	static := newPod("hash", func(p *v1.Pod) {
		p.Name, p.Labels = "pod-hash", map[string]string{"app": "web"}
		p.Annotations = map[string]string{sourceAnnotation: "file"}
	})
	a := newAttacherTest(t, t.TempDir(), fromKubelet(t, static))
	if decision, err := a.Attach(t.Context(), attached("c1", "hash")); err != nil || decision.Decision != cni.Bound {
		t.Fatalf("decision %+v, err %v", decision, err)
	}
	slice := func(uid string) {
		t.Helper()
		s := clustertest.NewSlice("web-1", "web")
		s.Namespace = "shop"
		s.Endpoints = endpointOf("shop", "pod-hash", uid, "10.128.0.5")
		if _, err := a.Attacher.state.SetSlice(s); err != nil {
			t.Fatal(err)
		}
	}
	slice("mirror")
	a.Attacher.state.Update(v1.IPv4Protocol)
	if all, _ := a.Attacher.state.Unconfirmed(); len(all) > 0 {
		t.Errorf("%v is not confirmed", all)
	}
}

// TestAttacher_Doubtful pods are those that a Service selects although its EndpointSlices do not name them, and those of
// which nothing is known.
func TestAttacher_Doubtful(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	doubtful := func(what string, want ...string) {
		t.Helper()
		a.Attacher.state.Update(v1.IPv4Protocol)
		var got []string
		for _, pod := range a.doubtful() {
			got = append(got, pod.UID)
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: doubtful are %v, want %v", what, got, want)
		}
	}
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err != nil {
		t.Fatal(err)
	}
	doubtful("no EndpointSlice yet", "u1")
	a.slice("u1")
	doubtful("an EndpointSlice names it")
	a.slice()
	doubtful("it no longer does", "u1")
	a.label("db")
	doubtful("its label is another")
	a.must(a.Detach(t.Context(), "c1"))
	doubtful("it has ended")
	if _, err := a.Attach(t.Context(), attached("c3", "u3")); err == nil {
		t.Fatal("a pod that nobody knows starts")
	}
	doubtful("nobody knew it", "u3")
}
