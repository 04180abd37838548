package patch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good is well-formed; the tests break it in one place each.
const good = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A Maintainer <a@example.invalid>
Date: Fri, 20 Nov 2026 12:00:00 +0000
Subject: [PATCH] UPSTREAM: <carry>: proxy: tell an extension of what it
 wants to know

Description: It has
two lines: here.

And a second paragraph.

Why not upstream: policy.

Versions checked: v1.37.1, v1.36.4

Drop when: upstream has it.
---
 pkg/proxy/extension.go          | 3 +++
 .../proxy/iptables/proxier.go   | 2 ++
 2 files changed, 5 insertions(+)
 create mode 100644 pkg/proxy/extension.go

diff --git a/pkg/proxy/extension.go b/pkg/proxy/extension.go
new file mode 100644
index 0000000..8b3429a
--- /dev/null
+++ b/pkg/proxy/extension.go
@@ -0,0 +1,3 @@
+package proxy
+
+type Extension struct{}
diff --git a/pkg/proxy/iptables/proxier.go b/pkg/proxy/iptables/proxier.go
index e403c57..519ce57 100644
--- a/pkg/proxy/iptables/proxier.go
+++ b/pkg/proxy/iptables/proxier.go
@@ -10,2 +10,3 @@ type Proxier struct {
 	a int
+	context string
 	b int
@@ -20 +21,2 @@ func New()
 	first()
+	second()
`

func TestParse(t *testing.T) {
	got, err := Parse("release-1.36/0001-a.patch", good)
	if err != nil {
		t.Fatal(err)
	}
	want := &Patch{
		Path: "release-1.36/0001-a.patch", Name: "0001-a.patch", Commit: strings.Repeat("0", 40), Prefix: "PATCH",
		Subject: "UPSTREAM: <carry>: proxy: tell an extension of what it wants to know",
		Paragraphs: []Paragraph{
			{Description, "It has\ntwo lines: here.\n\nAnd a second paragraph."},
			{WhyNot, "policy."},
			{Versions, "v1.37.1, v1.36.4"},
			{DropWhen, "upstream has it."},
		},
		Stats: []Stat{{"pkg/proxy/extension.go", 3}, {".../proxy/iptables/proxier.go", 2}},
		Files: []File{
			{Path: "pkg/proxy/extension.go", Old: "pkg/proxy/extension.go", New: true, Hunks: []Hunk{
				{NewStart: 1, NewLines: 3, Lines: []string{"+package proxy", "+", "+type Extension struct{}"}},
			}},
			{Path: "pkg/proxy/iptables/proxier.go", Old: "pkg/proxy/iptables/proxier.go", Hunks: []Hunk{
				{OldStart: 10, OldLines: 2, NewStart: 10, NewLines: 3, Section: "type Proxier struct {", Lines: []string{" \ta int", "+\tcontext string", " \tb int"}},
				{OldStart: 20, OldLines: 1, NewStart: 21, NewLines: 2, Section: "func New()", Lines: []string{" \tfirst()", "+\tsecond()"}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ old, new, err string }{
		"lines of Windows":    {"00:00:00 2001\n", "00:00:00 2001\r\n", "0001-a.patch:1: its lines end with CRLF"},
		"no mail":             {"From 0", "diff 0", "0001-a.patch:1:"},
		"a short hunk":        {"+type Extension struct{}\n", "", "0001-a.patch:28: the hunk is shorter"},
		"lines left out":      {"-10,2 +10,3", "-10,3 +10,3", "0001-a.patch:36: the hunk"},
		"a strange diff line": {"diff --git a/pkg/proxy/extension.go b/", "diff --git pkg/proxy/extension.go ", `0001-a.patch:23: "diff --git`},
		"a strange hunk":      {"@@ -20 +21,2 @@", "@@ 20 @@", "is not the header of a hunk"},
		"no file":             {good[strings.Index(good, "diff --git"):], "", "changes no file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("0001-a.patch", broken(t, test.old, test.new))
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v; want %q", err, test.err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	const removal = "@@ -20,2 +21,2 @@ func New()\n 	first()\n+	second()\n-	third()\n"
	for name, test := range map[string]struct {
		file     string
		old, new string
		own      bool
		want     []string
	}{
		"well-formed":             {},
		"a commit id":             {old: "From 0000", new: "From 1000", want: []string{"use git format-patch --zero-commit"}},
		"numbered":                {old: "[PATCH]", new: "[PATCH 1/2]", want: []string{"use git format-patch --no-numbered"}},
		"a signature":             {old: "+	second()\n", new: "+	second()\n-- \n2.39.5\n", want: []string{"use git format-patch --no-signature"}},
		"no mark":                 {old: "UPSTREAM: <carry>: ", new: "", want: []string{"it must begin with"}},
		"an unknown mark":         {old: "<carry>", new: "<keep>", want: []string{"it must begin with"}},
		"a pull request":          {old: "<carry>", new: "123456"},
		"to be dropped":           {old: "<carry>", new: "<drop>"},
		"no reason":               {old: "Why not upstream: policy.\n", new: "", want: []string{`no paragraph "Why not upstream: …"`}},
		"an empty reason":         {old: "Why not upstream: policy.\n", new: "Why not upstream:\n", want: []string{`no paragraph "Why not upstream: …"`}},
		"no condition":            {old: "Drop when", new: "Keep", want: []string{`no paragraph "Drop when: …"`, `pins v1.37.1, v1.36.4`}},
		"text before":             {old: "Description:", new: "By the way.\n\nDescription:", want: []string{`the message begins with "By the way."`}},
		"a paragraph twice":       {old: "Drop when:", new: "Drop when: never\nDrop when:", want: []string{`more than one paragraph "Drop when: …"`}},
		"a version too few":       {old: ", v1.36.4", new: "", want: []string{`"Versions checked: v1.37.1", but patches/branches pins v1.37.1, v1.36.4`}},
		"a version too many":      {old: ", v1.36.4", new: ", v1.36.4, v1.35.8", want: []string{"pins v1.37.1, v1.36.4"}},
		"another order":           {old: "v1.37.1, v1.36.4", new: "v1.36.4, v1.37.1", want: []string{"pins v1.37.1, v1.36.4"}},
		"not in its diffstat":     {old: " pkg/proxy/extension.go          | 3 +++\n", new: "", want: []string{"touches pkg/proxy/extension.go, which its diffstat does not name"}},
		"only in its diffstat":    {old: " 2 files", new: " other.go | 1 +\n 2 files", want: []string{"names other.go, which it does not touch"}},
		"another count":           {old: "| 3 +++", new: "| 4 ++++", want: []string{"changes 3 lines of pkg/proxy/extension.go, but 4 by its diffstat"}},
		"removes":                 {old: good[strings.Index(good, "@@ -20"):], new: removal, want: []string{"removes or changes upstream lines (1)", "changes 3 lines"}},
		"says that it removes":    {old: "Versions", new: "Removes: why not.\n\nVersions", want: []string{"but removes no line"}},
		"shared but differs":      {old: "Versions", new: "Why it differs: so.\n\nVersions", want: []string{"but is shared by the branches"}},
		"own without explanation": {own: true, want: []string{`is one branch's own; say why in a paragraph "Why it differs: …"`}},
		"own":                     {own: true, old: "Versions", new: "Why it differs: so.\n\nVersions"},
		"deletes":                 {old: "new file mode", new: "deleted file mode", want: []string{"deletes pkg/proxy/extension.go"}},
		"renames":                 {old: "diff --git a/pkg/proxy/iptables", new: "diff --git a/pkg/proxy/nftables", want: []string{"renames pkg/proxy/nftables/proxier.go"}},
		"a test":                  {old: good[strings.Index(good, "---\n"):], new: strings.ReplaceAll(good[strings.Index(good, "---\n"):], "proxier.go", "proxier_test.go"), want: []string{"touches pkg/proxy/iptables/proxier_test.go; vendor/ has no tests, so put what it tests into hack/upstreamtest"}},
		"own, by its path":        {own: true, file: "release-1.36/0001-a.patch", want: []string{"release-1.36/0001-a.patch: is one branch's own"}},
		"a strange name":          {file: "fix.patch", want: []string{"fix.patch: the name is not NNNN-SUBJECT.patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := "0001-a.patch"
			if test.file != "" {
				file = test.file
			}
			p, err := Parse(file, broken(t, test.old, test.new))
			if err != nil {
				t.Fatal(err)
			}
			got := p.Check([]string{"v1.37.1", "v1.36.4"}, test.own)
			if len(got) != len(test.want) {
				t.Fatalf("faults:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("fault %q; want %q", got[i], want)
				}
			}
		})
	}
}

func TestLines(t *testing.T) {
	hunk := Hunk{OldStart: 10, NewStart: 20, Lines: []string{" a", "-b", "+c", "+d", " e", "-f", `\ No newline at end of file`}}
	for name, test := range map[string]struct{ got, want any }{
		"before":  {hunk.Before(), []string{"a", "b", "e", "f"}},
		"after":   {hunk.After(), []string{"a", "c", "d", "e"}},
		"added":   {hunk.Added(), []int{21, 22}},
		"removed": {hunk.Removed(), []int{11, 13}},
		"places":  {hunk.Places("a\nb\ne\nf\na\nb\na\nb\ne\nf\n"), []int{1, 7}},
		"there":   {hunk.There("z\na\nc\nd\ne\n"), true},
		"not yet": {hunk.There("a\nb\ne\nf\n"), false},
		"nowhere": {hunk.Places("a\nb\n"), []int(nil)},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWithVersions(t *testing.T) {
	many := []string{"v1.38.0", "v1.37.1", "v1.36.4", "v1.35.8", "v1.34.9", "v1.33.10", "v1.32.11"}
	changed := WithVersions(good, many)
	if want := strings.Replace(good, "v1.37.1, v1.36.4", "v1.38.0, v1.37.1, v1.36.4, v1.35.8, v1.34.9, v1.33.10,\nv1.32.11", 1); changed != want {
		t.Errorf("WithVersions (-want +got):\n%s", cmp.Diff(want, changed))
	}
	p, err := Parse("0001-a.patch", changed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(many, p.Checked()); diff != "" {
		t.Errorf("Checked (-want +got):\n%s", diff)
	}
	if again := WithVersions(changed, []string{"v1.37.1", "v1.36.4"}); again != good {
		t.Errorf("back again (-want +got):\n%s", cmp.Diff(good, again))
	}
	last := strings.Replace(strings.Replace(good, "Drop when: upstream has it.\n", "", 1), "v1.36.4\n\n", "v1.36.4\n", 1)
	if got, want := WithVersions(last, []string{"v1.37.2"}), strings.Replace(last, "v1.37.1, v1.36.4", "v1.37.2", 1); got != want {
		t.Errorf("as the last paragraph (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// TestSeries reads what the project carries.
func TestSeries(t *testing.T) {
	files, err := filepath.Glob("../../../patches/*.patch")
	if err != nil || len(files) == 0 {
		t.Fatal("no patches", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(filepath.Base(file), string(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range p.Check(p.Checked(), false) {
			t.Error(fault)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Fuzz(func(_ *testing.T, content string) {
		if p, err := Parse("0001-a.patch", content); err == nil {
			p.Check(nil, false)
		}
	})
}

func broken(t *testing.T, old, replacement string) string {
	t.Helper()
	if strings.Count(good, old) == 0 {
		t.Fatalf("%q is not there to be replaced", old)
	}
	return strings.Replace(good, old, replacement, 1)
}
