package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// proxierSource is a made-up proxier, of either package, with what overlay.go looks for.
const proxierSource = `package PROXIER

import "k8s.io/kubernetes/pkg/util/iptables"

type Proxier struct {
	ipt interface {
		RestoreAll([]byte, iptables.FlushFlag, iptables.RestoreCountersFlag) error
	}
	svcPortMap map[string]int
	extension  func()
}

func (proxier *Proxier) setInitialized(bool) {}

func (proxier *Proxier) syncProxyRules() error {
	text := "*nat\n"
	for name := range proxier.svcPortMap {
		text += "-A " + name + "\n"
	}
	if err := proxier.ipt.RestoreAll([]byte(text+"COMMIT\n"), true, true); err != nil {
		return err
	}
	if proxier.extension != nil {
		proxier.extension()
	}
	return nil
}
`

const proxierTest = `package PROXIER

import (
	"testing"

	iptablestest "k8s.io/kubernetes/pkg/util/iptables/testing"
)

func NewFakeProxier() *Proxier {
	p := &Proxier{ipt: &iptablestest.FakeIPTables{}, svcPortMap: map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}}
	p.setInitialized(true)
	return p
}

func TestSync(t *testing.T) {
	if err := NewFakeProxier().syncProxyRules(); err != nil {
		t.Fatal(err)
	}
}
`

const fakeSource = `package testing

import (
	"fmt"

	"k8s.io/kubernetes/pkg/util/iptables"
)

type FakeIPTables struct{ said string }

func (f *FakeIPTables) RestoreAll(data []byte, flush iptables.FlushFlag, counters iptables.RestoreCountersFlag) error {
	f.said = fmt.Sprint(data, flush, counters)
	return nil
}
`

// module are the files of a made-up release.
func module() map[string]string {
	files := map[string]string{
		"go.mod":                 "module k8s.io/kubernetes\n\ngo 1.24\n",
		"cmd/kube-proxy/main.go": "package main\n\nfunc main() {}\n",
		"pkg/proxy/topology.go":  "package proxy\n\nfunc count(endpointsMap map[string]int) (n int) {\n\tfor _ = range endpointsMap {\n\t\tn++\n\t}\n\treturn n\n}\n",
		"pkg/proxy/topology_test.go": "package proxy\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar left bool\n\nfunc first() bool { return os.Mkdir(os.Getenv(\"UPSTREAMTEST_ONCE\"), 0o755) == nil }\n\n" +
			"func TestA(t *testing.T) { left = true }\n\nfunc TestB(t *testing.T) {}\n",
		"pkg/util/iptables/iptables.go":     "package iptables\n\ntype (\n\tFlushFlag bool\n\tRestoreCountersFlag bool\n)\n",
		"pkg/util/iptables/testing/fake.go": fakeSource,
	}
	for _, proxier := range proxiers {
		files["pkg/proxy/"+proxier+"/proxier.go"] = strings.Replace(proxierSource, "PROXIER", proxier, 1)
		files["pkg/proxy/"+proxier+"/proxier_test.go"] = strings.Replace(proxierTest, "PROXIER", proxier, 1)
	}
	return files
}

// laid is what is laid over it: what needs nothing of Kubernetes as it is, the rest simpler.
func laid(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"order.go", "record.go", "plain_test.go"} {
		content, err := fs.ReadFile(laidOver(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: content}
	}
	const head = "package proxier\n\nimport (\n\t\"testing\"\n\n\tiptablestest \"k8s.io/kubernetes/pkg/util/iptables/testing\"\n)\n\n"
	for name, text := range map[string]string{
		"clusters_test.go": "package proxier\n",
		"extension_test.go": "package proxier\n\nimport \"testing\"\n\nfunc attachExtension(p *Proxier) { p.extension = func() {} }\n\n" +
			"func checkExtension(*testing.T, bool, bool) {}\n",
		"iptables_test.go": head + "func TestUpstreamtestClusters(t *testing.T) {\n\tiptablestest.Record(\"cluster\", \"\")\n\tcheckExtension(t, true, NewFakeProxier().syncProxyRules() == nil)\n" +
			"\tiptablestest.Record(\"sync full=true succeeded=true\", \"\")\n}\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	files["nftables_test.go"] = files["iptables_test.go"]
	return files
}

// pair writes the made-up release twice, once with text replaced in one of its files.
func pair(t *testing.T, file, old, replacement string) *trees {
	t.Helper()
	patched := maps.Clone(module())
	if !strings.Contains(patched[file], old) {
		t.Fatalf("%s has no %q", file, old)
	}
	patched[file] = strings.Replace(patched[file], old, replacement, 1)
	return &trees{Branch: branch.Branch{Name: "release-1.2", Version: "v1.2.0"}, patched: write(t, patched), unpatched: write(t, module())}
}

func write(t *testing.T, files map[string]string) *tree.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &tree.Tree{Version: "v1.2.0", Dir: dir}
}

