package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNode_RefusesPodOfHeadlessService: kube-proxy does not hear of the EndpointSlices of a headless
// Service, and still nobody gets its pods by listing their addresses without saying whose they are. A
// dry run says the same.
func TestNode_RefusesPodOfHeadlessService(t *testing.T) {
	w := newWorld(t, settings{nodes: 1})
	m := w.members[0]
	w.namespace("victim")
	w.namespace("thief")
	w.service("victim", "db", nil, func(svc *v1.Service) { svc.Spec.ClusterIP = v1.ClusterIPNone })
	pod := w.runPod("victim", "db-0", m, app("db"))
	w.eventually(func() error {
		objects, err := w.objects()
		for _, slice := range objects.EndpointSlices {
			if _, headless := slice.Labels[v1.IsHeadlessService]; headless && len(slice.Endpoints) > 0 {
				return err
			}
		}
		return errors.Join(errors.New("the headless Service has no endpoint yet"), err)
	})
	w.service("thief", "web", w.ips(10), func(svc *v1.Service) { svc.Spec.Selector = nil })
	for i, address := range []string{pod.V4.String(), pod.V6.String()} {
		slice := newEndpointSlice("thief", fmt.Sprintf("forged-%d", i), "web", address)
		_, err := w.Client().DiscoveryV1().EndpointSlices("thief").Create(w.Context(), slice, metav1.CreateOptions{})
		w.must(err)
	}

	w.refused("thief/web", "PodOfOtherNamespace")
	w.bound("thief", "web", 0)
	w.leaves("tcp", pod)
	out, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run")
	if refusals := strings.Count(out, "# Refused: Service thief/web: PodOfOtherNamespace: "); status != 0 || refusals != 2 {
		w.Errorf("the dry run ends with status %d and has %d refusals, want one of each IP family: %s%s", status, refusals, out, errs)
	}

	// It was the headless Service's word that counted: without it the address is whoever's lists it.
	w.deleteService("victim", "db")
	w.bound("thief", "web", 1)
	w.leaves("tcp", pod, w.ips(10)...)
}
