//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/testlog"
)

const (
	resultsFile = "hack/kernels/results.json"
	tableFile   = "hack/kernels/RESULTS.md"
)

// result is what was found out about a kernel.
type result struct {
	Kernel, Date string
	facts
	Boot     float64 // seconds until the tests began
	all      bool    // what is added is of all tests, and not of the short form
	Packages map[string]counts
}

// counts are results of tests, of which those that have parts are not counted.
type counts struct {
	Passed int
	// All: of all tests, and not of the short form.
	All bool `json:",omitempty"`
	// Failed and Skipped have what each test said.
	Failed  map[string]string `json:",omitempty"`
	Skipped map[string]string `json:",omitempty"`
}

func (r *result) add(pkg string, c counts) {
	if r.Packages == nil {
		r.Packages = map[string]counts{}
	}
	c.All = r.all
	r.Packages[pkg] = c
}

// err is nil if every test passed or was skipped, and there were some in each package.
func (r *result) err() error {
	var errs []error
	for _, pkg := range slices.Sorted(maps.Keys(r.Packages)) {
		switch c := r.Packages[pkg]; {
		case len(c.Failed) > 0:
			errs = append(errs, fmt.Errorf("%s: %d tests failed", pkg, len(c.Failed)))
		case c.Passed+len(c.Skipped) == 0:
			errs = append(errs, fmt.Errorf("%s: no test ran", pkg))
		}
	}
	return errors.Join(errs...)
}

// count counts the results among the events of a package. A test that did not end has failed.
func count(events []testlog.Event) counts {
	c := counts{Failed: map[string]string{}, Skipped: map[string]string{}}
	results, words, parts := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, e := range events {
		switch {
		case e.Test == "":
		case e.Action == "run":
			results[e.Test] = "fail" // until it ends
			if i := strings.LastIndex(e.Test, "/"); i > 0 {
				parts[e.Test[:i]] = true
			}
		case e.Action == "output":
			words[e.Test] += e.Output
		case e.Ended():
			results[e.Test] = e.Action
		}
	}
	for test, result := range results {
		switch {
		case parts[test] && (result != "fail" || !logged.MatchString(words[test])): // its parts are counted
		case result == "pass":
			c.Passed++
		case result == "skip":
			c.Skipped[test] = reason(words[test])
		default:
			c.Failed[test] = words[test]
		}
	}
	return c
}

// logged is a line that a test has logged.
var logged = regexp.MustCompile(`(?m)^\s*\S+\.go:\d+: (.*)$`)

// reason is the last line that a test has logged, without the place.
func reason(words string) string {
	if all := logged.FindAllStringSubmatch(words, -1); len(all) > 0 {
		return strings.TrimSpace(all[len(all)-1][1])
	}
	return ""
}

// text tells of the results of a package, with everything that failed tests said.
func (c counts) text(kernel, pkg string, took time.Duration) string {
	var b strings.Builder
	for _, test := range slices.Sorted(maps.Keys(c.Failed)) {
		fmt.Fprintf(&b, "FAIL %s %s %s\n%s", kernel, pkg, test, c.Failed[test])
	}
	for _, test := range slices.Sorted(maps.Keys(c.Skipped)) {
		fmt.Fprintf(&b, "SKIP %s %s %s: %s\n", kernel, pkg, test, c.Skipped[test])
	}
	fmt.Fprintf(&b, "%s %s: %s; %s\n", kernel, pkg, c, took.Round(time.Second))
	return b.String()
}

// String is what a cell of the table has.
func (c counts) String() string {
	text := fmt.Sprintf("%d", c.Passed)
	if c.All {
		text = "all " + text
	}
	if len(c.Failed) > 0 {
		text += fmt.Sprintf(", **%d failed**", len(c.Failed))
	}
	if len(c.Skipped) > 0 {
		text += fmt.Sprintf(", %d skipped", len(c.Skipped))
	}
	return text
}

// publishResult puts a result in the place of the kernel's earlier one.
func publishResult(r result) error {
	r.Packages = maps.Clone(r.Packages)
	for pkg, c := range r.Packages {
		names := map[string]string{}
		for test := range c.Failed {
			names[test] = "" // its words are for who ran it
		}
		c.Failed = names
		r.Packages[pkg] = c
	}
	var all []*result
	text, err := os.ReadFile(resultsFile)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", resultsFile, err)
	}
	if i := slices.IndexFunc(all, func(old *result) bool { return old.Kernel == r.Kernel }); i >= 0 {
		if all[i].Release == r.Release && all[i].IPTables == r.IPTables && all[i].NFT == r.NFT {
			merged := maps.Clone(all[i].Packages) // some may have been left out
			maps.Copy(merged, r.Packages)
			r.Packages = merged
		}
		all[i] = &r
	} else {
		all = append(all, &r)
	}
	slices.SortFunc(all, func(a, b *result) int {
		return cmp.Compare(slices.Index(kernels, a.Kernel), slices.Index(kernels, b.Kernel))
	})
	if text, err = json.MarshalIndent(all, "", "  "); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(resultsFile, append(text, '\n'), 0o644), os.WriteFile(tableFile, []byte(table(all)), 0o644))
}

// table is the file RESULTS.md.
func table(all []*result) string {
	var b strings.Builder
	b.WriteString("# Which kernels and tools were tested\n\n`make test-kernels PUBLISH=1` writes this file. A number is that of tests that passed, " +
		"a dash says that\nthe package was not run there. Without the word \"all\" they are of the short form; " +
		"`make test-kernels ALL=1` runs all tests.\n\n")
	row := func(name string, cell func(r *result) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range all {
			fmt.Fprintf(&b, " %s |", cell(r))
		}
		b.WriteString("\n")
	}
	row("", func(r *result) string { return "Linux " + r.Kernel })
	row("---", func(*result) string { return "---" })
	row("Debian's kernel", func(r *result) string { return r.Release })
	row("iptables", func(r *result) string { return r.IPTables })
	row("nftables", func(r *result) string { return r.NFT })
	row("date", func(r *result) string { return r.Date })
	for _, t := range tested {
		row(fmt.Sprintf("%s (`%s`)", t.What, t.Package), func(r *result) string {
			if c, ok := r.Packages[t.name()]; ok {
				return c.String()
			}
			return "-"
		})
	}
	for _, r := range all {
		for _, line := range r.lacks() {
			b.WriteString(line)
		}
	}
	return b.String()
}

// lacks says which tests failed and which were skipped, by their reasons.
func (r *result) lacks() []string {
	var lines []string
	for _, t := range tested {
		c := r.Packages[t.name()]
		for _, test := range slices.Sorted(maps.Keys(c.Failed)) {
			lines = append(lines, fmt.Sprintf("- failed: `%s`\n", cmp.Or(test, t.Package)))
		}
		reasons := map[string]int{}
		for _, reason := range c.Skipped {
			reasons[reason]++
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			lines = append(lines, fmt.Sprintf("- %d of `%s` skipped: %s\n", reasons[reason], t.Package, reason))
		}
	}
	if len(lines) > 0 {
		lines = append([]string{fmt.Sprintf("\n## Linux %s\n\n", r.Kernel)}, lines...)
	}
	return lines
}
