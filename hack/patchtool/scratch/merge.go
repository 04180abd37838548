package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/patch"
)

// Pick merges a commit of another release's series into the work tree, three ways, and commits the result with
// its message. If that cannot be done the work tree stays as it was, merged is false, and unmerged are the
// files that are in conflict; none if nothing of the commit was left to do.
func (r *Repository) Pick(ctx context.Context, commit string) (merged bool, unmerged []string, err error) {
	_, err = Git(ctx, r.dir, "cherry-pick", "--allow-empty", commit)
	if err == nil {
		return true, nil, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false, nil, err
	}
	listed, err := Git(ctx, r.dir, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return false, nil, err
	}
	if _, err := Git(ctx, r.dir, "cherry-pick", "--abort"); err != nil {
		return false, nil, err
	}
	return false, names(listed, '\x00'), r.reset(ctx)
}

// names splits what git lists.
func names(listed string, separator rune) []string {
	return strings.FieldsFunc(listed, func(r rune) bool { return r == separator })
}

// Moved returns where git finds the files of one tag or commit that another does not have, by their former paths.
func (r *Repository) Moved(ctx context.Context, old, current string) (map[string]string, error) {
	listed, err := Git(ctx, r.dir, "diff", "--find-renames", "--diff-filter=R", "--name-status", "-z", old, current)
	if err != nil {
		return nil, err
	}
	moved := map[string]string{}
	for fields := names(listed, '\x00'); len(fields) >= 3; fields = fields[3:] { // for example R097, the old and the new path
		moved[fields[1]] = fields[2]
	}
	return moved, nil
}

// Side is a text to be merged, and what it is called between the marks of a conflict.
type Side struct {
	Label, Text string
}

// Merge merges what theirs makes of base into ours, and returns the regions that are in conflict,
// with the marks of git's diff3 style; none if it merges.
func (r *Repository) Merge(ctx context.Context, ours, base, theirs Side) ([]string, error) {
	dir, err := os.MkdirTemp("", "merge-")
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	arguments := []string{"merge-file", "-p", "--diff3"}
	var files []string
	for i, side := range []Side{ours, base, theirs} {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(side.Text), 0o600); err != nil {
			return nil, fmt.Errorf("merge: %w", err)
		}
		arguments = append(arguments, "-L", side.Label)
		files = append(files, file)
	}
	merged, err := Git(ctx, dir, append(arguments, files...)...)
	regions := Conflicts(merged)
	if err != nil && len(regions) == 0 {
		return nil, err // else its status is the number of conflicts
	}
	return regions, nil
}

// Conflicts returns the regions of a merged text that are between marks, with the marks.
func Conflicts(merged string) []string {
	var regions []string
	var region []string
	for _, line := range strings.Split(merged, "\n") {
		if strings.HasPrefix(line, "<<<<<<< ") {
			region = []string{}
		}
		if region == nil {
			continue
		}
		region = append(region, line)
		if strings.HasPrefix(line, ">>>>>>> ") {
			regions = append(regions, strings.Join(region, "\n"))
			region = nil
		}
	}
	return regions
}

// Only returns what a text becomes when one hunk alone is applied to it, at the place that is
// nearest to its own; false if the text does not have its lines.
func Only(text string, hunk patch.Hunk) (string, bool) {
	places := hunk.Places(text)
	if len(places) == 0 {
		return "", false
	}
	nearest := slices.MinFunc(places, func(a, b int) int { return distance(a, hunk) - distance(b, hunk) })
	lines := strings.Split(text, "\n")
	return strings.Join(slices.Concat(lines[:nearest-1], hunk.After(), lines[nearest-1+len(hunk.Before()):]), "\n"), true
}

func distance(line int, hunk patch.Hunk) int {
	return max(line-hunk.OldStart, hunk.OldStart-line)
}

// Format writes the commits behind a tag into a directory as files of a series, and returns their
// paths in order. The same commits give the same bytes.
func (r *Repository) Format(ctx context.Context, tag, dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("write the series: %w", err)
	}
	listed, err := Git(ctx, r.dir, "format-patch", "--zero-commit", "--no-signature", "--no-numbered", "-o", dir, tag)
	if err != nil {
		return nil, err
	}
	return names(listed, '\n'), nil
}

// RangeDiff compares the series between two pairs of tags, in git's words.
func (r *Repository) RangeDiff(ctx context.Context, oldBase, oldTip, newBase, newTip string) (string, error) {
	return Git(ctx, r.dir, "range-diff", "--no-color", oldBase+".."+oldTip, newBase+".."+newTip)
}

// Diff compares two texts, and returns the hunks of their unified diff; empty if they are the same.
func Diff(ctx context.Context, old, current string) (string, error) {
	if old == current {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "diff-")
	if err != nil {
		return "", fmt.Errorf("compare: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range map[string]string{"old": old, "new": current} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("compare: %w", err)
		}
	}
	diff, err := Git(ctx, dir, "diff", "--no-index", "--no-color", "--histogram", "old", "new")
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1 is for a difference
		return "", err
	}
	if i := strings.Index(diff, "@@ "); i >= 0 {
		diff = diff[i:]
	}
	return strings.TrimSpace(diff), nil
}

// Changes returns the diff between two tags, in git's words.
func (r *Repository) Changes(ctx context.Context, old, current string) (string, error) {
	return Git(ctx, r.dir, "diff", "--no-color", old, current)
}
