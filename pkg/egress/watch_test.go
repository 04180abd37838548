package egress

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestWatch_NetworkGroup: where the API group is absent nothing is assumed; as long as nobody
// can tell, nothing is granted.
func TestWatch_NetworkGroup(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		exists bool
		fails  bool
	}{
		"absent":            {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", configv1.Resource(""), "", "", 0, false).ErrStatus, false, false},
		"forbidden":         {apierrors.NewForbidden(configv1.Resource(""), "", nil).ErrStatus, false, true},
		"out of order":      {apierrors.NewServiceUnavailable("starting").ErrStatus, false, true},
		"without Networks":  {metav1.APIResourceList{GroupVersion: "config.openshift.io/v1"}, false, false},
		"as OpenShift's is": {metav1.APIResourceList{GroupVersion: "config.openshift.io/v1", APIResources: []metav1.APIResource{{Name: "networks"}}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var server oneAnswer
			server.answer.Store(test.answer)
			client := newConfigClient(t, server.handle)
			exists, err := hasNetworks(t.Context(), client.Discovery())
			if exists != test.exists || (err != nil) != test.fails {
				t.Errorf("exists %v, %v; want %v, error %v", exists, err, test.exists, test.fails)
			}
			e := New(t.Context(), testConfig)
			if test.exists {
				return
			}
			go e.watchNetwork(client)
			if test.fails {
				eventually(t, "asked by the loop", func() bool { return server.asked.Load() > 1 })
				if !e.barrier.WaitsFor(networks) {
					t.Error("a plan is made although nobody knows the policy")
				}
				server.answer.Store(metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
			}
			eventually(t, "the Network is not waited for", func() bool { return !e.barrier.WaitsFor(networks) })
		})
	}
}

// TestWatch_ServiceCIDRsThatNobodyHas are not waited for; as long as nobody can tell, or some may come, they are.
func TestWatch_ServiceCIDRsThatNobodyHas(t *testing.T) {
	old := metav1.APIResourceList{GroupVersion: "networking.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "ingresses"}}}
	for name, test := range map[string]struct {
		answer any
		waits  bool
	}{
		"out of order": {apierrors.NewServiceUnavailable("starting").ErrStatus, true},
		"before 1.33":  {old, false},
		"as of 1.33":   {metav1.APIResourceList{GroupVersion: "networking.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "servicecidrs"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var server oneAnswer
			server.answer.Store(test.answer)
			client := newConfigClient(t, server.handle)
			e := New(t.Context(), testConfig)
			go e.doWithoutServiceCIDRs(client.Discovery())
			if test.waits {
				eventually(t, "asked again", func() bool { return server.asked.Load() > 1 })
				if !e.barrier.WaitsFor(serviceCIDRs) {
					t.Error("a plan is made although ServiceCIDRs may come")
				}
				return
			}
			eventually(t, "ServiceCIDRs are not waited for", func() bool { return !e.barrier.WaitsFor(serviceCIDRs) })
		})
	}
}

// oneAnswer is an API server that gives the same answer to all.
type oneAnswer struct {
	answer atomic.Value
	asked  atomic.Int32
}

func (o *oneAnswer) handle(w http.ResponseWriter, _ *http.Request) {
	o.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if s, failed := o.answer.Load().(metav1.Status); failed {
		w.WriteHeader(int(s.Code))
	}
	_ = json.NewEncoder(w).Encode(o.answer.Load())
}

func newConfigClient(t *testing.T, handle http.HandlerFunc) configclient.Interface {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client, err := configclient.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
