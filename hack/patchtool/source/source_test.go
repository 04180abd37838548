package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const proxier = `package iptables

import "context"

// Limits of it.
const (
	// most of them
	most = 10
	least
)

// Proxier writes.
type Proxier struct {
	// name is its.
	name string
	*Base
	mu, other int
}

type Provider interface {
	Sync()
	Fmt.Stringer
}

// NewProxier makes one.
func NewProxier(ctx context.Context) *Proxier {
	return &Proxier{} // empty
}

func (proxier *Proxier) Sync() { proxier.mu++ }

func (List[T]) Len() int { return 0 }
`

func TestParse(t *testing.T) {
	declarations, err := Parse("proxier.go", proxier)
	if err != nil {
		t.Fatal(err)
	}
	type summary struct {
		Name        string
		Kind        Kind
		First, Last int
	}
	var got []summary
	for _, d := range declarations {
		got = append(got, summary{d.Name, d.Kind, d.First, d.Last})
	}
	want := []summary{
		{"imports", Imports, 3, 3},
		{"most", Value, 7, 8},
		{"least", Value, 9, 9},
		{"Proxier", Type, 12, 18},
		{"Proxier.name", Member, 14, 15},
		{"Proxier.Base", Member, 16, 16},
		{"Proxier.mu", Member, 17, 17},
		{"Proxier.other", Member, 17, 17},
		{"Provider", Type, 20, 23},
		{"Provider.Sync", Member, 21, 21},
		{"Provider.Stringer", Member, 22, 22},
		{"NewProxier", Function, 25, 28},
		{"Proxier.Sync", Function, 30, 30},
		{"List.Len", Function, 32, 32},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	for line, want := range map[int]string{3: "imports", 8: "most", 12: "Proxier", 14: "Proxier", 26: "NewProxier", 11: "", 99: ""} {
		name := ""
		if d := At(declarations, line); d != nil {
			name = d.Name
		}
		if name != want {
			t.Errorf("At(%d) = %q, want %q", line, name, want)
		}
	}
	if _, err := Parse("broken.go", "package"); err == nil || !strings.Contains(err.Error(), "broken.go:1") {
		t.Errorf("error %v of a broken file", err)
	}
}

func TestCompare(t *testing.T) {
	const function = "func f(a int) error {\n\treturn nil\n}"
	for name, test := range map[string]struct {
		old, current string
		want         Change
	}{
		"the same":              {function, function, Unchanged},
		"another doc comment":   {function, "// Why.\n" + function, Doc},
		"a wrapped doc comment": {"// Why\n// so.\n" + function, "// Why so.\n" + function, Unchanged},
		"lines for generators":  {function, "// +k8s:optional\n" + function, Unchanged},
		"another layout":        {function, "func f(a int) error { return nil }", Comments},
		"a comment":             {function, "func f(a int) error {\n\t// Why.\n\treturn nil // so\n}", Comments},
		"another body":          {function, "func f(a int) error {\n\treturn g()\n}", Body},
		"another name of one":   {function, "func f(b int) error {\n\treturn nil\n}", Signature}, // without types
		"another parameter":     {function, "func f(a, b int) error {\n\treturn nil\n}", Signature},
		"another result":        {function, "func f(a int) bool {\n\treturn nil\n}", Signature},
		"another constant":      {`const f = "a b"`, `const f = "a  b"`, Body},
		"a constant's type":     {`const f int = 1`, `const f int32 = 1`, Signature},
		"a comment in a type":   {"type f struct {\n\ta int\n}", "type f struct {\n\ta int // why\n}", Comments},
		"another field":         {"type f struct {\n\ta int\n}", "type f struct {\n\ta, b int\n}", Members},
		"another kind of type":  {"type f struct {\n\ta int\n}", "type f int", Signature},
		"a type of a function":  {function, "type f int", Signature},
		"is not there any more": {function, "", Gone},
		"was not there before":  {"", function, New},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Compare(only(t, test.old), only(t, test.current)); got != test.want {
				t.Errorf("Compare = %q, want %q", got, test.want)
			}
		})
	}
}

