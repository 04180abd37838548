package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCountTests(t *testing.T) {
	b, dir := newBench(t), t.TempDir()
	b.write(dir, map[string]string{
		"pkg/proxy/a_test.go":           "package proxy\n\nfunc TestA(t *testing.T) {\nfunc Test(t *testing.T) {\nfunc Testify() {\nfunc (s) TestB() {\n// func TestC(\n",
		"pkg/proxy/a_windows_test.go":   "package proxy\n\nfunc TestW(t *testing.T) {\n",
		"pkg/proxy/a_linux_test.go":     "package proxy\n\nfunc TestL(t *testing.T) {\n",
		"pkg/proxy/winkernel/h_test.go": "//go:build windows\n\npackage winkernel\n\nfunc TestH(t *testing.T) {\n",
		"pkg/proxy/b/b_test.go":         "//go:build !windows\n\npackage b\n\nfunc Test_b(t *testing.T) {\n",
		"pkg/proxy/b/b.go":              "package b\n\nfunc TestNot(t *testing.T) {\n",
		"pkg/util/iptables/a.txt":       "",
		"pkg/kubelet/k_test.go":         "package kubelet\n\nfunc TestK(t *testing.T) {\n",
	})
	got, err := countTests(dir)
	wantError(t, err)
	if diff := cmp.Diff(map[string]int{"pkg/proxy": 3, "pkg/proxy/b": 1}, got); diff != "" {
		t.Errorf("countTests (-want +got):\n%s", diff)
	}
}

const (
	passed  = `{"Time":"2026-05-04T03:02:01Z","Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}` + "\n"
	skipped = "not JSON\n" + `{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestB"}` + "\n"
	failed  = `{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestB"}` + "\n"
	ended   = `{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy"}` + "\n"
	broken  = `{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy/broken"}` + "\n"
)

// key is what the results of a branch's patched tree are named by.
func (b *bench) key(version string) string {
	b.t.Helper()
	said, err := b.run("tree", version)
	wantError(b.t, err)
	return filepath.Base(strings.TrimSpace(said))
}

// TestReviewTests fails when the page does not say what upstream's tests gave before and after.
func TestReviewTests(t *testing.T) {
	const notRun = "v1.1.0: not run; `make test-upstream BRANCH=release-1.1` does"
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"not run": {nil, []string{notRun, "v1.2.0: not run; `make test-upstream BRANCH=release-1.2` does", "| all | 2 | 2 |  | not run | not run |\n"}},
		"one side": {map[string]string{"KEY2.json": passed + skipped + ended}, []string{
			notRun, "v1.2.0 (2026-05-04): 1 passed, 0 failed, 1 skipped; unpatched not run.\n",
			"| `pkg/proxy` | 2 | 2 |  | not run | 1 passed, 0 failed, 1 skipped |\n"}},
		"both sides": {map[string]string{
			"KEY1.json": passed + skipped, "unpatched/v1.1.0-go1.26.1.json": passed + skipped,
			"KEY2.json": passed + failed + broken, "unpatched/v1.2.0-go1.26.1.json": passed + skipped,
		}, []string{
			"v1.1.0 (2026-05-04): 1 passed, 0 failed, 1 skipped, and the same unpatched. ",
			"v1.2.0 (2026-05-04): 1 passed, 1 failed, 0 skipped; **unpatched 1 passed, 0 failed, 1 skipped**; **failed**: pkg/proxy TestB, pkg/proxy/broken.\n",
			"| all | 2 | 2 |  | 1 passed, 0 failed, 1 skipped | 1 passed, 1 failed, 0 skipped |\n"}},
		"no difference": {map[string]string{"KEY1.json": passed, "KEY2.json": passed}, []string{"Left out: 1 with as many in both.\n"}},
		"another series": {map[string]string{"v1.1.0-0123456789ab.json": passed, "KEY2.json": passed}, []string{
			"v1.1.0: run for another series; `make test-upstream BRANCH=release-1.1` does it for this one", "v1.2.0 (2026-05-04)",
			"| all | 2 | 2 |  | not run | 1 passed"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, dir := newBench(t), t.TempDir()
			keys := strings.NewReplacer("KEY1", b.key("v1.1.0"), "KEY2", b.key("v1.2.0"))
			for name, content := range test.files {
				b.write(dir, map[string]string{keys.Replace(name): content})
			}
			page, err := b.run("review", "-results", dir, "v1.1.0", "v1.2.0")
			wantError(t, err)
			wantText(t, page, test.want...)
		})
	}
}

// TestReviewTestsOfAnother fails when tests are to be run of a release that they cannot be run for.
func TestReviewTestsOfAnother(t *testing.T) {
	b := newBench(t)
	b.release("v1.3.0", upstream())
	page, err := b.run("review", "-results", t.TempDir(), "v1.2.0", "v1.3.0")
	wantError(t, err)
	wantText(t, page, "v1.3.0: not run; pin it first, with `make rebase-patches VERSION=v1.3.0`")
}