// compared returns a comparison, and what it prints.
func compared(t *testing.T) (*comparison, *strings.Builder) {
	t.Helper()
	said := &strings.Builder{}
	return &comparison{laid: laid(t), stdout: said}, said
}

func TestIdentity_OneByte(t *testing.T) {
	const nft = "pkg/proxy/nftables/proxier.go"
	for name, test := range map[string]struct {
		file, old, replacement string
		differs                []string // the only lines of the report that begin with this word
	}{
		"alike": {file: nft, old: "package", replacement: "// A comment.\npackage"},
		"a byte for an extension": {
			file: nft, old: "	if err := proxier.ipt", replacement: "	if proxier.extension != nil {\n\t\ttext += \"x\"\n\t}\n	if err := proxier.ipt",
			differs: []string{"nftables, upstream's tests, with an extension, from line 8 on:", "nftables, random clusters, with an extension, from line 9 on:"},
		},
		"another order": {
			file: "pkg/proxy/iptables/proxier.go", old: `text += "-A " + name + "\n"`, replacement: `text = text[:5] + "-A " + name + "\n" + text[5:]`,
			differs: []string{
				"iptables, upstream's tests, without an extension, from line 4 on:", "iptables, random clusters, without an extension, from line 5 on:",
				"iptables, upstream's tests, with an extension, from line 4 on:", "iptables, random clusters, with an extension, from line 5 on:",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, said := compared(t)
			err := c.identity(t.Context(), pair(t, test.file, test.old, test.replacement))
			if want := len(test.differs) > 0; errors.Is(err, errDiffers) != want || err != nil && !want {
				t.Fatalf("error %v", err)
			}
			var got []string
			for line := range strings.Lines(said.String()) {
				if found, ok := strings.CutPrefix(strings.TrimSpace(line), "DIFFERS "); ok {
					got = append(got, found)
				}
			}
			if diff := cmp.Diff(test.differs, got); diff != "" {
				t.Errorf("it reports (-want +got):\n%s", diff)
			}
			if same := strings.Contains(said.String(), "byte for byte the same"); same != (err == nil) {
				t.Errorf("it reports\n%s", said)
			}
		})
	}
}

// TestIdentity_VaryingTree fails when a tree that never writes the same twice is blamed on the series.
func TestIdentity_VaryingTree(t *testing.T) {
	c, _ := compared(t)
	const file = "pkg/proxy/iptables/proxier.go"
	both := pair(t, file, "package", "package")
	varying := module()
	varying[file] = strings.NewReplacer(`text := "*nat\n"`, `text := time.Now().String()`, `import "k8s`, "import \"time\"\n\nimport \"k8s").Replace(varying[file])
	both.unpatched = write(t, varying)
	if err := c.identity(t.Context(), both); err == nil || !strings.Contains(err.Error(), "two runs of the unpatched tree differ from line") {
		t.Errorf("error %v", err)
	}
}

// TestTests_Outcome fails when hack/test-upstream.sh does not tell of a test that ends otherwise on the patched tree,
// tells of a flaky one, or takes for a result what proves nothing.
func TestTests_Outcome(t *testing.T) {
	const file, b = "pkg/proxy/topology_test.go", "TestB(t *testing.T) {}"
	for name, test := range map[string]struct {
		old, replacement string
		fails            bool
		says             string
	}{
		"alike":                    {"package", "package", false, "4 passed; the same tests, the same results\n"},
		"a test is not there":      {"TestB(", "TestC(", true, "\n< k8s.io/kubernetes/pkg/proxy TestB pass\n---\n> k8s.io/kubernetes/pkg/proxy TestC pass\n"},
		"after another test":       {b, "TestB(t *testing.T) {\n\tif left {\n\t\tt.Fail()\n\t}\n}", true, "\n< k8s.io/kubernetes/pkg/proxy TestB pass\n---\n> k8s.io/kubernetes/pkg/proxy TestB fail\n"},
		"once, and never again":    {b, "TestB(t *testing.T) {\n\tif first() {\n\t\tt.Fail()\n\t}\n}", false, "2 passed; the same tests, the same results\n"},
		"what does not compile":    {b, "TestB(t *testing.T) { gone() }", true, ": something does not compile"},
		"a package fails alone":    {b, "TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(1)\n}", true, "or a package failed without a failed test"},
		"a test with a bad \"name": {b, "TestB(t *testing.T) { t.Run(`a \"b`, func(t *testing.T) { t.Fail() }) }", true, `> k8s.io/kubernetes/pkg/proxy TestB/a_\"b fail`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("UPSTREAMTEST_ONCE", filepath.Join(t.TempDir(), "once"))
			both := pair(t, file, test.old, test.replacement)
			command := exec.CommandContext(t.Context(), "../test-upstream.sh", both.unpatched.Dir, both.patched.Dir)
			command.Env = append(os.Environ(), "OUTPUT="+t.TempDir())
			said, err := command.CombinedOutput()
			if (err != nil) != test.fails || !strings.Contains(string(said), test.says) {
				t.Errorf("error %v; it says\n%s\nwant %q", err, said, test.says)
			}
		})
	}
}
