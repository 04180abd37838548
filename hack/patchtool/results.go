package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/source"
	"github.com/openshift/origin-node/hack/patchtool/testlog"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test[^a-z]\w*|Test)\(`)

// countTests returns how many test functions each package of the module in a directory has, on Linux.
func countTests(module string) (map[string]int, error) {
	counts := map[string]int{}
	linux := source.Linux()
	for _, root := range testlog.Packages {
		err := filepath.WalkDir(filepath.Join(module, root), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			if match, err := linux.MatchFile(filepath.Dir(name), entry.Name()); err != nil || !match {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if n := len(testFunction.FindAll(content, -1)); n > 0 {
				counts[relative(module, filepath.Dir(name))] += n
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("count the tests: %w", err)
		}
	}
	return counts, nil
}

// outcomes counts tests and subtests by how they ended: "pass", "fail" and "skip".
type outcomes map[string]int

// results are what the tests of a tree gave.
type results struct {
	// day is when they ran.
	day      string
	packages map[string]outcomes
	// failed are the tests that failed, and the packages that did without one of their tests doing so.
	failed []string
}

// readResults reads what `go test -json` printed; nil if there is no such file.
func readResults(name string) (*results, error) {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the results of tests: %w", err)
	}
	defer file.Close()
	found := &results{packages: map[string]outcomes{}}
	if err := testlog.Read(file, found.add); err != nil {
		return nil, err
	}
	return found, nil
}

func (r *results) add(e testlog.Event) {
	folder := e.Folder()
	if r.day == "" && len(e.Time) > len("2006-01-02") {
		r.day = e.Time[:len("2006-01-02")]
	}
	switch {
	case !e.Ended():
		return
	case e.Test != "":
		if r.packages[folder] == nil {
			r.packages[folder] = outcomes{}
		}
		r.packages[folder][e.Action]++
		if e.Action == "fail" {
			r.failed = append(r.failed, folder+" "+e.Test)
		}
	case e.Action == "fail" && r.packages[folder]["fail"] == 0:
		r.failed = append(r.failed, folder) // it did not compile, or ended before its tests did
	}
}

func (o outcomes) String() string {
	if o == nil {
		return "none"
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped", o["pass"], o["fail"], o["skip"])
}

// sum adds up the packages.
func (r *results) sum() outcomes {
	sum := outcomes{}
	for _, o := range r.packages {
		for action, n := range o {
			sum[action] += n
		}
	}
	return sum
}

// testedRelease is what is known of a release's tests.
type testedRelease struct {
	branch.Branch
	// functions are how many there are in the source.
	functions map[string]int
	// patched and unpatched are what they gave on either tree; nil if they were not run.
	patched, unpatched *results
	// pinned tells that the release is its branch's, so that its tests can be run; other that they were run
	// with another series.
	pinned, other bool
}

// tests are those of both releases.
type tests struct{ from, to *testedRelease }

func (r *review) tests() (*tests, error) {
	from, err := r.testsOf(r.from)
	if err != nil {
		return nil, err
	}
	to, err := r.testsOf(r.to)
	return &tests{from, to}, err
}

func (r *review) testsOf(s *side) (*testedRelease, error) {
	t := &testedRelease{Branch: s.Branch, pinned: s.pinned}
	var err error
	if t.functions, err = countTests(s.module); err != nil {
		return nil, err
	}
	if t.patched, err = readResults(filepath.Join(r.results, s.key+".json")); err != nil {
		return nil, err
	}
	others, err := filepath.Glob(filepath.Join(r.results, s.Version+"-*.json"))
	if err != nil {
		return nil, fmt.Errorf("find the results of tests: %w", err)
	}
	t.other = t.patched == nil && len(others) > 0
	kept, err := filepath.Glob(filepath.Join(r.results, "unpatched", s.Version+"-*.json")) // sorted by the release of Go
	if err != nil || len(kept) == 0 {
		return t, err
	}
	t.unpatched, err = readResults(kept[len(kept)-1])
	return t, err
}

func (t *testedRelease) all() int {
	all := 0
	for _, n := range t.functions {
		all += n
	}
	return all
}

// said tells in a few words what the tests gave.
func (t *testedRelease) said() string {
	switch {
	case t.patched != nil:
	case !t.pinned:
		return fmt.Sprintf("%s: not run; pin it first, with `make rebase-patches VERSION=%s`", t.Version, t.Version)
	case t.other:
		return fmt.Sprintf("%s: run for another series; `make test-upstream BRANCH=%s` does it for this one", t.Version, t.Name)
	default:
		return fmt.Sprintf("%s: not run; `make test-upstream BRANCH=%s` does", t.Version, t.Name)
	}
	said := fmt.Sprintf("%s (%s): %s", t.Version, t.patched.day, t.patched.sum())
	switch {
	case t.unpatched == nil:
		said += "; unpatched not run"
	case maps.EqualFunc(t.patched.packages, t.unpatched.packages, maps.Equal):
		said += ", and the same unpatched"
	default:
		said += fmt.Sprintf("; **unpatched %s**", t.unpatched.sum())
	}
	if len(t.patched.failed) > 0 {
		said += "; **failed**: " + strings.Join(t.patched.failed, ", ")
	}
	return said
}

func (t *tests) summary() string {
	return fmt.Sprintf("%d test functions became %d. Run on the patched tree, with subtests, %s. %s.", t.from.all(), t.to.all(), t.from.said(), t.to.said())
}

// testSection writes how many tests each package has, and what they gave where they were run.
func (r *review) testSection(t *tests) {
	r.printf("## Upstream's tests\n\nTest functions in the source for Linux; where they were run, what tests and subtests gave on the patched tree. ")
	names := maps.Clone(t.from.functions)
	maps.Copy(names, t.to.functions)
	var rows []string
	same := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := t.from.functions[name], t.to.functions[name]
		gave, gives := t.from.gave(name), t.to.gave(name)
		if before == after && gave == gives {
			same++
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %d | %s | %s | %s |\n", name, before, after, difference(before, after), gave, gives))
	}
	r.printf("Left out: %d with as many in both.\n\n", same)
	r.printf("| package | %s | %s | | %s gave | %s gives |\n|---|---|---|---|---|---|\n", t.from.Version, t.to.Version, t.from.Version, t.to.Version)
	r.printf("%s", strings.Join(rows, ""))
	r.printf("| all | %d | %d | %s | %s | %s |\n\n", t.from.all(), t.to.all(), difference(t.from.all(), t.to.all()), t.from.gave(""), t.to.gave(""))
}

// gave tells what the tests of a package gave, or those of all for "".
func (t *testedRelease) gave(name string) string {
	switch {
	case t.patched == nil:
		return "not run"
	case name == "":
		return t.patched.sum().String()
	}
	return t.patched.packages[name].String()
}

func difference(before, after int) string {
	if before == after {
		return ""
	}
	return fmt.Sprintf("%+d", after-before)
}
