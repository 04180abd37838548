package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// soon bounds everything that takes a second or two on an idle machine, or that comes after a
// fault: a watcher may wait up to a minute before it asks an API server again that was away.
var soon = lab.Stretch(3 * time.Minute)

// port is the port of all servers.
const port = 8080

// The IP families of a world, unless its settings say otherwise.
var families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

// world is a cluster with a host outside, which answers with the address that it sees.
type world struct {
	*testing.T
	*lab.Lab
	*cluster.ControlPlane
	members []*member
	// families are those of the cluster.
	families []v1.IPFamily

	// assignable are addresses that any node may get at any moment: all have the rules of the pods that leave from them.
	assignable []netip.Addr
	// registered are the addresses that Nodes of kubelets that lie had before that, by name: of what they tell these alone count.
	registered map[string]map[v1.NodeAddress]bool
	// network reaches OpenShift's Network; nil in a cluster that has none.
	network configclient.Interface
	// kubeletsPods are those that it runs.
	kubeletsPods *cluster.Pods
}

// member is a node with its own way to the API server.
type member struct {
	*process.Node
	link *cluster.Link
}

// settings say what a world is like where it is not as most tests want it.
type settings struct {
	nodes     int           // 3 if zero
	families  []v1.IPFamily // both if empty
	backend   lab.Backend
	nftables  bool   // the mode of that name
	beside    bool   // our rules by nftables, in another mode
	arguments string // YAML for proxyArguments
	// restricted: the API server gives kubelets the rights that they have in real clusters, and no more (NodeRestriction).
	restricted bool
	// kubelets: pods are for real ones, which the test starts.
	kubelets bool
	// runtime is that of real kubelets: containerd or crio, as hack/build-runtime.sh builds it; Debian's containerd if empty. It runs
	// plugins by this version of CNI, 1.0.0 if empty.
	runtime, cni string
	// onLAN: external IPs may be of the nodes' own network, where a node says by ARP that it has one; and there is a
	// host behind a router.
	onLAN bool
	// ptp is the CNI plugin that makes the pods' network, without a bridge.
	ptp bool
	// flannel makes the pods' network between nodes, and masquerades; the test starts it.
	flannel bool
}

// newWorld makes a cluster with all nodes running and nothing else in it. Pods run on them, made by
// a kubelet that serves at the port in each.
func newWorld(t *testing.T, s settings) *world {
	t.Helper()
	w := newIdleWorld(t, s)
	w.start()
	return w
}

// start starts all nodes.
func (w *world) start() {
	w.Helper()
	for _, m := range w.members {
		m.Start()
	}
	for _, m := range w.members {
		m.Ready()
	}
}

// newIdleWorld is newWorld but for the nodes' processes, which do not run yet.
func newIdleWorld(t *testing.T, s settings) *world {
	t.Helper()
	cluster.RequireBinaries(t)
	if s.nodes == 0 {
		s.nodes = 3
	}
	if len(s.families) == 0 {
		s.families = families
	}
	if missing := lab.MissingPlugins(); s.ptp && missing != "" {
		lab.Lacks(t, "%s", missing)
	}
	v4, v6 := slices.Contains(s.families, v1.IPv4Protocol), slices.Contains(s.families, v1.IPv6Protocol)
	l := lab.ForTest(t, lab.Config{
		Nodes: s.nodes, Control: true, IPv6: v6, IPv6Only: !v4, Masquerade: !s.flannel, Apart: s.flannel, Backend: s.backend,
		AnswersByARP: s.onLAN, Far: s.onLAN, PointToPoint: s.ptp,
	})
	w := &world{T: t, Lab: l, ControlPlane: cluster.ForTest(t, cluster.Config{Host: l.Control(), Kubelets: s.kubelets, APIServer: s.apiServer()}), families: s.families}
	w.must(w.Apply(t.Context(), "../../images/node/rbac.yaml"))
	for i, host := range l.Nodes() {
		w.members = append(w.members, w.newMember(fmt.Sprintf("node-%d", i+1), host, s))
	}
	if !s.kubelets {
		w.runKubelet()
	}
	w.serve(l.Outside())
	if s.onLAN {
		w.serve(l.Far())
	}
	return w
}

// apiServer are the further arguments of the API server.
func (s settings) apiServer() []string {
	if !s.restricted {
		return nil
	}
	return []string{"--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction"}
}

