package egress

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NetworkClient reads OpenShift's Network. The clientset of its API group would register some fifty kinds more in
// every node.
type NetworkClient struct {
	discovery discovery.DiscoveryInterface
	rest      rest.Interface
}

// NewNetworkClient returns a client for an API server, which need not have the kind.
func NewNetworkClient(config *rest.Config) (*NetworkClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(configv1.GroupVersion, &configv1.Network{}, &configv1.NetworkList{})
	metav1.AddToGroupVersion(scheme, configv1.GroupVersion)
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &configv1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, "" // the kind has no other one
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	discovery, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.RESTClientFor(config)
	return &NetworkClient{discovery, client}, err
}

func (c *NetworkClient) get(ctx context.Context) (*configv1.Network, error) {
	network := &configv1.Network{}
	return network, c.rest.Get().Resource("networks").Name(networkName).Do(ctx).Into(network)
}

func (c *NetworkClient) informer() cache.SharedIndexInformer {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, networkName)
	return cache.NewSharedIndexInformer(cache.NewListWatchFromClient(c.rest, "networks", metav1.NamespaceAll, only), &configv1.Network{}, 0, nil)
}
