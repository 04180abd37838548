package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const series = "0001-UPSTREAM-carry-proxy-tell-of-syncs.patch"

func TestVerify(t *testing.T) {
	b := newBench(t)
	said, err := b.run("verify")
	wantError(t, err)
	wantText(t, said,
		"release-1.2 (v1.2.0, vendored)\n  UPSTREAM: <carry>: proxy: tell of syncs\n    pkg/proxy/extension.go: clean\n    pkg/proxy/proxier.go: clean\n  compiles: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n",
		"release-1.1 (v1.1.0)\n  UPSTREAM: <carry>: proxy: tell of syncs\n    pkg/proxy/extension.go: clean\n    pkg/proxy/proxier.go: offset +2\n  compiles: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n")

	said, err = b.run("verify", "-branch=1.1", "-compile=vendored")
	wantError(t, err)
	wantText(t, said, "  type-checked 5 packages, tests among them: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n")

	said, err = b.run("verify", "-compile=none", "-branch=release-1.2")
	wantError(t, err)
	if want := "release-1.2 (v1.2.0, vendored)\n  UPSTREAM: <carry>: proxy: tell of syncs\n    pkg/proxy/extension.go: clean\n    pkg/proxy/proxier.go: clean\n  not compiled\n"; said != want {
		t.Errorf("it says\n%s\nwant\n%s", said, want)
	}
}

