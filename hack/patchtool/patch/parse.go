package patch

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Patch is one file of the series as git format-patch wrote it.
type Patch struct {
	// Path is the file's below patches/, and Name its base name, for example "0001-UPSTREAM-carry-proxy.patch".
	Path, Name string
	// Commit is the id in the first line.
	Commit string
	// Prefix is what the subject has in brackets, for example "PATCH", or "PATCH 1/2".
	Prefix string
	// Subject is unfolded and without the prefix.
	Subject string
	// Paragraphs is the message below the subject.
	Paragraphs []Paragraph
	// Stats is the diffstat that the message ends with.
	Stats []Stat
	Files []File
	// Trailer is what follows the last hunk, such as a signature with git's version.
	Trailer string
}

// Paragraph is a part of the message. It begins at a line that starts with one of the Labels
// and a colon, and reaches to the next of those, so that it may have blank lines in it.
type Paragraph struct {
	// Label is empty for text before the first label.
	Label string
	Text  string
}

// Stat is a line of the diffstat. Long paths are shortened by git: ".../iptables/proxier.go".
type Stat struct {
	Path    string
	Changed int
}

// File is what the patch does to one file. Paths are relative to the module's root.
type File struct {
	Path string
	// Old is the path before a rename, else Path.
	Old     string
	New     bool
	Deleted bool
	Binary  bool
	Hunks   []Hunk
}

// Hunk is one place of a file that is changed. Line numbers begin at 1.
type Hunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	// Section is what git puts behind the second @@: the line that begins the function.
	Section string
	// Lines begin with ' ', '+', or '-', or with '\' for a missing newline at the end.
	Lines []string
}

// The labels of the message's paragraphs.
const (
	Description = "Description"
	WhyNot      = "Why not upstream"
	Versions    = "Versions checked"
	DropWhen    = "Drop when"
	// Removes explains removed or changed lines of upstream's; only then may there be any.
	Removes = "Removes"
	// Differs explains a patch that one branch alone has.
	Differs = "Why it differs"
)

// Labels are those that begin a Paragraph.
var Labels = []string{Description, WhyNot, Removes, Differs, Versions, DropWhen}

