package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/metallb"
)

// metalWorld is a cluster in which MetalLB gives the Service shop/web its load-balancer IPs, which are its egress IPs. Its speakers, if
// there are any, announce them in layer 2 mode.
type metalWorld struct {
	*poolWorld
	// programs is the folder of MetalLB's programs and CRDs.
	programs   string
	kubeconfig string
	speakers   map[*member]*neighbour
}

// balanced: a Service's load-balancer IPs are its egress IPs.
const balanced = "egress-snat-load-balancer-ips: [\"true\"]\n"

// newMetalWorld makes one in which nothing runs but MetalLB's controller. announced: MetalLB is to announce what it gives.
func newMetalWorld(t *testing.T, s settings, announced bool) *metalWorld {
	t.Helper()
	programs := os.Getenv("METALLB")
	if programs == "" {
		lab.Lacks(t, "the environment variable METALLB does not name the directory of MetalLB's programs; run 'make test-e2e'")
	}
	s.onLAN, s.arguments = true, balanced+s.arguments
	w := &metalWorld{poolWorld: &poolWorld{&steeredWorld{world: newIdleWorld(t, s)}}, programs: programs, speakers: map[*member]*neighbour{}}
	w.egressIPs = w.lanIPs(100)
	w.assignable = addrs(w.egressIPs)
	w.installMetalLB(announced)
	w.watchPackets()
	w.Cleanup(func() { w.clean(0) }) // whatever happens, pods leave as nobody else
	return w
}

// installMetalLB gives the API server MetalLB's kinds and objects, and starts its controller.
func (w *metalWorld) installMetalLB(announced bool) {
	w.Helper()
	crds, err := filepath.Glob(filepath.Join(w.programs, "crds", "*.yaml"))
	w.must(err)
	for _, crd := range crds {
		w.must(w.Apply(w.Context(), crd))
	}
	client, err := dynamic.NewForConfig(w.AdminConfig())
	w.must(err)
	for _, resource := range []schema.GroupVersionResource{metallb.Statuses, metallb.L2Advertisements, metallb.Statuses.GroupVersion().WithResource("ipaddresspools")} {
		w.eventually(func() error {
			_, err := client.Resource(resource).List(w.Context(), metav1.ListOptions{})
			return err
		})
	}
	w.must(w.Apply(w.Context(), "testdata/metallb.yaml"))
	if announced {
		w.must(w.Apply(w.Context(), "testdata/metallb-layer2.yaml"))
	}
	w.must(w.Apply(w.Context(), "../../images/node/rbac-metallb.yaml"))
	dir, err := w.Control().MkdirTemp("metallb-")
	w.must(err)
	w.kubeconfig = filepath.Join(dir, "kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), w.kubeconfig, cluster.Kubeconfig{User: "metallb", Groups: []string{"system:masters"}}))
	w.metalPod("controller", w.Control())
	w.runNeighbour("metallb-controller", w.Control(), nil, filepath.Join(w.programs, "controller"), "--kubeconfig="+w.kubeconfig, "--namespace="+metallb.DefaultNamespace,
		"--pod-name=controller", "--port=0", "--webhook-mode=disabled", "--disable-cert-rotation")
}

// metalPod makes the object of a pod of MetalLB's that is a process on a host.
func (w *metalWorld) metalPod(name string, host *lab.Host) {
	w.Helper()
	pod := cluster.NewPod(metallb.DefaultNamespace, name, "", map[string]string{"app": "metallb"})
	if name != "controller" {
		pod.Labels["component"] = "speaker"
	}
	_, err := w.CreatePod(w.Context(), pod, host.V4, host.V6)
	w.must(err)
}

// speak starts the speaker of a node.
func (w *metalWorld) speak(m *member) {
	w.Helper()
	name := "speaker-" + m.Name
	if _, err := w.Client().CoreV1().Pods(metallb.DefaultNamespace).Get(w.Context(), name, metav1.GetOptions{}); err != nil {
		w.metalPod(name, m.Host)
	}
	w.speakers[m] = w.runNeighbour("metallb-"+name, m.Host, []string{"METALLB_BGP_TYPE=native"}, filepath.Join(w.programs, "speaker"), "--kubeconfig="+w.kubeconfig, "--namespace="+metallb.DefaultNamespace,
		"--node-name="+m.Name, "--pod-name="+name, "--port=0", "--ml-bindaddr="+outer(m.Host).String(), "--ml-bindport=7946", "--ml-labels=component=speaker")
}

// begin starts the nodes, and the speakers if it is to, and has pods on all nodes behind a Service that MetalLB gives its addresses.
func (w *metalWorld) begin(speakers bool) {
	w.Helper()
	w.start()
	if speakers {
		for _, m := range w.members {
			w.speak(m)
		}
	}
	service := cluster.NewService("shop", "web", web, nil, tcp80, udp80)
	service.Spec.Type = v1.ServiceTypeLoadBalancer
	w.pods = w.shopOf(service)
}

// elected is the node that MetalLB elects to announce the egress IPs, of all but those.
func (w *metalWorld) elected(without ...*member) (elected *member) {
	lowest := [sha256.Size]byte{}
	for _, m := range w.members {
		hash := sha256.Sum256([]byte(m.Name + "#" + w.egressIPs[0]))
		if !slices.Contains(without, m) && (elected == nil || bytes.Compare(hash[:], lowest[:]) < 0) {
			elected, lowest = m, hash
		}
	}
	return elected
}

// announcedBy waits until all nodes may know that one node has the egress IPs.
func (w *metalWorld) announcedBy(want *member) {
	w.Helper()
	w.holder = want
	w.eventually(func() error {
		var latest *member
		highest := 0
		for _, m := range w.members {
			epochs, err := w.leased(m)
			if err != nil {
				return err
			}
			if epoch := epochs[w.egressIPs[0]]; epoch > highest {
				latest, highest = m, epoch
			}
		}
		if latest != want {
			return fmt.Errorf("the egress IPs are not on %s", want.Name)
		}
		return nil
	})
}

// gap ends connections, prints what happened to them since a moment, and fails if one of them was seen under another address, or if those
// that did not work at once began within more than a time of each other.
func (w *metalWorld) gap(p *probes, ip, what string, since time.Time, most time.Duration) {
	w.Helper()
	r, gap := w.judged(p, ip, what, since)
	if r.wrong > 0 || gap > most {
		w.Errorf("%s, %s: want 0 under another address, and a gap of at most %v", ip, what, most)
	}
}
