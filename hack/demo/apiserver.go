package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/manifests"
)

// apiAddress is where each node finds the API server.
const apiAddress = "127.0.0.1:6443"

// kubeconfig is the nodes'.
const kubeconfig = `kind: Config
apiVersion: v1
clusters: [{name: demo, cluster: {server: "http://` + apiAddress + `"}}]
users: [{name: node}]
contexts: [{name: demo, context: {cluster: demo, user: node}}]
current-context: demo
`

// serveAPI is the API server of the nodes, until ctx ends: it has the objects of a folder of manifests, and the Leases
// in which nodes tell each other which addresses they have. Each node reaches it on its loopback.
func serveAPI(ctx context.Context, folder string, nodes []*lab.Host) error {
	ctx = klog.NewContext(ctx, logr.Discard()) // the table is to be read
	source, err := manifests.Open(ctx, folder)
	if err != nil {
		return err
	}
	file, remove, err := source.Serve(ctx)
	if err != nil {
		return err
	}
	defer remove()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	leases := &leaseStore{more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1})
	const path = "/apis/coordination.k8s.io/v1/namespaces/origin-node/leases"
	mux.HandleFunc("GET "+path, leases.get)
	mux.HandleFunc("POST "+path, leases.create)
	mux.HandleFunc("PATCH "+path+"/{name}", leases.patch)
	server := &http.Server{Handler: mux} //nolint:gosec // its clients are the demo's own
	context.AfterFunc(ctx, func() { _ = server.Close() })
	for _, node := range nodes {
		listener, err := node.Listen(ctx, "tcp", apiAddress)
		if err != nil {
			return err
		}
		go func() { _ = server.Serve(listener) }() // until it is closed
	}
	return nil
}

// leaseStore keeps Leases. They are never deleted.
type leaseStore struct {
	mu sync.Mutex
	// history has a Lease each time it was written. The resourceVersion is how many there were then.
	history []*coordinationv1.Lease
	more    chan struct{} // closed when the history grows
}

// last returns the Lease of a name; nil if there is none. The lock must be held.
func (s *leaseStore) last(name string) (last *coordinationv1.Lease) {
	for _, lease := range s.history {
		if lease.Name == name {
			last = lease
		}
	}
	return last
}

// create answers POST.
func (s *leaseStore) create(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, &coordinationv1.Lease{})
}

// patch answers PATCH. The nodes' merge patches remove no field, so each is read over the Lease that there is.
func (s *leaseStore) patch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	old := s.last(r.PathValue("name"))
	s.mu.Unlock()
	if old == nil {
		respond(w, http.StatusNotFound, apierrors.NewNotFound(coordinationv1.Resource("leases"), r.PathValue("name")).Status())
		return
	}
	s.write(w, r, old.DeepCopy())
}

// write reads a request's body over a Lease and keeps that. Only its own node writes a Lease, one request after the other.
func (s *leaseStore) write(w http.ResponseWriter, r *http.Request, lease *coordinationv1.Lease) {
	if err := json.NewDecoder(r.Body).Decode(lease); err != nil {
		respond(w, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).Status())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lease.ResourceVersion = strconv.Itoa(len(s.history) + 1)
	s.history = append(s.history, lease)
	close(s.more)
	s.more = make(chan struct{})
	respond(w, http.StatusOK, lease)
}

// get answers a list, or a watch with all that was written after a version.
func (s *leaseStore) get(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(s.history))}}
		for _, lease := range s.history {
			if s.last(lease.Name) == lease {
				list.Items = append(list.Items, *lease)
			}
		}
		respond(w, http.StatusOK, list)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		// As of an API server without streaming lists, whose clients list instead.
		respond(w, http.StatusUnprocessableEntity, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil).Status())
		return
	}
	version, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		respond(w, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).Status())
		return
	}
	s.watch(r.Context(), w, version)
}

func (s *leaseStore) watch(ctx context.Context, w http.ResponseWriter, version int) {
	w.Header().Set("Content-Type", "application/json")
	for ctx.Err() == nil {
		s.mu.Lock()
		news, more := s.history[min(version, len(s.history)):], s.more
		s.mu.Unlock()
		for _, lease := range news {
			// Informers tell by themselves whether they know it already.
			event := metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Object: lease}}
			if err := json.NewEncoder(w).Encode(event); err != nil {
				return // the client is gone
			}
		}
		version += len(news)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
}

func respond(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object) // a client that is gone needs no answer
}
