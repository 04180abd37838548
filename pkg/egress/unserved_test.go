package egress

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/manifests"
)

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
		dryRun, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: objects.Services, EndpointSlices: objects.EndpointSlices})
		if err != nil || boundPods(dryRun) != step.bound {
			t.Errorf("%s: a dry run binds %s, %v; want %s", step.name, boundPods(dryRun), err, step.bound)
		}
		var node plan.Plan
		eventually(t, step.name+": the node has the dry run's plan", func() bool {
			node = followedPlan(e.state, v1.IPv4Protocol)
			return node.Equal(dryRun)
		})
		if diff := cmp.Diff(dryRun, node, compareNetip); diff != "" {
			t.Errorf("%s (-dry run +node):\n%s", step.name, diff)
		}
	}
}

// TestState_UnservedSlicesThatMatter: the loop is woken by those that name a pod which a claim's own
// slice does not, and by no others; and none is kept that names no pod.
func TestState_UnservedSlicesThatMatter(t *testing.T) {
	s := newState(testConfig)
	object := newSlice("db-1", "db", "10.128.0.5", "10.128.0.9")
	object.Namespace = "bank"
	object.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "db-0"}
	object.Endpoints[1].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "not-its-own"}
	stripped, err := stripSlice(object)
	if err != nil {
		t.Fatal(err)
	}
	db := stripped.(*unservedSlice)
	want := []plan.Endpoint{{Addr: netip.MustParseAddr("10.128.0.5"), Pod: plan.Pod{Namespace: "bank", Name: "db-0"}}}
	if diff := cmp.Diff(want, db.endpoints, compareNetip); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	set := func(now unservedEndpoints) bool { return s.setUnserved(headlessSlices, nameOf(db), now) != nothing }
	none := unservedEndpoints{}
	if set(db.unservedEndpoints) {
		t.Error("nobody has a claim, and it matters")
	}
	s.setService(newService("web", nil))
	if _, err := s.setSlice(newSlice("web-1", "web", "10.128.0.5")); err != nil {
		t.Fatal(err)
	}
	if p := planOf(s, v1.IPv4Protocol); len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
		t.Errorf("refusals %v; want one, for the pod of another namespace", p.Refusals)
	}
	if s.pods != nil {
		t.Error("asking for the status counts all pods, for good")
	}
	s.update(v1.IPv4Protocol)
	if !set(none) || set(none) || !set(db.unservedEndpoints) || !set(none) {
		t.Error("it matters when the pod is named, and when it is not any more")
	}
	if len(s.unserved)+len(s.pods) != 0 {
		t.Errorf("nothing names a pod, and the state has %v, %v", s.unserved, s.pods)
	}
}

func boundPods(p plan.Plan) string {
	var pods []string
	for _, b := range p.Bindings {
		pods = append(pods, b.Pod.String())
	}
	return strings.Join(pods, " ")
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
	clients := Clients{Kube: kubernetes.NewForConfigOrDie(config), Config: configclient.NewForConfigOrDie(config)}
	e := New(t.Context(), testConfig)
	p := extension.NewHost(t.Context(), e).Wrap(&deaf{}, families...)
	clients.Nodes = extension.NewNodes(clients.Kube, func(err error) error { return err }, nil)
	e.Watch(clients)
	go clients.Nodes.RunWithContext(t.Context())
	go tellServices(t, clients.Kube, p)
	go tellSlices(t, clients.Kube, p)
	eventually(t, "all objects are known", func() bool { return len(e.Summary().Missing) == 0 })
	return e
}

// deaf is a proxier that does nothing with what it is told.
type deaf struct{ proxy.Provider }

func (*deaf) OnServiceAdd(*v1.Service)                            {}
func (*deaf) OnServiceUpdate(_, _ *v1.Service)                    {}
func (*deaf) OnServiceDelete(*v1.Service)                         {}
func (*deaf) OnServiceSynced()                                    {}
func (*deaf) OnEndpointSliceAdd(*discovery.EndpointSlice)         {}
func (*deaf) OnEndpointSliceUpdate(_, _ *discovery.EndpointSlice) {}
func (*deaf) OnEndpointSliceDelete(*discovery.EndpointSlice)      {}
func (*deaf) OnEndpointSlicesSynced()                             {}
func (*deaf) Sync()                                               {}

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
