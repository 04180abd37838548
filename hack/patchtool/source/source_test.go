package source

import (
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
		"another doc comment":   {function, "// Why.\n" + function, Unchanged},
		"another layout":        {function, "func f(a int) error { return nil }", Comments},
		"a comment":             {function, "func f(a int) error {\n\t// Why.\n\treturn nil // so\n}", Comments},
		"another body":          {function, "func f(a int) error {\n\treturn g()\n}", Body},
		"another parameter":     {function, "func f(a, b int) error {\n\treturn nil\n}", Signature},
		"another result":        {function, "func f(a int) bool {\n\treturn nil\n}", Signature},
		"another string":        {`const f = "a b"`, `const f = "a  b"`, Signature},
		"a comment in a type":   {"type f struct {\n\ta int\n}", "type f struct {\n\ta int // why\n}", Comments},
		"another field":         {"type f struct {\n\ta int\n}", "type f struct {\n\ta, b int\n}", Signature},
		"a type of a function":  {function, "type f int", Gone},
		"is not there any more": {function, "", Gone},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Compare(only(t, test.old), only(t, test.current)); got != test.want {
				t.Errorf("Compare = %q, want %q", got, test.want)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	module, user := t.TempDir(), t.TempDir()
	write(t, module, map[string]string{
		"pkg/app/options.go": `package app
import ("context"; "example.invalid/lib/v2"; "example.invalid/m/pkg/proxy")
type Options struct { config *proxy.Config; Other lib.Thing }
func NewOptions() (*Options, error) { return nil, lib.Error() }
func (o *Options) Run(ctx context.Context, a lib.Thing) error { return nil }
func helper() {}
func unused() {}
`,
		"pkg/app/server_linux.go":   "package app\nfunc cleanup() { helper() }\n",
		"pkg/app/server_windows.go": "package app\nfunc cleanup() { unused() }\n",
		"pkg/app/provider.go": `package app
import "example.invalid/m/pkg/proxy"
func (o *Options) Config() *proxy.Config { local := o.config; cleanup(); return local }
func Own() {}
`,
		"pkg/proxy/proxy.go": "package proxy\ntype Config struct { Mode string }\ntype Provider interface { Sync() }\n",
	})
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
		"user_test.go": "package user\nimport \"example.invalid/m/pkg/app\"\nvar _ = app.Unknown\n",
	})
	m := Open("example.invalid/m", module)

	t.Run("of others", func(t *testing.T) {
		got, err := m.References([]string{user}, filepath.Base, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []Reference{
			{"pkg/app", "NewOptions"}, {"pkg/app", "Options.Config"}, {"pkg/app", "Options.Run"}, {"pkg/app", "Own"},
			{"pkg/proxy", "Config"}, {"pkg/proxy", "Config.Mode"}, {"pkg/proxy", "Provider"}, {"pkg/proxy", "Provider.Sync"},
		}
		if diff := cmp.Diff(want, got.Sorted()); diff != "" {
			t.Errorf("References (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"user.go"}, got[want[0]]); diff != "" {
			t.Errorf("users (-want +got):\n%s", diff)
		}
	})
	t.Run("of its own files", func(t *testing.T) {
		added := func(file string, _ int) bool { return filepath.Base(file) == "provider.go" }
		got, err := m.References([]string{filepath.Join(module, "pkg/app")}, filepath.Base, added)
		if err != nil {
			t.Fatal(err)
		}
		want := []Reference{{"pkg/app", "Options"}, {"pkg/app", "Options.config"}, {"pkg/app", "cleanup"}, {"pkg/proxy", "Config"}}
		if diff := cmp.Diff(want, got.Sorted()); diff != "" {
			t.Errorf("References (-want +got):\n%s", diff)
		}
	})
	t.Run("declarations", func(t *testing.T) {
		declarations, err := m.Declarations("pkg/app")
		if err != nil {
			t.Fatal(err)
		}
		if got := declarations["cleanup"].Text; !strings.Contains(got, "helper") {
			t.Errorf("cleanup is not Linux's: %s", got)
		}
		if none, err := m.Declarations("pkg/gone"); err != nil || len(none) != 0 {
			t.Errorf("a package that is not there has %v, %v", none, err)
		}
	})
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
