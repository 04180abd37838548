package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// served are the names of the Services that the source serves.
func (w *world) served() string {
	items, _ := w.source.store.list(resources[0], func(*item) bool { return true })
	var names []string
	for _, it := range items {
		names = append(names, it.object.GetName())
	}
	return strings.Join(names, " ")
}

func (w *world) serves(want string) {
	w.Helper()
	eventually(w.T, func() string {
		if got := w.served(); got != want {
			return fmt.Sprintf("serves %q, want %q", got, want)
		}
		return ""
	})
}

// logged waits until so many lines with this text were logged, and checks that
// there are no more.
func (w *world) logged(text string, n int) []string {
	w.Helper()
	eventually(w.T, func() string {
		if got := w.logs.matching(text); len(got) < n {
			return fmt.Sprintf("%d lines with %q, want %d", len(got), text, n)
		}
		return ""
	})
	lines := w.logs.matching(text)
	if len(lines) != n {
		w.Fatalf("too many lines with %q:\n%s", text, strings.Join(lines, "\n"))
	}
	return lines
}

const (
	broken = "Manifests are broken"
	good   = "Manifests are good again"
)

func TestSource_BrokenFileKeepsTheLastGoodState(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.yaml": service("a", "10.0.0.1", ""),
		"b.yaml": service("b", "10.0.0.2", ""),
	})
	version := w.source.store.current()

	// Another file is broken: nothing changes at all, not even what is good.
	w.put("a.yaml", "# empty\n")
	w.put("b.yaml", service("b", "10.0.0.2", "")+"  nope: 1\n")
	line := w.logged(broken, 1)[0]
	for _, part := range []string{`"file"="` + w.dir + `/b.yaml"`, `"line"=9`, `unknown field \"spec.nope\"`} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in %s", part, line)
		}
	}
	// Looked at again and again, said once.
	w.put("c.yaml", "# something else changes\n")
	w.put("d.yaml", "{")
	w.logged(broken, 2)
	if w.served() != "a b" || w.source.store.current() != version {
		t.Errorf("serves %s, version %d", w.served(), w.source.store.current())
	}
	// One of two is repaired: still nothing new to say.
	w.remove("d.yaml")
	w.put("e.yaml", service("x", "10.0.0.9", "")+service("v", "10.0.0.9", ""))
	if line := w.logged(broken, 3)[2]; !strings.Contains(line, "e.yaml") || !strings.Contains(line, "belongs already to Service default/x") {
		t.Error(line)
	}
	w.remove("e.yaml")
	w.put("b.yaml", service("c", "10.0.0.2", ""))
	w.serves("c")
	w.logged(good, 1)
	w.logged(broken, 3)
}

func TestSource_FolderVanishes(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "")})
	moved := w.dir + "-moved"
	if err := os.Rename(w.dir, moved); err != nil {
		t.Fatal(err)
	}
	w.logged(broken, 1)
	if w.served() != "a" {
		t.Errorf("serves %q", w.served())
	}
	// Another folder takes its place; it is followed as the first one was.
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.put("b.yaml", service("b", "10.0.0.2", ""))
	w.serves("b")
	w.logged(good, 1)
	w.put("b.yaml", service("c", "10.0.0.2", ""))
	w.serves("c")
	// What happens in the old one is not.
	writeFiles(t, moved, map[string]string{"a.yaml": "{"})
	w.remove("b.yaml")
	w.serves("")
	w.logged(broken, 1)
}

// TestSource_FolderIsLink swaps the link, the way releases are switched.
func TestSource_FolderIsLink(t *testing.T) {
	base := t.TempDir()
	for name, service := range map[string]string{"one": service("a", "10.0.0.1", ""), "two": service("b", "10.0.0.2", "")} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, filepath.Join(base, name), map[string]string{"x.yaml": service})
	}
	link := filepath.Join(base, "current")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: link, logs: &logs{}}
	var err error
	if w.source, err = Open(w.logs.context(t, 0), link); err != nil {
		t.Fatal(err)
	}
	w.serves("a")
	swap(t, "two", link)
	w.serves("b")
	writeFiles(t, filepath.Join(base, "two"), map[string]string{"x.yaml": service("c", "10.0.0.2", "")})
	w.serves("c")
}

// swap makes link lead to target, at once.
func swap(t *testing.T, target, link string) {
	t.Helper()
	temp := link + "_tmp"
	if err := os.Symlink(target, temp); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, link); err != nil {
		t.Fatal(err)
	}
}

