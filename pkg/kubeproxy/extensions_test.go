package kubeproxy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/tunnel"
)

// TestTell_TriesAgain: somebody may move away what was in the way of the socket.
func TestTell_TriesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{flags: egressFlags{socket: path}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.tell(ctx, extensions{ports: &tunnel.Extension{}}, time.Millisecond)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	time.Sleep(20 * time.Millisecond) // long enough for a try
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
