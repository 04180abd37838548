package patch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good is right; the tests break it in one place each.
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
 pkg/proxy/iptables/proxier.go   | 1 +
 1 files changed, 1 insertions(+)

diff --git a/pkg/proxy/iptables/proxier.go b/pkg/proxy/iptables/proxier.go
index e403c57..519ce57 100644
--- a/pkg/proxy/iptables/proxier.go
+++ b/pkg/proxy/iptables/proxier.go
@@ -20 +21,2 @@ func New()
 	first()
+	second()
`

func TestCheck_Header(t *testing.T) {
	for name, test := range map[string]struct {
		old, replacement string
		own              bool
		want             []string
	}{
		"right":          {},
		"a commit":       {old: "From 0000", replacement: "From 1000", want: []string{"the first line names a commit; write the file with git format-patch --zero-commit"}},
		"numbered":       {old: "[PATCH]", replacement: "[PATCH 1/2]", want: []string{`the subject is "[PATCH 1/2] UPSTREAM: <carry>: proxy: tell an extension of what it wants to know"; expected "[PATCH] UPSTREAM: <carry>: …", "… <drop>: …" or "… NNNN: …"`}},
		"a pull request": {old: "<carry>", replacement: "1234"},
		"no mark":        {old: "UPSTREAM: <carry>", replacement: "UPSTREAM", want: []string{`the subject is "[PATCH] UPSTREAM: proxy: tell`}},
		"a paragraph is missing": {old: "Why not upstream", replacement: "Whatever",
			want: []string{`expected one paragraph "Why not upstream: …"`}},
		"an empty paragraph": {old: "policy.", replacement: "", want: []string{`expected one paragraph "Why not upstream: …"`}},
		"a paragraph twice":  {old: "And a", replacement: "Drop when: a", want: []string{`expected one paragraph "Drop when: …"`}},
		"other versions":     {old: "v1.37.1, v1.36.4", replacement: "v1.37.1", want: []string{`"Versions checked: v1.37.1", but patches/branches pins v1.37.1, v1.36.4; check these and list them in this order`}},
		"folded versions":    {old: "v1.37.1, v1.36.4", replacement: "v1.37.1,\nv1.36.4"},
		"a line is removed":  {old: "+\tsecond", replacement: "-\t// first\n+\tsecond", want: []string{`expected one paragraph "Removes: …", which`}},
		"removal explained":  {old: "\nDrop when", replacement: "\nRemoves: it.\n\nDrop when", want: []string{`unexpected paragraph "Removes: …", which`}},
		"own":                {own: true, want: []string{`expected one paragraph "Why it differs: …", which`}},
		"shared that differs": {old: "\nDrop when", replacement: "\nWhy it differs: so.\n\nDrop when",
			want: []string{`unexpected paragraph "Why it differs: …", which`}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, test.old) {
				t.Fatalf("no %q", test.old)
			}
			got := Check(strings.Replace(good, test.old, test.replacement, 1), []string{"v1.37.1", "v1.36.4"}, "patches/branches pins", test.own)
			if len(got) != len(test.want) || len(got) > 0 && !strings.HasPrefix(got[0], test.want[0]) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFiles_Diff(t *testing.T) {
	if diff := cmp.Diff([]string{"pkg/proxy/iptables/proxier.go"}, Files(good)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
