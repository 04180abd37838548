package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
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
	gate := extension.NewGate(networks, serviceCIDRs)
	return &Watcher{
		ctx: t.Context(), logger: klog.Background(), State: New(testConfig), Gate: gate,
		Explain: func(err error) error { return err }, Known: func(kind string) { gate.Known(kind) },
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
				if !w.Gate.WaitsFor(networks) {
					t.Error("a plan is made although nobody knows the policy")
				}
				server.Answer.Store(metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
			}
			clustertest.Eventually(t, "the Network is not waited for", func() bool { return !w.Gate.WaitsFor(networks) })
		})
	}
}

// TestAwait_NodesDoNotAskAllAtOnce: after errors a node asks again soon, and then less and less often; and two nodes not at the same time.
func TestAwait_NodesDoNotAskAllAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		err         error
		soonest     time.Duration
		least, most int // questions in ten minutes
	}{
		"out of order": {errors.New("out of order"), 2 * time.Second, 15, 25},
		"absent":       {nil, askAgain, 8, 11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := map[time.Duration]bool{} // when nodes ask for the second time
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					asked := 0
					began := time.Now()
					Await(ctx, klog.Background(), func(err error) error { return err }, func() (bool, error) {
						if asked++; asked == 2 {
							second[time.Since(began)] = true
						}
						return false, test.err
					}, "Cannot tell", "")
					if asked < test.least || asked > test.most {
						t.Errorf("it has asked %d times", asked)
					}
				}
				for after := range second {
					if len(second) == 1 || after < test.soonest || after > test.soonest*5/4 {
						t.Errorf("the second question comes after %s, of %d nodes", after, len(second))
					}
				}
			})
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
				if !w.Gate.WaitsFor(serviceCIDRs) {
					t.Error("a plan is made although ServiceCIDRs may come")
				}
				return
			}
			clustertest.Eventually(t, "ServiceCIDRs are not waited for", func() bool { return !w.Gate.WaitsFor(serviceCIDRs) })
		})
	}
}
