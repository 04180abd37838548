package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

const proxier = `package proxy

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

// upstream is a made-up release, with lines of its proxier replaced.
func upstream(replacements ...string) map[string]string {
	text := proxier
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			panic("not in the proxier: " + replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return map[string]string{
		"go.mod":                    "module k8s.io/kubernetes\n\ngo 1.24\n",
		"go.sum":                    "",
		"pkg/proxy/proxier.go":      text,
		"pkg/proxy/proxier_test.go": "package proxy\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"cmd/kube-proxy/main.go":    "package main\n\nimport \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc main() { _ = new(proxy.Proxier).Sync() }\n",
	}
}

// What others make of the proxier: the patch applies with an offset; it has to be merged; it is in conflict;
// it applies but does not compile; it is what the patch does.
var (
	moved       = []string{"func before()", "// It is\n// further down.\nfunc before()"}
	aside       = []string{"	p.last = nil\n	return nil\n", "	p.last = nil\n	return error(nil)\n"}
	conflicting = []string{"	p.synced++\n", "	p.synced += 2\n"}
	renamed     = []string{"(p *Proxier) write() error", "(p *Proxier) told() error", "p.write()", "p.told()"}
	told        = []string{"	p.synced++\n", "	p.synced++\n	p.tell()\n"}
)

const (
	kubernetes = "k8s.io/kubernetes@"

	shared = "0001-UPSTREAM-carry-proxy-tell-of-syncs.patch"
	own    = "release-1.1/" + shared
	header = `UPSTREAM: <carry>: proxy: tell of syncs

Description: It tells.

Why not upstream: policy.

Versions checked: v1.2.0, v1.1.0

Drop when: upstream tells.
`
	extension = "package proxy\n\nfunc (p *Proxier) tell() { p.told() }\n\nfunc (p *Proxier) told() { _ = p.write }\n"
)

// bench is a project on made-up releases, of which v1.2.0 is vendored and v1.1.0 supported. The series
// applies cleanly to v1.2.0, and with an offset to v1.1.0.
type bench struct {
	*project
	t       *testing.T
	modules map[string]string
	out     bytes.Buffer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, modules: map[string]string{}}
	config := filepath.Join(t.TempDir(), "gitconfig") // of a user whose git would write other patches
	b.write("", map[string]string{config: "[format]\n\tsignature = mine\n[diff]\n\tnoprefix = true\n"})
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_AUTHOR_NAME", "somebody") // as in a hook of git
	b.project = newProject(t.TempDir(), t.TempDir(), t.TempDir(), &b.out)
	b.Download = func(_ context.Context, path, version string) (string, error) {
		if b.modules[path+"@"+version] == "" {
			return "", fmt.Errorf("there is no %s %s", path, version)
		}
		return b.modules[path+"@"+version], nil
	}
	b.write(b.root, map[string]string{
		"go.mod":             "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.0\n",
		"go.sum":             "",
		"cmd/own/main.go":    "package main\n\nimport \"example.test/own/pkg/own\"\n\nfunc main() { _ = own.Sync() }\n",
		"pkg/own/own.go":     "package own\n\nimport \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc Sync() error { return new(proxy.Proxier).Sync() }\n",
		"vendor/modules.txt": "# k8s.io/kubernetes v1.2.0\n## explicit; go 1.24\nk8s.io/kubernetes/pkg/proxy\n",
		"vendor/k8s.io/kubernetes/pkg/proxy/proxier.go": proxier,
	})
	b.release("v1.2.0", upstream())
	b.release("v1.1.0", upstream(moved...))
	b.write(b.Patches, map[string]string{"branches": "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.0\n"})
	b.commit(kubernetes+"v1.2.0", "", header, upstream(told...), map[string]string{"pkg/proxy/extension.go": extension})
	return b
}

// release makes a release of Kubernetes.
func (b *bench) release(version string, files map[string]string) {
	b.t.Helper()
	b.module(kubernetes+version, files)
}

// module makes a release of a module, which is for example example.test/other@v0.3.0.
func (b *bench) module(release string, files map[string]string) {
	b.t.Helper()
	b.modules[release] = b.t.TempDir()
	b.write(b.modules[release], files)
}

func (b *bench) write(dir string, files map[string]string) {
	b.t.Helper()
	for name, content := range files {
		if err := write(filepath.Join(dir, name), content); err != nil {
			b.t.Fatal(err)
		}
	}
}

// commit writes the difference between a module's release and the files as a patch with the message into a
// folder of patches/.
func (b *bench) commit(release, folder, message string, files ...map[string]string) {
	b.t.Helper()
	r, err := scratch.New(b.t.Context(), b.t.TempDir())
	wantError(b.t, err)
	wantError(b.t, r.Release(b.t.Context(), "base", b.modules[release], []string{"."}))
	for _, some := range files {
		b.write(r.Dir, some)
	}
	b.git(r.Dir, "add", "-A")
	b.git(r.Dir, "commit", "-q", "-m", message)
	_, err = r.Format(b.t.Context(), "base", filepath.Join(b.Patches, folder))
	wantError(b.t, err)
}

func (b *bench) git(dir string, arguments ...string) {
	b.t.Helper()
	_, err := scratch.Git(b.t.Context(), dir, arguments...)
	wantError(b.t, err)
}

// run runs a command line and returns what it printed.
func (b *bench) run(arguments ...string) (string, error) {
	b.t.Helper()
	b.out.Reset()
	err := b.command(b.t.Context(), arguments)
	return b.out.String(), err
}

// files returns the files below a folder.
func (b *bench) files(dir string) map[string]string {
	b.t.Helper()
	files := map[string]string{}
	wantError(b.t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}))
	return files
}

// edit replaces text in a file of patches/.
func (b *bench) edit(name, old, replacement string) {
	b.t.Helper()
	content := b.files(b.Patches)[name]
	if !strings.Contains(content, old) {
		b.t.Fatalf("%s has no %q:\n%s", name, old, content)
	}
	b.write(b.Patches, map[string]string{name: strings.Replace(content, old, replacement, 1)})
}

// rewrite makes the series one patch that changes v1.2.0 to the files.
func (b *bench) rewrite(files map[string]string) {
	b.t.Helper()
	wantError(b.t, os.Remove(filepath.Join(b.Patches, shared)))
	b.commit(kubernetes+"v1.2.0", "", header, files)
}

func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if (err != nil) != (len(texts) > 0) {
		t.Fatalf("error %v; want %q", err, texts)
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
