package kubeproxy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/tunnel"
)

// TestTell_TriesAgain: somebody may move away what was in the way of the socket.
func TestTell_TriesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{flags: egressFlags{socket: path}}
	failed := make(chan struct{}, 1)
	logger := funcr.New(func(_, text string) {
		if strings.Contains(text, "its socket failed") {
			failed <- struct{}{}
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.tell(ctx, extensions{ports: &tunnel.Extension{}}, time.Millisecond)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-failed
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		info, err := os.Stat(path)
		if err == nil && info.Mode().Type() == os.ModeSocket {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("there is no socket after ten seconds: %v", err)
		}
	}
}
