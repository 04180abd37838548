package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	other       = "example.test/other"
	otherPatch  = "0001-UPSTREAM-carry-rule-take-an-offset.patch"
	otherHeader = `UPSTREAM: <carry>: rule: take an offset

Description: It takes one.

Why not upstream: it is to be offered there.

Versions checked: v0.3.0

Drop when: upstream takes one.
`
	rule = "package other\n\n// Rule is one.\ntype Rule struct {\n	// Port is one.\n	Port int\n}\n"
)

// otherModule is a made-up release of another module than Kubernetes.
func otherModule(rule string) map[string]string {
	return map[string]string{
		"go.mod":               "module example.test/other\n\ngo 1.24\n",
		"other.go":             rule,
		"other_test.go":        "package other\n\nvar _ Rule\n",
		"internal/unlisted.go": "package internal\n",
	}
}

// offset is the module's file with its patch.
func offset(rule string) string {
	return strings.Replace(rule, "	Port int\n", "	Port int\n	// Offset is one.\n	Offset bool\n", 1)
}

// withModule gives another module a series, and has our own code use what only that has.
func (b *bench) withModule() {
	b.t.Helper()
	b.module(other+"@v0.3.0", otherModule(rule))
	b.commit(other+"@v0.3.0", other, otherHeader, map[string]string{"other.go": offset(rule)})
	b.write(b.root, map[string]string{
		"go.mod":                        b.files(b.root)["go.mod"] + "\nrequire example.test/other v0.3.0\n",
		"pkg/own/rule.go":               "package own\n\nimport \"example.test/other\"\n\nvar _ = other.Rule{Offset: true}\n",
		"vendor/modules.txt":            "# example.test/other v0.3.0\n## explicit; go 1.24\nexample.test/other\n" + b.files(b.root)["vendor/modules.txt"],
		"vendor/" + other + "/other.go": offset(rule),
	})
}

// TestVerify_Module fails when the series of another module is not verified, or our own code is checked against a branch
// of Kubernetes without it.
func TestVerify_Module(t *testing.T) {
	b := newBench(t)
	b.withModule()
	said, err := b.run("verify")
	wantError(t, err)
	const verified = other + " (v0.3.0)\n  " + otherPatch + "\n    Checking patch other.go...\n"
	wantText(t, said, verified+"  compiles: ./...\n", "k8s.io/kubernetes release-1.1 (v1.1.0)\n")
	said, err = b.run("verify", "-branch=1.1", "-compile=types")
	wantError(t, err)
	wantText(t, said, verified)
	if strings.Contains(said, "type-checks: ./...\n") {
		t.Errorf("-branch=1.1 compiles what vendor/ has:\n%s", said)
	}
}

func TestVerify_ModuleFaults(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(b *bench)
		compile string
		want    string
	}{
		"a version that go.mod no longer names": {
			change: func(b *bench) {
				b.module(other+"@v0.3.1", otherModule(rule))
				b.write(b.root, map[string]string{"go.mod": strings.Replace(b.files(b.root)["go.mod"], "v0.3.0", "v0.3.1", 1)})
			},
			want: other + ": " + otherPatch + `: "Versions checked: v0.3.0", but go.mod requires v0.3.1; check these`,
		},
		"a place that upstream has changed": {
			change: func(b *bench) {
				b.module(other+"@v0.3.0", otherModule(strings.Replace(rule, "Port int", "Port uint16", 1)))
			},
			want: other + ": " + otherPatch + ": run 'make rebase-patches MODULE=example.test/other VERSION=v0.3.0'; it\n    does not apply without fuzz: ",
		},
		"a package that is not vendored": {
			change: func(b *bench) { b.rewriteModule(map[string]string{"internal/new.go": "package internal\n"}) },
			want:   other + ": " + otherPatch + ": touches internal/new.go, whose package vendor/modules.txt does not list",
		},
		"what does not compile": {
			change: func(b *bench) { b.rewriteModule(map[string]string{"other.go": rule + "\nvar _ = gone\n"}) }, compile: compileAll,
			want: other + ": go build ./... in",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.withModule()
			test.change(b)
			if test.compile == "" {
				test.compile = compileNone
			}
			_, err := b.run("verify", "-branch=vendored", "-compile="+test.compile)
			wantError(t, err, test.want)
		})
	}
}

