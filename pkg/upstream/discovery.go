//go:build !(kube1.36 || kube1.35 || kube1.34)

package upstream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// ServerResources asks the API server for the kinds of a group and version. The error is one of
// k8s.io/apimachinery/pkg/api/errors, IsNotFound if the server does not have the group.
func ServerResources(ctx context.Context, client discovery.DiscoveryInterface, groupVersion string) (*metav1.APIResourceList, error) {
	return discovery.ToServerResourcesInterfaceWithContext(client).ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
}
