package manifests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

func TestServe_Discovery(t *testing.T) {
	w := newWorld(t, nil)
	client := discovery.NewDiscoveryClientForConfigOrDie(w.config)
	for groupVersion, want := range map[string][]string{
		"v1": {
			"events event Event true [create patch]",
			"namespaces namespace Namespace false [get list watch]",
			"nodes node Node false [get list watch]",
			"services service Service true [get list watch]",
		},
		"config.openshift.io/v1": {"networks network Network false [get list watch]"},
		"discovery.k8s.io/v1":    {"endpointslices endpointslice EndpointSlice true [get list watch]"},
		"events.k8s.io/v1":       {"events event Event true [create patch]"},
		"networking.k8s.io/v1":   {"servicecidrs servicecidr ServiceCIDR false [get list watch]"},
	} {
		list, err := client.ServerResourcesForGroupVersion(groupVersion)
		if err != nil {
			t.Errorf("%s: %v", groupVersion, err)
			continue
		}
		var got []string
		for _, r := range list.APIResources {
			got = append(got, fmt.Sprint(r.Name, " ", r.SingularName, " ", r.Kind, " ", r.Namespaced, " ", r.Verbs))
		}
		if diff := cmp.Diff(want, got); diff != "" || list.GroupVersion != groupVersion || list.Kind != "APIResourceList" {
			t.Errorf("%s %v: -want +got:\n%s", groupVersion, list, diff)
		}
	}
	for _, groupVersion := range []string{"config.openshift.io/v2", "apps/v1", "networking.k8s.io/v1beta1"} {
		if list, err := client.ServerResourcesForGroupVersion(groupVersion); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, %v", groupVersion, list, err)
		}
	}
}

// TestServe_NetworkForOpenShiftsClients reads the cluster's configuration as OpenShift's clients do.
func TestServe_NetworkForOpenShiftsClients(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchList=%t", watchList), func(t *testing.T) {
			setWatchList(t, watchList)
			w := newWorld(t, map[string]string{"a.yaml": clusterNetwork})
			client := configclient.NewForConfigOrDie(w.config)
			network, err := client.ConfigV1().Networks().Get(w.ctx, "cluster", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			policy := network.Spec.ExternalIP.Policy
			if got := fmt.Sprint(network.Spec.ClusterNetwork, policy.AllowedCIDRs, policy.RejectedCIDRs, network.Status.ServiceNetwork); got !=
				"[{10.128.0.0/14 23}] [203.0.113.0/24] [203.0.113.7/32] [fd02::/112]" {
				t.Errorf("got %s", got)
			}
			if network.UID == "" || network.ResourceVersion == "" {
				t.Errorf("got %v", network)
			}
			for field, want := range map[string]int{"metadata.name=cluster": 1, "metadata.name=other": 0} {
				list, err := client.ConfigV1().Networks().List(w.ctx, metav1.ListOptions{FieldSelector: field})
				if err != nil || len(list.Items) != want {
					t.Errorf("%s: got %v, %v", field, list, err)
				}
			}
			if _, err := client.ConfigV1().Networks().List(w.ctx, metav1.ListOptions{FieldSelector: "spec.networkType=a"}); !apierrors.IsBadRequest(err) {
				t.Errorf("got %v", err)
			}

			factory := configinformers.NewSharedInformerFactoryWithOptions(client, 0,
				configinformers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=cluster" }))
			networks := factory.Config().V1().Networks()
			j := watchWith(w, networks.Informer(), factory.Start)
			j.saw(t, "add cluster")
			w.put("a.yaml", strings.Replace(clusterNetwork, "allowedCIDRs: [203.0.113.0/24]", "allowedCIDRs: []", 1))
			j.saw(t, "update cluster")
			if network, err = networks.Lister().Get("cluster"); err != nil || len(network.Spec.ExternalIP.Policy.AllowedCIDRs) != 0 {
				t.Errorf("got %v, %v", network, err)
			}
			w.remove("a.yaml")
			j.saw(t, "delete cluster")
		})
	}
}

func TestServe_ServiceCIDRs(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": serviceCIDR("kubernetes", "172.30.0.0/16")})
	factory := informers.NewSharedInformerFactory(w.client, 0)
	cidrs := factory.Networking().V1().ServiceCIDRs()
	j := watchWith(w, cidrs.Informer(), factory.Start)
	j.saw(t, "add kubernetes")
	w.put("a.yaml", serviceCIDR("kubernetes", "172.30.0.0/16, 'fd00::/112'"))
	w.put("b.yaml", serviceCIDR("more", "10.96.0.0/20"))
	j.saw(t, "update kubernetes", "add more")
	got := map[string][]string{}
	list, err := cidrs.Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		got[o.Name] = o.Spec.CIDRs
	}
	want := map[string][]string{"kubernetes": {"172.30.0.0/16", "fd00::/112"}, "more": {"10.96.0.0/20"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// watchWith starts an informer and returns what its handler is told.
func watchWith(w *world, informer cache.SharedIndexInformer, start func(<-chan struct{})) *journal {
	w.Helper()
	j := &journal{}
	registration, err := informer.AddEventHandler(j)
	if err != nil {
		w.Fatal(err)
	}
	start(w.ctx.Done())
	ctx, cancel := context.WithTimeout(w.ctx, deadline)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, registration.HasSynced) {
		w.Fatal("the informer does not sync")
	}
	return j
}
