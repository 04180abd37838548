package branch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// File is the name of the file in patches/ that pins the versions.
const File = "branches"

// Kubernetes is the path of its module.
const Kubernetes = "k8s.io/kubernetes"

// Branch is what a series of patches is for: a supported release branch of Kubernetes, or the release of
// another module that go.mod requires.
type Branch struct {
	// Module is the module's path.
	Module string
	// Name is for example "release-1.37". Only Kubernetes has branches: the name is empty for another module.
	Name string
	// Version is the release that the branch is pinned at, for example "v1.37.1".
	Version string
	// Vendored tells that vendor/ has this one. Exactly one branch of a module is.
	Vendored bool
}

// String is for messages, for example "k8s.io/kubernetes release-1.37".
func (b Branch) String() string { return strings.TrimSpace(b.Module + " " + b.Name) }

// Rebase is the command that makes a repository of the branch's release and its series.
func (b Branch) Rebase() string {
	if b.Module == Kubernetes {
		return "make rebase-patches VERSION=" + b.Version
	}
	return "make rebase-patches MODULE=" + b.Module + " VERSION=" + b.Version
}

// PinnedBy tells what says which version it is.
func (b Branch) PinnedBy() string {
	if b.Module == Kubernetes {
		return "patches/" + File + " pins"
	}
	return "go.mod requires"
}

// Branches are all that are supported, in the order of their file.
type Branches []Branch

var (
	branchLine = regexp.MustCompile(`^release-(1\.\d+) (v(1\.\d+)\.\S+)( vendored)?$`)
	release    = regexp.MustCompile(`^v1\.(\d+)\.\d+(-(alpha|beta|rc)\.\d+)?$`)
)

// Parse reads patches/branches: a line "NAME VERSION" for each branch, with a third word "vendored"
// on exactly one of them. Empty lines and lines that begin with # are skipped.
func Parse(content string) (Branches, error) {
	var all Branches
	vendored := 0
	for i, line := range strings.Split(content, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match := branchLine.FindStringSubmatch(line)
		if match == nil || match[1] != match[3] || !release.MatchString(match[2]) {
			return nil, fmt.Errorf("%s:%d: invalid line %q: expected \"release-1.N v1.N.P\", followed by \"vendored\" on one line", File, i+1, line)
		}
		b := Branch{Module: Kubernetes, Name: "release-" + match[1], Version: match[2], Vendored: match[4] != ""}
		if slices.ContainsFunc(all, func(other Branch) bool { return other.Name == b.Name }) {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", File, i+1, b.Name)
		}
		if b.Vendored {
			vendored++
		}
		all = append(all, b)
	}
	if vendored != 1 {
		return nil, fmt.Errorf("%s: %d branches are marked \"vendored\"; mark the one that go.mod requires, and no other", File, vendored)
	}
	return all, nil
}

// Load reads the file in the directory of the series.
func Load(patches string) (Branches, error) {
	content, err := os.ReadFile(filepath.Join(patches, File))
	if err != nil {
		return nil, fmt.Errorf("read the pinned versions: %w", err)
	}
	return Parse(string(content))
}

// Sums returns the lines for go.sum that patches/branches.sum has, if there is such a file.
func Sums(patches string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(patches, File+".sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the checksums: %w", err)
	}
	var sums []string
	for _, line := range strings.Split(string(content), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			sums = append(sums, line)
		}
	}
	return sums, nil
}

// Vendored returns the branch that vendor/ has.
func (all Branches) Vendored() Branch {
	// Parse accepts no file without one.
	return all[slices.IndexFunc(all, func(b Branch) bool { return b.Vendored })]
}

