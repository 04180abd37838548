package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const mod = `module k8s.io/kubernetes

require (
	github.com/other/module v0.0.0
	k8s.io/api v0.0.0
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	k8s.io/kubelet v0.0.0 // indirect
	k8s.io/utils v0.0.1
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
)
`

const publishedMod = `module k8s.io/kubernetes

require (
	github.com/other/module v0.0.0
	k8s.io/api v0.36.4
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	k8s.io/kubelet v0.36.4 // indirect
	k8s.io/utils v0.0.1
)

replace (
	k8s.io/api => k8s.io/api v0.36.4
	k8s.io/kubelet => k8s.io/kubelet v0.36.4
)
`

const addition = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
Subject: [PATCH] UPSTREAM: <carry>: a

---
diff --git a/pkg/a.go b/pkg/a.go
--- a/pkg/a.go
+++ b/pkg/a.go
@@ -1,2 +1,3 @@
 package a
+// patched
 // end
`

func TestPublish(t *testing.T) {
	// "v0.0.0-2026…" is the version of a module that has no releases.
	if diff := cmp.Diff(publishedMod, Publish(mod, "v1.36.4")); diff != "" {
		t.Errorf("Publish (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(publishedMod, Publish(publishedMod, "v1.36.4")); diff != "" {
		t.Errorf("Publish again (-want +got):\n%s", diff)
	}
}

// module makes a module as it lies in the module cache: nothing in it can be written.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": mod, "go.sum": "other v1.0.0 h1:o=\n", "go.work": "go 1.26", "vendor/modules.txt": "", "staging/README.md": "",
		"pkg/a.go": "package a\n// end\n", "pkg/vendor/kept": "",
	} {
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

func TestMake(t *testing.T) {
	patch := filepath.Join(t.TempDir(), "0001-a.patch")
	if err := os.WriteFile(patch, []byte(addition), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	release := Release{Version: "v1.36.4", Module: module(t), Sums: []string{"k8s.io/api v0.36.4 h1:a=", "k8s.io/api v0.36.4/go.mod h1:b=", "k8s.io/api v0.35.8 h1:c="}}
	if err := Make(t.Context(), release, dir, []string{patch}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		got[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"go.mod": publishedMod, "go.sum": "other v1.0.0 h1:o=\nk8s.io/api v0.36.4 h1:a=\nk8s.io/api v0.36.4/go.mod h1:b=\n", "pkg/a.go": "package a\n// patched\n// end\n", "pkg/vendor/kept": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	described, err := describe(dir, "v1.36.4", []string{patch})
	if err != nil {
		t.Fatal(err)
	}
	replace := []string{"k8s.io/api => k8s.io/api v0.36.4", "k8s.io/kubelet => k8s.io/kubelet v0.36.4", "k8s.io/kubernetes => " + strconv.Quote(dir)}
	if diff := cmp.Diff(replace, described.Replace); diff != "" {
		t.Errorf("Replace (-want +got):\n%s", diff)
	}

	err = Make(t.Context(), release, t.TempDir(), []string{patch, patch})
	if err == nil || !strings.Contains(err.Error(), "0001-a.patch on k8s.io/kubernetes v1.36.4") {
		t.Errorf("error %v of a patch that does not apply", err)
	}
}

func TestMakeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Make(ctx, Release{Version: "v1.36.4", Module: module(t)}, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestEnsure(t *testing.T) {
	cache, release := t.TempDir(), Release{Version: "v1.36.4", Module: module(t)}
	long, days := time.Now().Add(-8*24*time.Hour), time.Now().Add(-6*24*time.Hour)
	for name, used := range map[string]time.Time{
		"v1.36.4-0123456789ab": long, "v1.36.4-0123456789ac": days, "v1.35.8-0123456789ab": long,
		"unfinished-1": long, "unfinished-2": days, "modules": long,
	} {
		dir := filepath.Join(cache, name)
		if err := os.MkdirAll(filepath.Join(dir, "pkg"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	made, err := Ensure(t.Context(), cache, release, nil)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{}
	for _, name := range []string{"go.mod", "go.sum", "pkg/a.go"} {
		info, err := os.Stat(filepath.Join(made.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		modes[name] = info.Mode() & 0o222
	}
	if diff := cmp.Diff(map[string]os.FileMode{"go.mod": 0o200, "go.sum": 0o200, "pkg/a.go": 0}, modes); diff != "" {
		t.Errorf("who may write (-want +got):\n%s", diff)
	}
	want := []string{made.Key(), "modules", "unfinished-2", "v1.35.8-0123456789ab", "v1.36.4-0123456789ac"}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, cache)); diff != "" {
		t.Errorf("what is there (-want +got):\n%s", diff)
	}

	if err := os.Chtimes(made.Dir, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(t.Context(), cache, release, nil); err != nil {
		t.Fatal(err)
	}
	if err := prune(cache, "v1.36.4", days); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names(t, cache), made.Key()) {
		t.Error("what was used just now was removed")
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for file, content := range map[string]string{one: "1", two: "2"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]bool{}
	for _, patches := range [][]string{nil, {one}, {two}, {one, two}, {two, one}} {
		for _, version := range []string{"v1.36.4", "v1.37.1"} {
			key, err := Key(Release{Version: version}, patches)
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := Key(Release{Version: version}, patches); again != key {
				t.Errorf("the key of the same is %s and %s", key, again)
			}
			keys[key] = true
		}
	}
	if len(keys) != 10 {
		t.Errorf("%d keys of 10 trees", len(keys))
	}
}
