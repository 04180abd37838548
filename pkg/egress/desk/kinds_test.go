package desk

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// TestAdd_LeavesOutAbsentKindsOnly: that the user has no right to list a kind is an error, unless the API server does not have the kind.
func TestAdd_LeavesOutAbsentKindsOnly(t *testing.T) {
	const cidrs, group = "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1"
	forbidden := apierrors.NewForbidden(networkingv1.Resource("servicecidrs"), "", nil).Status()
	kinds := func(names ...string) metav1.APIResourceList {
		list := metav1.APIResourceList{GroupVersion: "networking.k8s.io/v1"}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		return list
	}
	nodes := v1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}}}
	networks := configv1.NetworkList{TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "NetworkList"}, Items: []configv1.Network{{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}}}
	for name, test := range map[string]struct {
		answers map[string]any // of others: there is no such thing
		fails   bool
	}{
		"absent":                    {map[string]any{"/api/v1/nodes": nodes}, false},
		"absent and forbidden":      {map[string]any{"/api/v1/nodes": nodes, cidrs: forbidden, group: kinds("ingresses")}, false},
		"forbidden":                 {map[string]any{"/api/v1/nodes": nodes, cidrs: forbidden, group: kinds("servicecidrs")}, true},
		"a kind that must be there": {map[string]any{}, true},
	} {
		test.answers["/apis/config.openshift.io/v1/networks"] = networks
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, has := test.answers[r.URL.Path]
			if !has {
				answer = apierrors.NewNotFound(v1.Resource("all"), "").Status()
			}
			w.Header().Set("Content-Type", "application/json")
			if status, is := answer.(metav1.Status); is {
				w.WriteHeader(int(status.Code))
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		var objects cluster.Objects
		err := Add(t.Context(), &rest.Config{Host: server.URL}, "", &objects, "nodes", "servicecidrs", "networks")
		server.Close()
		if (err != nil) != test.fails {
			t.Errorf("%s: %v, want an error: %v", name, err, test.fails)
		}
		if !test.fails && (len(objects.Nodes) != 1 || objects.Network == nil || objects.Leases != nil) {
			t.Errorf("%s: %+v, want a Node, the Network, and no Leases", name, objects)
		}
	}
}
