//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/origin-node/hack/lab"
)

// soon bounds everything that takes a second or two on an idle machine.
const soon = 30 * time.Second

// TestControlPlane_AllItsParts has one control plane for all its parts: a start costs more than what
// they do.
func TestControlPlane_AllItsParts(t *testing.T) {
	t.Parallel()
	RequireBinaries(t)
	l := lab.ForTest(t, lab.Config{Control: true, IPv6: true})
	c := ForTest(t, Config{Host: l.Control()})
	if err := c.Apply(t.Context(), "../../images/node/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	t.Run("has the version that is vendored", func(t *testing.T) { testVersion(t, c) })
	t.Run("makes EndpointSlices of a Service and Pods", func(t *testing.T) { testSlices(t, c) })
	t.Run("runs a Deployment", func(t *testing.T) { testDeployment(t, c) })
	t.Run("gives a node what it needs and no more", func(t *testing.T) { testNodeKubeconfig(t, c, l.Node()) })
	t.Run("refuses a node with the reason", func(t *testing.T) { testRefusals(t, c, l.Node()) })
	t.Run("keeps its data", func(t *testing.T) { testRestarts(t, c) })
}

func TestControlPlane_OneIPFamily(t *testing.T) {
	t.Parallel()
	RequireBinaries(t)
	for _, tt := range []struct {
		name   string
		config lab.Config
		cidr   netip.Prefix
	}{
		{"IPv4", lab.Config{Control: true}, ServiceCIDRV4},
		{"IPv6", lab.Config{Control: true, IPv6Only: true}, ServiceCIDRV6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lab.ForTest(t, tt.config)
			c := ForTest(t, Config{Host: l.Control()})
			service, err := c.CreateService(t.Context(), NewService("default", "web", nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			if ips := service.Spec.ClusterIPs; len(ips) != 1 || !tt.cidr.Contains(netip.MustParseAddr(ips[0])) {
				t.Errorf("cluster IPs %v are not one of %s", ips, tt.cidr)
			}
			link, err := c.NewLink()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := c.WriteKubeconfig(t.Context(), file, Kubeconfig{Server: link.URL()}); err != nil {
				t.Fatal(err)
			}
			if _, err := clientFrom(t, l.Node(), file).Discovery().ServerVersion(); err != nil {
				t.Errorf("ask over a link: %v", err)
			}
		})
	}
}

func testVersion(t *testing.T, c *ControlPlane) {
	version, err := c.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := vendoredKubernetes(t); version.GitVersion != want {
		t.Errorf("the API server is %s, want %s as in go.mod", version.GitVersion, want)
	}
}

func testSlices(t *testing.T, c *ControlPlane) {
	ctx := t.Context()
	namespace(t, c, "shop")
	node(t, c, "node-1", "192.0.2.2", "2001:db8:0:2::2")
	labels := map[string]string{"app": "web"}
	for i := range 2 {
		pod := NewPod("shop", fmt.Sprintf("web-%d", i), "node-1", labels)
		if _, err := c.CreatePod(ctx, pod, addrs(fmt.Sprintf("10.128.0.1%d", i), fmt.Sprintf("fd00:10:128::1%d", i))...); err != nil {
			t.Fatal(err)
		}
	}
	service, err := c.CreateService(ctx, NewService("shop", "web", labels, []string{"203.0.113.10", "2001:db8:113::10"}))
	if err != nil {
		t.Fatal(err)
	}
	for i, cidr := range []netip.Prefix{ServiceCIDRV4, ServiceCIDRV6} {
		if ip := service.Spec.ClusterIPs[i]; !cidr.Contains(netip.MustParseAddr(ip)) {
			t.Errorf("cluster IP %s is not in %s", ip, cidr)
		}
	}
	endpoints(t, c, "shop", "web", "10.128.0.10", "10.128.0.11", "fd00:10:128::10", "fd00:10:128::11")
	if err := c.DeletePod(ctx, "shop", "web-0"); err != nil {
		t.Fatal(err)
	}
	endpoints(t, c, "shop", "web", "10.128.0.11", "fd00:10:128::11")
	if err := c.DeleteNamespace(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
}

// pool is a Kubelet's addresses, with the pods that have them.
type pool struct {
	mu    sync.Mutex
	taken map[netip.Addr]string
}

func (p *pool) start(_ context.Context, pod *v1.Pod) ([]netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	addr := netip.MustParseAddr("10.128.9.1")
	for p.taken[addr] != "" {
		addr = addr.Next()
	}
	p.taken[addr] = pod.Name
	return []netip.Addr{addr}, nil
}

func (p *pool) stop(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, name := range p.taken {
		if name == pod.Name {
			delete(p.taken, addr)
			return nil
		}
	}
	return errors.New("was not started")
}

func testDeployment(t *testing.T, c *ControlPlane) {
	ctx := t.Context()
	namespace(t, c, "rolling")
	node(t, c, "node-2", "192.0.2.3")
	node(t, c, "node-3", "192.0.2.4")
	addresses := &pool{taken: map[netip.Addr]string{}}
	kubelet := &Kubelet{ControlPlane: c, Nodes: []string{"node-2", "node-3"}, Start: addresses.start, Stop: addresses.stop}
	kubeletEnds := make(chan error, 1)
	kubeletCtx, stopKubelet := context.WithCancel(t.Context())
	go func() { kubeletEnds <- kubelet.Run(kubeletCtx) }()
	defer func() {
		stopKubelet()
		if err := <-kubeletEnds; !errors.Is(err, context.Canceled) {
			t.Errorf("the Kubelet ended with %v", err)
		}
	}()

	labels := map[string]string{"app": "web"}
	if _, err := c.Client().AppsV1().Deployments("rolling").Create(ctx, NewDeployment("rolling", "web", 4, labels), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rolledOut(t, c)
	before := podNodes(t, c)
	perNode := map[string]int{}
	for _, node := range before {
		perNode[node]++
	}
	if diff := cmp.Diff(map[string]int{"node-2": 2, "node-3": 2}, perNode); diff != "" {
		t.Errorf("pods per node (-want +got):\n%s", diff)
	}
	if err := c.RestartDeployment(ctx, "rolling", "web"); err != nil {
		t.Fatal(err)
	}
	rolledOut(t, c)
	eventually(t, func() error {
		after := podNodes(t, c)
		for name := range before {
			if after[name] != "" {
				return fmt.Errorf("%s outlives the restart", name)
			}
		}
		return want(4, len(after))
	})
	if err := c.ScaleDeployment(ctx, "rolling", "web", 1); err != nil {
		t.Fatal(err)
	}
	rolledOut(t, c)
	if err := c.DeleteNamespace(ctx, "rolling"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		addresses.mu.Lock()
		defer addresses.mu.Unlock()
		return want(0, len(addresses.taken))
	})
}

func rolledOut(t *testing.T, c *ControlPlane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := c.RolledOut(ctx, "rolling", "web"); err != nil {
		t.Fatal(err)
	}
}

func podNodes(t *testing.T, c *ControlPlane) map[string]string {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods("rolling").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	for _, pod := range pods.Items {
		nodes[pod.Name] = pod.Spec.NodeName
	}
	return nodes
}

func testNodeKubeconfig(t *testing.T, c *ControlPlane, from *lab.Host) {
	link, err := c.NewLink()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.NodeKubeconfig(t.Context(), file, "node-1", link.URL()); err != nil {
		t.Fatal(err)
	}
	client := clientFrom(t, from, file)
	if _, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list Services: %v", err)
	}
	_, err = client.CoreV1().Pods("default").Create(t.Context(), NewPod("default", "pod", "", nil), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("create a pod: %v, want Forbidden", err)
	}
	link.Refuse()
	link.Reset()
	if _, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the kubeconfig does not lead through the link")
	}
}

func testRefusals(t *testing.T, c *ControlPlane, from *lab.Host) {
	node := Kubeconfig{User: "system:origin-node:node-1", Groups: []string{NodeGroup}}
	with := func(change func(*Kubeconfig)) Kubeconfig {
		k := node
		change(&k)
		return k
	}
	for _, tt := range []struct {
		name string
		k    Kubeconfig
		want func(error) bool
	}{
		{"nothing wrong", node, func(err error) bool { return err == nil }},
		{"a valid token", Kubeconfig{ServiceAccount: "node"}, func(err error) bool { return err == nil }},
		{"an expired token", Kubeconfig{ServiceAccount: "node", Lifetime: -time.Second}, apierrors.IsUnauthorized},
		{"an expired certificate", with(func(k *Kubeconfig) { k.Lifetime = -time.Second }), apierrors.IsUnauthorized},
		{"another CA", with(func(k *Kubeconfig) { k.ForeignCA = true }), func(err error) bool { return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown }},
		{"no role", with(func(k *Kubeconfig) { k.Groups = nil }), apierrors.IsForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := c.WriteKubeconfig(t.Context(), file, tt.k); err != nil {
				t.Fatal(err)
			}
			_, err := clientFrom(t, from, file).CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
			if !tt.want(err) {
				t.Errorf("list Services: %v", err)
			}
		})
	}
}

