package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/patchtool/testlog"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// runs is how often a test that did not end alike is run again on each tree, for upstream has flaky ones: alone,
// and with all of its package, for what it differs by may be what another test has left.
type runs struct{ alone, whole int }

// tests compares the results of upstream's tests on both trees of a branch.
func (c *comparison) tests(ctx context.Context, both *trees) error {
	c.report("%s (%s): %s\n", both.Name, both.Version, strings.Join(testlog.Patterns(), " "))
	began := time.Now()
	unpatched, err := c.unpatchedResults(ctx, both)
	if err != nil {
		return err
	}
	patched, err := c.results(ctx, both.patched, filepath.Join(c.output, both.patched.Key()+".json"))
	if err != nil {
		return err
	}
	if err := writeReport(c.stdout, patched, unpatched); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	remaining, err := c.rerun(ctx, both, compare(patched, unpatched))
	if err != nil {
		return err
	}
	if len(remaining) > 0 {
		for _, d := range remaining {
			c.report("  DIFFERS %s\n", d)
		}
		return errDiffers
	}
	c.report("  the same tests, the same results (%s)\n", time.Since(began).Round(time.Second))
	return nil
}

// unpatchedResults returns those of the unpatched tree. A release does not change, so that they are
// kept; whatever failed is not trusted and run again.
func (c *comparison) unpatchedResults(ctx context.Context, both *trees) (outcomes, error) {
	file := filepath.Join(c.output, "unpatched", both.Version+"-"+runtime.Version()+".json")
	if kept, err := os.ReadFile(file); err == nil {
		found, err := parse(bytes.NewReader(kept))
		if err == nil && !slices.Contains(slices.Collect(maps.Values(found)), "fail") {
			c.progress("  the results of the unpatched tree are known from before: %s\n", file)
			return found, nil
		}
	}
	return c.results(ctx, both.unpatched, file)
}

// results runs the tests of a tree and leaves what go printed in the file.
func (c *comparison) results(ctx context.Context, in *tree.Tree, file string) (outcomes, error) {
	c.progress("  testing %s\n", in.Dir)
	arguments := append([]string{"test", "-json", "-count=1"}, testlog.Patterns()...)
	output, err := goTest(ctx, in.Dir, arguments...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("keep the results: %w", err)
	}
	if err := os.WriteFile(file, output, 0o600); err != nil {
		return nil, fmt.Errorf("keep the results: %w", err)
	}
	found, err := parse(bytes.NewReader(output))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// goTest runs go and returns what it printed. That tests failed is no error: the output says so.
// That go ran none at all is one.
func goTest(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	command := tree.Go(ctx, dir, arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit) && len(output) > 0:
		return output, nil
	case err != nil:
		return nil, fmt.Errorf("go %s in %s: %w: %s", strings.Join(arguments, " "), dir, err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}

// rerun runs the tests that differ several times on both trees, and returns those that are
// still no different from run to run but from tree to tree. It tells of the others: they are flaky.
func (c *comparison) rerun(ctx context.Context, both *trees, differences []difference) ([]difference, error) {
	var remaining []difference
	for _, d := range differences {
		if d.Name == "" && slices.ContainsFunc(differences, func(other difference) bool { return other.Package == d.Package && other.Name != "" }) {
			continue // told by its tests
		}
		if d.Name == "" {
			remaining = append(remaining, d)
			continue
		}
		ended, err := c.again(ctx, both, &d)
		if err != nil {
			return nil, err
		}
		if ended == "" {
			remaining = append(remaining, d)
			continue
		}
		c.report("  flaky: %s; run again on each tree it ended alike: %s\n", d, ended)
	}
	return remaining, nil
}

// again tells how a test ended that was run again on both trees; nothing if it did not end alike, of which the
// difference then tells.
func (c *comparison) again(ctx context.Context, both *trees, d *difference) (string, error) {
	var ended []string
	for _, way := range []struct {
		name  string
		runs  int
		flags []string
	}{{"alone", c.runs.alone, []string{"-run", "^" + d.root() + "$"}}, {"with its package", c.runs.whole, nil}} {
		inPatched, err := repeat(ctx, both.patched, d.test, way.runs, way.flags)
		if err != nil {
			return "", err
		}
		inUnpatched, err := repeat(ctx, both.unpatched, d.test, way.runs, way.flags)
		if err != nil {
			return "", err
		}
		if inPatched != inUnpatched {
			d.patched, d.unpatched = inPatched+" "+way.name, inUnpatched+" "+way.name
			return "", nil
		}
		ended = append(ended, fmt.Sprintf("%s %d times, %s", way.name, way.runs, inPatched))
	}
	return strings.Join(ended, "; "), nil
}

// repeat runs a test's package with the flags and returns the different ways in which the test ended, sorted.
func repeat(ctx context.Context, in *tree.Tree, name test, times int, flags []string) (string, error) {
	var ended []string
	for range times {
		output, err := goTest(ctx, in.Dir, slices.Concat([]string{"test", "-json", "-count=1"}, flags, []string{"./" + name.Package})...)
		if err != nil {
			return "", err
		}
		found, err := read(bytes.NewReader(output))
		if err != nil {
			return "", err
		}
		ended = append(ended, orAbsent(found[name]))
	}
	slices.Sort(ended)
	return strings.Join(slices.Compact(ended), "/"), nil
}
