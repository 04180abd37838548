package patch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The labels of the message's paragraphs.
const (
	description = "Description"
	whyNot      = "Why not upstream"
	versions    = "Versions checked"
	dropWhen    = "Drop when"
	removes     = "Removes"        // why upstream's lines are removed or changed
	differs     = "Why it differs" // in a patch that one branch alone has
)

var (
	carryMark = regexp.MustCompile(`^\[PATCH\] UPSTREAM: (<carry>|<drop>|[0-9]+): \S`)
	subject   = regexp.MustCompile(`(?m)^Subject: (.*(?:\n .*)*)`)
	label     = regexp.MustCompile(`(?m)^(` + strings.Join([]string{description, whyNot, versions, dropWhen, removes, differs}, "|") + `):`)
	removal   = regexp.MustCompile(`(?m)^-([^-]|$|-[^-]|--[^ ])`) // "--- FILE" begins the diff of a file
)

// unfolded returns the subject of a patch, for example "[PATCH] UPSTREAM: <carry>: proxy: tell an extension".
func unfolded(content string) string {
	match := subject.FindStringSubmatch(content)
	if match == nil {
		return ""
	}
	return strings.ReplaceAll(match[1], "\n ", " ")
}

// Check returns everything that is wrong with the header of a patch, each with what to do; nothing if
// it is right. checked are the releases that the patch is for, as pinnedBy says, for example "go.mod requires".
// own tells that one branch alone has it.
func Check(content string, checked []string, pinnedBy string, own bool) []string {
	var faults []string
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	if !strings.HasPrefix(content, "From "+strings.Repeat("0", 40)+" ") {
		fault("the first line names a commit; write the file with git format-patch --zero-commit")
	}
	if text := unfolded(content); !carryMark.MatchString(text) {
		fault("the subject is %q; expected \"[PATCH] UPSTREAM: <carry>: …\", \"… <drop>: …\" or \"… NNNN: …\"", text)
	}
	header, diff, _ := strings.Cut(content, "\n---\n")
	removed := removal.MatchString(diff)
	for _, paragraph := range []struct {
		label  string
		wanted bool
		when   string
	}{
		{description, true, ""}, {whyNot, true, ""}, {versions, true, ""}, {dropWhen, true, ""},
		{removes, removed, ", which a patch has if, and only if, it removes or changes lines"},
		{differs, own, ", which a patch has if, and only if, one branch alone has it"},
	} {
		switch found := paragraphs(header, paragraph.label); {
		case paragraph.wanted && (len(found) != 1 || found[0] == ""):
			fault("expected one paragraph \"%s: …\"%s", paragraph.label, paragraph.when)
		case !paragraph.wanted && len(found) > 0:
			fault("unexpected paragraph \"%s: …\"%s", paragraph.label, paragraph.when)
		}
	}
	found := paragraphs(header, versions)
	if len(found) == 1 && !slices.Equal(strings.Split(found[0], ", "), checked) {
		fault("\"%s: %s\", but %s %s; check these and list them in this order", versions, found[0], pinnedBy, strings.Join(checked, ", "))
	}
	return faults
}

// paragraphs returns the texts of the paragraphs with a label, each on one line. A paragraph ends where
// the next label begins.
func paragraphs(header, wanted string) []string {
	var found []string
	places := append(label.FindAllStringSubmatchIndex(header, -1), []int{len(header)})
	for i, place := range places[:len(places)-1] {
		if header[place[2]:place[3]] == wanted {
			found = append(found, strings.Join(strings.Fields(header[place[1]:places[i+1][0]]), " "))
		}
	}
	return found
}

var diffHeader = regexp.MustCompile(`(?m)^diff --git a/(\S+) b/`)

// Files returns the paths that a patch touches, relative to the module's root.
func Files(content string) []string {
	var files []string
	for _, match := range diffHeader.FindAllStringSubmatch(content, -1) {
		files = append(files, match[1])
	}
	return files
}
