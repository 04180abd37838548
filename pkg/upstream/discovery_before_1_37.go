//go:build kube1.36 || kube1.35 || kube1.34

package upstream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// ServerResources is as in discovery.go, but for the context: client-go before 1.37 has no
// discovery that takes one, so that the request ends by the client's timeout (32 seconds by
// default) if not before.
func ServerResources(_ context.Context, client discovery.DiscoveryInterface, groupVersion string) (*metav1.APIResourceList, error) {
	return client.ServerResourcesForGroupVersion(groupVersion)
}
