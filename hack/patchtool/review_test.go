package main

import (
	"os"
	"strings"
	"testing"
)

func TestReview(t *testing.T) {
	b := newBench(t)
	// Between the two: Sync has another body, what the patch uses another signature, and there is another test.
	files := upstream(append(moved, "		p.failed++\n", "		p.failed += 1\n", "(p *Proxier) write() error", "(p *Proxier) write() (bool, error)")...)
	files["pkg/proxy/proxier_test.go"] += "func TestC(t *testing.T) {}\n"
	b.release("v1.1.0", files)
	page, err := b.run("review", "-results", t.TempDir(), "v1.2.0", "v1.1.0")
	wantError(t, err)
	wantText(t, page,
		"# Kubernetes v1.2.0 to v1.1.0: what it means for the patches\n",
		"* **The series** applies to both without fuzz: 1 patch, the same on both.\n",
		"* **What it touches**: of 1 upstream function or type, 1 changed: `proxy.Proxier.Sync` (body).\n",
		"* **Signatures** of what it and our code rely on: of 3 declarations, 1 changed: `proxy.Proxier.write` (signature).\n",
		"* **Meaning** of what they rely on: 1 changed in their bodies or values, 0 in their doc comments alone, 0 types in members that are not used.\n",
		"`kubernetes/pkg/proxy.Proxier.write`: **signature**; used in patched pkg/proxy/extension.go\n\n```diff\n"+
			"-func (p *Proxier) write() error\n+func (p *Proxier) write() (bool, error)\n```\n",
		"`kubernetes/pkg/proxy.Proxier.Sync`: **body**; used in pkg/own/own.go\n",
		"_Description_: It tells.\n",
		"Adds `pkg/proxy/extension.go`. It touches:\n",
		"| `Proxier.Sync` in `pkg/proxy/proxier.go` | 1 | body |\n",
		" \tif err := p.write(); err != nil {\n-\t\tp.failed++\n+\t\tp.failed += 1\n \t\treturn err\n",
		"UPSTREAM: <carry>: proxy: tell of syncs\n", // range-diff
		"How many declarations of which package below k8s.io/: kubernetes/pkg/proxy (1).\n")
	if strings.Contains(page, "Proxier.tell`") || strings.Contains(page, "Not looked at") {
		t.Errorf("what the series adds itself is listed as upstream's, or something was not found:\n%s", page)
	}

	_, err = b.run("review", "v1.2.0", "v1.2.0")
	wantError(t, err, "v1.2.0 and v1.2.0 are the same release: v1.2.0")
	_, err = b.run("review", "1.2", "release-1.2")
	wantError(t, err, "1.2 and release-1.2 are the same release: v1.2.0")
	_, err = b.run("review", "v1.2.0")
	wantError(t, err, `arguments ["v1.2.0"]: want the release that is left and the one that is gone to`)
	b.release("v1.1.5", upstream(conflicting...))
	_, err = b.run("review", "v1.2.0", "v1.1.5")
	wantError(t, err, "make rebase-patches VERSION=v1.1.5")
}

// client is a made-up staging module, in the version that belongs to a release.
func (b *bench) client(version, source string) {
	b.t.Helper()
	dir := b.t.TempDir()
	b.write(dir, map[string]string{
		"go.mod":                 "module k8s.io/client-go\n\ngo 1.24\n",
		"discovery/discovery.go": "package discovery\n\n" + source,
	})
	files := upstream()
	if version == "v1.1.0" {
		files = upstream(moved...)
	}
	files["go.mod"] += "\nrequire k8s.io/client-go v0.0.0\n\nreplace k8s.io/client-go => " + dir + "\n"
	b.release(version, files)
}

const discovery = `import "context"

// Client asks.
type Client interface {
	// Kinds returns the kinds.
	Kinds(group string) ([]string, error)
	// Version is the server's.
	//
	// +k8s:optional
	Version() string
}

type client struct{ host string }

func (c *client) Kinds(group string) ([]string, error) { return []string{c.host}, nil }

func (c *client) Version() string { return "" }

// New makes one.
func New(ctx context.Context, host string) Client { return &client{host} }

const Port = 443
`

