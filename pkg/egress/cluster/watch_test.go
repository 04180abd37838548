package cluster

import (
	"net/http"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/extension"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// newWatcher returns one that nobody listens to.
func newWatcher(t *testing.T) *Watcher {
	barrier := extension.NewBarrier(networks, serviceCIDRs)
	return &Watcher{
		ctx: t.Context(), logger: klog.Background(), State: New(testConfig), Barrier: barrier,
		Explain: func(err error) error { return err }, Known: func(kind string) { barrier.Known(kind) },
		Changed: func(bool, time.Time) {},
	}
}

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
			var server clustertest.OneAnswer
			server.Answer.Store(test.answer)
			client := clustertest.NewConfigClient(t, server.Handle)
			exists, err := hasNetworks(t.Context(), client.Discovery())
			if exists != test.exists || (err != nil) != test.fails {
				t.Errorf("exists %v, %v; want %v, error %v", exists, err, test.exists, test.fails)
			}
			w := newWatcher(t)
			if test.exists {
				return
			}
			go w.watchNetwork(client)
			if test.fails {
				clustertest.Eventually(t, "asked by the loop", func() bool { return server.Asked.Load() > 1 })
				if !w.Barrier.WaitsFor(networks) {
					t.Error("a plan is made although nobody knows the policy")
				}
				server.Answer.Store(metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
			}
			clustertest.Eventually(t, "the Network is not waited for", func() bool { return !w.Barrier.WaitsFor(networks) })
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
			var server clustertest.OneAnswer
			server.Answer.Store(test.answer)
			client := clustertest.NewConfigClient(t, server.Handle)
			w := newWatcher(t)
			go w.doWithoutServiceCIDRs(client.Discovery())
			if test.waits {
				clustertest.Eventually(t, "asked again", func() bool { return server.Asked.Load() > 1 })
				if !w.Barrier.WaitsFor(serviceCIDRs) {
					t.Error("a plan is made although ServiceCIDRs may come")
				}
				return
			}
			clustertest.Eventually(t, "ServiceCIDRs are not waited for", func() bool { return !w.Barrier.WaitsFor(serviceCIDRs) })
		})
	}
}
