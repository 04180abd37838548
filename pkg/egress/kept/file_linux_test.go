package kept

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

const most = 64 << 10

func TestFile_HasWhatIsSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "file")
	if text, err := Load(path, most); text != nil || err != nil {
		t.Fatalf("no file: %q, %v", text, err)
	}
	for _, text := range []string{"", "a line\n", "two\nlines\n"} {
		if err := Save(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(path, most); err != nil || got == nil || string(got) != text {
			t.Fatalf("%q is read as %q, %v", text, got, err)
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
	text := []byte("a line\nand another one\n")
	for name, spoil := range map[string]func(path string) error{
		"cut": func(path string) error { return os.Truncate(path, 20) },
		"a byte is changed": func(path string) error {
			text, err := os.ReadFile(path)
			text[0] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
		"a line is added": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(text, "one more\n"...), 0o600))
		},
		"empty":            func(path string) error { return os.Truncate(path, 0) },
		"very large":       func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600) },
		"others may read":  func(path string) error { return os.Chmod(path, 0o644) },
		"others may write": func(path string) error { return os.Chmod(path, 0o622) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := errors.Join(Save(path, text), spoil(path)); err != nil {
				t.Fatal(err)
			}
			if got, err := Load(path, most); got != nil || err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q, %v; want an error that names the file", got, err)
			}
		})
	}
	if os.Getuid() != 0 {
		lab.Lacks(t, "needs root, to give a file to another user")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(Save(path, text), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(path, most); got != nil || err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("another user's: %q, %v", got, err)
	}
}
