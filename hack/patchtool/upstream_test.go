package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// upstream is a made-up release: its proxier, with lines to be replaced.
func upstream(replacements ...string) map[string]string {
	proxier := `package proxy

import "errors"

func before() error { return errors.New("before") }

// Proxier syncs.
type Proxier struct {
	// synced is how often it did.
	synced int
	failed int
	last   error
}

// Sync writes the rules.
func (p *Proxier) Sync() error {
	if err := p.write(); err != nil {
		p.failed++
		return err
	}
	p.synced++
	p.last = nil
	return nil
}

func (p *Proxier) write() error { return before() }
`
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(proxier, replacements[i]) {
			panic("not in the proxier: " + replacements[i])
		}
		proxier = strings.Replace(proxier, replacements[i], replacements[i+1], 1)
	}
	return map[string]string{
		"go.mod":                    "module k8s.io/kubernetes\n\ngo 1.24\n",
		"pkg/proxy/proxier.go":      proxier,
		"pkg/proxy/proxier_test.go": "package proxy\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\n",
		"cmd/kube-proxy/main.go":    "package main\n\nimport \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc main() { _ = new(proxy.Proxier).Sync() }\n",
	}
}

// With these the patch applies with an offset, needs a merge, is in conflict, applies but does not compile.
var (
	moved       = []string{"func before()", "// It is\n// further down.\nfunc before()"}
	aside       = []string{"	p.last = nil\n	return nil\n", "	p.last = nil\n	return error(nil)\n"}
	conflicting = []string{"	p.synced++\n", "	p.synced += 2\n	p.told = true\n"}
	renamed     = []string{"(p *Proxier) write() error", "(p *Proxier) told() error", "p.write()", "p.told()"}
)

const header = `UPSTREAM: <carry>: proxy: tell of syncs

Description: It tells.

Why not upstream: policy.

Versions checked: v1.2.0, v1.1.0

Drop when: upstream tells.
`

// bench is a project on made-up releases, of which v1.2.0 is vendored and v1.1.0 supported.
type bench struct {
	*project
	t       *testing.T
	modules map[string]string
	out     *bytes.Buffer
}

// newBench has the series apply cleanly to v1.2.0, and with an offset to v1.1.0.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, modules: map[string]string{}, out: &bytes.Buffer{}}
	b.project = &project{root: t.TempDir(), patches: t.TempDir(), cache: t.TempDir(), stdout: b.out, stderr: b.out, download: func(_ context.Context, version string) (string, error) {
		if b.modules[version] == "" {
			return "", fmt.Errorf("there is no %s", version)
		}
		return b.modules[version], nil
	}}
	b.write(b.root, ownModule())
	b.release("v1.2.0", upstream())
	b.release("v1.1.0", upstream(moved...))
	b.write(b.patches, map[string]string{"branches": "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.0\n"})
	b.commit("v1.2.0", "", header, upstream("	p.synced++\n", "	p.synced++\n	p.tell()\n"),
		map[string]string{"pkg/proxy/extension.go": "package proxy\n\nfunc (p *Proxier) tell() { p.told() }\n\nfunc (p *Proxier) told() { _ = p.write }\n"})
	return b
}

// ownModule is our own code, and v1.2.0 vendored.
func ownModule() map[string]string {
	return map[string]string{
		"go.mod":             "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.0\n",
		"go.sum":             "",
		"cmd/own/main.go":    "package main\n\nimport \"example.test/own/pkg/own\"\n\nfunc main() { _ = own.Sync() }\n",
		"pkg/own/own.go":     "package own\n\nimport \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc Sync() error { return new(proxy.Proxier).Sync() }\n",
		"vendor/modules.txt": "# k8s.io/kubernetes v1.2.0\n## explicit; go 1.24\nk8s.io/kubernetes/pkg/proxy\n",
		"vendor/k8s.io/kubernetes/pkg/proxy/proxier.go": upstream()["pkg/proxy/proxier.go"],
	}
}

func (b *bench) release(version string, files map[string]string) {
	b.t.Helper()
	b.modules[version] = b.t.TempDir()
	b.write(b.modules[version], files)
}

func (b *bench) write(dir string, files map[string]string) {
	b.t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// commit writes the difference between a release and the files as a patch with the message into a
// folder of patches/.
func (b *bench) commit(version, folder, message string, files ...map[string]string) {
	b.t.Helper()
	dir := b.t.TempDir()
	repo, err := scratch.New(b.t.Context(), dir)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := repo.Release(b.t.Context(), "base", b.modules[version], patched); err != nil {
		b.t.Fatal(err)
	}
	for _, some := range files {
		some = maps.Clone(some)
		delete(some, "go.mod")
		b.write(dir, some)
	}
	for _, arguments := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}} {
		if _, err := scratch.Git(b.t.Context(), dir, arguments...); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := repo.Format(b.t.Context(), "base", filepath.Join(b.patches, folder)); err != nil {
		b.t.Fatal(err)
	}
}

// run runs a command line and returns what it printed.
func (b *bench) run(arguments ...string) (string, error) {
	b.t.Helper()
	b.out.Reset()
	err := b.command(b.t.Context(), arguments)
	return b.out.String(), err
}

// snapshot returns the files of patches/.
func (b *bench) snapshot() map[string]string {
	b.t.Helper()
	return snapshot(b.t, b.patches)
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// edit replaces text in a file of patches/.
func (b *bench) edit(name, old, replacement string) {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.patches, name))
	if err != nil {
		b.t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		b.t.Fatalf("%s has no %q:\n%s", name, old, content)
	}
	b.write(b.patches, map[string]string{name: strings.Replace(string(content), old, replacement, 1)})
}

// append adds text to a file of patches/.
func (b *bench) append(name, text string) {
	b.t.Helper()
	b.write(b.patches, map[string]string{name: b.snapshot()[name] + text})
}

func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if len(texts) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error; want %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q; want %q", err, text)
		}
	}
}

func wantText(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("it says\n%s\nwant %q", got, text)
		}
	}
}
