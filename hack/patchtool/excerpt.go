package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/source"
)

// diff returns what became of a declaration, with its doc comment, not longer than asked.
func (r *review) diff(ctx context.Context, old, current *source.Declaration) (string, error) {
	before, after := whole(old), whole(current)
	if a, b := unaligned(before), unaligned(after); a != b {
		before, after = a, b
	}
	diff, err := scratch.Diff(ctx, before, after)
	if err != nil {
		return "", err
	}
	text := excerpt(diff, r.most)
	if text == "" && old != nil && current != nil {
		text = importDiff(old.Imports(), current.Imports())
	}
	return text, nil
}

var alignment = regexp.MustCompile(`(\S) {2,}`)

// unaligned returns a source without the alignment of columns: a longer name in one line changes the others.
func unaligned(source string) string { return alignment.ReplaceAllString(source, "$1 ") }

// docDiff returns what became of a doc comment.
func (r *review) docDiff(ctx context.Context, old, current *source.Declaration) (string, error) {
	diff, err := scratch.Diff(ctx, comment(old.Doc), comment(current.Doc))
	return excerpt(diff, r.most), err
}

// headDiff returns what others compile against, before and after.
func headDiff(old, current *source.Declaration) string {
	var text strings.Builder
	if old != nil && current != nil && old.Head() == current.Head() {
		text.WriteString(importDiff(old.HeadImports(), current.HeadImports()))
	}
	for _, d := range []struct {
		mark string
		of   *source.Declaration
	}{{"-", old}, {"+", current}} {
		if d.of == nil {
			continue
		}
		for line := range strings.SplitSeq(d.of.Head(), "\n") {
			text.WriteString(d.mark + line + "\n")
		}
	}
	return text.String()
}

// importDiff tells what names of packages stand for, where the code that uses them is the same.
func importDiff(old, current []string) string {
	var text strings.Builder
	for _, one := range []struct {
		mark        string
		of, without []string
	}{{"-", old, current}, {"+", current, old}} {
		for _, name := range one.of {
			if !slices.Contains(one.without, name) {
				fmt.Fprintf(&text, "%simport %q\n", one.mark, name)
			}
		}
	}
	return text.String()
}

// whole returns the source of a declaration with its doc comment.
func whole(d *source.Declaration) string {
	if d == nil {
		return ""
	}
	return comment(d.Doc) + d.Text
}

func comment(doc string) string {
	var text strings.Builder
	for line := range strings.Lines(doc) {
		text.WriteString(strings.TrimSpace("// "+line) + "\n")
	}
	return text.String()
}

// block makes a block of Markdown of a diff.
func block(diff string) string {
	if diff == "" {
		return ""
	}
	return "```diff\n" + diff + "```\n\n"
}

// excerpt shortens a unified diff: to what was changed and a line around it, and to so many lines; 0
// is for all of them.
func excerpt(diff string, most int) string {
	lines := strings.Split(diff, "\n")
	isChange := func(i int) bool {
		return i >= 0 && i < len(lines) && (strings.HasPrefix(lines[i], "+") || strings.HasPrefix(lines[i], "-"))
	}
	var kept []string
	for i, line := range lines {
		switch {
		case isChange(i), line != " " && !strings.HasPrefix(line, "@@") && (isChange(i-1) || isChange(i+1)):
			kept = append(kept, line)
		case len(kept) > 0 && kept[len(kept)-1] != "…":
			kept = append(kept, "…")
		}
	}
	if len(kept) > 0 && kept[len(kept)-1] == "…" {
		kept = kept[:len(kept)-1]
	}
	if most > 0 && len(kept) > most+1 { // a line less is not worth a line that says so
		kept = append(kept[:most:most], fmt.Sprintf("… and %d lines more, with FULL=1", len(kept)-most))
	}
	if len(kept) == 0 {
		return ""
	}
	return strings.Join(kept, "\n") + "\n"
}
