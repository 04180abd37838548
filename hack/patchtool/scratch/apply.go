package scratch

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/patch"
)

// Hunk is what became of a hunk that was tried.
type Hunk struct {
	// Path is the file's, Number the hunk's place in it from 1.
	Path   string
	Number int
	// Offset is how many lines below its own line the hunk was applied, or above if negative.
	Offset int
	// Failed says why it does not apply; empty if it does.
	Failed string
}

// Apply tries a patch as git apply does, with every line of its context, and commits it if all of
// it applies; else the work tree stays as it was. It tells of each hunk, in order.
func (r *Repository) Apply(ctx context.Context, file string, p *patch.Patch) (hunks []Hunk, applied bool, err error) {
	said, applyErr := gitSays(ctx, r.dir, "apply", "--reject", "--verbose", "--whitespace=nowarn", file)
	if err := r.reset(ctx); err != nil {
		return nil, false, err
	}
	hunks, understood := Read(said, p)
	switch {
	case applyErr == nil:
		_, err := Git(ctx, r.dir, "am", "-q", "--keep-cr", "--whitespace=nowarn", file)
		return hunks, err == nil, err
	case understood:
		return hunks, false, nil
	}
	return nil, false, applyErr
}

var (
	checking = regexp.MustCompile(`^Checking patch (.+)\.\.\.$`)
	offset   = regexp.MustCompile(`^Hunk #(\d+) succeeded at \d+ \(offset (-?\d+) lines?\)\.$`)
	failed   = regexp.MustCompile(`^error: patch failed: (.+):(\d+)$`)
	unusable = regexp.MustCompile(`^error: (.+): (No such file or directory|already exists in working directory|does not exist in index|wrong type|does not match index)$`)
)

// Read returns what `git apply --reject --verbose` says of each hunk of the patch; understood tells whether it
// said that one failed.
func Read(said string, p *patch.Patch) (hunks []Hunk, understood bool) {
	offsets := map[string]map[int]int{}
	failures := map[string]map[int]bool{}
	reasons := map[string]string{}
	var path string
	for _, line := range strings.Split(said, "\n") {
		if match := checking.FindStringSubmatch(line); match != nil {
			path = match[1]
			offsets[path], failures[path] = map[int]int{}, map[int]bool{}
		} else if match := offset.FindStringSubmatch(line); match != nil && path != "" {
			offsets[path][number(match[1])] = number(match[2])
		} else if match := failed.FindStringSubmatch(line); match != nil && failures[match[1]] != nil {
			failures[match[1]][number(match[2])] = true
			understood = true
		} else if match := unusable.FindStringSubmatch(line); match != nil {
			reasons[match[1]] = match[2]
			understood = true
		}
	}
	for _, file := range p.Files {
		for i, hunk := range file.Hunks {
			result := Hunk{Path: file.Path, Number: i + 1, Offset: offsets[file.Path][i+1]}
			switch {
			case reasons[file.Path] != "":
				result.Failed = reasons[file.Path]
			case failures[file.Path][hunk.OldStart]:
				result.Failed = "the lines that it wants are not there"
			}
			hunks = append(hunks, result)
		}
	}
	return hunks, understood
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the expressions have digits only
	return n
}
