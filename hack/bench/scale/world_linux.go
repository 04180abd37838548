package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// poolNetwork has the egress IPs of package objects. The nodes' own addresses in it begin here.
var poolNetwork = netip.MustParsePrefix("198.18.255.1/16")

// world is the cluster.
type world struct {
	figure.Settings
	cluster.World
	plan   plan
	dir    string
	client kubernetes.Interface
	audit  auditLog
	nodes  []*node

	// created is how many Nodes there are, claiming how many Services of package objects have external IPs.
	created, claiming int
	// slices are the EndpointSlices as they are now, by their Services' numbers.
	slices []*discovery.EndpointSlice
	// changes is how many of them have changed, reports how many Nodes were reported, and replaced how often the pods of
	// probe changed were.
	changes, reports, replaced int
	// holder is the node that has the moved address.
	holder *node
}

// newWorld returns when the API has all objects but for the Nodes, and nothing of ours runs.
func newWorld(ctx context.Context, s figure.Settings, p plan) (w *world, err error) {
	w = &world{Settings: s, plan: p, claiming: p.objects.External()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return w, err
	}
	if err := w.start(ctx); err != nil {
		return w, err
	}
	if err := w.prepareNetwork(ctx); err != nil {
		return w, err
	}
	for i, host := range w.Nodes() {
		n := &node{number: i, host: host, dir: w.file(objects.Node(i)), member: i < p.members(), silent: i == p.processes-1}
		w.nodes = append(w.nodes, n)
		if err := n.prepare(ctx); err != nil {
			return w, err
		}
		if err := w.NodeKubeconfig(ctx, n.file("kubeconfig"), objects.Node(i), ""); err != nil {
			return w, err
		}
	}
	w.holder = w.nodes[0]
	if err := w.holder.host.TakeAddr(moved.egressIP); err != nil {
		return w, err
	}
	return w, w.populate(ctx)
}

func (w *world) start(ctx context.Context) (err error) {
	policy := w.file("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	w.audit.file = w.file("audit.log")
	w.World, err = cluster.NewWorld(ctx, lab.Config{Nodes: w.plan.processes}, cluster.Config{
		Dir: w.file("control-plane"), APIServer: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + w.audit.file},
	})
	if err != nil {
		return err
	}
	// Nothing needs its controllers, and their work would disturb the measurement.
	if err := w.ControllerManager.Kill(); err != nil {
		return err
	}
	config := w.AdminConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	w.client, err = kubernetes.NewForConfig(config)
	return err
}

