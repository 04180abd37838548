package folders

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWatcher_TellsOfTheFolderThatHasTheName: also after another one was put in its place, and only of those that are followed.
func TestWatcher_TellsOfTheFolderThatHasTheName(t *testing.T) {
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	top := t.TempDir()
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{a, b} {
		must(os.Mkdir(folder, 0o755))
	}
	if err := w.Follow(a, filepath.Join(top, "none")); err == nil {
		t.Error("a folder that is not there is no error")
	}
	write := func(path string) {
		t.Helper()
		must(os.WriteFile(path, nil, 0o644))
	}
	tells := func(path string) {
		t.Helper()
		for {
			select {
			case name := <-w.Names():
				if name == path {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s was not told", path)
			}
		}
	}
	write(filepath.Join(a, "1"))
	tells(filepath.Join(a, "1"))
	must(os.RemoveAll(a))
	must(os.Rename(b, a))
	must(w.Follow(a))
	write(filepath.Join(a, "2"))
	tells(filepath.Join(a, "2"))
	must(os.Mkdir(b, 0o755))
	must(w.Follow(b))
	write(filepath.Join(a, "3"))
	write(filepath.Join(b, "4"))
	for name := range w.Names() {
		if filepath.Dir(name) == a && filepath.Base(name) == "3" {
			t.Error("it tells of a folder that is not followed any more")
		}
		if name == filepath.Join(b, "4") {
			return
		}
	}
}

// TestWatcher_CloseEndsIt although nobody takes its names.
func TestWatcher_CloseEndsIt(t *testing.T) {
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := w.Follow(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := w.Follow(folder); err == nil {
		t.Error("it can be used after its end")
	}
}
