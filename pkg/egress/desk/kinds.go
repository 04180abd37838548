package desk

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// kind is a kind of objects that is read.
type kind struct {
	// resource is its name for people, with the API group; path is that in requests.
	resource, path string
	client         cache.Getter
	example        runtime.Object
	// namespace is the only one that it is read in; all if empty.
	namespace string
	// partial: one namespace alone is worth reading. partly says what that means, without what it means to read nothing.
	partial         bool
	partly, without string
	// name is that of the only object that is read; all if empty.
	name string
	// exists tells whether the API server has the kind; nil if every one does.
	exists func(ctx context.Context) (bool, error)
}

// kindsOf returns the kinds that a cluster-wide plan is made from.
func kindsOf(config *rest.Config, leaseNamespace string) ([]kind, error) {
	protobuf := rest.CopyConfig(config) // which custom resources do not have
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	has := func(group schema.GroupVersion, path string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return cluster.HasResource(ctx, kube.Discovery(), group, path)
		}
	}
	return []kind{
		{
			resource: "services", path: "services", client: kube.CoreV1().RESTClient(), example: &v1.Service{}, partial: true,
			partly:  "an egress IP may belong to an older Service of another namespace, and then nothing is bound to it",
			without: "nothing is known to be bound",
		},
		{
			resource: "endpointslices.discovery.k8s.io", path: "endpointslices", client: kube.DiscoveryV1().RESTClient(), example: &discovery.EndpointSlice{}, partial: true,
			partly:  "a pod of this namespace may be another namespace's by its EndpointSlices",
			without: "no pods are known",
		},
		{
			resource: "nodes", path: "nodes", client: kube.CoreV1().RESTClient(), example: &v1.Node{},
			without: "an egress IP that is a node's address is not recognised, and neither is a node that is lost",
		},
		{
			resource: "servicecidrs.networking.k8s.io", path: "servicecidrs", client: kube.NetworkingV1().RESTClient(), example: &networkingv1.ServiceCIDR{},
			without: "an egress IP that is a Service's cluster IP is not recognised", exists: has(networkingv1.SchemeGroupVersion, "servicecidrs"),
		},
		{
			resource: "networks.config.openshift.io", path: "networks", client: openshift.ConfigV1().RESTClient(), example: &configv1.Network{}, name: "cluster",
			without: "the cluster's policy on external IPs, and cluster CIDRs that only it has, are not known", exists: has(configv1.GroupVersion, "networks"),
		},
		{
			resource: "leases.coordination.k8s.io", path: "leases", client: kube.CoordinationV1().RESTClient(), example: &coordinationv1.Lease{}, namespace: leaseNamespace,
			without: "it is not known which nodes have which egress IPs, nor which of several egress IPs of a Service a pod leaves from",
		},
	}, nil
}

// Add adds to objects all those of the kinds of these paths, for example "nodes". A kind that the API server does not have is left out; any
// other that cannot be listed is an error.
func Add(ctx context.Context, config *rest.Config, leaseNamespace string, objects *cluster.Objects, paths ...string) error {
	kinds, err := kindsOf(config, leaseNamespace)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if !slices.Contains(paths, k.path) {
			continue
		}
		a := access{kind: k, readable: true}
		list, err := a.list(ctx)
		if err == nil {
			a.add(objects, list)
		} else if !k.isAbsent(ctx, err) {
			return err
		}
	}
	return nil
}

// isAbsent tells whether a kind could not be read because the API server does not have it.
func (k kind) isAbsent(ctx context.Context, err error) bool {
	switch {
	case k.exists == nil:
		return false
	case apierrors.IsForbidden(err):
		exists, existsErr := k.exists(ctx)
		return existsErr == nil && !exists
	}
	return apierrors.IsNotFound(err)
}

// access is where a kind may be read.
type access struct {
	kind
	// readable: in namespace, or in all if that is empty. It is not if the API server does not have the kind.
	readable bool
	// leftOut is what is left out, and what that means, for people; empty if nothing is.
	leftOut string
}

// find returns where a kind may be read: everywhere, in a namespace that the user works in, or nowhere.
func (k kind) find(ctx context.Context, namespace string) (access, error) {
	a := access{kind: k, readable: true}
	err := a.probe(ctx)
	if apierrors.IsForbidden(err) && k.partial && namespace != "" {
		a.namespace = namespace
		a.leftOut = fmt.Sprintf("no right to list %s in all namespaces, but in %s: %s", k.resource, namespace, k.partly)
		err = a.probe(ctx)
	}
	switch {
	case k.isAbsent(ctx, err):
		return access{kind: k}, nil
	case apierrors.IsForbidden(err):
		a.readable, a.leftOut = false, fmt.Sprintf("no right to list %s%s: %s", k.resource, inNamespace(a.namespace), k.without)
	case err != nil:
		return access{}, fmt.Errorf("list %s: %w", k.resource, err)
	}
	return a, nil
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in the namespace " + namespace
}

func (a access) probe(ctx context.Context) error {
	_, err := a.listWatch().ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func (a access) listWatch() *cache.ListWatch {
	selector := fields.Everything()
	if a.name != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, a.name)
	}
	return cache.NewListWatchFromClient(a.client, a.path, a.namespace, selector)
}
