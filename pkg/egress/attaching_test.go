package egress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/pkg/egress/attachments"
)

func newPod(uid string, change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: types.UID(uid), Labels: map[string]string{"app": uid}}}
	if change != nil {
		change(pod)
	}
	return pod
}

// TestPodWatch_Pod: the informer answers, or the API server where the informer is late. A pod of the same name is
// another one.
func TestPodWatch_Pod(t *testing.T) {
	for _, test := range []struct {
		name                string
		informed, inCluster *v1.Pod
		known, ended        bool
	}{
		{"the informer knows it", newPod("u1", nil), nil, true, false},
		{"it has ended", newPod("u1", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }), nil, true, true},
		{"the informer is late", newPod("u0", nil), newPod("u1", nil), true, false},
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
			labels, ended, known := w.Pod(t.Context(), attachments.Pod{Namespace: "shop", Name: "web-0", UID: "u1"})
			want := map[string]string(nil)
			if test.known {
				want = map[string]string{"app": "u1"}
			}
			if diff := cmp.Diff(want, labels); diff != "" || known != test.known || ended != test.ended {
				t.Errorf("known %v, ended %v, labels (-want +got):\n%s", known, ended, diff)
			}
		})
	}
}

// TestStripPod_KeepsNoSecrets: of a pod it keeps what predictions need.
func TestStripPod_KeepsNoSecrets(t *testing.T) {
	secret := newPod("u1", func(p *v1.Pod) {
		p.Spec.Containers = []v1.Container{{Env: []v1.EnvVar{{Name: "PASSWORD", Value: "x"}}}}
		p.Annotations = map[string]string{"secret": "x"}
	})
	stripped, err := stripPod(secret)
	if diff := cmp.Diff(newPod("u1", nil), stripped); err != nil || diff != "" {
		t.Errorf("err %v, kept (-want +got):\n%s", err, diff)
	}
}
