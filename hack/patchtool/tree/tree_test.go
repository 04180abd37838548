package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/patchtool/branch"
)

const mod = `module k8s.io/kubernetes

require (
	github.com/other/module v0.0.0
	k8s.io/api v0.0.0
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	k8s.io/kubelet v0.0.0 // indirect
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
`

const publishedMod = `module k8s.io/kubernetes

require (
	github.com/other/module v0.0.0
	k8s.io/api v0.36.4
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	k8s.io/kubelet v0.36.4 // indirect
)

replace (
	k8s.io/api => k8s.io/api v0.36.4
)
`

const addition = `diff --git a/pkg/a.go b/pkg/a.go
--- a/pkg/a.go
+++ b/pkg/a.go
@@ -1,2 +1,3 @@
 package a
+// patched
 // end
`

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o400); err != nil { // as in the module cache
		t.Fatal(err)
	}
	return file
}

// release returns a made-up release and a patch for it.
func release(t *testing.T) (r Release, patch string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": mod, "go.sum": "other v1.0.0 h1:o=\n", "go.work": "go 1.26", "vendor/modules.txt": "", "staging/README.md": "",
		"pkg/a.go": "package a\n// end\n", "pkg/vendor/kept": "",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	return Release{Path: branch.Kubernetes, Version: "v1.36.4", Module: dir, Sums: []string{"k8s.io/api v0.36.4 h1:a="}}, write(t, filepath.Join(t.TempDir(), "0001-a.patch"), addition)
}

func TestEnsure_Tree(t *testing.T) {
	r, patch := release(t)
	made, err := Ensure(t.Context(), t.TempDir(), r, []string{patch})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := fs.WalkDir(os.DirFS(made.Dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			content, _ := os.ReadFile(filepath.Join(made.Dir, path))
			got[path] = string(content)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"go.mod": publishedMod, "go.sum": "other v1.0.0 h1:o=\nk8s.io/api v0.36.4 h1:a=\n", "pkg/a.go": "package a\n// patched\n// end\n", "pkg/vendor/kept": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k8s.io/api => k8s.io/api v0.36.4", "k8s.io/kubernetes => " + strconv.Quote(made.Dir)}, made.Replace); diff != "" {
		t.Errorf("Replace (-want +got):\n%s", diff)
	}
}

// TestEnsure_OtherModule fails when another module than Kubernetes gets the go.mod of one, or the tree of a third.
func TestEnsure_OtherModule(t *testing.T) {
	r, patch := release(t)
	r.Sums = nil
	keys := map[string]bool{}
	for _, path := range []string{branch.Kubernetes, "example.test/other", "example.test/a/other"} {
		r.Path = path
		key, err := Key(r, []string{patch})
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = true
	}
	if len(keys) != 3 {
		t.Errorf("three modules have the trees %v", keys)
	}
	made, err := Ensure(t.Context(), t.TempDir(), r, []string{patch})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"go.mod": mod, "go.sum": "other v1.0.0 h1:o=\n", "pkg/a.go": "package a\n// patched\n// end\n"} {
		if got, err := os.ReadFile(filepath.Join(made.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"example.test/a/other => " + strconv.Quote(made.Dir)}, made.Replace); diff != "" {
		t.Errorf("Replace (-want +got):\n%s", diff)
	}
	_, err = Ensure(t.Context(), t.TempDir(), r, []string{patch, patch})
	if want := "0001-a.patch does not apply to example.test/a/other v1.36.4"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "make rebase-patches MODULE=example.test/a/other VERSION=v1.36.4") {
		t.Errorf("error %v; want %q", err, want)
	}
}

func TestEnsure_PatchDoesNotApply(t *testing.T) {
	r, patch := release(t)
	cache := t.TempDir()
	_, err := Ensure(t.Context(), cache, r, []string{patch, patch})
	if err == nil || !strings.Contains(err.Error(), "0001-a.patch does not apply to k8s.io/kubernetes v1.36.4") {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(cache); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestEnsure_Cache(t *testing.T) {
	r, patch := release(t)
	cache := t.TempDir()
	made, err := Ensure(t.Context(), cache, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, days := range map[string]int{made.Key(): 8, "v1.35.8-0123456789ab": 8, "v1.36.4-0123456789ab": 6} {
		dir, used := filepath.Join(cache, name), time.Now().Add(-time.Duration(days)*24*time.Hour)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	marker := write(t, filepath.Join(made.Dir, "marker"), "")
	if again, err := Ensure(t.Context(), cache, r, nil); err != nil || again.Dir != made.Dir {
		t.Errorf("the same tree is %v, %v", again, err)
	}
	other, err := Ensure(t.Context(), cache, r, []string{patch})
	if err != nil || other.Dir == made.Dir {
		t.Errorf("another tree is %v, %v", other, err)
	}
	for file, want := range map[string]bool{marker: true, filepath.Join(cache, "v1.35.8-0123456789ab"): false, filepath.Join(cache, "v1.36.4-0123456789ab"): true} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s is kept: %t, want %t", file, err == nil, want)
		}
	}
}
