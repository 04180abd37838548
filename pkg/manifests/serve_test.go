package manifests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// journal is what an informer's handler was told.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(event string, obj any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, event+" "+obj.(metav1.Object).GetName())
}

func (j *journal) OnAdd(obj any, _ bool) { j.note("add", obj) }
func (j *journal) OnUpdate(_, obj any)   { j.note("update", obj) }
func (j *journal) OnDelete(obj any)      { j.note("delete", obj) }

// saw waits until exactly these were told since the last call, in any order.
func (j *journal) saw(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, func() string {
		j.mu.Lock()
		defer j.mu.Unlock()
		got := slices.Sorted(slices.Values(j.lines))
		if !slices.Equal(got, want) {
			return cmp.Diff(want, got)
		}
		j.lines = nil
		return ""
	})
}

// kubeProxy runs the informers that kube-proxy runs, with its selectors
// (cmd/kube-proxy/app/server.go and pkg/proxy/node.go).
func kubeProxy(w *world) map[string]*journal {
	w.Helper()
	journals := map[string]*journal{}
	start := func(name string, tweak func(*metav1.ListOptions), informer func(informers.SharedInformerFactory) cache.SharedIndexInformer) {
		factory := informers.NewSharedInformerFactoryWithOptions(w.client, 15*time.Minute, informers.WithTweakListOptions(tweak))
		j := &journal{}
		journals[name] = j
		i := informer(factory)
		registration, err := i.AddEventHandler(j)
		if err != nil {
			w.Fatal(err)
		}
		factory.Start(w.ctx.Done())
		ctx, cancel := context.WithTimeout(w.ctx, deadline)
		defer cancel()
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced, registration.HasSynced) {
			w.Fatalf("%s do not sync", name)
		}
	}
	start("services", func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = "!service.kubernetes.io/service-proxy-name", "spec.clusterIP!=None"
	}, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Services().Informer()
	})
	start("slices", func(o *metav1.ListOptions) { o.LabelSelector = "!service.kubernetes.io/headless" },
		func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Discovery().V1().EndpointSlices().Informer()
		})
	start("node", func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=n1" },
		func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Nodes().Informer()
		})
	start("cidrs", func(*metav1.ListOptions) {},
		func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Networking().V1().ServiceCIDRs().Informer()
		})
	start("namespaces", func(*metav1.ListOptions) {},
		func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Namespaces().Informer()
		})
	return journals
}

func service(name, ip, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata:\n  name: %s\n%sspec:\n  clusterIP: %s\n  ports: [{port: 80}]\n", name, more, ip)
}

func slice(name, address, labels string) string {
	return fmt.Sprintf("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s, labels: {%s}}\naddressType: IPv4\nendpoints: [{addresses: [%s]}]\n", name, labels, address)
}

func node(name, address string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {addresses: [{type: InternalIP, address: %s}]}\n", name, address)
}

const otherProxy = "  labels: {service.kubernetes.io/service-proxy-name: other}\n"

func TestServe_InformersOfKubeProxy(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchList=%t", watchList), func(t *testing.T) {
			setWatchList(t, watchList)
			w := newWorld(t, map[string]string{
				"a.yaml": service("a", "10.0.0.1", "") + service("headless", "None", "") + service("other", "10.0.0.2", otherProxy),
				"b.yaml": slice("a-1", "10.1.0.1", "kubernetes.io/service-name: a") + slice("h-1", "10.1.0.2", "service.kubernetes.io/headless: ''"),
				"n.yaml": node("n1", "192.0.2.1") + node("n2", "192.0.2.2") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n",
			})
			j := kubeProxy(w)
			j["services"].saw(t, "add a")
			j["slices"].saw(t, "add a-1")
			j["node"].saw(t, "add n1")
			j["namespaces"].saw(t, "add default")
			if got := w.requested("sendInitialEvents=true"); got != watchList {
				t.Fatalf("WatchList was used: %t", got)
			}

			// A new file.
			w.put("c.yml", service("c", "10.0.0.3", "")+slice("c-1", "10.1.0.3", ""))
			j["services"].saw(t, "add c")
			j["slices"].saw(t, "add c-1")
			// A changed one: of its two objects only one is another.
			w.put("c.yml", service("c", "10.0.0.3", "")+slice("c-1", "10.1.0.4", ""))
			j["slices"].saw(t, "update c-1")
			// An object moves to another file: nothing has changed.
			w.put("c.yml", service("c", "10.0.0.3", "")+slice("c-1", "10.1.0.4", "")+"# more\n")
			// A renamed file.
			if err := os.Rename(filepath.Join(w.dir, "c.yml"), filepath.Join(w.dir, "d.yaml")); err != nil {
				t.Fatal(err)
			}
			// A removed one. Everything before would have been told first.
			w.remove("d.yaml")
			j["services"].saw(t, "delete c")
			j["slices"].saw(t, "delete c-1")

			// Objects that begin and stop to match.
			w.put("a.yaml", service("a", "10.0.0.1", otherProxy)+service("headless", "10.0.0.9", "")+service("other", "10.0.0.2", ""))
			j["services"].saw(t, "delete a", "add headless", "add other")
			// Another node is none of our business.
			w.put("n.yaml", node("n1", "192.0.2.1")+node("n2", "192.0.2.3")+node("n3", "192.0.2.4"))
			j["namespaces"].saw(t, "delete default")
			w.put("n.yaml", node("n1", "192.0.2.9"))
			j["node"].saw(t, "update n1")
			j["services"].saw(t)
			j["slices"].saw(t)
		})
	}
}

