//go:build !(kube1.35 || kube1.34)

package kubelettest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Kubelet knows the pods that it was told of. It answers no more requests than the real one.
type Kubelet struct {
	pods.UnimplementedPodsServer

	mu      sync.Mutex
	pods    map[string]*v1.Pod // by UID
	err     error
	refused int
	// allowed is how many requests are answered at once, as of a time.
	allowed float64
	asOf    time.Time
}

// The limits are those of k8s.io/kubernetes/pkg/kubelet/apis/pods.
const requestsPerSecond, requestsAtOnce = 100, 10

// limit refuses requests that are too many.
func (k *Kubelet) limit(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if !k.allows(time.Now()) {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	return handle(ctx, request)
}

func (k *Kubelet) allows(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.allowed = min(k.allowed+now.Sub(k.asOf).Seconds()*requestsPerSecond, requestsAtOnce)
	k.asOf = now
	if k.allowed < 1 {
		k.refused++
		return false
	}
	k.allowed--
	return true
}

// Refused returns how many requests were too many.
func (k *Kubelet) Refused() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

// Set tells of pods, in the place of those with the same UIDs.
func (k *Kubelet) Set(all ...*v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods == nil {
		k.pods = map[string]*v1.Pod{}
	}
	for _, pod := range all {
		k.pods[string(pod.UID)] = pod.DeepCopy()
	}
}

// Fail makes every answer fail; with nil none.
func (k *Kubelet) Fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

// GetPod is part of the Pods API.
func (k *Kubelet) GetPod(_ context.Context, request *pods.GetPodRequest) (*pods.GetPodResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod := k.pods[request.PodUID]
	switch {
	case k.err != nil:
		return nil, k.err
	case pod == nil:
		return nil, status.Errorf(codes.NotFound, "pod with UID %s not found", request.PodUID)
	}
	encoded, err := pod.Marshal()
	return &pods.GetPodResponse{Pod: encoded}, err
}

// ListPods is part of the Pods API.
func (k *Kubelet) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answer := &pods.ListPodsResponse{}
	for _, pod := range k.pods {
		encoded, err := pod.Marshal()
		if err != nil {
			return nil, err
		}
		answer.Pods = append(answer.Pods, encoded)
	}
	return answer, k.err
}

// Serve answers on a socket until stop is called.
func (k *Kubelet) Serve(path string) (stop func(), err error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(k.limit))
	pods.RegisterPodsServer(server, k)
	go func() { _ = server.Serve(listener) }()
	return server.Stop, nil
}

// ServeTest is Serve until the test ends.
func (k *Kubelet) ServeTest(t *testing.T, path string) (stop func()) {
	t.Helper()
	stop, err := k.Serve(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}
