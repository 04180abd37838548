package keys

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/kept"
)

func TestFile_HasTheKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "keys")
	if keys, err := load(path); len(keys) > 0 || err != nil {
		t.Fatalf("no file: %q, %v", keys, err)
	}
	for _, keys := range []holders.Keys{{newKey()}, {newKey(), newKey()}} {
		if err := save(path, keys); err != nil {
			t.Fatal(err)
		}
		if got, err := load(path); err != nil || !got.Equal(keys) {
			t.Fatalf("%q is read as %q, %v", keys, got, err)
		}
	}
}

func TestFile_WithoutAKeyIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := kept.Save(path, nil); err != nil {
		t.Fatal(err)
	}
	if keys, err := load(path); len(keys) > 0 || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %q, %v; want an error that names the file", keys, err)
	}
}
