package patch

import (
	"fmt"
	"slices"
	"strings"
)

// Before returns the lines that the hunk wants to find, without their marks.
func (h Hunk) Before() []string { return h.side('-') }

// After returns the lines that the hunk leaves, without their marks.
func (h Hunk) After() []string { return h.side('+') }

func (h Hunk) side(mark byte) []string {
	var lines []string
	for _, line := range h.Lines {
		if line[0] == ' ' || line[0] == mark {
			lines = append(lines, line[1:])
		}
	}
	return lines
}

// Added returns the numbers that the added lines have in the file after the hunk.
func (h Hunk) Added() []int { return h.numbers('+', h.NewStart) }

// Removed returns the numbers that the removed lines have in the file before the hunk.
func (h Hunk) Removed() []int { return h.numbers('-', h.OldStart) }

func (h Hunk) numbers(mark byte, number int) []int {
	var numbers []int
	for _, line := range h.Lines {
		switch line[0] {
		case mark:
			numbers = append(numbers, number)
			number++
		case ' ':
			number++
		}
	}
	return numbers
}

// Places returns the line numbers of content at which the hunk finds all the lines that it wants. Where
// there is more than one, nearness alone decides, and a hunk can land in the wrong function.
func (h Hunk) Places(content string) []int {
	want := h.Before()
	if len(want) == 0 {
		return nil
	}
	lines := strings.Split(content, "\n")
	var places []int
	for i := 0; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) {
			places = append(places, i+1)
		}
	}
	return places
}

// There tells whether content has the lines that the hunk leaves, so that it has nothing to do.
func (h Hunk) There(content string) bool {
	left := Hunk{}
	for _, line := range h.After() {
		left.Lines = append(left.Lines, " "+line)
	}
	return len(left.Places(content)) > 0
}

// String returns the file's hunks as a diff has them.
func (f File) String() string {
	var text strings.Builder
	for _, hunk := range f.Hunks {
		fmt.Fprintf(&text, "@@ -%d,%d +%d,%d @@ %s\n%s\n", hunk.OldStart, hunk.OldLines, hunk.NewStart, hunk.NewLines, hunk.Section, strings.Join(hunk.Lines, "\n"))
	}
	return text.String()
}

// Counts returns how many lines the file's hunks add and remove.
func (f File) Counts() (added, removed int) {
	for _, hunk := range f.Hunks {
		added += len(hunk.Added())
		removed += len(hunk.Removed())
	}
	return added, removed
}

// Text returns the paragraph with the label; ok tells whether there is one with text.
func (p *Patch) Text(label string) (text string, ok bool) {
	for _, paragraph := range p.Paragraphs {
		if paragraph.Label == label {
			return paragraph.Text, paragraph.Text != ""
		}
	}
	return "", false
}

// Number returns the patch's place in the series, for example "0001".
func (p *Patch) Number() string {
	number, _, _ := strings.Cut(p.Name, "-")
	return number
}
