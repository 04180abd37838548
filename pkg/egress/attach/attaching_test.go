package attach

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/wake"
)

func newPod(uid string, change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: types.UID(uid), Labels: map[string]string{"app": uid}}}
	if change != nil {
		change(pod)
	}
	return pod
}

// static makes a pod the mirror of a static one that has this UID for the kubelet.
func static(uid string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: uid} }
}

// TestPodWatch_Find: the informer answers, or the API server where the informer is late. A pod of the same name is
// another one.
func TestPodWatch_Find(t *testing.T) {
	for _, test := range []struct {
		name                string
		informed, inCluster *v1.Pod
		known, ended        bool
	}{
		{"the informer knows it", newPod("u1", nil), nil, true, false},
		{"it has ended", newPod("u1", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }), nil, true, true},
		{"the informer is late", newPod("u0", nil), newPod("u1", nil), true, false},
		{"it is static", newPod("u0", static("u1")), nil, true, false},
		{"another static pod", newPod("u0", static("u2")), nil, false, false},
		{"nobody knows it", newPod("u0", nil), newPod("u0", nil), false, false},
		{"there is none", nil, nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			if test.inCluster != nil {
				client = fake.NewClientset(test.inCluster)
			}
			w := newPodWatch(client, "here")
			if test.informed != nil {
				if err := w.informer.GetStore().Add(test.informed); err != nil {
					t.Fatal(err)
				}
			}
			object, err := w.Find(t.Context(), attachments.Pod{Namespace: "shop", Name: "web-0", UID: "u1"})
			if known := err == nil; known != test.known || known && (object.ended != test.ended || object.labels["app"] == "") {
				t.Errorf("err %v, %+v", err, object)
			}
		})
	}
}

// TestAttacher_RunsWithBothSources of pods' labels. The race detector watches.
func TestAttacher_RunsWithBothSources(t *testing.T) {
	folder := t.TempDir()
	a := newAttacherTest(t, folder, nil)
	a.config = Config{Socket: filepath.Join(folder, "cni.sock"), Kubelet: filepath.Join(folder, "kubelet.sock"), WatchPods: true}
	ctx, cancel := context.WithCancel(t.Context())
	a.ctx = ctx
	var running sync.WaitGroup
	a.Attacher.Run(&running, fake.NewClientset())
	cancel()
	running.Wait()
}

// TestNoteClaims_AtOnce notes the claim of another Service without a sweep.
func TestNoteClaims_AtOnce(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.Attacher.claimed = wake.New()
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	a.ctx = ctx
	running.Go(a.noteClaims)
	defer running.Wait()
	defer cancel()
	for _, namespace := range []string{"bank", "depot"} {
		a.Attacher.state.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Namespace = namespace }))
		a.ClaimsMayDiffer()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			claims, err := attachments.ReadClaims(a.claims.path)
			if claims[namespace] {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("claims %v, err %v; expected %s", claims, err, namespace)
			}
		}
	}
}

// TestStripPod_KeepsNoSecrets: of a pod it keeps what predictions need.
func TestStripPod_KeepsNoSecrets(t *testing.T) {
	needed := func(p *v1.Pod) {
		static("u0")(p)
		p.Spec.HostNetwork, p.Status.PodIPs = true, []v1.PodIP{{IP: "10.128.0.5"}}
	}
	secret := newPod("u1", func(p *v1.Pod) {
		needed(p)
		p.Spec.Containers = []v1.Container{{Env: []v1.EnvVar{{Name: "PASSWORD", Value: "x"}}}}
		p.Annotations = map[string]string{"secret": "x", v1.MirrorPodAnnotationKey: "u0"}
	})
	stripped, err := stripPod(secret)
	if diff := cmp.Diff(newPod("u1", needed), stripped); err != nil || diff != "" {
		t.Errorf("err %v, kept (-want +got):\n%s", err, diff)
	}
}
