package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/testlog"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// tested are the packages whose tests count: the patched ones, and the one through which they write.
var tested = []string{"./cmd/kube-proxy/...", "./pkg/proxy/...", "./pkg/util/iptables/..."}

// test names a test or a subtest; with an empty Name, the package as a whole.
type test struct{ Package, Name string }

func (t test) String() string { return strings.TrimSpace(t.Package + " " + t.Name) }

// outcomes has how each test ended: "pass", "skip" or "fail".
type outcomes map[test]string

// of returns how a test ended, also if it did not run.
func (found outcomes) of(name test) string {
	if outcome, ran := found[name]; ran {
		return outcome
	}
	return "absent"
}

// tests compares the results of upstream's tests on both trees of a branch.
func (c *comparison) tests(ctx context.Context, both *trees) error {
	unpatched, err := c.unpatchedResults(ctx, both)
	if err != nil {
		return err
	}
	patched, err := c.results(ctx, both.patched, filepath.Join(c.output, both.patched.Key()+".json"))
	if err != nil {
		return err
	}
	names := different(patched, unpatched)
	c.printf("  patched:   %s\n  unpatched: %s\n", patched, unpatched)
	differs := false
	var again [2][]outcomes // of the package of the test
	for i, name := range names {
		if i == 0 || name.Package != names[i-1].Package {
			for tree, in := range []*tree.Tree{both.patched, both.unpatched} {
				if again[tree], err = c.rerun(ctx, in, name.Package); err != nil {
					return err
				}
			}
		}
		inPatched, inUnpatched := ways(again[0], name), ways(again[1], name)
		word := "flaky"
		if inPatched != inUnpatched {
			word, differs = "DIFFERS", true
		}
		c.printf("  %s: %s: %s patched, %s unpatched; in %d more runs %s patched, %s unpatched\n",
			word, name, patched.of(name), unpatched.of(name), c.reruns, inPatched, inUnpatched)
	}
	if differs {
		return errDiffers
	}
	c.printf("  the same tests, the same results\n")
	return nil
}

// unpatchedResults returns those of the unpatched tree. A release does not change, so they are kept. Where
// something failed, the tests run again.
func (c *comparison) unpatchedResults(ctx context.Context, both *trees) (outcomes, error) {
	file := filepath.Join(c.output, "unpatched", both.Version+"-"+runtime.Version()+".json")
	if kept, err := os.ReadFile(file); err == nil {
		found, err := read(bytes.NewReader(kept))
		if err == nil && found.sound() == nil && !slices.Contains(slices.Collect(maps.Values(found)), "fail") {
			return found, nil
		}
	}
	return c.results(ctx, both.unpatched, file)
}

// results runs the tests of a tree and leaves what go printed in the file.
func (c *comparison) results(ctx context.Context, in *tree.Tree, file string) (outcomes, error) {
	output, err := goTest(ctx, in.Dir, tested...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("keep the results: %w", err)
	}
	if err := os.WriteFile(file, output, 0o600); err != nil {
		return nil, fmt.Errorf("keep the results: %w", err)
	}
	found, err := read(bytes.NewReader(output))
	if err == nil {
		err = found.sound()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// goTest runs tests and returns what go printed. Failed tests are no error: the output tells of them.
func goTest(ctx context.Context, dir string, packages ...string) ([]byte, error) {
	command := tree.Go(ctx, dir, append([]string{"test", "-json", "-count=1"}, packages...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit) && len(output) > 0, err == nil:
		return output, nil
	}
	return nil, fmt.Errorf("%s in %s: %w: %s", strings.Join(command.Args, " "), dir, err, strings.TrimSpace(stderr.String()))
}

// rerun runs the tests of a package again.
func (c *comparison) rerun(ctx context.Context, in *tree.Tree, folder string) (runs []outcomes, err error) {
	for range c.reruns {
		output, err := goTest(ctx, in.Dir, "./"+folder)
		if err != nil {
			return nil, err
		}
		found, err := read(bytes.NewReader(output))
		if err != nil {
			return nil, err
		}
		runs = append(runs, found)
	}
	return runs, nil
}

// ways returns the different ways in which a test ended, for example "fail/pass".
func ways(runs []outcomes, name test) string {
	var ended []string
	for _, found := range runs {
		ended = append(ended, found.of(name))
	}
	slices.Sort(ended)
	return strings.Join(slices.Compact(ended), "/")
}

// read reads what `go test -json` printed. That something does not compile is an error.
func read(r io.Reader) (outcomes, error) {
	found := outcomes{}
	said := map[string]string{} // what the compiler said, by package
	var broken []string
	err := testlog.Read(r, func(e testlog.Event) {
		switch {
		case e.Action == "build-output":
			said[e.ImportPath] += e.Output
		case e.Action == "build-fail":
			broken = append(broken, e.ImportPath)
		case e.Ended():
			found[test{strings.TrimPrefix(e.Package, tree.Kubernetes+"/"), e.Test}] = e.Action
		}
	})
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("%s does not compile:\n%s", broken[0], strings.TrimSpace(said[broken[0]]))
	}
	return found, err
}

// sound returns an error if the results prove nothing, however alike they are on both trees: if a package
// failed and none of its tests did, or if no test passed.
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

// String counts the tests and subtests.
func (found outcomes) String() string {
	counts := map[string]int{}
	for name, outcome := range found {
		if name.Name != "" {
			counts[outcome]++
		}
	}
	return fmt.Sprintf("%d tests passed, %d failed, %d skipped", counts["pass"], counts["fail"], counts["skip"])
}

// different returns the tests that did not end alike, sorted; packages only where their tests do not tell.
func different(patched, unpatched outcomes) []test {
	all := maps.Clone(unpatched)
	maps.Copy(all, patched)
	var names []test
	for name := range all {
		if patched.of(name) != unpatched.of(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return slices.DeleteFunc(names, func(name test) bool {
		return name.Name == "" && slices.ContainsFunc(names, func(other test) bool { return other.Package == name.Package && other.Name != "" })
	})
}
