package clustertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// OneAnswer is an API server that gives the same answer to all.
type OneAnswer struct {
	Answer atomic.Value
	Asked  atomic.Int32
}

// Handle gives it.
func (o *OneAnswer) Handle(w http.ResponseWriter, _ *http.Request) {
	o.Asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if s, failed := o.Answer.Load().(metav1.Status); failed {
		w.WriteHeader(int(s.Code))
	}
	_ = json.NewEncoder(w).Encode(o.Answer.Load())
}

// NewConfigClient returns a client of a server that answers by handle.
func NewConfigClient(t *testing.T, handle http.HandlerFunc) configclient.Interface {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client, err := configclient.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Eventually fails the test unless check is true within 10 s.
func Eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