// TestCompareImports fails when another name of an imported package counts as a change, or when
// another package of the same name does not.
func TestCompareImports(t *testing.T) {
	for name, test := range map[string]struct {
		current string
		want    Change
	}{
		"an alias":                   {`import kubeproxy "example.invalid/m/pkg/proxy"` + "\n\nfunc Clean(mode kubeproxy.Mode) error { kubeproxy.Flush(); return nil }", Comments},
		"another package":            {`import proxy "example.invalid/m/pkg/other"` + "\n\nfunc Clean(mode proxy.Mode) error { proxy.Flush(); return nil }", Signature},
		"another package in a body":  {`import ("example.invalid/m/pkg/proxy"; other "example.invalid/m/pkg/other")` + "\n\nfunc Clean(mode proxy.Mode) error { other.Flush(); return nil }", Body},
		"a variable of an old alias": {`import kubeproxy "example.invalid/m/pkg/proxy"` + "\n\nfunc Clean(proxy kubeproxy.Mode) error { proxy.Flush(); return nil }", Body},
		"a parameter's name":         {`import "example.invalid/m/pkg/proxy"` + "\n\nfunc Clean(m proxy.Mode) error { proxy.Flush(); return nil }", Body},
		"another order of results":   {`import "example.invalid/m/pkg/proxy"` + "\n\nfunc Clean(mode proxy.Mode) (err error, n int) { proxy.Flush(); return nil, 0 }", Signature},
	} {
		t.Run(name, func(t *testing.T) {
			compare := func(types bool) Change {
				old := declarationOf(t, types, `import "example.invalid/m/pkg/proxy"`+"\n\nfunc Clean(mode proxy.Mode) error { proxy.Flush(); return nil }")
				return Compare(old, declarationOf(t, types, test.current))
			}
			if got := compare(true); got != test.want {
				t.Errorf("Compare = %q, want %q", got, test.want)
			}
			if got := compare(false); got != test.want && name != "a parameter's name" && name != "a variable of an old alias" {
				t.Errorf("Compare without types = %q, want %q", got, test.want)
			}
		})
	}
}

// declarationOf returns that of Clean in a package, with what type-checking makes of it or without.
func declarationOf(t *testing.T, types bool, source string) *Declaration {
	t.Helper()
	root := t.TempDir()
	const others = "\n\ntype Mode string\n\nfunc (Mode) Flush() {}\n\nfunc Flush() {}\n"
	write(t, root, map[string]string{
		"pkg/app/app.go": "package app\n\n" + source + "\n", "pkg/proxy/proxy.go": "package proxy" + others, "pkg/other/other.go": "package other" + others,
	})
	if !types {
		all, err := Parse("app.go", "package app\n\n"+source+"\n")
		if err != nil {
			t.Fatal(err)
		}
		return &all[len(all)-1]
	}
	d, err := Open(below(root), t.Context().Err).Declaration(Reference{"example.invalid/m/pkg/app", "Clean"})
	if err != nil || d == nil {
		t.Fatalf("there is no Clean: %v", err)
	}
	return d
}

// below finds the packages of the module example.invalid/m in its directory.
func below(root string) func(string) string {
	return func(importPath string) string {
		if name, ok := strings.CutPrefix(importPath, "example.invalid/m/"); ok {
			dir := filepath.Join(root, name)
			if _, err := os.Stat(dir); err == nil {
				return dir
			}
		}
		return ""
	}
}

const app = "example.invalid/m/pkg/app"

// module has two packages, of which app has files of a series.
func module(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{
		"pkg/app/options.go": `package app
import ("context"; "example.invalid/lib/v2"; "example.invalid/m/pkg/proxy")
type Options struct { config *proxy.Config; Other lib.Thing }
func NewOptions() (*Options, error) { return nil, lib.Error() }
func (o *Options) Run(ctx context.Context, a lib.Thing) error { return nil }
func helper() {}
func unused() {}
`,
		"pkg/app/server_linux.go":   "package app\nfunc cleanup() { helper() }\n",
		"pkg/app/server_windows.go": "package app\nfunc cleanup() { unused() }\nfunc OfWindows() {}\n",
		"pkg/app/hns.go":            "//go:build windows\n\npackage app\nfunc hns() {}\n",
		"pkg/app/provider.go": `package app
import "example.invalid/m/pkg/proxy"
func (o *Options) Config() *proxy.Config { local := o.config; cleanup(); return local }
func Own() {}
`,
		"pkg/proxy/proxy.go": `package proxy
type Config struct { Mode string }
type Provider interface { Syncer; Loop() }
type Syncer interface { Sync() }
type Alias = Config
type iptables struct { base }
func (i *iptables) Loop() {}
type base struct{}
func (b base) Sync() {}
`,
	})
	return root
}

