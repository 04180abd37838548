package manifests

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// deadline is for what should take a fraction of a second, on a slow machine.
const deadline = time.Minute

// eventually polls until there is nothing left to complain about.
func eventually(t *testing.T, complain func() string) {
	t.Helper()
	end := time.Now().Add(deadline)
	for {
		complaint := complain()
		if complaint == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(complaint)
		}
		time.Sleep(5 * time.Millisecond) // the interval of polling
	}
}

// logs are the lines that a Source logs.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) matching(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func (l *logs) context(t *testing.T, verbosity int) context.Context {
	logger := funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{Verbosity: verbosity})
	return klog.NewContext(t.Context(), logger)
}

// A world is a folder that is served.
type world struct {
	*testing.T
	dir    string
	ctx    context.Context
	logs   *logs
	source *Source
	config *rest.Config
	client kubernetes.Interface

	mu      sync.Mutex
	queries []string // of the client's requests
}

// newWorld serves a folder of these files and builds a client as kube-proxy
// does.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), logs: &logs{}}
	w.ctx = w.logs.context(t, 2)
	writeFiles(t, w.dir, files)
	return serveWorld(t, w)
}

// serveWorld serves the folder of a world that has one, logs and a context.
func serveWorld(t *testing.T, w *world) *world {
	t.Helper()
	var err error
	if w.source, err = Open(w.ctx, w.dir); err != nil {
		t.Fatal(err)
	}
	path, remove, err := w.source.Serve(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if w.config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		t.Fatal(err)
	}
	w.config.ContentType = "application/vnd.kubernetes.protobuf"
	w.config.QPS = -1
	w.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{w, next} })
	if w.client, err = kubernetes.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	return w
}

type recorder struct {
	world *world
	next  http.RoundTripper
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.world.mu.Lock()
	r.world.queries = append(r.world.queries, request.URL.Path+"?"+request.URL.RawQuery)
	r.world.mu.Unlock()
	return r.next.RoundTrip(request)
}

func (w *world) requested(part string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(strings.Join(w.queries, "\n"), part)
}

// put replaces a file at once, as an editor's rename does.
func (w *world) put(name, text string) {
	w.Helper()
	temp := filepath.Join(w.dir, ".temp-"+name)
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(w.dir, name)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.Fatal(err)
	}
}

// gates are client-go's defaults but for one.
type gates struct {
	clientfeatures.Gates
	watchList bool
}

func (g gates) Enabled(key clientfeatures.Feature) bool {
	if key == clientfeatures.WatchListClient {
		return g.watchList
	}
	return g.Gates.Enabled(key)
}

func setWatchList(t *testing.T, enabled bool) {
	t.Helper()
	before := clientfeatures.FeatureGates()
	clientfeatures.ReplaceFeatureGates(gates{before, enabled})
	t.Cleanup(func() { clientfeatures.ReplaceFeatureGates(before) })
}
