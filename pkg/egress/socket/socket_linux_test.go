package socket

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestListener_Serve: it knows who asks, and the socket is gone when it has ended.
func TestListener_Serve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "node.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uid, known := Peer(r.Context()); !known || uid != uint32(os.Geteuid()) {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	go func() { served <- l.Serve(ctx, handler, log.New(io.Discard, "", 0)) }()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	response, err := client.Get("http://node/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("answered %s", response.Status)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestListener_LosesItsName: whoever serves learns that nobody can ask any more, and what has taken the socket's place stays.
func TestListener_LosesItsName(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"deleted":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "node.sock")
			l, err := Listen(path)
			if err = errors.Join(err, change(path)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err = l.Serve(ctx, http.NotFoundHandler(), log.New(io.Discard, "", 0))
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "deleted or replaced") || strings.Contains(err.Error(), "\n") {
				t.Errorf("err %v", err)
			}
			if _, err := os.Lstat(path); (err == nil) != (name == "replaced") {
				t.Errorf("%v", err)
			}
		})
	}
}