func TestVerifyFinds(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(b *bench)
		arguments []string
		want      []string
	}{
		"an incomplete header": {
			change: func(b *bench) { b.edit(series, "Why not upstream", "Whatever") },
			want:   []string{series + `: the message has no paragraph "Why not upstream: …"`},
		},
		"a version that is pinned since": {
			change: func(b *bench) {
				b.release("v1.1.1", upstream(moved...))
				b.edit("branches", "v1.1.0", "v1.1.1")
			},
			want: []string{`"Versions checked: v1.2.0, v1.1.0", but patches/branches pins v1.2.0, v1.1.1`},
		},
		"a place that upstream has changed": {
			change: func(b *bench) { b.release("v1.1.0", upstream(conflicting...)) },
			want:   []string{"release-1.1: " + series + ": pkg/proxy/proxier.go, hunk 1: the lines that it wants are not there; see what upstream made of it with 'make rebase-patches VERSION=v1.1.0'"},
		},
		"lines that upstream has twice": {
			change: func(b *bench) {
				twice := upstream(append(moved, "(p *Proxier) write()", "(p *Proxier) Again() error {\n\tif err := p.write(); err != nil {\n\t\tp.failed++\n\t\treturn err\n\t}\n\tp.synced++\n\tp.last = nil\n\treturn nil\n}\n\nfunc (p *Proxier) write()")...)
				b.release("v1.1.0", twice)
			},
			want: []string{"release-1.1: ", "its lines are at [21 31], and only nearness chose one"},
		},
		"a series for another release than the vendored": {
			change: func(b *bench) { b.release("v1.2.0", upstream(moved...)) },
			want:   []string{"release-1.2: ", "has an offset of 2 lines, so it was written for another release; 'make rebase-patches VERSION=v1.2.0'"},
		},
		"what does not compile": {
			change:    func(b *bench) { b.release("v1.1.0", upstream(append(renamed, moved...)...)) },
			arguments: []string{"-compile=all"},
			want:      []string{"release-1.1: go build ./cmd/kube-proxy/... ./pkg/proxy/... in", "Proxier.told already declared"},
		},
		"what vet finds in tests": {
			change: func(b *bench) {
				files := upstream(moved...)
				files["pkg/proxy/proxier_test.go"] = "package proxy\n\nvar _ = gone\n"
				b.release("v1.1.0", files)
			},
			arguments: []string{"-compile=all"},
			want:      []string{"release-1.1: go vet ./cmd/kube-proxy/... ./pkg/proxy/... in", "undefined: gone"},
		},
		"what does not compile, without compiling it": {
			change:    func(b *bench) { b.release("v1.1.0", upstream(append(renamed, moved...)...)) },
			arguments: []string{"-compile=vendored"},
			want:      []string{"release-1.1: ", "method Proxier.told already declared"},
		},
		"a test that does not compile, without compiling it": {
			change: func(b *bench) {
				files := upstream(moved...)
				files["pkg/proxy/proxier_test.go"] = "package proxy\n\nvar _ = gone\n"
				b.release("v1.1.0", files)
			},
			arguments: []string{"-compile=vendored"},
			want:      []string{"release-1.1: ", "proxier_test.go:3:9: undefined: gone"},
		},
		"our own code that a branch does not fit": {
			change: func(b *bench) {
				b.write(b.root, map[string]string{"pkg/own/before.go": "//go:build kube1.1\n\npackage own\n\nvar _ = gone\n"})
			},
			arguments: []string{"-compile=all"},
			want:      []string{"release-1.1: ", "-tags=kube1.1", "pkg/own/before.go:5:9: undefined: gone"},
		},
		"our own code that a branch does not fit, without compiling it": {
			change: func(b *bench) {
				b.write(b.root, map[string]string{"pkg/own/before.go": "//go:build kube1.1\n\npackage own\n\nvar _ = gone\n"})
			},
			arguments: []string{"-compile=vendored"},
			want:      []string{"release-1.1: ", "pkg/own/before.go:5:9: undefined: gone"},
		},
		"another release in go.mod": {
			change: func(b *bench) {
				b.write(b.root, map[string]string{"go.mod": "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.1\n"})
			},
			want: []string{"go.mod requires k8s.io/kubernetes v1.2.1, but patches/branches says that v1.2.0 is vendored"},
		},
		"a new package": {
			change: func(b *bench) {
				b.rewrite(map[string]string{"pkg/proxy/extension/extension.go": "package extension\n"})
			},
			want: []string{"release-1.2: ", "adds package pkg/proxy/extension; put the file into a package that upstream has"},
		},
		"a file of another package": {
			change: func(b *bench) {
				b.rewrite(map[string]string{"pkg/proxy/extension.go": "package extension\n"})
			},
			want: []string{"adds pkg/proxy/extension.go as package extension, where upstream has package proxy"},
		},
		"a file that is not Go": {
			change: func(b *bench) { b.rewrite(map[string]string{"pkg/proxy/README.md": "Why.\n"}) },
			want:   []string{"adds pkg/proxy/README.md; only Go files are vendored"},
		},
		"an empty file": {
			change: func(b *bench) { b.rewrite(map[string]string{"pkg/proxy/extension.go": ""}) },
			want:   []string{"adds pkg/proxy/extension.go, which is empty"},
		},
		"lines that are removed": {
			change: func(b *bench) { b.rewrite(upstream("		p.failed++\n", "")) },
			want:   []string{"removes or changes upstream lines (1)"},
		},
		"a folder of no branch": {
			change: func(b *bench) { b.write(b.patches, map[string]string{"release-1.0/0001-a.patch": ""}) },
			want:   []string{"release-1.0: release-1.0 is no supported branch; remove the folder"},
		},
		"an own patch without explanation": {
			change: func(b *bench) { b.own("") },
			want:   []string{`say why in a paragraph "Why it differs: …"`},
		},
		"a file that only git sees": {
			change: func(b *bench) {
				b.edit(series, "diff --git a/pkg/proxy/extension.go", "--- a/cmd/kube-proxy/main.go\n+++ b/cmd/kube-proxy/main.go\n@@ -1,3 +1,4 @@\n package main\n+// unseen\n \n import \"k8s.io/kubernetes/pkg/proxy\"\n\ndiff --git a/pkg/proxy/extension.go")
			},
			want: []string{
				"release-1.2: " + series + ": git does something else with it than its diffs say; write the file with git format-patch: cmd/kube-proxy/main.go is not touched by its diffs, and changed by git",
				"release-1.1: " + series + ": git does something else",
			},
		},
		"a hunk that only git sees": {
			change: func(b *bench) {
				b.edit(series, "diff --git a/pkg/proxy/extension.go", "--- a/pkg/proxy/proxier.go\n+++ b/pkg/proxy/proxier.go\n@@ -1,3 +1,4 @@\n package proxy\n+// unseen\n \n import \"errors\"\n\ndiff --git a/pkg/proxy/extension.go")
			},
			want: []string{"release-1.2: " + series + ":"},
		},
		"a hunk that only git sees, and that does not apply": {
			change: func(b *bench) {
				b.edit(series, "diff --git a/pkg/proxy/extension.go", "--- a/pkg/proxy/proxier.go\n+++ b/pkg/proxy/proxier.go\n@@ -4 +4,2 @@\n package other\n+// unseen\n\ndiff --git a/pkg/proxy/extension.go")
			},
			want: []string{"release-1.2: " + series + ": git does something else with it"},
		},
		"no date": {
			change: func(b *bench) { b.edit(series, "Date: Sat, 1 Jan 2000 00:00:00 +0000\n", "") },
			want:   []string{"release-1.2: " + series + `:3: has "Subject: [PATCH] UPSTREAM: <carry>: proxy: tell of syncs" where git format-patch writes "Date: `},
		},
		"text that git does not keep": {
			change: func(b *bench) { b.edit(series, "\n---\n", "\n---\nBy the way.\n\n") },
			want:   []string{`has "By the way." where git format-patch writes " pkg/proxy/extension.go`},
		},
		"another id of a file": {
			change: func(b *bench) { b.edit(series, "index 0000000..", "index 0000000..0000000") },
			want:   []string{`has "index 0000000..0000000`},
		},
		"lines behind the last": {
			change: func(b *bench) { b.append(series, "\n") },
			want:   []string{`has "" where git format-patch writes "(nothing)"`},
		},
		"an own patch with text that git does not keep": {
			change: func(b *bench) {
				b.own("Why it differs: so.\n\n")
				b.edit("release-1.1/"+series, "\n---\n", "\n---\nBy the way.\n\n")
			},
			want: []string{"release-1.1: release-1.1/" + series + `:`, `has "By the way."`},
		},
		"a folder without patches": {
			change: func(b *bench) {
				if err := os.Mkdir(filepath.Join(b.patches, "release-1.1"), 0o755); err != nil {
					b.t.Fatal(err)
				}
			},
			want: []string{"release-1.1: has no patch; remove the folder"},
		},
		"a checksum of a release that is not pinned": {
			change: func(b *bench) {
				b.write(b.patches, map[string]string{"branches.sum": "# why\nk8s.io/api v0.1.0 h1:a=\nk8s.io/api v0.0.9/go.mod h1:a=\n"})
			},
			want: []string{`branches.sum: no branch is pinned at the release of "k8s.io/api v0.0.9/go.mod h1:a="; remove the line`},
		},
		"an own patch that the shared one could be": {
			change: func(b *bench) {
				b.own("Why it differs: so.\n\n")
				b.rewrite(map[string]string{"pkg/proxy/extension.go": "package proxy\n"})
				b.edit(series, "v1.2.0, v1.1.0", "v1.2.0")
			},
			want: []string{"release-1.1: release-1.1/" + series + ": is no longer needed, for " + series + " applies; remove it"},
		},
		"an own patch for another than it stands for": {
			change: func(b *bench) {
				b.own("Why it differs: so.\n\n")
				b.edit("release-1.1/"+series, "tell of syncs", "tell of others")
			},
			want: []string{"release-1.1: release-1.1/" + series + ": stands for " + series + ", and has another subject; if it is another patch, number it behind the shared ones"},
		},
		"an own patch, by its path": {
			change: func(b *bench) { b.own("") },
			want:   []string{"  release-1.1/" + series + ": is one branch's own"},
		},
		"a package that is not vendored": {
			change: func(b *bench) {
				b.rewrite(map[string]string{"cmd/kube-proxy/main.go": "package main\n\nfunc main() {}\n"})
			},
			want: []string{"release-1.2: " + series + ": touches cmd/kube-proxy/main.go, and vendor/ does not have that package"},
		},
		"a file that is not vendored": {
			change: func(b *bench) {
				if err := os.Remove(filepath.Join(b.root, "vendor/k8s.io/kubernetes/pkg/proxy/proxier.go")); err != nil {
					b.t.Fatal(err)
				}
			},
			want: []string{"release-1.2: " + series + ": touches pkg/proxy/proxier.go, which vendor/ does not have"},
		},
		"a test of upstream's": {
			change: func(b *bench) {
				b.rewrite(map[string]string{"pkg/proxy/proxier_test.go": "package proxy\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\nfunc TestC(t *testing.T) {}\n"})
			},
			want: []string{series + ": touches pkg/proxy/proxier_test.go; vendor/ has no tests"},
		},
		"a fault of one branch, and an error of another": {
			change: func(b *bench) {
				b.edit(series, "Why not upstream", "Whatever")
				delete(b.modules, "v1.2.0")
				b.release("v1.1.0", upstream(conflicting...))
			},
			want: []string{"has no paragraph", "release-1.1: " + series + ": pkg/proxy/proxier.go, hunk 1: the lines", "release-1.2: there is no v1.2.0"},
		},
		"what go cannot list": {
			change: func(b *bench) {
				files := upstream(moved...)
				files["pkg/proxy/proxier_test.go"] = "package another\n"
				b.release("v1.1.0", files)
			},
			arguments: []string{"-compile=vendored"},
			want:      []string{"patches/ is not as patches/README.md wants it:\n  release-1.1: go list", "found packages proxy (extension.go) and another (proxier_test.go)"},
		},
		"an unknown branch":    {arguments: []string{"-branch=1.9"}, want: []string{`"1.9" is no supported branch`}},
		"an unknown choice":    {arguments: []string{"-compile=some"}, want: []string{"-compile=some: want all, vendored or none"}},
		"too many arguments":   {arguments: []string{"1.2"}, want: []string{"arguments [\"1.2\"]: want none"}},
		"a release is not had": {change: func(b *bench) { delete(b.modules, "v1.1.0") }, want: []string{"release-1.1: there is no v1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if test.change != nil {
				test.change(b)
			}
			// The flag that comes last counts.
			_, err := b.run(append([]string{"verify", "-compile=none"}, test.arguments...)...)
			wantError(t, err, test.want...)
		})
	}
}

