package branch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// File is the name of the file in patches/ that pins the versions.
const File = "branches"

// Branch is a supported release branch of Kubernetes.
type Branch struct {
	// Name is for example "release-1.37".
	Name string
	// Version is the release that the branch is pinned at, for example "v1.37.1".
	Version string
	// Vendored tells that vendor/ has this one. Exactly one branch is.
	Vendored bool
}

// Branches are all that are supported, in the order of their file.
type Branches []Branch

var (
	branchName = regexp.MustCompile(`^release-(\d+\.\d+)$`)
	release    = regexp.MustCompile(`^v(\d+\.\d+)\.\d+(-(alpha|beta|rc)\.\d+)?$`)
)

// Parse reads patches/branches: a line "NAME VERSION" for each branch, with a third word "vendored"
// on one of them. Empty lines and those that begin with # are passed over.
func Parse(content string) (Branches, error) {
	var all Branches
	for i, line := range strings.Split(content, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		b, err := parseLine(words)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", File, i+1, err)
		}
		if slices.ContainsFunc(all, func(other Branch) bool { return other.Name == b.Name }) {
			return nil, fmt.Errorf("%s:%d: %s is there twice", File, i+1, b.Name)
		}
		if b.Vendored && slices.ContainsFunc(all, func(other Branch) bool { return other.Vendored }) {
			return nil, fmt.Errorf("%s:%d: a second branch is vendored; vendor/ has one", File, i+1)
		}
		all = append(all, b)
	}
	if !slices.ContainsFunc(all, func(b Branch) bool { return b.Vendored }) {
		return nil, fmt.Errorf("%s: no branch is vendored; add the word to the one that go.mod requires", File)
	}
	return all, nil
}

func parseLine(words []string) (Branch, error) {
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "vendored" {
		return Branch{}, fmt.Errorf("%q: want \"release-1.N v1.N.P\", and \"vendored\" behind one of them", strings.Join(words, " "))
	}
	b := Branch{Name: words[0], Version: words[1], Vendored: len(words) == 3}
	name, version := branchName.FindStringSubmatch(b.Name), release.FindStringSubmatch(b.Version)
	switch {
	case name == nil:
		return Branch{}, fmt.Errorf("%q is not a release branch: want for example release-1.37", b.Name)
	case version == nil:
		return Branch{}, fmt.Errorf("%q is not a release: want for example v1.37.1", b.Version)
	case name[1] != version[1]:
		return Branch{}, fmt.Errorf("%s is not a release of %s", b.Version, b.Name)
	}
	return b, nil
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
	for _, b := range all {
		if b.Vendored {
			return b
		}
	}
	return Branch{} // Parse has refused that
}

