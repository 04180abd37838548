package egress

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/apis"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/manifests"
)

var nodeConfig = Config{Config: cluster.Config{ClusterCIDRs: []netip.Prefix{
	netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd00:10::/32"),
}}}

// TestExtension_DueSinceAllIsKnown: what waits for objects is not late, nor was it before they came.
func TestExtension_DueSinceAllIsKnown(t *testing.T) {
	e := New(t.Context(), nodeConfig)
	e.SetService(clustertest.NewService("web", nil))
	var last time.Time
	for _, kind := range e.gate.Missing() {
		if due := e.Summary().DueSince; !due.IsZero() {
			t.Fatalf("due since %s while %v are missing", due, e.Summary().Missing)
		}
		last = time.Now()
		e.known(kind)
	}
	if due := e.Summary().DueSince; due.Before(last) {
		t.Errorf("due since %s, before all was known at %s", due, last)
	}
}

// TestExtension_WaitsForAllKinds: nothing is planned, or written, as long as one of them is missing. It ends
// all the same.
func TestExtension_WaitsForAllKinds(t *testing.T) {
	t.Setenv("PATH", "") // for the case that it does not wait
	synctest.Test(t, func(t *testing.T) {
		config := nodeConfig
		config.MinSyncPeriod, config.SyncPeriod = time.Second, 24*time.Hour
		e := New(t.Context(), config)
		extension.NewHost(t.Context(), e).Wrap(&idle{}, cluster.Families...)
		for _, kind := range e.gate.Missing()[1:] {
			e.known(kind)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			e.Run(ctx)
		}()
		time.Sleep(48 * time.Hour) // of the bubble's clock
		if got := e.Snapshot(); len(got.Missing) != 1 || got.Families != nil {
			t.Errorf("missing %v, families %+v; want one kind missing, and no plan", got.Missing, got.Families)
		}
		cancel()
		<-ended
	})
}

