//go:build !(kube1.35 || kube1.34)

package upstream

import (
	"context"

	"google.golang.org/grpc"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// GetPod asks a kubelet by its Pods API for the pod with a UID. The answer is for [v1.Pod.Unmarshal].
func GetPod(ctx context.Context, kubelet grpc.ClientConnInterface, uid string) ([]byte, error) {
	answer, err := pods.NewPodsClient(kubelet).GetPod(ctx, &pods.GetPodRequest{PodUID: uid})
	return answer.GetPod(), err
}

// ListPods asks for all pods, without the mirrors of static ones.
func ListPods(ctx context.Context, kubelet grpc.ClientConnInterface) ([][]byte, error) {
	answer, err := pods.NewPodsClient(kubelet).ListPods(ctx, &pods.ListPodsRequest{})
	return answer.GetPods(), err
}