// Find returns the branch that a user names as release-1.36, 1.36, v1.36.4, 1.36.4, or "vendored".
func (all Branches) Find(name string) (Branch, error) {
	var names []string
	for _, b := range all {
		if b.Vendored && name == "vendored" || slices.Contains([]string{name, "release-" + name}, b.Name) || slices.Contains([]string{name, "v" + name}, b.Version) {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Branch{}, fmt.Errorf("%q is not a supported branch: patches/%s has %s", name, File, strings.Join(names, ", "))
}

// Choose returns the branch that a user names, as Find does; all of them for "all" and for nothing.
func (all Branches) Choose(name string) (Branches, error) {
	if name == "" || name == "all" {
		return all, nil
	}
	b, err := all.Find(name)
	return Branches{b}, err
}

// Modules returns the modules other than Kubernetes that have a series, in the order of their paths: it lies in
// the folder with the module's path. required are the versions that go.mod requires. It is an error if another folder
// is there that is not of one of the branches.
func Modules(patches fs.FS, all Branches, required map[string]string) (Branches, error) {
	var modules Branches
	err := fs.WalkDir(patches, ".", func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || folder == "." || slices.ContainsFunc(all, func(b Branch) bool { return b.Name == folder }) {
			return err
		}
		inside, err := fs.ReadDir(patches, folder)
		if err != nil || len(inside) > 0 && !slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return !e.IsDir() }) {
			return err // the first part of a path
		}
		if folder == Kubernetes {
			return fmt.Errorf("%s: patches of Kubernetes lie right in patches/, and those of one branch in its folder; move them", folder)
		}
		version := required[folder]
		if version == "" {
			return fmt.Errorf("%s: neither a branch in patches/%s nor a module that go.mod requires; remove the folder", folder, File)
		}
		modules = append(modules, Branch{Module: folder, Version: version, Vendored: true})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the folders of patches/: %w", err)
	}
	return modules, nil
}

// Entry is a patch of a branch's series.
type Entry struct {
	// Path is relative to patches/.
	Path string
	// Own tells that this branch alone has it.
	Own bool
}

// Series returns the patches of the branch in their order: the shared ones, except those whose number
// a patch in the branch's own folder has, and the other patches in that folder. They are numbered from
// 0001 without gaps.
func Series(patches fs.FS, b Branch) ([]Entry, error) {
	shared := "."
	if b.Module != Kubernetes {
		shared = b.Module
	}
	folders := []string{shared}
	if b.Name != "" {
		folders = append(folders, b.Name)
	}
	entries := map[string]Entry{} // by number
	for _, folder := range folders {
		files, err := fs.Glob(patches, path.Join(folder, "*.patch"))
		if err != nil {
			return nil, fmt.Errorf("list the patches of %s: %w", b, err)
		}
		for _, file := range files {
			e := Entry{Path: file, Own: folder != shared}
			number, _, _ := strings.Cut(path.Base(file), "-")
			if e.Own && b.Vendored {
				return nil, fmt.Errorf("%s: the vendored branch has no patches of its own; move it to patches/", file)
			}
			if other, taken := entries[number]; taken && other.Own == e.Own {
				return nil, fmt.Errorf("%s: %s has the same number", file, other.Path)
			}
			entries[number] = e
		}
	}
	var series []Entry
	for i, number := range slices.Sorted(maps.Keys(entries)) {
		if want := fmt.Sprintf("%04d", i+1); number != want {
			return nil, fmt.Errorf("%s: patches are numbered from 0001 without gaps; rename it to %s", entries[number].Path, want)
		}
		series = append(series, entries[number])
	}
	if len(series) == 0 {
		return nil, fmt.Errorf("patches/ has no patch of %s", b)
	}
	return series, nil
}

// Checked returns the versions that the header of an entry has to name: of those of all the branches whose
// series has it, in their order.
func Checked(patches fs.FS, all Branches, e Entry) ([]string, error) {
	var versions []string
	for _, b := range all {
		series, err := Series(patches, b)
		if err != nil {
			return nil, err
		}
		if slices.Contains(series, e) {
			versions = append(versions, b.Version)
		}
	}
	return versions, nil
}