// rewriteModule makes the module's series one patch that changes v0.3.0 to the files.
func (b *bench) rewriteModule(files map[string]string) {
	b.t.Helper()
	wantError(b.t, os.RemoveAll(filepath.Join(b.Patches, other)))
	b.commit(other+"@v0.3.0", other, otherHeader, files)
}

func TestTree_Module(t *testing.T) {
	b := newBench(t)
	b.withModule()
	for flag, want := range map[string]string{"-unpatched=false": offset(rule), "-unpatched": rule} {
		said, err := b.run("tree", flag, other)
		wantError(t, err)
		if got := b.files(strings.TrimSpace(said))["other.go"]; got != want {
			t.Errorf("tree %s has\n%s\nwant\n%s", flag, got, want)
		}
	}
	_, err := b.run("go", other, "build")
	wantError(t, err, `"example.test/other" is not a supported branch`)
}

// TestRebase_Module goes to another release of a module, and begins with a module without patches.
func TestRebase_Module(t *testing.T) {
	b := newBench(t)
	b.withModule()
	b.module(other+"@v0.4.0", otherModule("// Package other is moved.\n"+rule))
	for version, same := range map[string]bool{"v0.3.0": true, "v0.4.0": false} {
		said, r, err := b.rebases(version, other)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		wantText(t, said, "1:  ", " = 1:  ", "the series of example.test/other")
		dir := t.TempDir()
		_, err = r.Format(t.Context(), "upstream", dir)
		wantError(t, err)
		if written := b.files(dir)[otherPatch]; written == b.files(b.Patches)[other+"/"+otherPatch] != same {
			t.Errorf("on %s the series is not the same: %t:\n%s", version, !same, written)
		}
	}
	wantError(t, os.RemoveAll(filepath.Join(b.Patches, other)))
	wantError(t, os.RemoveAll(filepath.Join(b.root, "patches")))
	wantError(t, os.RemoveAll(filepath.Join(b.root, "_output")))
	if said, r, err := b.rebases("", other); err != nil {
		t.Errorf("%v: %s", err, said)
	} else if got := b.files(r.Dir + "v0.3.0")["other.go"]; got != rule {
		t.Errorf("without patches it has\n%s", got)
	}
}

// TestVendor_Module fails when the series of another module is not applied, not counted, or its failure does not name it.
func TestVendor_Module(t *testing.T) {
	b := newBench(t)
	b.withModule()
	b.write(b.root, map[string]string{
		"go.mod": b.files(b.root)["go.mod"] + "\nreplace k8s.io/kubernetes => " + b.modules[kubernetes+"v1.2.0"] + "\n\nreplace example.test/other => " + b.modules[other+"@v0.3.0"] + "\n",
	})
	b.write(filepath.Join(b.root, "patches"), b.files(b.Patches))
	b.write(filepath.Join(b.root, "patches"), map[string]string{"release-1.1/0001-no.patch": "for no release that is vendored"})
	for _, file := range []string{"lib/vendor.sh", "verify-vendor.sh"} {
		content, err := os.ReadFile(filepath.Join("..", file))
		wantError(t, err)
		b.write(b.root, map[string]string{"hack/" + file: string(content)})
	}
	run := func(arguments ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "bash", arguments...)
		command.Dir = b.root
		command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if said, err := run("-euc", "source hack/lib/vendor.sh; vendor::regenerate \"$PWD\""); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if got := b.files(filepath.Join(b.root, "vendor"))[other+"/other.go"]; got != offset(rule) {
		t.Errorf("vendor/ has\n%s", got)
	}
	said, err := run("hack/verify-vendor.sh")
	wantError(t, err)
	wantText(t, said, "vendor/ is go.mod + 1 patches of k8s.io/kubernetes + 1 patches of example.test/other, byte for byte\n")

	b.write(filepath.Join(b.root, "patches", other), map[string]string{otherPatch: strings.Replace(b.files(b.Patches)[other+"/"+otherPatch], "Port int", "Port uint16", 1)})
	said, err = run("hack/verify-vendor.sh")
	wantError(t, err, "exit status 1")
	wantText(t, said, otherPatch+" does not apply to the vendored example.test/other; see patches/README.md")
}