func TestReferences(t *testing.T) {
	root, user := module(t), t.TempDir()
	write(t, user, map[string]string{
		"user.go": `package user
import ("context"; "example.invalid/m/pkg/app"; "example.invalid/m/pkg/proxy")
type wrapper struct { proxy.Provider }
func f(ctx context.Context, w wrapper) {
	o, err := app.NewOptions()
	if err != nil { return }
	o.Config().Mode = "a"
	_ = o.Run(ctx, 1)
	w.Sync()
	app.Own()
	_ = proxy.Config{Mode: ""}
}
`,
		"user_test.go":    "package user\nimport \"example.invalid/m/pkg/app\"\nvar _ = app.Unknown\n",
		"user_windows.go": "package user\nimport \"example.invalid/m/pkg/app\"\nvar _ = app.OfWindows\n",
		"old.go":          "//go:build old\n\npackage user\nimport \"example.invalid/m/pkg/proxy\"\nvar _ proxy.Alias\n",
	})
	added := func(file string, _ int) bool { return filepath.Base(file) == "provider.go" }
	all := []Reference{
		{app, "NewOptions"}, {app, "Options.Run"},
		{"example.invalid/m/pkg/proxy", "Config"}, {"example.invalid/m/pkg/proxy", "Config.Mode"},
		{"example.invalid/m/pkg/proxy", "Provider"}, {"example.invalid/m/pkg/proxy", "Syncer.Sync"},
	}
	for name, test := range map[string]struct {
		usage Usage
		tags  []string
		want  []Reference
	}{
		"of others":  {Usage{Package: "user", Dir: user, Own: added}, nil, all},
		"with a tag": {Usage{Package: "user", Dir: user, Own: added}, []string{"old"}, append([]Reference{all[0], all[1], {"example.invalid/m/pkg/proxy", "Alias"}}, all[2:]...)},
		"of its own files": {Usage{Package: app, Dir: filepath.Join(root, "pkg/app"), Uses: added, Own: added}, nil, []Reference{
			{app, "Options"}, {app, "Options.config"}, {app, "cleanup"}, {"example.invalid/m/pkg/proxy", "Config"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.usage.Label, test.usage.Prefix = filepath.Base, "example.invalid/m/"
			got, err := Open(below(root), t.Context().Err, test.tags...).References(test.usage)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Sorted()); diff != "" {
				t.Errorf("References (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackages(t *testing.T) {
	p := Open(below(module(t)), t.Context().Err)
	declarations, err := p.Declarations(app)
	if err != nil {
		t.Fatal(err)
	}
	if got := declarations["cleanup"].Text; !strings.Contains(got, "helper") {
		t.Errorf("cleanup is not Linux's: %s", got)
	}
	for _, name := range []string{"OfWindows", "hns"} {
		if declarations[name] != nil {
			t.Errorf("%s, which only Windows has, is declared", name)
		}
	}
	if none, err := p.Declarations("example.invalid/m/pkg/gone"); err != nil || len(none) != 0 {
		t.Errorf("a package that is not there has %v, %v", none, err)
	}
	if diff := cmp.Diff([]string{"context", "example.invalid/lib/v2"}, p.Unknown()); diff != "" {
		t.Errorf("Unknown (-want +got):\n%s", diff)
	}
	// A method that a type has from another one, and a field under an alias.
	for name, want := range map[string]string{"Provider.Sync": "Sync()", "iptables.Sync": "func (b base) Sync() {}", "Alias.Mode": "Mode string", "Alias.None": "", "None.Sync": ""} {
		text := ""
		d, err := p.Declaration(Reference{"example.invalid/m/pkg/proxy", name})
		if err != nil {
			t.Fatal(err)
		}
		if d != nil {
			text = d.Text
		}
		if text != want {
			t.Errorf("the declaration of %s is %q, want %q", name, text, want)
		}
	}
	for name, want := range map[string][]Reference{
		"Provider.Loop": {{"example.invalid/m/pkg/proxy", "iptables.Loop"}},
		"Syncer.Sync":   {{"example.invalid/m/pkg/proxy", "base.Sync"}},
		"Config.Mode":   nil, "Config": nil, "None.Sync": nil,
	} {
		got, err := p.Implementations(Reference{"example.invalid/m/pkg/proxy", name})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Implementations of %s (-want +got):\n%s", name, diff)
		}
	}
}

func only(t *testing.T, declaration string) *Declaration {
	t.Helper()
	if declaration == "" {
		return nil
	}
	all, err := Parse("a.go", "package a\n"+declaration)
	if err != nil {
		t.Fatal(err)
	}
	return &all[0]
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStopped fails when packages are read on although nobody wants them any more.
func TestStopped(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	p := Open(func(string) string { return root }, func() error { return stopped })
	if _, err := p.Declarations("example.invalid/m/a"); !errors.Is(err, stopped) {
		t.Errorf("Declarations gave %v", err)
	}
	if _, err := p.References(Usage{Package: "example.invalid/m/a", Dir: root}); !errors.Is(err, stopped) {
		t.Errorf("References gave %v", err)
	}
}
