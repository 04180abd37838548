package keys

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

func TestFile_ReadsWhatIsWritten(t *testing.T) {
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
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("it leaves %v", left)
	}
	if err := errors.Join(Remove(path), Remove(path)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFile_IsNotTrusted unless it is whole, and only this user could write and read it.
func TestFile_IsNotTrusted(t *testing.T) {
	keys := holders.Keys{newKey(), newKey()}
	for name, spoil := range map[string]func(path string) error{
		"cut": func(path string) error { return os.Truncate(path, 65) },
		"a byte is changed": func(path string) error {
			text, err := os.ReadFile(path)
			text[0] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
		"a line is added": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(text, "another key that is long enough\n"...), 0o600))
		},
		"empty":            func(path string) error { return os.Truncate(path, 0) },
		"no key":           func(path string) error { return os.WriteFile(path, sum(nil), 0o600) },
		"very large":       func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600) },
		"others may read":  func(path string) error { return os.Chmod(path, 0o644) },
		"others may write": func(path string) error { return os.Chmod(path, 0o622) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			if err := errors.Join(save(path, keys), spoil(path)); err != nil {
				t.Fatal(err)
			}
			if got, err := load(path); len(got) > 0 || err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q, %v; want an error that names the file", got, err)
			}
		})
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to give a file to another user")
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := errors.Join(save(path, keys), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if got, err := load(path); len(got) > 0 || err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("another user's: %q, %v", got, err)
	}
}