// TestReviewStaging fails when a change of a staging module that our code calls is missing on the page.
func TestReviewStaging(t *testing.T) {
	b := newBench(t)
	b.client("v1.1.0", discovery)
	current := strings.NewReplacer(
		"Kinds(group string)", "Kinds(ctx context.Context, group string)",
		"// Version is the server's.", "// Version is the server's, or empty.",
		"+k8s:optional", "+k8s:required",
		`return ""`, `return c.host`,
		"New(ctx context.Context, host string)", "New(background context.Context, name string)", "&client{host}", "&client{name}",
		"443", "6443",
	).Replace(discovery)
	b.client("v1.2.0", current+"\nfunc Only() {}\n")
	const head = "package own\n\nimport (\n\t\"context\"\n\n\t\"k8s.io/client-go/discovery\"\n)\n\n"
	b.write(b.root, map[string]string{
		"pkg/own/new.go": "//go:build !kube1.1\n\n" + head + "func kinds(c discovery.Client) { discovery.Only(); _, _ = c.Kinds(context.Background(), \"a\") }\n",
		"pkg/own/old.go": "//go:build kube1.1\n\n" + head + "var _ = context.Background\n\nfunc kinds(c discovery.Client) { _, _ = c.Kinds(\"a\") }\n",
		"pkg/own/use.go": head + "func use() string { c := discovery.New(context.Background(), \"a\"); kinds(c); _ = discovery.Port; return c.Version() }\n",
	})
	page, err := b.run("review", "-results", t.TempDir(), "v1.1.0", "v1.2.0")
	wantError(t, err)
	wantText(t, page,
		"of 10 declarations, 2 changed: `discovery.Client.Kinds` (signature), `discovery.Only` (new, used with v1.2.0 alone).\n",
		"-Kinds(group string) ([]string, error)\n+Kinds(ctx context.Context, group string) ([]string, error)\n",
		"`client-go/discovery.Client.Kinds`: **signature**; used in pkg/own/new.go, pkg/own/old.go\n",
		"**Meaning** of what they rely on: 3 changed in their bodies or values, 1 in their doc comments alone",
		"`client-go/discovery.New`: **body**; used in pkg/own/use.go\n",
		"-const Port = 443\n+const Port = 6443\n",
		"`client-go/discovery.client.Version`: **body**; behind `discovery.Client.Version`, used in pkg/own/use.go\n",
		"@@ client-go/discovery.Client.Version @@ used in pkg/own/use.go\n-// Version is the server's.\n+// Version is the server's, or empty.\n")
	if strings.Contains(page, "k8s:required") || strings.Contains(page, "Kinds changed") {
		t.Errorf("lines for generators are shown as doc comments, or what is used as not used:\n%s", page)
	}
}

// TestReviewNotFound fails when the page does not say what it could not look at.
func TestReviewNotFound(t *testing.T) {
	b := newBench(t)
	b.release("v1.1.0", upstream(moved...))
	b.write(b.root, map[string]string{"pkg/own/use.go": "package own\n\nimport \"k8s.io/kubernetes/pkg/none\"\n\nvar _ = none.Any\n"})
	t.Setenv("GOPROXY", "off")
	page, err := b.run("review", "-results", t.TempDir(), "v1.1.0", "v1.2.0")
	wantError(t, err)
	wantText(t, page, "* **Not looked at**, because they were not found: calls into `k8s.io/kubernetes/pkg/none` of v1.1.0, `k8s.io/kubernetes/pkg/none` of v1.2.0.\n")
}

func TestSameness(t *testing.T) {
	const same, other, diff = "1:  0ed974f = 1:  ad9c4ff a\n", "2:  13e6538 ! 2:  2ad6d0a b\n", "    @@ Commit message\n    +1:  x ! y\n"
	for said, want := range map[string]string{
		same:                "the same on both",
		same + other + diff: "**not the same: 1**, in lines or context",
		"1:  0ed974f < -:  ------- a\n" + other + diff: "**not the same: 2**, in lines or context",
	} {
		if got := sameness(said); got != want {
			t.Errorf("sameness(%q) = %q, want %q", said, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	const diff = "@@ -1,9 +1,9 @@ func f() {\n a\n b\n-c\n+d\n \n e\n@@ -20,3 +20,3 @@\n f\n+g\n h\n i"
	for most, want := range map[int]string{
		0: " b\n-c\n+d\n…\n f\n+g\n h\n",
		6: " b\n-c\n+d\n…\n f\n+g\n h\n", // the last one is not worth a line that says so
		3: " b\n-c\n+d\n… and 4 lines more, with FULL=1\n",
	} {
		if got := excerpt(diff, most); got != want {
			t.Errorf("excerpt to %d lines = %q, want %q", most, got, want)
		}
	}
	if got := excerpt("", 3); got != "" {
		t.Errorf("the excerpt of nothing is %q", got)
	}
}

// TestReviewLength fails when a long diff is not cut, or is where all of it was asked for.
func TestReviewLength(t *testing.T) {
	b := newBench(t)
	b.release("v1.1.0", upstream(append(moved, "		p.failed++\n", strings.Repeat("		p.failed++\n", 10))...))
	for arguments, want := range map[string]bool{"-lines=3": true, "-lines=0": false} {
		page, err := b.run("review", "-results", t.TempDir(), arguments, "v1.2.0", "v1.1.0")
		wantError(t, err)
		if got := strings.Contains(page, "… and 8 lines more, with FULL=1\n```\n"); got != want {
			t.Errorf("%s: the diff is cut: %t\n%s", arguments, got, page)
		}
	}
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