var (
	firstLine  = regexp.MustCompile(`^From ([0-9a-f]+) `)
	hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$`)
	subject    = regexp.MustCompile(`^(?:\[([^]]*)\] *)?(.*)$`)
	statLine   = regexp.MustCompile(`^ (\S+(?: => \S+)?) +\| +(\d+)`)
)

// Parse reads a file of the series, whose path below patches/ is told. It fails on what no git format-patch writes; a header that
// lacks something is for Check to find.
func Parse(name, content string) (*Patch, error) {
	p := &Patch{Path: name, Name: path.Base(name)}
	lines := strings.Split(content, "\n")
	if strings.HasSuffix(lines[0], "\r") {
		return nil, fmt.Errorf("%s:1: its lines end with CRLF; check it out again without core.autocrlf, or write it with git format-patch", name)
	}
	match := firstLine.FindStringSubmatch(lines[0])
	if match == nil {
		return nil, fmt.Errorf("%s:1: %q is not the first line of git format-patch: want \"From COMMIT DATE\"", name, lines[0])
	}
	p.Commit = match[1]
	body := p.parseMail(lines)
	diff := p.parseMessage(lines, body)
	if err := p.parseDiff(lines, diff); err != nil {
		return nil, err
	}
	if len(p.Files) == 0 {
		return nil, fmt.Errorf("%s: changes no file", name)
	}
	return p, nil
}

// parseMail reads the mail's header and returns the index of the first line behind it.
func (p *Patch) parseMail(lines []string) int {
	var unfolded []string
	i := 1
	for ; i < len(lines) && lines[i] != ""; i++ {
		if strings.HasPrefix(lines[i], " ") && len(unfolded) > 0 {
			unfolded[len(unfolded)-1] += lines[i]
			continue
		}
		unfolded = append(unfolded, lines[i])
	}
	for _, field := range unfolded {
		if text, ok := strings.CutPrefix(field, "Subject: "); ok {
			match := subject.FindStringSubmatch(text)
			p.Prefix, p.Subject = match[1], match[2]
		}
	}
	return i
}

// parseMessage reads the message and the diffstat from lines[i] on, and returns the index of the first
// line of the diff.
func (p *Patch) parseMessage(lines []string, i int) int {
	var message []string
	for ; i < len(lines) && lines[i] != "---" && !strings.HasPrefix(lines[i], "diff --git "); i++ {
		message = append(message, lines[i])
	}
	p.Paragraphs = paragraphs(message)
	for ; i < len(lines) && !strings.HasPrefix(lines[i], "diff --git "); i++ {
		if match := statLine.FindStringSubmatch(lines[i]); match != nil {
			changed, _ := strconv.Atoi(match[2]) // the expression has digits only
			p.Stats = append(p.Stats, Stat{Path: match[1], Changed: changed})
		}
	}
	return i
}

func paragraphs(message []string) []Paragraph {
	var result []Paragraph
	for _, line := range message {
		label, text, found := strings.Cut(line, ":")
		switch {
		case found && isLabel(label):
			result = append(result, Paragraph{Label: label, Text: strings.TrimSpace(text)})
		case len(result) > 0:
			result[len(result)-1].Text += "\n" + line
		case line != "":
			result = append(result, Paragraph{Text: line})
		}
	}
	for i := range result {
		result[i].Text = strings.TrimSpace(result[i].Text)
	}
	return result
}

func isLabel(text string) bool {
	for _, label := range Labels {
		if text == label {
			return true
		}
	}
	return false
}

// parseDiff reads the files' diffs from lines[i] on.
func (p *Patch) parseDiff(lines []string, i int) error {
	for i < len(lines) {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "diff --git "):
			file, err := diffHeader(line)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", p.Path, i+1, err)
			}
			p.Files = append(p.Files, file)
		case strings.HasPrefix(line, "@@ "):
			if len(p.Files) == 0 {
				return fmt.Errorf("%s:%d: a hunk before the first file", p.Path, i+1)
			}
			hunk, next, err := parseHunk(lines, i)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", p.Path, i+1, err)
			}
			file := &p.Files[len(p.Files)-1]
			file.Hunks = append(file.Hunks, hunk)
			i = next
			continue
		case len(p.Files) > 0 && p.Files[len(p.Files)-1].describe(line):
		default:
			p.Trailer = strings.TrimSpace(strings.Join(lines[i:], "\n"))
			return nil
		}
		i++
	}
	return nil
}

// describe takes a line between "diff --git" and the first hunk, and tells whether it is one.
func (f *File) describe(line string) bool {
	switch {
	case strings.HasPrefix(line, "new file mode "):
		f.New = true
	case strings.HasPrefix(line, "deleted file mode "):
		f.Deleted = true
	case strings.HasPrefix(line, "Binary files "), line == "GIT binary patch":
		f.Binary = true
	case strings.HasPrefix(line, "index "), strings.HasPrefix(line, "old mode "), strings.HasPrefix(line, "new mode "),
		strings.HasPrefix(line, "similarity index "), strings.HasPrefix(line, "rename "), strings.HasPrefix(line, "copy "),
		strings.HasPrefix(line, "--- ") && len(f.Hunks) == 0, strings.HasPrefix(line, "+++ ") && len(f.Hunks) == 0:
	default:
		return false
	}
	return true
}

func diffHeader(line string) (File, error) {
	before, after, found := strings.Cut(strings.TrimPrefix(line, "diff --git "), " b/")
	if !found || !strings.HasPrefix(before, "a/") {
		return File{}, fmt.Errorf("%q: want \"diff --git a/PATH b/PATH\"", line)
	}
	return File{Path: after, Old: strings.TrimPrefix(before, "a/")}, nil
}

// parseHunk reads the hunk whose header is lines[i] and returns the index behind it.
func parseHunk(lines []string, i int) (Hunk, int, error) {
	match := hunkHeader.FindStringSubmatch(lines[i])
	if match == nil {
		return Hunk{}, 0, fmt.Errorf("%q is not the header of a hunk", lines[i])
	}
	number := func(text string) int {
		if text == "" {
			return 1 // git leaves out a count of one line
		}
		n, _ := strconv.Atoi(text) // the expression has digits only
		return n
	}
	hunk := Hunk{
		OldStart: number(match[1]), OldLines: number(match[2]),
		NewStart: number(match[3]), NewLines: number(match[4]),
		Section: match[5],
	}
	before, after := hunk.OldLines, hunk.NewLines // what is still to come
	for i++; i < len(lines); i++ {
		missing := strings.HasPrefix(lines[i], `\`)
		if before <= 0 && after <= 0 && !missing {
			break
		}
		if lines[i] == "" || !strings.ContainsRune(` +-\`, rune(lines[i][0])) {
			return Hunk{}, 0, errors.New("the hunk is shorter than its header says")
		}
		if mark := lines[i][0]; !missing {
			if mark != '+' {
				before--
			}
			if mark != '-' {
				after--
			}
		}
		hunk.Lines = append(hunk.Lines, lines[i])
	}
	if before != 0 || after != 0 {
		return Hunk{}, 0, errors.New("the hunk has other lines than its header says")
	}
	return hunk, i, nil
}

// ParseDiff reads what git diff prints.
func ParseDiff(content string) ([]File, error) {
	p := &Patch{Path: "diff"}
	if err := p.parseDiff(strings.Split(content, "\n"), 0); err != nil {
		return nil, err
	}
	return p.Files, nil
}
