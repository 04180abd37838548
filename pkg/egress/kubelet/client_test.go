//go:build !(kube1.35 || kube1.34)

package kubelet

import (
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/kubelettest"
)

// TestClient_Kubelet that is not there, starts, knows pods, and is started again.
func TestClient_Kubelet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.sock")
	c, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Get(t.Context(), "u1"); err == nil || c.Exists() {
		t.Errorf("err %v, exists %v; expected no kubelet", err, c.Exists())
	}
	await := func(want codes.Code) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) { // after a failure the connection is tried again later
			_, err := c.List(t.Context())
			if status.Code(err) == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("err %v, expected %s", err, want)
			}
		}
	}
	known := func() {
		t.Helper()
		if pod, err := c.Get(t.Context(), "u1"); err != nil || pod == nil || pod.Labels["app"] != "web" {
			t.Errorf("pod %v, err %v", pod, err)
		}
		if pod, err := c.Get(t.Context(), "u2"); err != nil || pod != nil {
			t.Errorf("pod %v, err %v; expected none", pod, err)
		}
		if all, err := c.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "web-0" {
			t.Errorf("pods %v, err %v", all, err)
		}
	}

	web := &v1.Pod{}
	web.Name, web.UID, web.Labels = "web-0", "u1", map[string]string{"app": "web"}
	var k kubelettest.Kubelet
	k.Set(web)
	k.Fail(status.Error(codes.FailedPrecondition, "Kubelet is initializing"))
	stop := k.ServeTest(t, path)
	await(codes.FailedPrecondition)
	if _, err := c.Get(t.Context(), "u1"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("err %v while it is initialising", err)
	}
	k.Fail(nil)
	known()
	stop()
	k.ServeTest(t, path)
	await(codes.OK)
	known()
}