// TestServe_MoreChangesThanTheHistoryHolds: a change of far more objects than the history holds.
func TestServe_MoreChangesThanTheHistoryHolds(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "")})
	factory := informers.NewSharedInformerFactory(w.client, 0)
	lister := factory.Core().V1().Services().Lister()
	factory.Start(w.ctx.Done())
	factory.WaitForCacheSync(w.ctx.Done())
	for _, n := range []int{3 * historyLength, 0, 2 * historyLength} {
		w.put("b.yaml", "# none\n"+manyServices(n))
		eventually(t, func() string {
			if got := len(factory.Core().V1().Services().Informer().GetStore().ListKeys()); got != n+1 {
				return fmt.Sprintf("%d Services, want %d", got, n+1)
			}
			return ""
		})
	}
	if _, err := lister.Services("default").Get("web-1"); err != nil {
		t.Error(err)
	}
}

func TestServe_GetAndList(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.yaml": service("a", "10.0.0.1", "  namespace: nx\n  labels: {app: a}\n") + service("b", "10.0.0.2", "  namespace: ny\n") + node("n1", "192.0.2.1"),
	})
	list := func(namespace string, opts metav1.ListOptions) string {
		t.Helper()
		found, err := w.client.CoreV1().Services(namespace).List(w.ctx, opts)
		if err != nil {
			return string(apierrors.ReasonForError(err))
		}
		names := []string{}
		for _, s := range found.Items {
			names = append(names, s.Name)
		}
		return strings.Join(names, " ")
	}
	for _, test := range []struct {
		namespace string
		opts      metav1.ListOptions
		want      string
	}{
		{"", metav1.ListOptions{}, "a b"},
		{"", metav1.ListOptions{ResourceVersion: "0", Limit: 1}, "a b"},
		{"nx", metav1.ListOptions{}, "a"},
		{"z", metav1.ListOptions{}, ""},
		{"", metav1.ListOptions{LabelSelector: "app=a"}, "a"},
		{"", metav1.ListOptions{LabelSelector: "app notin (a)"}, "b"},
		{"", metav1.ListOptions{LabelSelector: "app in ("}, "BadRequest"},
		{"", metav1.ListOptions{FieldSelector: "metadata.namespace=ny,metadata.name=b,spec.clusterIP=10.0.0.2"}, "b"},
		{"", metav1.ListOptions{FieldSelector: "spec.clusterIP=10.0.0.1"}, "a"},
		{"", metav1.ListOptions{FieldSelector: "spec.ports=1"}, "BadRequest"},
		{"", metav1.ListOptions{ResourceVersion: "x"}, "BadRequest"},
		{"", metav1.ListOptions{Continue: "x"}, "BadRequest"},
		{"", metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "Expired"},
		{"", metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "a b"},
		{"", metav1.ListOptions{ResourceVersion: "99999", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, "Timeout"},
	} {
		if got := list(test.namespace, test.opts); got != test.want {
			t.Errorf("%q %v: got %q, want %q", test.namespace, test.opts, got, test.want)
		}
	}
	service, err := w.client.CoreV1().Services("nx").Get(w.ctx, "a", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "10.0.0.1" || service.ResourceVersion == "" {
		t.Errorf("got %v, %v", service, err)
	}
	if _, err := w.client.CoreV1().Services("ny").Get(w.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if node, err := w.client.CoreV1().Nodes().Get(w.ctx, "n1", metav1.GetOptions{}); err != nil || len(node.Status.Addresses) != 1 {
		t.Errorf("got %v, %v", node, err)
	}
	if version, err := w.client.Discovery().ServerVersion(); err != nil || version.GoVersion == "" {
		t.Errorf("got %v, %v", version, err)
	}
}

// next is the next event of a watch.
func next(t *testing.T, watcher watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-watcher.ResultChan():
		return event
	case <-time.After(deadline):
		t.Fatal("no event")
		return watch.Event{}
	}
}

func TestServe_WatchModes(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "") + service("b", "10.0.0.2", "")})
	timeout := int64(deadline / time.Second)
	start := func(opts metav1.ListOptions) (watch.Interface, error) {
		opts.TimeoutSeconds = &timeout
		return w.client.CoreV1().Services("").Watch(w.ctx, opts)
	}
	// The watches below are open while the change is made.
	tests := []struct {
		name string
		opts metav1.ListOptions
		want []string
	}{
		{"any version", metav1.ListOptions{ResourceVersion: "0"}, []string{"ADDED a 2", "ADDED b 3", "DELETED b 4", "ADDED c 5"}},
		{"no version", metav1.ListOptions{}, []string{"ADDED a 2", "ADDED b 3", "DELETED b 4", "ADDED c 5"}},
		{"a version", metav1.ListOptions{ResourceVersion: "2"}, []string{"ADDED b 3", "DELETED b 4", "ADDED c 5"}},
		{"last version", metav1.ListOptions{ResourceVersion: "3"}, []string{"DELETED b 4", "ADDED c 5"}},
		{"initial events", metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			[]string{"ADDED a 2", "ADDED b 3", "BOOKMARK true 3", "DELETED b 4", "ADDED c 5"}},
		{"no initial events", metav1.ListOptions{SendInitialEvents: new(false), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			[]string{"DELETED b 4", "ADDED c 5"}},
	}
	watches := make([]watch.Interface, len(tests))
	for i, test := range tests {
		var err error
		if watches[i], err = start(test.opts); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		defer watches[i].Stop()
	}
	w.put("a.yaml", service("a", "10.0.0.1", "")+service("c", "10.0.0.2", ""))
	for i, test := range tests {
		for _, want := range test.want {
			event := next(t, watches[i])
			o := event.Object.(*v1.Service)
			got := fmt.Sprintf("%s %s%s %s", event.Type, o.Name, o.Annotations[metav1.InitialEventsAnnotationKey], o.ResourceVersion)
			if got != want {
				t.Errorf("%s: got %s, want %s", test.name, got, want)
			}
		}
	}
	for _, opts := range []metav1.ListOptions{
		{SendInitialEvents: new(true)},
		{ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		{ResourceVersion: "9", FieldSelector: "nope=1"},
	} {
		if _, err := start(opts); !apierrors.IsBadRequest(err) {
			t.Errorf("%v: got %v", opts, err)
		}
	}
	if _, err := start(metav1.ListOptions{ResourceVersion: "999"}); !apierrors.IsTimeout(err) {
		t.Errorf("got %v", err)
	}
}

func TestServe_WatchTimesOut(t *testing.T) {
	w := newWorld(t, nil)
	watcher, err := w.client.CoreV1().Services("").Watch(w.ctx, metav1.ListOptions{TimeoutSeconds: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	if event := next(t, watcher); event.Type != "" {
		t.Errorf("got %v", event)
	}
}

func TestServe_WatchOfAnExpiredVersion(t *testing.T) {
	w := newWorld(t, nil)
	// Two changes, the first of which is more than the history holds.
	for _, name := range []string{"x", "y", "z"} {
		list := &Objects{}
		for i := range historyLength {
			list.Namespaces = append(list.Namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", name, i)}})
		}
		if _, err := w.source.store.replace(list); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.client.CoreV1().Namespaces().Watch(w.ctx, metav1.ListOptions{ResourceVersion: "1"})
	if !apierrors.IsResourceExpired(err) || apierrors.ReasonForError(err) != metav1.StatusReasonExpired {
		t.Errorf("got %v", err)
	}
	// Other resources have not changed, so their watches go on.
	watcher, err := w.client.CoreV1().Services("").Watch(w.ctx, metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	watcher.Stop()
}

// request sends one with the token of the client.
func (w *world) request(method, path, token, body string) (int, string) {
	w.Helper()
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = token
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.ctx, method, w.config.Host+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestServe_Requests(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "")})
	token := w.config.BearerToken
	if len(token) < 20 {
		t.Fatalf("token %q", token)
	}
	for _, test := range []struct {
		method, path, token string
		code                int
		part                string
	}{
		{"GET", "/healthz", token, 200, "ok"},
		{"GET", "/livez", token, 200, "ok"},
		{"GET", "/readyz", token, 200, "ok"},
		{"GET", "/version", token, 200, `"gitVersion"`},
		{"GET", "/api/v1/services", token, 200, `"kind":"ServiceList"`},
		{"GET", "/apis/networking.k8s.io/v1/servicecidrs", token, 200, `"items":[]`},
		{"GET", "/api/v1/namespaces/default/services/a", token, 200, `"kind":"Service"`},
		{"GET", "/healthz", "", 401, `"reason":"Unauthorized"`},
		{"GET", "/api/v1/services", "", 401, `"kind":"Status"`},
		{"GET", "/api/v1/services", token + "x", 401, `"reason":"Unauthorized"`},
		{"GET", "/api/v1/services", strings.ToLower(token), 401, `"reason":"Unauthorized"`},
		{"POST", "/api/v1/namespaces/default/events", "wrong", 401, `"reason":"Unauthorized"`},
		{"GET", "/", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v1/endpoints", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v1/pods", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v1/services/a", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v1/namespaces/default/nodes", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v1/namespaces/default/services/b", token, 404, `services \"b\" not found`},
		{"GET", "/api/v1/namespaces/default/services/a/status", token, 404, `"reason":"NotFound"`},
		{"GET", "/apis/discovery.k8s.io/v1beta1/endpointslices", token, 404, `"reason":"NotFound"`},
		{"POST", "/api/v1/namespaces/default/services", token, 405, `"reason":"MethodNotAllowed"`},
		{"DELETE", "/api/v1/namespaces/default/services/a", token, 405, `"reason":"MethodNotAllowed"`},
		{"PUT", "/api/v1/nodes/n1", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/api/v1/events", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/api/v1/namespaces/default/events/e", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/apis/events.k8s.io/v1/namespaces/default/events/e", token, 405, `"reason":"MethodNotAllowed"`},
		{"POST", "/apis/events.k8s.io/v1/events", token, 405, `"reason":"MethodNotAllowed"`},
		{"PUT", "/apis/events.k8s.io/v1/namespaces/default/events/e", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/apis/config.openshift.io/v1/networks", token, 200, `"kind":"NetworkList"`},
		{"GET", "/apis/config.openshift.io/v1/networks/cluster", token, 404, `networks.config.openshift.io \"cluster\" not found`},
		{"PATCH", "/apis/config.openshift.io/v1/networks/cluster", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/apis/config.openshift.io/v1", token, 200, `"name":"networks"`},
		{"GET", "/apis/config.openshift.io/v1/", token, 200, `"name":"networks"`},
		{"GET", "/apis/config.openshift.io/v1", "", 401, `"reason":"Unauthorized"`},
		{"POST", "/apis/config.openshift.io/v1", token, 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/apis/config.openshift.io", token, 404, `"reason":"NotFound"`},
		{"GET", "/apis/config.openshift.io/v1alpha1", token, 404, `"reason":"NotFound"`},
		{"GET", "/apis/route.openshift.io/v1", token, 404, `"reason":"NotFound"`},
		{"GET", "/apis//v1", token, 404, `"reason":"NotFound"`},
		{"GET", "/api", token, 404, `"reason":"NotFound"`},
		{"GET", "/apis", token, 404, `"reason":"NotFound"`},
		{"GET", "/api/v2", token, 404, `"reason":"NotFound"`},
		{"GET", "/openapi/v2", token, 404, `"reason":"NotFound"`},
	} {
		code, text := w.request(test.method, test.path, test.token, "")
		if code != test.code || !strings.Contains(text, test.part) {
			t.Errorf("%s %s: got %d %s", test.method, test.path, code, text)
		}
	}
}

func TestServe_KubeconfigIsPrivateAndRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source, err := Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, remove, err := source.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || !strings.HasPrefix(config.Host, "https://127.0.0.1:") {
		t.Fatalf("got %v, %v", config, err)
	}
	remove()
	remove()
	// The second is removed because its context ends; so is the listener.
	if _, _, err := source.Serve(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	eventually(t, func() string {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			return fmt.Sprintf("left behind: %v, %v", left, err)
		}
		return ""
	})
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
			return "still serving"
		}
		return ""
	})
}