// TestSource_MountedConfigMap is a folder as the kubelet mounts a ConfigMap.
func TestSource_MountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name string, files map[string]string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, filepath.Join(dir, name), files)
		swap(t, name, filepath.Join(dir, "..data"))
	}
	version("..v1", map[string]string{"a.yaml": service("a", "10.0.0.1", ""), "b.yaml": service("b", "10.0.0.2", "")})
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, dir: dir, logs: &logs{}}
	var err error
	if w.source, err = Open(w.logs.context(t, 0), dir); err != nil {
		t.Fatal(err)
	}
	w.serves("a b")
	version("..v2", map[string]string{"a.yaml": service("c", "10.0.0.1", ""), "b.yaml": service("d", "10.0.0.2", "")})
	if err := os.RemoveAll(filepath.Join(dir, "..v1")); err != nil {
		t.Fatal(err)
	}
	w.serves("c d")
	w.logged(broken, 0)
}

// TestSource_LinkedFile is one of which the kernel has no events.
func TestSource_LinkedFile(t *testing.T) {
	other := t.TempDir()
	writeFiles(t, other, map[string]string{"x": service("a", "10.0.0.1", "")})
	w := newWorld(t, nil)
	if err := os.Symlink(filepath.Join(other, "x"), filepath.Join(w.dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	w.serves("a")
	writeFiles(t, other, map[string]string{"x": service("bb", "10.0.0.1", "")})
	w.serves("bb")
}

// TestSource_FileIsWrittenInPlace writes a file in many steps. Each state in between is
// broken or lacks objects; none of them may be taken.
func TestSource_FileIsWrittenInPlace(t *testing.T) {
	text := service("a", "10.0.0.1", "") + service("b", "10.0.0.2", "") + service("c", "10.0.0.3", "")
	w := newWorld(t, map[string]string{"a.yaml": text})
	version := w.source.store.current()
	text += service("d", "10.0.0.4", "")
	f, err := os.Create(filepath.Join(w.dir, "a.yaml")) // as ">" does
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(text); i += 10 {
		if _, err := f.WriteString(text[i:min(i+10, len(text))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.serves("a b c d")
	if got := w.source.store.current() - version; got != 1 {
		t.Errorf("%d changes instead of one", got)
	}
}

func TestSource_TruncatedFileKeepsTheLastGoodState(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "")})
	if err := os.Truncate(filepath.Join(w.dir, "a.yaml"), 0); err != nil {
		t.Fatal(err)
	}
	w.logged(broken, 1)
	if w.served() != "a" {
		t.Errorf("serves %q", w.served())
	}
}

func TestOpen_BrokenFolder(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a.yaml": "{"})
	_, want := Load(dir)
	_, got := Open(t.Context(), dir)
	if got == nil || got.Error() != want.Error() {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStore_OrderOfChanges(t *testing.T) {
	s := newStore(2)
	step := func(text string) []string {
		t.Helper()
		before := s.current()
		if _, err := s.replace(mustLoad(t, "a.yaml", "# none\n"+text)); err != nil {
			t.Fatal(err)
		}
		changes, _, _, ok := s.since(resources[0], before)
		if !ok {
			t.Fatal("the last changes are not kept")
		}
		var got []string
		for _, c := range changes {
			var what string
			if c.old != nil {
				what += "-" + c.old.key
			}
			if c.new != nil {
				what += "+" + c.new.key
			}
			got = append(got, fmt.Sprint(c.version, what))
		}
		return got
	}
	for _, test := range []struct {
		text string
		want []string
	}{
		{service("b", "10.0.0.2", "") + service("a", "10.0.0.1", ""), []string{"2+default/a", "3+default/b"}},
		{service("a", "10.0.0.1", "") + service("b", "10.0.0.2", ""), nil},
		// An address moves from b to a new Service: b goes first.
		{service("a", "10.0.0.2", "") + service("c", "10.0.0.3", ""), []string{"4-default/b", "5-default/a+default/a", "6+default/c"}},
		{"", []string{"7-default/a", "8-default/c"}},
	} {
		if diff := cmp.Diff(test.want, step(test.text)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if _, _, _, ok := s.since(resources[0], 3); ok {
		t.Error("the history has no bound")
	}
	if changes, _, _, ok := s.since(resources[0], 4); !ok || len(changes) != 4 {
		t.Errorf("%d changes, %t", len(changes), ok)
	}
}