// newMember makes a node of the cluster, whose process does not run yet.
func (w *world) newMember(name string, host *lab.Host, s settings) *member {
	w.Helper()
	_, err := w.CreateNode(w.Context(), name, host.V4, host.V6)
	w.must(err)
	link, err := w.NewLink()
	w.must(err)
	m := &member{Node: process.New(w.T, name, host), link: link}
	w.must(w.NodeKubeconfig(w.Context(), m.File("node.kubeconfig"), name, link.URL()))
	m.Fields = map[string]any{"masterKubeConfig": "node.kubeconfig"}
	if s.nftables {
		m.Backend, m.Arguments = reconcile.NFTables, map[string]any{"proxy-mode": []string{"nftables"}}
	}
	if s.beside {
		m.Backend, m.Arguments = reconcile.NFTables, map[string]any{"egress-snat-backend": []string{"nftables"}}
	}
	m.Configure(s.arguments)
	return m
}

// runKubelet runs pods until the test ends.
func (w *world) runKubelet() {
	w.Helper()
	nodes := map[string]*lab.Host{}
	for _, m := range w.members {
		nodes[m.Name] = m.Host
	}
	var end func() error
	w.kubeletsPods, end = cluster.World{Lab: w.Lab, ControlPlane: w.ControlPlane}.RunPods(w.Context(), nodes, port)
	w.Cleanup(func() {
		if err := end(); err != nil {
			w.Error(err)
		}
	})
}

// pod returns the host of a pod that runs.
func (w *world) pod(namespace, name string) *lab.Host {
	w.Helper()
	host := w.kubeletsPods.Host(namespace, name)
	if host == nil {
		w.Fatalf("pod %s/%s does not run", namespace, name)
	}
	return host
}

// runPod creates a pod on a node and waits until it runs.
func (w *world) runPod(namespace, name string, on *member, labels map[string]string) *lab.Host {
	w.Helper()
	pod := cluster.NewPod(namespace, name, on.Name, labels)
	_, err := w.Client().CoreV1().Pods(namespace).Create(w.Context(), pod, metav1.CreateOptions{})
	w.must(err)
	w.eventually(func() error {
		got, err := w.Client().CoreV1().Pods(namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err == nil && got.Status.Phase != v1.PodRunning {
			err = fmt.Errorf("pod %s/%s is %s", namespace, name, got.Status.Phase)
		}
		return err
	})
	return w.pod(namespace, name)
}

// serve starts servers on a host that answer each client with the address that they see it from, at the port.
func (w *world) serve(host *lab.Host) {
	w.Helper()
	w.must(cluster.Serve(host, port))
}

// outside are the addresses at which the outside host serves.
func (w *world) outside() []netip.AddrPort { return at(w.Outside(), port) }

// at are a host's addresses with a port, IPv4 first.
func at(host *lab.Host, port uint16) []netip.AddrPort {
	var result []netip.AddrPort
	for _, addr := range []netip.Addr{host.V4, host.V6} {
		if addr.IsValid() {
			result = append(result, netip.AddrPortFrom(addr, port))
		}
	}
	return result
}

// scenario runs a part of the test under a name, in the same world. What the nodes' own methods
// find fatal ends the whole test.
func (w *world) scenario(name string, do func()) {
	w.Helper()
	w.Run(name, func(t *testing.T) {
		defer func(whole *testing.T) { w.T = whole }(w.T)
		w.T = t
		do()
	})
}

// share is how much of the tests is wanted, which the environment variable E2E says.
type share int

const (
	inCI  share = iota // E2E=ci, what .ci/run does: a test is in it that does not say otherwise
	usual              // what does not take minutes alone
	long               // E2E=all
)

func wanted(t *testing.T) share {
	t.Helper()
	shares := map[string]share{"ci": inCI, "": usual, "default": usual, "all": long}
	s, ok := shares[os.Getenv("E2E")]
	if !ok {
		t.Fatalf("E2E=%q: want ci, default or all", os.Getenv("E2E"))
	}
	return s
}

// belongsTo skips a test, or a part of one, where less than this share of the tests is wanted.
func belongsTo(t *testing.T, s share) {
	t.Helper()
	if wanted(t) < s {
		t.Skipf("not in this share; run 'make test-e2e%s'", map[share]string{long: " E2E=all"}[s])
	}
}

// by returns how long, or how often, something is done in each share.
func by[T any](t *testing.T, ci, usually, all T) T {
	t.Helper()
	return [...]T{ci, usually, all}[wanted(t)]
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(check func() error) {
	w.Helper()
	process.Eventually(w.T, soon, check)
}

// objects are those in the API server that decide which address a pod leaves from, with the arguments of the nodes, all
// of which have the same.
func (w *world) objects() (oracle.Cluster, error) {
	objects := oracle.Cluster{Arguments: w.members[0].RuleArguments()}
	ctx, client := w.Context(), w.Client()
	services, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return objects, err
	}
	endpointSlices, err := client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return objects, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return objects, err
	}
	cidrs, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return objects, err
	}
	if w.network != nil {
		objects.Network, err = w.network.ConfigV1().Networks().Get(ctx, "cluster", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			objects.Network = nil
		} else if err != nil {
			return objects, err
		}
	}
	if objects.Held, err = w.held(); err != nil {
		return objects, err
	}
	if objects.Chosen, err = w.chosen(); err != nil {
		return objects, err
	}
	for i := range services.Items {
		objects.Services = append(objects.Services, &services.Items[i])
	}
	for i := range endpointSlices.Items {
		objects.EndpointSlices = append(objects.EndpointSlices, &endpointSlices.Items[i])
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if registered, lies := w.registered[node.Name]; lies {
			node.Status.Addresses = slices.DeleteFunc(node.Status.Addresses, func(a v1.NodeAddress) bool { return !registered[a] })
		}
		objects.Nodes = append(objects.Nodes, node)
	}
	for i := range cidrs.Items {
		objects.ServiceCIDRs = append(objects.ServiceCIDRs, &cidrs.Items[i])
	}
	return objects, nil
}

