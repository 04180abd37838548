package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerify_EveryBranch(t *testing.T) {
	b := newBench(t)
	const compiled = "  compiles: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n"
	said, err := b.run("verify")
	wantError(t, err)
	wantText(t, said, "k8s.io/kubernetes release-1.2 (v1.2.0)\n  "+shared+"\n    Checking patch pkg/proxy/extension.go...\n    Checking patch pkg/proxy/proxier.go...\n"+compiled,
		"release-1.1 (v1.1.0)\n  "+shared+"\n    Checking patch pkg/proxy/extension.go...\n    Checking patch pkg/proxy/proxier.go...\n    Hunk #1 succeeded at 21 (offset 2 lines).\n"+compiled)

	said, err = b.run("verify", "-branch=1.1", "-compile=types")
	wantError(t, err)
	wantText(t, said, "  type-checks: ./cmd/kube-proxy/... ./pkg/proxy/..., and of ours ./cmd/... ./pkg/...\n")
}

// withOwn gives release-1.1, on which the shared patch does not apply, a patch of its own.
func (b *bench) withOwn() {
	b.t.Helper()
	b.release("v1.1.0", upstream(aside...))
	message := strings.NewReplacer("v1.2.0, v1.1.0", "v1.1.0", "\nDrop when", "\nWhy it differs: so.\n\nDrop when").Replace(header)
	b.commit(kubernetes+"v1.1.0", "release-1.1", message, upstream(append(aside, told...)...), map[string]string{"pkg/proxy/extension.go": extension})
	b.edit(shared, "v1.2.0, v1.1.0", "v1.2.0")
}

func TestVerify_OwnPatch(t *testing.T) {
	b := newBench(t)
	b.withOwn()
	said, err := b.run("verify", "-compile=none")
	wantError(t, err)
	wantText(t, said, "release-1.1 (v1.1.0)\n  "+own+"\n")
}

// sync is the body of Sync.
const sync = "	if err := p.write(); err != nil {\n		p.failed++\n		return err\n	}\n	p.synced++\n	p.last = nil\n	return nil\n}\n"

