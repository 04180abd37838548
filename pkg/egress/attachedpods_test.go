//go:build !(kube1.35 || kube1.34)

package egress

import (
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
	"github.com/openshift/origin-node/pkg/egress/kubelet/kubelettest"
)

// fromKubelet returns a kubelet with these pods as the source.
func fromKubelet(t *testing.T, pods ...*v1.Pod) podSources {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pods.sock")
	k := &kubelettest.Kubelet{}
	k.Set(pods...)
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
		s := newSlice("web-1", "web")
		s.Namespace = "shop"
		s.Endpoints = endpointOf("shop", "pod-hash", uid, "10.128.0.5")
		if _, err := a.attacher.state.setSlice(s); err != nil {
			t.Fatal(err)
		}
	}
	slice("mirror")
	a.attacher.state.update(v1.IPv4Protocol)
	if all, _ := a.attacher.state.unconfirmed(); len(all) > 0 {
		t.Errorf("%v is not confirmed", all)
	}
}

// TestAttacher_Doubtful pods are those that a Service selects although its EndpointSlices do not name them, and those of
// which nothing is known.
func TestAttacher_Doubtful(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	doubtful := func(what string, want ...string) {
		t.Helper()
		a.attacher.state.update(v1.IPv4Protocol)
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