// TestExtension_EndpointsElsewhere: of these the status tells, so those who watch it are woken. The loops
// are not.
func TestExtension_EndpointsElsewhere(t *testing.T) {
	config := nodeConfig
	config.NodeName = "here"
	e := New(t.Context(), config)
	e.state.SetService(clustertest.NewService("web", nil))
	for _, test := range []struct {
		what      string
		do        func()
		due, told bool
	}{
		{"one comes elsewhere", func() { e.SetEndpointSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there")) }, false, true},
		{"the same again", func() { e.SetEndpointSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there")) }, false, false},
		{"of a Service without a claim", func() { e.SetEndpointSlice(clustertest.Placed("db-1", "db", "10.128.0.6@here")) }, false, false},
		{"it goes", func() { e.DeleteEndpointSlice(clustertest.NewSlice("web-1", "web")) }, false, true},
		{"one comes here", func() { e.SetEndpointSlice(clustertest.Placed("web-1", "web", "10.128.0.5@here")) }, true, false}, // the sync tells
	} {
		changed := e.Changed()
		test.do()
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		for name, f := range e.families {
			if due := !f.loop.DueSince().IsZero(); due != test.due || told != test.told {
				t.Errorf("%s: a sync of %s is due: %v, want %v; the status's watchers are told: %v, want %v", test.what, name, due, test.due, told, test.told)
			}
		}
	}
}

// TestExtension_ProxierSyncedNeverBlocks, though nobody takes its notes: the proxier calls it with its lock held.
func TestExtension_ProxierSyncedNeverBlocks(t *testing.T) {
	e := New(t.Context(), nodeConfig)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 3 { // the first fills what a note may wait in
			e.ProxierSynced(v1.IPv4Protocol)
		}
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Error("the proxier waits, with its lock held")
	}
}

// TestChangeTime_OfTheController: what an EndpointSlice says of when it changed counts, if it can be.
func TestChangeTime_OfTheController(t *testing.T) {
	believable := started.Add(time.Since(started) / 2).Round(0)
	for name, test := range map[string]struct {
		annotation string
		want       time.Time // zero for now
	}{
		"said":                     {believable.Format(time.RFC3339Nano), believable},
		"not said":                 {"", time.Time{}},
		"nonsense":                 {"yesterday", time.Time{}},
		"before this process":      {started.Add(-time.Hour).Format(time.RFC3339Nano), time.Time{}},
		"in another clock's times": {time.Now().Add(time.Hour).Format(time.RFC3339Nano), time.Time{}},
	} {
		slice := clustertest.NewSlice("web-1", "web")
		slice.Annotations = map[string]string{v1.EndpointsLastChangeTriggerTime: test.annotation}
		before := time.Now()
		got := changeTime(slice)
		switch {
		case test.want.IsZero() && (got.Before(before) || got.After(time.Now())):
			t.Errorf("%s: %s, want now", name, got)
		case !test.want.IsZero() && !got.Equal(test.want):
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := changeTime(&discovery.EndpointSlice{}); time.Since(got) > time.Minute {
		t.Errorf("without annotations: %s, want now", got)
	}
}

// idle is a proxier that has nothing to do.
type idle struct{ deaf }

func (*idle) OnTopologyChange(map[string]string) {}
func (*idle) SyncLoop()                          {}

// TestExtension_RefusesPodOfHeadlessService: a slice names no pod for an address that only slices which
// kube-proxy leaves out name. A running node and a dry run decide alike, whatever labels come and go.
func TestExtension_RefusesPodOfHeadlessService(t *testing.T) {
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "objects.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	thief := manifest("Service", "thief", "web", "", "spec: {clusterIP: 172.30.0.1, externalIPs: [203.0.113.1], ports: [{port: 80}]}") +
		manifest("EndpointSlice", "thief", "web-1", "kubernetes.io/service-name: web",
			"addressType: IPv4\nendpoints: [{addresses: [10.128.0.5]}, {addresses: [10.128.0.6]}]")
	victim := func(labels string) string {
		return manifest("EndpointSlice", "victim", "db-1", labels+"kubernetes.io/service-name: db",
			"addressType: IPv4\nendpoints: [{addresses: [10.128.0.5], targetRef: {kind: Pod, namespace: victim, name: db-0}}]")
	}
	headless, otherProxys := v1.IsHeadlessService+": '', ", apis.LabelServiceProxyName+": other, "
	put(thief + victim(headless))
	e := runAsNode(t, dir)
	for _, step := range []struct {
		name, objects string
		bound         string
	}{
		{"a pod of a headless Service", thief + victim(headless), "10.128.0.6"},
		{"nobody's", thief, "10.128.0.5 10.128.0.6"},
		{"a pod of a Service of another proxy", thief + victim(otherProxys), "10.128.0.6"},
		{"of a headless one of another proxy", thief + victim(headless+otherProxys), "10.128.0.6"},
		{"headless no more", thief + victim(""), "10.128.0.6"},
		{"headless again", thief + victim(headless), "10.128.0.6"},
		{"the thief's own slice says that it is headless", strings.Replace(thief, "service-name", "service-name: web, "+headless+"x", 1), ""},
		{"or another proxy's", strings.Replace(thief, "service-name", "service-name: web, "+otherProxys+"x", 1), ""},
	} {
		put(step.objects)
		objects, err := manifests.Load(dir)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		dryRun, err := cluster.PlanFor(v1.IPv4Protocol, nodeConfig.Config, cluster.Objects{Services: objects.Services, EndpointSlices: objects.EndpointSlices})
		if err != nil || clustertest.BoundPods(dryRun) != step.bound {
			t.Errorf("%s: a dry run binds %s, %v; want %s", step.name, clustertest.BoundPods(dryRun), err, step.bound)
		}
		var node plan.Plan
		clustertest.Eventually(t, step.name+": the node has the dry run's plan", func() bool {
			_, followed := e.state.Audit(v1.IPv4Protocol)
			in, place := e.state.Input(v1.IPv4Protocol)
			node = plan.Build(place.Of(in))
			return followed && node.Equal(dryRun)
		})
		if diff := cmp.Diff(dryRun, node, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("%s (-dry run +node):\n%s", step.name, diff)
		}
	}
}

// manifest is a YAML document.
func manifest(kind, namespace, name, labels, more string) string {
	version := "v1"
	if kind == "EndpointSlice" {
		version = "discovery.k8s.io/v1"
	}
	return fmt.Sprintf("---\nkind: %s\napiVersion: %s\nmetadata: {namespace: %s, name: %s, labels: {%s}}\n%s\n", kind, version, namespace, name, labels, more)
}

// runAsNode returns an Extension that is told of the objects in a folder what a node's is: by
// kube-proxy, with its selectors, and by its own watches. It is complete.
func runAsNode(t *testing.T, dir string) *Extension {
	t.Helper()
	source, err := manifests.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, remove, err := source.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType, config.AcceptContentTypes, config.QPS = "application/json", "application/json", -1
	clients := Clients{Kube: kubernetes.NewForConfigOrDie(config), Config: configclient.NewForConfigOrDie(config), Explain: unexplained}
	e := New(t.Context(), nodeConfig)
	p := extension.NewHost(t.Context(), e).Wrap(&deaf{}, cluster.Families...)
	clients.Nodes = extension.NewNodes(clients.Kube, unexplained, nil)
	e.Watch(clients)
	go clients.Nodes.RunWithContext(t.Context())
	go tellServices(t, clients.Kube, p)
	go tellSlices(t, clients.Kube, p)
	clustertest.Eventually(t, "all objects are known", func() bool { return len(e.Summary().Missing) == 0 })
	return e
}

func unexplained(err error) error { return err }

// deaf is a proxier that does nothing with what it is told.
type deaf struct{ proxy.Provider }

func (*deaf) OnServiceAdd(*v1.Service) {}

func (*deaf) OnServiceUpdate(_, _ *v1.Service) {}

func (*deaf) OnServiceDelete(*v1.Service) {}

func (*deaf) OnServiceSynced() {}

func (*deaf) OnEndpointSliceAdd(*discovery.EndpointSlice) {}

func (*deaf) OnEndpointSliceUpdate(_, _ *discovery.EndpointSlice) {}

func (*deaf) OnEndpointSliceDelete(*discovery.EndpointSlice) {}

func (*deaf) OnEndpointSlicesSynced() {}

func (*deaf) Sync() {}

func tellServices(t *testing.T, client kubernetes.Interface, p proxy.Provider) {
	informer := coreinformers.NewFilteredServiceInformer(client, metav1.NamespaceAll, 0, nil, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = "!"+apis.LabelServiceProxyName, "spec.clusterIP!=None"
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.OnServiceAdd(o.(*v1.Service)) },
		UpdateFunc: func(old, o any) { p.OnServiceUpdate(old.(*v1.Service), o.(*v1.Service)) },
		DeleteFunc: func(o any) { p.OnServiceDelete(o.(*v1.Service)) },
	})
	go informer.RunWithContext(t.Context())
	if cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		p.OnServiceSynced()
	}
}

func tellSlices(t *testing.T, client kubernetes.Interface, p proxy.Provider) {
	informer := discoveryinformers.NewFilteredEndpointSliceInformer(client, metav1.NamespaceAll, 0, nil, func(o *metav1.ListOptions) {
		o.LabelSelector = "!" + v1.IsHeadlessService
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { p.OnEndpointSliceAdd(o.(*discovery.EndpointSlice)) },
		UpdateFunc: func(old, o any) {
			p.OnEndpointSliceUpdate(old.(*discovery.EndpointSlice), o.(*discovery.EndpointSlice))
		},
		DeleteFunc: func(o any) { p.OnEndpointSliceDelete(o.(*discovery.EndpointSlice)) },
	})
	go informer.RunWithContext(t.Context())
	if cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		p.OnEndpointSlicesSynced()
	}
}

// TestNew_PortBlocksWithoutSteering: a node that cannot steer starts, also if blocks are asked for.
func TestNew_PortBlocksWithoutSteering(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := New(ctx, Config{PortBlocks: 512, Journal: sourceports.Journal{Folder: t.TempDir()}})
	cancel()
	e.Wait()
}