func TestVerify_Faults(t *testing.T) {
	brokenTest := upstream(moved...)
	brokenTest["pkg/proxy/proxier_test.go"] = "package proxy\n\nvar _ = gone\n"
	twice := upstream("// Sync writes", "func (p *Proxier) Sync0() error {\n"+sync+"\n// Sync writes", "func (p *Proxier) write()", strings.Repeat("// More.\n", 40)+"func (p *Proxier) write()")
	for name, test := range map[string]struct {
		change  func(b *bench)
		compile string
		want    []string
	}{
		"an incomplete header": {
			change: func(b *bench) { b.edit(shared, "Why not upstream", "Whatever") },
			want:   []string{"k8s.io/kubernetes: " + shared + `: expected one paragraph "Why not upstream: …"`},
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
			want:   []string{"k8s.io/kubernetes release-1.1: " + shared + ": run 'make rebase-patches VERSION=v1.1.0'; it\n    does not apply without fuzz: ", "    error: patch failed: pkg/proxy/proxier.go:19"},
		},
		"a line of context that upstream has changed": {
			change: func(b *bench) { b.release("v1.1.0", upstream("		return err\n", "		return nil\n")) },
			want:   []string{"k8s.io/kubernetes release-1.1: " + shared + ": run 'make rebase-patches VERSION=v1.1.0'; it\n    does not apply without fuzz: "},
		},
		"lines that upstream has twice": {
			change: func(b *bench) { b.release("v1.1.0", twice) },
			want:   []string{"k8s.io/kubernetes release-1.1: " + shared + ": git apply puts it elsewhere than git's merge from the vendored release does"},
		},
		"a series for another release than the vendored": {
			change: func(b *bench) { b.release("v1.2.0", upstream(moved...)) },
			want:   []string{"k8s.io/kubernetes: " + shared + ":31: is not what git format-patch writes for v1.2.0; write it with that, from 'make rebase-patches VERSION=v1.2.0'"},
		},
		"a series that does not apply to the vendored release": {
			change: func(b *bench) { b.release("v1.2.0", upstream(conflicting...)) },
			want:   []string{"release-1.2: " + shared + ": run 'make rebase-patches VERSION=v1.2.0'; it\n    does not apply without fuzz"},
		},
		"text that git does not keep": {
			change: func(b *bench) { b.edit(shared, "\n---\n", "\n---\nBy the way.\n") },
			want:   []string{shared + ":14: is not what git format-patch writes"},
		},
		"an own patch for another release": {
			change: func(b *bench) {
				b.withOwn()
				b.release("v1.1.0", upstream(append(aside, moved...)...))
			},
			want: []string{own + ":", "is not what git format-patch writes for v1.1.0"},
		},
		"another name": {
			change: func(b *bench) {
				b.write(b.Patches, map[string]string{"0001-other.patch": b.files(b.Patches)[shared]})
				wantError(b.t, os.Remove(filepath.Join(b.Patches, shared)))
			},
			want: []string{"0001-other.patch: git format-patch names it " + shared},
		},
		"what does not compile": {
			change: func(b *bench) { b.release("v1.1.0", upstream(append(renamed, moved...)...)) }, compile: compileAll,
			want: []string{"release-1.1: go build ./cmd/kube-proxy/... ./pkg/proxy/... in", "Proxier.told already declared"},
		},
		"a test that does not compile": {
			change: func(b *bench) { b.release("v1.1.0", brokenTest) }, compile: compileAll,
			want: []string{"release-1.1: go vet ./cmd/kube-proxy/... ./pkg/proxy/... in", "undefined: gone"},
		},
		"what does not compile, without compiling it": {
			change: func(b *bench) { b.release("v1.1.0", upstream(append(renamed, moved...)...)) }, compile: compileTypes,
			want: []string{"release-1.1: ", "method Proxier.told already declared"},
		},
		"a test that does not compile, without compiling it": {
			change: func(b *bench) { b.release("v1.1.0", brokenTest) }, compile: compileTypes,
			want: []string{"release-1.1: ", "proxier_test.go:3:9: undefined: gone"},
		},
		"our own code, without compiling it": {
			change: func(b *bench) {
				b.write(b.root, map[string]string{"pkg/own/before.go": "//go:build kube1.1\n\npackage own\n\nvar _ = gone\n"})
			}, compile: compileTypes,
			want: []string{"release-1.1: ", "pkg/own/before.go:5:9: undefined: gone"},
		},
		"another release in go.mod": {
			change: func(b *bench) {
				b.write(b.root, map[string]string{"go.mod": "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.1\n"})
			},
			want: []string{"go.mod requires k8s.io/kubernetes v1.2.1, but in patches/branches v1.2.0 is vendored"},
		},
		"a new package": {
			change: func(b *bench) { b.rewrite(map[string]string{"pkg/proxy/other/other.go": "package other\n"}) },
			want:   []string{shared + ": touches pkg/proxy/other/other.go, whose package vendor/modules.txt does not list"},
		},
		"a test of upstream's": {
			change: func(b *bench) { b.rewrite(map[string]string{"pkg/proxy/proxier_test.go": "package proxy\n"}) },
			want:   []string{shared + ": touches pkg/proxy/proxier_test.go; vendor/ has only Go files that are not tests"},
		},
		"a folder of no branch": {
			change: func(b *bench) { b.write(b.Patches, map[string]string{"release-1.0/0001-a.patch": ""}) },
			want:   []string{"release-1.0: neither a branch in patches/branches nor a module that go.mod requires; remove the folder"},
		},
		"a fault of one branch, and an error of another": {
			change: func(b *bench) {
				b.edit(shared, "Why not upstream", "Whatever")
				delete(b.modules, kubernetes+"v1.1.0")
			},
			want: []string{shared + ": expected one paragraph", "k8s.io/kubernetes release-1.1: there is no k8s.io/kubernetes v1.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			test.change(b)
			if test.compile == "" {
				test.compile = compileNone
			}
			_, err := b.run("verify", "-compile="+test.compile)
			wantError(t, err, test.want...)
		})
	}
}

func TestCommand_InvalidArguments(t *testing.T) {
	for line, want := range map[string]string{
		"":                     "no command\nusage",
		"test":                 `"test" is not a command`,
		"verify -branch=1.9":   `"1.9" is not a supported branch`,
		"verify -compile=some": "-compile=some: expected",
		"verify 1.2":           `arguments ["1.2"]`,
		"tree":                 "too few",
		"go 1.1":               "too few",
	} {
		_, err := newBench(t).run(strings.Fields(line)...)
		wantError(t, err, want)
	}
}

func TestGo_AgainstABranch(t *testing.T) {
	b := newBench(t)
	b.write(b.root, map[string]string{"pkg/own/before.go": "//go:build kube1.1\n\npackage own\n"})
	said, err := b.run("go", "1.1", "list", "-deps", "-f", "{{.ImportPath}} {{.GoFiles}}", "./pkg/...")
	wantError(t, err)
	wantText(t, said, "k8s.io/kubernetes/pkg/proxy [extension.go proxier.go]\n", "example.test/own/pkg/own [before.go own.go]\n")
}
