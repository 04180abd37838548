package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/patchtool/patch"
)

// lines returns numbered lines, with some of them replaced.
func lines(first, last int, replaced map[int]string) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		if text, ok := replaced[i]; ok {
			b.WriteString(text)
			continue
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// series makes a repository with a release v1 and a patch on it, which changes two places of pkg/f
// and adds pkg/g.
func series(t *testing.T) (r *Repository, file string, p *patch.Patch) {
	t.Helper()
	r, err := New(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	release(t, r, "v1", map[string]string{"pkg/f": lines(1, 40, nil), "other/h": "h\n"})
	for name, content := range map[string]string{
		"pkg/f": lines(1, 40, map[int]string{10: "line 10\nour first\n", 30: "line 30\nour second\n"}),
		"pkg/g": "ours\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "UPSTREAM: <carry>: ours"}} {
		if _, err := Git(t.Context(), r.dir, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	files, err := r.Format(t.Context(), "v1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err = patch.Parse(filepath.Base(files[0]), string(content))
	if err != nil {
		t.Fatal(err)
	}
	return r, files[0], p
}

func release(t *testing.T, r *Repository, tag string, files map[string]string) {
	t.Helper()
	if err := r.Release(t.Context(), tag, module(t, files), []string{"pkg", "missing"}); err != nil {
		t.Fatal(err)
	}
}

func TestApply(t *testing.T) {
	const missing = "the lines that it wants are not there"
	for name, test := range map[string]struct {
		upstream map[string]string
		want     []Hunk
		applied  bool
	}{
		"clean": {
			upstream: map[string]string{"pkg/f": lines(1, 40, nil)},
			want:     []Hunk{{"pkg/f", 1, 0, ""}, {"pkg/f", 2, 0, ""}, {"pkg/g", 1, 0, ""}},
			applied:  true,
		},
		"an offset": {
			upstream: map[string]string{"pkg/f": lines(1, 40, map[int]string{20: "a\nb\nc\nd\n"})},
			want:     []Hunk{{"pkg/f", 1, 0, ""}, {"pkg/f", 2, 3, ""}, {"pkg/g", 1, 0, ""}},
			applied:  true,
		},
		"offsets upwards": {
			upstream: map[string]string{"pkg/f": lines(3, 40, nil)},
			want:     []Hunk{{"pkg/f", 1, -2, ""}, {"pkg/f", 2, -2, ""}, {"pkg/g", 1, 0, ""}},
			applied:  true,
		},
		"another context, which fuzz would bear": {
			upstream: map[string]string{"pkg/f": lines(1, 40, map[int]string{28: "theirs\n"})},
			want:     []Hunk{{"pkg/f", 1, 0, ""}, {"pkg/f", 2, 0, missing}, {"pkg/g", 1, 0, ""}},
		},
		"the file is gone": {
			upstream: map[string]string{"pkg/e": ""},
			want:     []Hunk{{"pkg/f", 1, 0, "No such file or directory"}, {"pkg/f", 2, 0, "No such file or directory"}, {"pkg/g", 1, 0, ""}},
		},
		"the new file is there": {
			upstream: map[string]string{"pkg/f": lines(1, 40, nil), "pkg/g": "theirs\n"},
			want:     []Hunk{{"pkg/f", 1, 0, ""}, {"pkg/f", 2, 0, ""}, {"pkg/g", 1, 0, "already exists in working directory"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, file, p := series(t)
			release(t, r, "v2", test.upstream)
			got, applied, err := r.Apply(t.Context(), file, p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || applied != test.applied {
				t.Errorf("Apply, applied %v (-want +got):\n%s", applied, diff)
			}
			state, err := Git(t.Context(), r.dir, "status", "--short")
			if err != nil || state != "" {
				t.Errorf("the work tree was left as %q, %v", state, err)
			}
			subject, err := Git(t.Context(), r.dir, "log", "-1", "--format=%s")
			want := map[bool]string{true: "UPSTREAM: <carry>: ours\n", false: "v2\n"}[applied]
			if err != nil || subject != want {
				t.Errorf("the last commit is %q, %v; want %q", subject, err, want)
			}
		})
	}
	t.Run("not a patch", func(t *testing.T) {
		r, _, p := series(t)
		if _, _, err := r.Apply(t.Context(), "/dev/null/0001", p); err == nil {
			t.Error("no error")
		}
	})
}

func TestPick(t *testing.T) {
	for name, test := range map[string]struct {
		line     int
		merged   bool
		unmerged []string
	}{
		"beside ours": {33, true, nil},
		"at ours":     {30, false, []string{"pkg/f"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := series(t)
			if err := r.Tag(t.Context(), "series"); err != nil {
				t.Fatal(err)
			}
			release(t, r, "v2", map[string]string{"pkg/f": lines(1, 40, map[int]string{test.line: "theirs\n"})})
			merged, unmerged, err := r.Pick(t.Context(), "series")
			if err != nil || merged != test.merged {
				t.Fatalf("Pick = %v, %v; want %v", merged, err, test.merged)
			}
			if diff := cmp.Diff(test.unmerged, unmerged); diff != "" {
				t.Errorf("unmerged (-want +got):\n%s", diff)
			}
			content, _ := r.File(t.Context(), "HEAD", "pkg/f")
			if strings.Contains(content, "our second") != merged || strings.Contains(content, "<<<") {
				t.Errorf("the file became %s", content)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	r, _, p := series(t)
	base := lines(1, 40, nil)
	theirs, ok := Only(base, p.Files[0].Hunks[1])
	if want := lines(1, 40, map[int]string{30: "line 30\nour second\n"}); !ok || theirs != want {
		t.Fatalf("Only (-want +got):\n%s", cmp.Diff(want, theirs))
	}
	for name, test := range map[string]struct {
		ours map[int]string
		want []string
	}{
		"somewhere else": {map[int]string{10: "upstream\n"}, nil},
		"the same place": {
			map[int]string{30: "line 30\nupstream\n"},
			[]string{"<<<<<<< v2\nupstream\n||||||| v1\n=======\nour second\n>>>>>>> 0001"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Merge(t.Context(), Side{"v2", lines(1, 40, test.ours)}, Side{"v1", base}, Side{"0001", theirs})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Merge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatIsStable(t *testing.T) {
	r, file, p := series(t)
	if err := r.Checkout(t.Context(), "v1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Apply(t.Context(), file, p); err != nil {
		t.Fatal(err)
	}
	again, err := r.Format(t.Context(), "v1", t.TempDir())
	if err != nil || len(again) != 1 {
		t.Fatal(again, err)
	}
	want, _ := os.ReadFile(file)
	got, _ := os.ReadFile(again[0])
	if diff := cmp.Diff(string(want), string(got)); diff != "" || len(want) == 0 {
		t.Errorf("the patch came back as (-want +got):\n%s", diff)
	}
}

// TestFormatIntoAFolder fails when the name of a folder with a space is torn apart.
func TestFormatIntoAFolder(t *testing.T) {
	r, _, _ := series(t)
	dir := filepath.Join(t.TempDir(), "a folder")
	written, err := r.Format(t.Context(), "v1", dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "0001-UPSTREAM-carry-ours.patch")}, written); diff != "" {
		t.Errorf("Format (-want +got):\n%s", diff)
	}
}

func TestDiff(t *testing.T) {
	for name, test := range map[string]struct{ old, current, want string }{
		"the same": {"a", "a", ""},
		"a line":   {"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n+c"},
	} {
		got, err := Diff(t.Context(), test.old, test.current)
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

// TestUserConfiguration fails when a user's own settings change what is written.
func TestUserConfiguration(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[format]\n\tsignOff = true\n[diff]\n\tnoprefix = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_DIR", filepath.Join(home, "elsewhere"))
	_, file, _ := series(t)
	content, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(content), "Signed-off-by") || !strings.Contains(string(content), "diff --git a/pkg/f b/pkg/f") {
		t.Errorf("%v: %s", err, content)
	}
}