// prepareNetwork counts what the API server sends, and drops what is sent to Nodes without a process.
func (w *world) prepareNetwork(ctx context.Context) error {
	const rules = `table ip scale {
	set sent { type ipv4_addr; size 65535; flags dynamic; }
	chain output {
		type filter hook output priority 0;
		tcp sport 6443 add @sent { ip daddr counter }
	}
}`
	err := w.Control().Feed(ctx, rules, "nft", "-f", "-")
	if err == nil {
		_, err = w.Outside().Run(ctx, "ip", "route", "add", "blackhole", standInNetwork.String())
	}
	return err
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// populate creates the Services, their EndpointSlices, and the Lease of the node that holds the egress IP of probe changed.
func (w *world) populate(ctx context.Context) error {
	size := w.plan.objects
	w.Log("creating %d Services with %d endpoints", size.Services, size.All())
	services, slices := w.client.CoreV1().Services(metav1.NamespaceDefault), w.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	var err error
	if w.slices, err = size.Create(ctx, w.client); err != nil {
		return err
	}
	for _, p := range []probe{moved, changed} {
		if _, err := services.Create(ctx, p.service(), metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := slices.Create(ctx, p.slice(len(w.nodes), 0), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: objects.Node(len(w.nodes)), Annotations: map[string]string{
			holders.Annotation: fmt.Sprintf(`{"%s":{"epoch":1}}`, changed.egressIP), holders.RevisionAnnotation: "1",
		},
	}}
	_, err = w.client.CoordinationV1().Leases(holders.DefaultNamespace).Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// resize has the cluster be of a size. It only gets more Nodes, and fewer addresses.
func (w *world) resize(ctx context.Context, to size) error {
	w.Log("%s", to)
	now, from := time.Now(), w.created
	err := objects.InParallel(ctx, to.nodes-from, func(ctx context.Context, i int) error {
		i += from
		address, member := standInAddress(i), false
		if i < len(w.nodes) {
			address, member = w.nodes[i].host.V4, w.nodes[i].member
		}
		_, err := w.client.CoreV1().Nodes().Create(ctx, nodeObject(i, address, member, now), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	fewer := w.claiming - to.addresses
	err = objects.InParallel(ctx, fewer, func(ctx context.Context, i int) error {
		service := w.plan.objects.Service((to.addresses + i) * w.plan.objects.Every)
		_, err := w.client.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, []byte(`{"spec":{"externalIPs":null}}`), metav1.PatchOptions{})
		return err
	})
	w.created, w.claiming = to.nodes, to.addresses
	return err
}

// report writes the status of so many Nodes, at an even pace, as their kubelets do. All Nodes take their turns.
func (w *world) report(ctx context.Context, count int, pace time.Duration) error {
	return objects.AtPace(ctx, count, pace, func() error {
		number := w.reports % w.created
		w.reports++
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions(time.Now())}})
		if err != nil {
			return err
		}
		_, err = w.client.CoreV1().Nodes().PatchStatus(ctx, objects.Node(number), patch)
		return err
	})
}

// change replaces a pod in each of so many EndpointSlices, at an even pace. All Services take their turns.
func (w *world) change(ctx context.Context, count int, pace time.Duration) error {
	return objects.AtPace(ctx, count, pace, func() error {
		const prime = 7919
		i := w.changes * prime % w.plan.objects.Services
		slice := w.plan.objects.Replace(w.slices[i], w.changes, *w.slices[i].Endpoints[0].NodeName)
		w.changes++
		updated, err := w.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
		if err == nil {
			w.slices[i] = updated
		}
		return err
	})
}

// sent returns the bytes that the API server has sent by now, by address.
func (w *world) sent(ctx context.Context) (map[netip.Addr]float64, error) {
	text, err := w.Control().Run(ctx, "nft", "-j", "list", "set", "ip", "scale", "sent")
	if err != nil {
		return nil, err
	}
	return parseSent(text)
}

// parseSent reads the counters of a set as nft prints it.
func parseSent(text string) (map[netip.Addr]float64, error) {
	var printed struct {
		NFTables []struct {
			Set struct {
				Elem []struct {
					Elem struct {
						Val     netip.Addr
						Counter struct{ Bytes float64 }
					}
				}
			}
		}
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&printed); err != nil {
		return nil, fmt.Errorf("nft printed something else: %w", err)
	}
	bytes := map[netip.Addr]float64{}
	for _, object := range printed.NFTables {
		for _, e := range object.Set.Elem {
			bytes[e.Elem.Val] = e.Elem.Counter.Bytes
		}
	}
	return bytes, nil
}

// used returns what each node has used by now. Requests are those since the last call.
func (w *world) used(ctx context.Context) ([]use, error) {
	sent, err := w.sent(ctx)
	if err != nil {
		return nil, err
	}
	asked, err := w.audit.read()
	if err != nil {
		return nil, err
	}
	all := make([]use, len(w.nodes))
	for i, n := range w.nodes {
		all[i] = use{received: sent[n.host.V4], asked: asked[n.user()]}
		if all[i].cpu, err = n.running.CPU(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (w *world) close() error {
	var errs []error
	for _, n := range w.nodes {
		errs = append(errs, n.close())
	}
	return errors.Join(append(errs, w.World.Close(), os.RemoveAll(w.dir))...)
}
