package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/testlog"
)

// test names a test or a subtest; with an empty name, the package as a whole.
type test struct{ Package, Name string }

func (t test) String() string {
	if t.Name == "" {
		return t.Package
	}
	return t.Package + " " + t.Name
}

// root is the test function that a subtest belongs to.
func (t test) root() string {
	name, _, _ := strings.Cut(t.Name, "/")
	return name
}

// outcomes has how each test ended: "pass", "skip" or "fail".
type outcomes map[test]string

// parse reads what `go test -json` printed. That something does not
// compile, that a package failed where none of its tests did, or that no test passed, is an error: such
// results prove nothing, however alike they are on two trees.
func parse(r io.Reader) (outcomes, error) {
	found, err := read(r)
	if err != nil {
		return nil, err
	}
	return found, found.sound()
}

// read is parse for some of the tests: that none of them passed is a result.
func read(r io.Reader) (outcomes, error) {
	found := outcomes{}
	built := map[string]string{} // what the compiler said, by package
	broken := ""
	err := testlog.Read(r, func(e testlog.Event) {
		switch {
		case e.Action == "build-output":
			built[e.ImportPath] += e.Output
		case e.Action == "build-fail" && broken == "":
			broken = e.ImportPath
		case e.Ended():
			found[test{e.Folder(), e.Test}] = e.Action
		}
	})
	if err != nil {
		return nil, err
	}
	if broken != "" {
		return nil, fmt.Errorf("%s does not compile:\n%s", broken, strings.TrimSpace(built[broken]))
	}
	return found, nil
}

// sound tells if the results prove nothing.
func (found outcomes) sound() error {
	passed := false
	explained := map[string]bool{} // the packages of which a test failed
	for name, outcome := range found {
		passed = passed || name.Name != "" && outcome == "pass"
		explained[name.Package] = explained[name.Package] || name.Name != "" && outcome == "fail"
	}
	for name, outcome := range found {
		if name.Name == "" && outcome == "fail" && !explained[name.Package] {
			return fmt.Errorf("%s failed, but none of its tests did: see what it printed", name.Package)
		}
	}
	if !passed {
		return errors.New("no test passed")
	}
	return nil
}

// difference is a test that did not end alike on both trees; "absent" where it did not run.
type difference struct {
	test
	patched, unpatched string
}

func (d difference) String() string {
	return fmt.Sprintf("%s: %s patched, %s unpatched", d.test, d.patched, d.unpatched)
}

// compare returns the tests that did not end alike, sorted.
func compare(patched, unpatched outcomes) []difference {
	all := maps.Clone(unpatched)
	maps.Copy(all, patched)
	var differences []difference
	for name := range all {
		d := difference{name, orAbsent(patched[name]), orAbsent(unpatched[name])}
		if d.patched != d.unpatched {
			differences = append(differences, d)
		}
	}
	slices.SortFunc(differences, func(a, b difference) int { return strings.Compare(a.test.String(), b.test.String()) })
	return differences
}

func orAbsent(outcome string) string {
	if outcome == "" {
		return "absent"
	}
	return outcome
}

// count counts the tests and subtests of a package; "all" is their sum.
type count struct{ all, pass, skip, fail int }

func (c *count) add(outcome string) {
	c.all++
	switch outcome {
	case "pass":
		c.pass++
	case "skip":
		c.skip++
	case "fail":
		c.fail++
	}
}

// counts counts by package. A package without tests counts none.
func counts(found outcomes) map[string]*count {
	byPackage := map[string]*count{}
	for name, outcome := range found {
		if byPackage[name.Package] == nil {
			byPackage[name.Package] = &count{}
		}
		if name.Name != "" {
			byPackage[name.Package].add(outcome)
		}
	}
	return byPackage
}

// writeReport writes a row for each package that has tests, and the sum.
func writeReport(w io.Writer, patched, unpatched outcomes) error {
	p, u := counts(patched), counts(unpatched)
	names := maps.Clone(u)
	maps.Copy(names, p)
	var text strings.Builder
	row := func(name string, p, u count) {
		fmt.Fprintf(&text, "  %-42s %6d %6d %5d %5d   %6d %6d %5d %5d\n", name, p.all, p.pass, p.skip, p.fail, u.all, u.pass, u.skip, u.fail)
	}
	fmt.Fprintf(&text, "  %-42s %6s %6s %5s %5s   %6s %6s %5s %5s\n", "patched, then unpatched", "tests", "pass", "skip", "fail", "tests", "pass", "skip", "fail")
	var sumP, sumU count
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inP, inU := orZero(p[name]), orZero(u[name])
		if inP.all+inU.all == 0 {
			continue
		}
		row(name, inP, inU)
		sumP.plus(inP)
		sumU.plus(inU)
	}
	row("sum", sumP, sumU)
	_, err := io.WriteString(w, text.String())
	return err
}

func orZero(c *count) count {
	if c == nil {
		return count{}
	}
	return *c
}

func (c *count) plus(other count) {
	c.all += other.all
	c.pass += other.pass
	c.skip += other.skip
	c.fail += other.fail
}
