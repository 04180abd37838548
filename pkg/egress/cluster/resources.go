package cluster

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/origin-node/pkg/upstream"
)

// hasNetworks tells whether the API server has the kind Network of config.openshift.io. It
// does not on other clusters than OpenShift's.
func hasNetworks(ctx context.Context, client discovery.DiscoveryInterface) (bool, error) {
	return HasResource(ctx, client, configv1.GroupVersion, "networks")
}

// HasResource tells whether the API server has a resource, whether or not the user may use it.
func HasResource(ctx context.Context, client discovery.DiscoveryInterface, group schema.GroupVersion, name string) (bool, error) {
	resources, err := upstream.ServerResources(ctx, client, group.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for the kinds of %s: %w", group, err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == name }), nil
}
