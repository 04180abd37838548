//go:build kube1.35 || kube1.34

package upstream

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var noPods = status.Error(codes.Unimplemented, "this program was built against a Kubernetes without the kubelet's Pods API")

// GetPod fails: the branch has no Pods API.
func GetPod(context.Context, grpc.ClientConnInterface, string) ([]byte, error) { return nil, noPods }

// ListPods fails, too.
func ListPods(context.Context, grpc.ClientConnInterface) ([][]byte, error) { return nil, noPods }
