package scratch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// ErrUnseen tells that git reads something else in a patch than its diffs say.
var ErrUnseen = errors.New("git does something else with it than its diffs say; write the file with git format-patch")

// Apply tries a patch as git apply does, with every line of its context, and commits it if all of
// it applies; else the work tree stays as it was. It tells of each hunk, in order. What git made of the patch
// is judged, and not what the patch looks like: [ErrUnseen].
func (r *Repository) Apply(ctx context.Context, file string, p *patch.Patch) (hunks []Hunk, applied bool, err error) {
	hunks, left, err := r.try(ctx, file, p)
	if err != nil || left == "" {
		return hunks, false, err
	}
	if _, err := Git(ctx, r.dir, "am", "-q", "--keep-cr", "--whitespace=nowarn", file); err != nil {
		return nil, false, err
	}
	err = r.judge(ctx, p, left)
	return hunks, err == nil, err
}

// Try is Apply without the commit.
func (r *Repository) Try(ctx context.Context, file string, p *patch.Patch) (hunks []Hunk, applies bool, err error) {
	hunks, left, err := r.try(ctx, file, p)
	return hunks, left != "", err
}

// try also returns the id of what git apply leaves; empty if the patch does not apply.
func (r *Repository) try(ctx context.Context, file string, p *patch.Patch) (hunks []Hunk, left string, err error) {
	said, applyErr := gitSays(ctx, r.dir, "apply", "--reject", "--verbose", "--whitespace=nowarn", file)
	if applyErr == nil {
		if left, err = r.workTree(ctx); err != nil {
			return nil, "", err
		}
	}
	if err := r.reset(ctx); err != nil {
		return nil, "", err
	}
	hunks, understood := Read(said, p)
	switch {
	case applyErr == nil:
		return hunks, left, nil
	case understood && !slices.ContainsFunc(hunks, func(h Hunk) bool { return h.Failed != "" }):
		return nil, "", fmt.Errorf("%w: %w", ErrUnseen, applyErr) // what failed is none of these
	case understood:
		return hunks, "", nil
	}
	return nil, "", applyErr
}

// workTree returns the id of the work tree as it is.
func (r *Repository) workTree(ctx context.Context) (string, error) {
	if _, err := Git(ctx, r.dir, "add", "--all", "--force"); err != nil {
		return "", err
	}
	return Git(ctx, r.dir, "write-tree")
}

// judge compares the last commit, which git am made of the patch, with what the patch says of its files, and
// with what git apply left: `make update-vendor` uses that.
func (r *Repository) judge(ctx context.Context, p *patch.Patch, left string) error {
	committed, err := Git(ctx, r.dir, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	if committed != left {
		return fmt.Errorf("%w: git am and git apply give different files", ErrUnseen)
	}
	said := map[string]string{}
	for _, file := range p.Files {
		switch {
		case file.New:
			said[file.Path] = "A"
		case file.Deleted:
			said[file.Path] = "D"
		case file.Old != file.Path:
			said[file.Old], said[file.Path] = "D", "A"
		default:
			said[file.Path] = "M"
		}
	}
	listed, err := Git(ctx, r.dir, "diff", "--name-status", "--no-renames", "-z", "HEAD^", "HEAD")
	if err != nil {
		return err
	}
	done := map[string]string{}
	fields := strings.Split(listed, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		done[fields[i+1]] = fields[i]
	}
	all := maps.Clone(said)
	maps.Copy(all, done)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if said[path] != done[path] {
			return fmt.Errorf("%w: %s is %s by its diffs, and %s by git", ErrUnseen, path, status(said[path]), status(done[path]))
		}
	}
	return nil
}

func status(letter string) string {
	switch letter {
	case "A":
		return "added"
	case "D":
		return "deleted"
	case "":
		return "not touched"
	}
	return "changed"
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