// clientFrom is a client with a kubeconfig on a host.
func clientFrom(t *testing.T, host *lab.Host, file string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = host.DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func testRestarts(t *testing.T, c *ControlPlane) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*soon)
	defer cancel()
	namespace(t, c, "kept")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"stop of the API server", func() error { return c.APIServer.Stop(ctx) }},
		{"its start", func() error { return c.APIServer.startReady(ctx) }},
		{"restart of etcd", func() error { return c.Etcd.Restart(ctx) }},
		{"kill of etcd", c.Etcd.Kill},
		{"its start", func() error { return c.Etcd.startReady(ctx) }},
		{"restart of the controller manager", func() error { return c.ControllerManager.Restart(ctx) }},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		t.Logf("%s took %s", step.name, time.Since(began).Round(time.Millisecond))
	}
	eventually(t, func() error {
		_, err := c.Client().CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{})
		return err
	})
	// The controllers work again.
	eventually(t, func() error {
		_, err := c.CreateNamespace(ctx, "after")
		return err
	})
	if err := c.APIServer.Start(); err == nil {
		t.Error("what runs can be started again")
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	_, err := New(t.Context(), Config{Binaries: t.TempDir(), Dir: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error that a binary does not exist", err)
	}
}

func namespace(t *testing.T, c *ControlPlane, name string) {
	t.Helper()
	if _, err := c.CreateNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func node(t *testing.T, c *ControlPlane, name string, ips ...string) {
	t.Helper()
	if _, err := c.CreateNode(t.Context(), name, addrs(ips...)...); err != nil {
		t.Fatal(err)
	}
}

func addrs(ips ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, ip := range ips {
		parsed = append(parsed, netip.MustParseAddr(ip))
	}
	return parsed
}

// endpoints waits until the Service's slices have these addresses, all ready.
func endpoints(t *testing.T, c *ControlPlane, namespace, service string, ips ...string) {
	t.Helper()
	eventually(t, func() error {
		list, err := c.Client().DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		var got []string
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if *endpoint.Conditions.Ready {
					got = append(got, endpoint.Addresses...)
				}
			}
		}
		slices.Sort(got)
		return want(ips, got)
	})
}

func want(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}

// eventually fails the test unless check soon returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(soon)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", soon, err)
		}
		time.Sleep(askAgain)
	}
}
