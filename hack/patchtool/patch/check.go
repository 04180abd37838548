package patch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	carryMark  = regexp.MustCompile(`^UPSTREAM: (<carry>|<drop>|[0-9]+): \S`)
	zeroCommit = regexp.MustCompile(`^0{40}$`)
	fileName   = regexp.MustCompile(`^[0-9]{4}-[A-Za-z0-9._-]+\.patch$`)
)

// Check returns everything that is wrong with the patch in itself, each with what to do; nothing
// when it is well-formed. versions are those of the branches that the patch is for. own tells
// that it is one branch's alone.
func (p *Patch) Check(versions []string, own bool) []string {
	var faults []string
	fault := func(format string, arguments ...any) {
		faults = append(faults, p.Path+": "+fmt.Sprintf(format, arguments...))
	}
	if !fileName.MatchString(p.Name) {
		fault("the name is not NNNN-SUBJECT.patch; write the file with git format-patch")
	}
	if !zeroCommit.MatchString(p.Commit) {
		fault("the first line names commit %s; use git format-patch --zero-commit", p.Commit)
	}
	if p.Prefix != "PATCH" {
		fault("the subject begins with [%s], want [PATCH]; use git format-patch --no-numbered", p.Prefix)
	}
	if p.Trailer != "" {
		fault("%q follows the last hunk; use git format-patch --no-signature", p.Trailer)
	}
	if !carryMark.MatchString(p.Subject) {
		fault("the subject is %q; it must begin with \"UPSTREAM: <carry>: \", \"UPSTREAM: <drop>: \" or \"UPSTREAM: NNNN: \"", p.Subject)
	}
	p.checkParagraphs(own, fault)
	p.checkVersions(versions, fault)
	p.checkStats(fault)
	return faults
}

func (p *Patch) checkParagraphs(own bool, fault func(string, ...any)) {
	for _, label := range []string{Description, WhyNot, Versions, DropWhen} {
		if _, ok := p.Text(label); !ok {
			fault("the message has no paragraph \"%s: …\"", label)
		}
	}
	seen := map[string]bool{}
	for _, paragraph := range p.Paragraphs {
		if paragraph.Label == "" {
			fault("the message begins with %q; it must begin with \"%s: …\"", firstOf(paragraph.Text), Description)
		}
		if seen[paragraph.Label] {
			fault("the message has more than one paragraph \"%s: …\"", paragraph.Label)
		}
		seen[paragraph.Label] = true
	}
	removed := 0
	for _, file := range p.Files {
		_, n := file.Counts()
		removed += n
	}
	_, explained := p.Text(Removes)
	switch {
	case removed > 0 && !explained:
		fault("removes or changes upstream lines (%d); prefer a new file, or say why in a paragraph \"%s: …\"", removed, Removes)
	case removed == 0 && explained:
		fault("has a paragraph \"%s: …\" but removes no line; leave the paragraph out", Removes)
	}
	switch _, differs := p.Text(Differs); {
	case own && !differs:
		fault("is one branch's own; say why in a paragraph \"%s: …\"", Differs)
	case !own && differs:
		fault("has a paragraph \"%s: …\" but is shared by the branches; leave the paragraph out", Differs)
	}
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (p *Patch) checkVersions(versions []string, fault func(string, ...any)) {
	text, ok := p.Text(Versions)
	if !ok {
		return
	}
	if got := p.Checked(); !slices.Equal(got, versions) {
		fault("\"%s: %s\", but patches/branches pins %s for it; check those and list them in that order", Versions, text, strings.Join(versions, ", "))
	}
}

// Checked returns the releases that the message names as checked.
func (p *Patch) Checked() []string {
	text, ok := p.Text(Versions)
	if !ok {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// checkStats compares the diffstat with the diff.
func (p *Patch) checkStats(fault func(string, ...any)) {
	named := map[int]bool{}
	for _, file := range p.Files {
		added, removed := file.Counts()
		switch {
		case file.Binary:
			fault("%s is binary; the series carries text only", file.Path)
		case file.Deleted:
			fault("deletes %s; nothing of upstream's is removed", file.Path)
		case file.Old != file.Path:
			fault("renames %s; nothing of upstream's is moved", file.Old)
		case strings.HasSuffix(file.Path, "_test.go"):
			fault("touches %s; vendor/ has no tests, so put what it tests into hack/upstreamtest", file.Path)
		}
		i := slices.IndexFunc(p.Stats, func(s Stat) bool { return s.names(file.Path) })
		switch {
		case i < 0:
			fault("touches %s, which its diffstat does not name; write the file with git format-patch", file.Path)
		case p.Stats[i].Changed != added+removed:
			fault("changes %d lines of %s, but %d by its diffstat; write the file with git format-patch", added+removed, file.Path, p.Stats[i].Changed)
		}
		named[i] = true
	}
	for i, stat := range p.Stats {
		if !named[i] {
			fault("its diffstat names %s, which it does not touch; write the file with git format-patch", stat.Path)
		}
	}
}

func (s Stat) names(path string) bool {
	if short, ok := strings.CutPrefix(s.Path, "..."); ok {
		return strings.HasSuffix(path, short)
	}
	return s.Path == path
}

var versionsParagraph = regexp.MustCompile(`(?m)^` + Versions + `:(?:.*\n)(?:.+\n)*`)

// WithVersions returns a file of the series with other releases in the paragraph that names the checked ones.
func WithVersions(content string, versions []string) string {
	header, diff, _ := strings.Cut(content, "\n---\n")
	place := versionsParagraph.FindStringIndex(header + "\n")
	if place == nil {
		return content
	}
	const width = 72
	text, column := Versions+":", len(Versions)+1
	for i, version := range versions {
		if i < len(versions)-1 {
			version += ","
		}
		if column+1+len(version) > width {
			text += "\n" + version
			column = len(version)
			continue
		}
		text += " " + version
		column += 1 + len(version)
	}
	header = (header + "\n")[:place[0]] + text + "\n" + (header + "\n")[place[1]:]
	return strings.TrimSuffix(header, "\n") + "\n---\n" + diff
}