// rewrite makes the series one patch that changes v1.2.0 to the files.
func (b *bench) rewrite(files map[string]string) {
	b.t.Helper()
	b.remove(series)
	b.commit("v1.2.0", "", header, files)
}

// own gives release-1.1, on which the shared patch is in conflict, a patch of its own.
func (b *bench) own(explanation string) {
	b.t.Helper()
	b.release("v1.1.0", upstream(aside...))
	message := "UPSTREAM: <carry>: proxy: tell of syncs\n\nDescription: It tells.\n\nWhy not upstream: policy.\n\n" +
		explanation + "Versions checked: v1.1.0\n\nDrop when: upstream tells.\n"
	b.commit("v1.1.0", "release-1.1", message, upstream(append(aside, "	p.synced++\n", "	p.synced++\n	p.tell()\n")...),
		map[string]string{"pkg/proxy/extension.go": "package proxy\n\nfunc (p *Proxier) tell() {}\n"})
	b.edit(series, "v1.2.0, v1.1.0", "v1.2.0")
}

func TestVerifyOwnPatch(t *testing.T) {
	b := newBench(t)
	b.own("Why it differs: last was cleared otherwise before 1.2.\n\n")
	said, err := b.run("verify")
	wantError(t, err)
	wantText(t, said, "release-1.1 (v1.1.0)\n  UPSTREAM: <carry>: proxy: tell of syncs, of this branch alone\n    pkg/proxy/extension.go: clean\n    pkg/proxy/proxier.go: clean\n  compiles: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n")
}