// chosen are the egress IPs that nodes have chosen for pods, as their Leases say.
func (w *world) chosen() (map[string]map[string]map[netip.Addr]netip.Addr, error) {
	leases, err := w.Client().CoordinationV1().Leases("origin-node").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	chosen := map[string]map[string]map[netip.Addr]netip.Addr{}
	for _, lease := range leases.Items {
		if text, said := lease.Annotations["network.openshift.io/egress-choices"]; said {
			of := map[string]map[netip.Addr]netip.Addr{}
			if err := json.Unmarshal([]byte(text), &of); err != nil {
				return nil, err
			}
			chosen[lease.Name] = of
		}
	}
	return chosen, nil
}

// held are the addresses that nodes have on their interfaces.
func (w *world) held() (map[string][]netip.Addr, error) {
	held := map[string][]netip.Addr{}
	for _, m := range w.members {
		addrs, err := m.Host.Held()
		if err != nil {
			return nil, err
		}
		held[m.Name] = append(addrs, w.assignable...)
	}
	return held, nil
}

// settled waits until the kernel of each of these nodes, all if none is named, holds the plan for what
// the API server has, and nothing else of ours.
func (w *world) settled(members ...*member) {
	w.Helper()
	if len(members) == 0 {
		members = w.members
	}
	w.eventually(func() error {
		objects, err := w.objects()
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := m.CheckPlan(objects, w.families...); err != nil {
				return err
			}
		}
		return nil
	})
}

// bound waits until the documented rules bind this many pods to a Service in each family, and the nodes hold that.
// EndpointSlices follow Pods with a delay.
func (w *world) bound(namespace, service string, pods int) {
	w.Helper()
	w.eventually(func() error {
		objects, err := w.objects()
		if err != nil {
			return err
		}
		found := map[v1.IPFamily]map[netip.Addr]bool{v1.IPv4Protocol: {}, v1.IPv6Protocol: {}}
		for _, b := range objects.Bindings() {
			if b.Service.Namespace == namespace && b.Service.Name == service {
				found[familyOf(b.Pod)][b.Pod] = true
			}
		}
		for _, family := range w.families {
			if len(found[family]) != pods {
				return fmt.Errorf("%s: %d pods of %s/%s are bound, want %d", family, len(found[family]), namespace, service, pods)
			}
		}
		return nil
	})
	w.settled()
}

// identities are the addresses that each pod has to be seen from.
type identities struct {
	mu   sync.Mutex
	want map[*lab.Host][]netip.Addr // IPv4 and IPv6
}

// expect requires these addresses of the pods from now on; without addresses any will do.
func (i *identities) expect(addrs []string, pods ...*lab.Host) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.want == nil {
		i.want = map[*lab.Host][]netip.Addr{}
	}
	for _, pod := range pods {
		i.want[pod] = nil
		for _, addr := range addrs {
			i.want[pod] = append(i.want[pod], netip.MustParseAddr(addr))
		}
	}
}

// check is for lab.TrafficConfig.
func (i *identities) check(q lab.Question) error {
	if q.Err != nil {
		return nil // counted as unanswered
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, want := range i.want[q.From] {
		if want.Is4() == q.To.Addr().Is4() && q.Seen != want {
			return fmt.Errorf("want %s", want)
		}
	}
	return nil
}