// Find returns the branch that a user names as release-1.36, 1.36, v1.36.4, 1.36.4, or "vendored".
func (all Branches) Find(name string) (Branch, error) {
	var names []string
	for _, b := range all {
		if b.Vendored && name == "vendored" || name == b.Name || "release-"+name == b.Name || name == b.Version || "v"+name == b.Version {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Branch{}, fmt.Errorf("%q is no supported branch: patches/%s has %s", name, File, strings.Join(names, ", "))
}

// Choose returns the branch that a user names, as Find does; all of them for "all" and for nothing.
func (all Branches) Choose(name string) (Branches, error) {
	if name == "" || name == "all" {
		return all, nil
	}
	b, err := all.Find(name)
	return Branches{b}, err
}

// Of returns the name of the release branch that version belongs to.
func Of(version string) (string, error) {
	match := release.FindStringSubmatch(version)
	if match == nil {
		return "", fmt.Errorf("%q is not a release of Kubernetes: want for example v1.37.1", version)
	}
	return "release-" + match[1], nil
}

// Entry is a patch of a branch's series.
type Entry struct {
	// Path is relative to patches/.
	Path string
	// Own tells that this branch alone has it.
	Own bool
	// Shared is the path of the shared patch that an own one stands for; empty for one that goes on
	// behind the shared ones.
	Shared string
}

// Number is the patch's place in the series, for example "0001".
func (e Entry) Number() string { return number(path.Base(e.Path)) }

func number(name string) string {
	n, _, _ := strings.Cut(name, "-")
	return n
}

// Series returns the patches of the branch in their order: the shared ones, which are numbered
// from 0001 without gaps, but for those whose number one in the branch's own folder has. Behind them come
// those of the folder that go on with the numbers, without gaps too.
func Series(patches fs.FS, b Branch) ([]Entry, error) {
	shared, err := fs.Glob(patches, "*.patch") // sorted
	if err != nil {
		return nil, fmt.Errorf("list the series: %w", err)
	}
	own, err := fs.Glob(patches, b.Name+"/*.patch")
	if err != nil {
		return nil, fmt.Errorf("list the patches of %s: %w", b.Name, err)
	}
	if b.Vendored && len(own) > 0 {
		return nil, fmt.Errorf("%s: the vendored branch has the shared series and no patches of its own; those that differ belong to the other branches", own[0])
	}
	var series []Entry
	for i, file := range shared {
		if want := fmt.Sprintf("%04d", i+1); number(file) != want {
			return nil, fmt.Errorf("%s: the series is numbered from 0001 without gaps, so this is %s", file, want)
		}
		series = append(series, Entry{Path: file})
	}
	for _, file := range own {
		i := slices.IndexFunc(series, func(e Entry) bool { return e.Number() == number(path.Base(file)) })
		next := fmt.Sprintf("%04d", len(series)+1)
		switch {
		case i < 0 && number(path.Base(file)) != next:
			return nil, fmt.Errorf("%s: no shared patch has this number, so that it stands for none, and goes on behind them as %s", file, next)
		case i < 0:
			series = append(series, Entry{Path: file, Own: true})
		case series[i].Own:
			return nil, fmt.Errorf("%s: %s has this number too", file, series[i].Path)
		default:
			series[i] = Entry{Path: file, Own: true, Shared: series[i].Path}
		}
	}
	if len(series) == 0 {
		return nil, errors.New("patches/ has no patch")
	}
	return series, nil
}

// Checked returns the versions that the header of an entry has to name: of the branches whose
// series has it, in the order of their file.
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

// Before tells whether the branch of one name is older than that of the other.
func Before(name, other string) bool {
	return minor(name) < minor(other)
}

// minor returns a branch's number, for example 37; 0 for what is no branch.
func minor(name string) int {
	match := branchName.FindStringSubmatch(name)
	if match == nil {
		return 0
	}
	_, number, _ := strings.Cut(match[1], ".")
	n, _ := strconv.Atoi(number) // digits, as the expression says
	return n
}

// Pin returns the content of patches/branches with version in the place of its branch's former
// one. A branch that is new comes before the older ones, and is the vendored one if it is newer than that.
func Pin(content, version string) (string, error) {
	name, err := Of(version)
	if err != nil {
		return "", err
	}
	all, err := Parse(content)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(content, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	place, added := len(lines), name+" "+version+"\n"
	vendored := Before(all.Vendored().Name, name)
	if vendored {
		added = name + " " + version + " vendored\n"
	}
	for i, line := range lines {
		words := strings.Fields(line)
		switch {
		case len(words) < 2 || strings.HasPrefix(words[0], "#"):
		case words[0] == name:
			lines[i] = strings.Replace(line, words[1], version, 1)
			return strings.Join(lines, ""), nil
		case Before(words[0], name):
			place = min(place, i)
		}
	}
	if vendored {
		for i, line := range lines {
			if words := strings.Fields(line); len(words) == 3 && words[2] == "vendored" && !strings.HasPrefix(line, "#") {
				lines[i] = words[0] + " " + words[1] + "\n"
			}
		}
	}
	return strings.Join(slices.Insert(lines, place, added), ""), nil
}