// TestVerifyOwnPatchThatDoesNotCompile allows an own patch where the shared one applies, if it says why.
func TestVerifyOwnPatchThatDoesNotCompile(t *testing.T) {
	b := newBench(t)
	b.own("Why it differs: what the shared one adds does\nnot compile there.\n\n")
	b.rewrite(map[string]string{"pkg/proxy/extension.go": "package proxy\n"})
	b.edit(series, "v1.2.0, v1.1.0", "v1.2.0")
	_, err := b.run("verify", "-compile=none")
	wantError(t, err)
}

const backport = "0002-UPSTREAM-1234-proxy-tell-more.patch"

// backported gives release-1.1 a patch behind the shared one, for a change that v1.2.0 has.
func (b *bench) backported() {
	b.t.Helper()
	message := "UPSTREAM: 1234: proxy: tell more\n\nDescription: It tells.\n\nWhy not upstream: it is.\n\nWhy it differs: v1.2.0 has it.\n\nVersions checked: v1.1.0\n\nDrop when: it is not supported.\n"
	b.commit("v1.1.0", "release-1.1", message, map[string]string{"pkg/proxy/more.go": "package proxy\n"})
	folder := filepath.Join(b.patches, "release-1.1")
	if err := os.Rename(filepath.Join(folder, strings.Replace(backport, "0002", "0001", 1)), filepath.Join(folder, backport)); err != nil {
		b.t.Fatal(err)
	}
}

// TestBackport carries a patch on an older branch alone, and keeps it as the branches move on.
func TestBackport(t *testing.T) {
	b := newBench(t)
	b.backported()
	said, err := b.run("verify", "-compile=none")
	wantError(t, err)
	wantText(t, said, "release-1.2 (v1.2.0, vendored)\n  UPSTREAM: <carry>: proxy: tell of syncs\n    pkg/proxy/extension.go: clean\n    pkg/proxy/proxier.go: clean\n  not compiled\n",
		"  UPSTREAM: 1234: proxy: tell more, of this branch alone\n    pkg/proxy/more.go: clean\n")
	page, err := b.run("review", "-results", t.TempDir(), "v1.1.0", "v1.2.0")
	wantError(t, err)
	wantText(t, page, "2 patches, **not the same: 1**", "### 0002 UPSTREAM: 1234: proxy: tell more\n", "Adds `pkg/proxy/more.go`. It touches no function of upstream's.")
	b.release("v1.1.1", upstream(moved...))
	b.release("v1.3.0", upstream(moved...))
	for _, version := range []string{"v1.1.1", "v1.3.0"} {
		_, err = b.run("rebase", version)
		wantError(t, err)
		after := b.snapshot()
		wantText(t, after["release-1.1/"+backport], "Versions checked: v1.1.1\n")
		wantText(t, after[series], "v1.1.1")
		if len(after) != 3 {
			t.Errorf("the files are %v", after)
		}
	}
}
