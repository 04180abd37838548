package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

)

func TestReview(t *testing.T) {
	b := newBench(t)
	// Between the two: Sync has another body, what the patch uses another signature, and there is another test.
	files := upstream(append(moved, "		p.failed++\n", "		p.failed += 1\n", "(p *Proxier) write() error", "(p *Proxier) write() (err error)")...)
	files["pkg/proxy/proxier_test.go"] += "func TestC(t *testing.T) {}\n"
	b.release("v1.1.0", files)
	code, gave := t.TempDir(), t.TempDir()
	b.write(code, map[string]string{"ours/ours.go": "package ours\n\nimport \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc f(p *proxy.Proxier) error { return p.Sync() }\n"})
	b.write(gave, map[string]string{"v1.2.0.json": `{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}
not JSON
{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestB"}
{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy"}
`})
	page, err := b.run("review", "-code", code, "-results", gave, "v1.2.0", "v1.1.0")
	wantError(t, err)
	wantText(t, page,
		"# The series from v1.2.0 to v1.1.0\n",
		"Of the 1 upstream functions and types that it touches, 1 changed.",
		"Of the 3 upstream declarations that it and our code rely on, 2 changed, 1 of them in what a caller sees.",
		"_Description_: It tells.\n",
		"Adds `pkg/proxy/extension.go`.\n",
		"| `Proxier.Sync` in `pkg/proxy/proxier.go` | 1 | body |\n",
		"-\t\tp.failed++\n+\t\tp.failed += 1\n",
		"UPSTREAM: <carry>: proxy: tell of syncs\n", // range-diff
		"| `pkg/proxy.Proxier.Sync` | **body** | "+code+"/ours/ours.go |\n",
		"| `pkg/proxy.Proxier.write` | **signature** | patched pkg/proxy/extension.go |\n",
		"* `pkg/proxy`: Proxier\n",
		"| `pkg/proxy` | 2 | 3 | +1 | 1 passed, 0 failed, 1 skipped | not run |\n",
		"| all | 2 | 3 | +1 | | |\n")
	if strings.Contains(page, "`pkg/proxy.Proxier.tell`") {
		t.Error("what the series adds itself is listed as upstream's")
	}

	_, err = b.run("review", "v1.2.0", "v1.2.0")
	wantError(t, err, "v1.2.0 is compared with itself")
	_, err = b.run("review", "v1.2.0")
	wantError(t, err, `arguments ["v1.2.0"]: want the release that is left and the one that is gone to`)
	b.release("v1.1.5", upstream(conflicting...))
	_, err = b.run("review", "-code", code, "v1.2.0", "v1.1.5")
	wantError(t, err, "make rebase-patches VERSION=v1.1.5")
}

func TestTree(t *testing.T) {
	b := newBench(t)
	for arguments, want := range map[string]bool{"": true, "-unpatched": false} {
		said, err := b.run(append(append([]string{"tree"}, strings.Fields(arguments)...), "v1.1.0")...)
		wantError(t, err)
		content, err := os.ReadFile(strings.TrimSpace(said) + "/pkg/proxy/proxier.go")
		if err != nil || strings.Contains(string(content), "p.tell()") != want {
			t.Errorf("tree %s has, %v,\n%s", arguments, err, content)
		}
	}
}

func TestCountTests(t *testing.T) {
	got, err := countTests(fstest.MapFS{
		"pkg/proxy/a_test.go":     {Data: []byte("func TestA(t *testing.T) {\nfunc Test(t *testing.T) {\nfunc Testify() {\nfunc (s) TestB() {\n// func TestC(\n")},
		"pkg/proxy/b/b_test.go":   {Data: []byte("func Test_b(t *testing.T) {\n")},
		"pkg/proxy/b/b.go":        {Data: []byte("func TestNot(t *testing.T) {\n")},
		"pkg/util/iptables/a.txt": {},
		"pkg/kubelet/k_test.go":   {Data: []byte("func TestK(t *testing.T) {\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"pkg/proxy": 2, "pkg/proxy/b": 1}, got); diff != "" {
		t.Errorf("countTests (-want +got):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	for arguments, want := range map[string]string{
		"":               "no command",
		"prove":          `"prove" is no command`,
		"verify -branch": "flag needs an argument",
	} {
		_, err := newBench(t).run(strings.Fields(arguments)...)
		wantError(t, err, want)
	}
}
