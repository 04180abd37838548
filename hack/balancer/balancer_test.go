//go:build linux

package balancer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
)

const (
	soon       = 30 * time.Second
	healthPort = 30000
)

// running is a lab with a balancer.
type running struct {
	*routed
	client *fake.Clientset
}

func newRunning(t *testing.T) *running {
	t.Helper()
	r := &running{newRouted(t), fake.NewClientset()}
	for _, host := range r.Nodes() {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: host.Name}}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		node.Status.Addresses = []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: host.V4.String()}, {Type: v1.NodeInternalIP, Address: host.V6.String()},
		}
		if _, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, r.client, r.Router()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return r
}

// create creates a Service of both families.
func (r *running) create(change func(*v1.Service)) {
	r.Helper()
	svc := service("uid", dual)
	svc.Namespace, svc.Name = "shop", "web"
	if change != nil {
		change(svc)
	}
	if _, err := r.client.CoreV1().Services("shop").Create(r.Context(), svc, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// becomes gives the Service this type, again if the balancer, which has not seen it yet, overwrites it: the fake knows no conflicts.
func (r *running) becomes(kind v1.ServiceType) {
	r.Helper()
	process.Eventually(r, soon, func() error {
		svc, err := r.client.CoreV1().Services("shop").Get(r.Context(), "web", metav1.GetOptions{})
		if err != nil || svc.Spec.Type == kind && !ours(svc) {
			return err
		}
		if svc.Spec.Type == kind {
			return errors.New("the balancer has not taken back its addresses")
		}
		svc.Spec.Type = kind
		_, err = r.client.CoreV1().Services("shop").Update(r.Context(), svc, metav1.UpdateOptions{})
		return errors.Join(err, errors.New("the Service has just been changed"))
	})
}

// told waits until the Service has this number of addresses, and the finalizer with them.
func (r *running) told(addresses int) {
	r.Helper()
	process.Eventually(r, soon, func() error {
		svc, err := r.client.CoreV1().Services("shop").Get(r.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(svc.Status.LoadBalancer.Ingress) != addresses || ours(svc) != (addresses > 0) {
			return fmt.Errorf("its status is %v and its finalizers are %v", svc.Status.LoadBalancer, svc.Finalizers)
		}
		return nil
	})
}

// answered waits until clients of both addresses reach these nodes and no others, or nobody.
func (r *running) answered(nodes ...*lab.Host) {
	r.Helper()
	for _, vip := range vips {
		process.Eventually(r, soon, func() error {
			if len(nodes) == 0 {
				return r.silent(vip)
			}
			return r.reached(vip, nodes...)
		})
	}
}

func TestRun_GivesAndTakesBack(t *testing.T) {
	t.Parallel()
	r := newRunning(t)
	r.create(nil)
	r.told(2)
	r.answered(r.Nodes()...)
	r.becomes(v1.ServiceTypeClusterIP)
	r.told(0)
	r.answered()
}

func TestRun_LocalServiceFollowsHealth(t *testing.T) {
	for name, families := range map[string][]v1.IPFamily{
		"IPv4 first": {v1.IPv4Protocol, v1.IPv6Protocol},
		"IPv6 first": {v1.IPv6Protocol, v1.IPv4Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunning(t)
			var healthy atomic.Int32 // a bit for each node that is
			for i, node := range r.Nodes() {
				addr := node.V4
				if families[0] == v1.IPv6Protocol {
					addr = node.V6
				}
				l, err := node.Listen(t.Context(), "tcp", netip.AddrPortFrom(addr, healthPort).String())
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { // until its listener is closed
						if request.URL.Path != "/healthz" || healthy.Load()&(1<<i) == 0 {
							w.WriteHeader(http.StatusServiceUnavailable)
						}
					}))
				}()
			}
			r.create(func(svc *v1.Service) {
				svc.Spec.IPFamilies, svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = families, v1.ServiceExternalTrafficPolicyLocal, healthPort
			})
			r.told(2)
			for _, up := range []int32{1, 6, 2} {
				healthy.Store(up)
				var nodes []*lab.Host
				for i, node := range r.Nodes() {
					if up&(1<<i) != 0 {
						nodes = append(nodes, node)
					}
				}
				r.answered(nodes...)
			}
			healthy.Store(0)
			r.answered()
		})
	}
}
