//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/e2e/specs"
	"github.com/openshift/origin-node/hack/testlog"
)

func TestTable_IsOfTheResults(t *testing.T) {
	got, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table(published(t)), string(got)); diff != "" {
		t.Errorf("RESULTS.md is not of results.json; run 'make test-kernels PUBLISH=1' (-want +got):\n%s", diff)
	}
}

// published are the results in results.json.
func published(t *testing.T) (all []*result) {
	t.Helper()
	text, err := os.ReadFile("results.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestResults_HaveRows: what was published under a name that is no suite's any more is in no table.
func TestResults_HaveRows(t *testing.T) {
	for _, r := range published(t) {
		for name := range r.Packages {
			if !slices.ContainsFunc(tested, func(s suite) bool { return s.name() == name }) {
				t.Errorf("%s has results of %q, which is not tested", r.Kernel, name)
			}
		}
	}
}

// TestTested_RunsWhatIsLeftOutElsewhere: the specs that a machine without SCTP leaves out are those that run here.
func TestTested_RunsWhatIsLeftOutElsewhere(t *testing.T) {
	text, err := os.ReadFile("../conformance/environment.txt")
	if err != nil {
		t.Fatal(err)
	}
	environment, err := specs.ParseEnvironment(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range environment {
		if limit.Only == "without sctp" && !slices.ContainsFunc(tested, func(s suite) bool { return s.Focus == limit.Specs.String() }) {
			t.Errorf("no kernel runs the specs %s", limit.Specs)
		}
	}
}

// TestTested_EveryAlternativeNamesTests: what a test is called changes, and nobody would notice that it does not run any more.
func TestTested_EveryAlternativeNamesTests(t *testing.T) {
	for _, p := range tested {
		names := testsOf(t, p.Package)
		for _, patterns := range []string{p.All, p.Short} {
			for _, pattern := range alternatives(patterns) {
				if !slices.ContainsFunc(names, regexp.MustCompile(pattern).MatchString) {
					t.Errorf("%s has no test %s, of %s", p.Package, pattern, patterns)
				}
			}
		}
	}
}

// testsOf are the tests of a package.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../" + pkg + "/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", pkg, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	return names
}

// alternatives are the regular expressions without parentheses that one with parentheses stands for.
func alternatives(pattern string) (all []string) {
	inner := regexp.MustCompile(`\(([^()]*)\)`).FindStringSubmatchIndex(pattern)
	if inner == nil {
		return []string{pattern}
	}
	for choice := range strings.SplitSeq(pattern[inner[2]:inner[3]], "|") {
		all = append(all, alternatives(pattern[:inner[0]]+choice+pattern[inner[1]:])...)
	}
	return all
}

func TestCount_TestsWithoutParts(t *testing.T) {
	const printed = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/one"}
{"Action":"pass","Test":"TestA/one"}
{"Action":"run","Test":"TestA/two"}
{"Action":"output","Test":"TestA/two","Output":"    a_test.go:7: lacks IP_VS\n"}
{"Action":"skip","Test":"TestA/two"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestB/one"}
{"Action":"output","Test":"TestB/one","Output":"it is wrong\n"}
{"Action":"fail","Test":"TestB/one"}
{"Action":"fail","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"run","Test":"TestC/one"}
{"Action":"pass","Test":"TestC/one"}
{"Action":"output","Test":"TestC","Output":"    c_test.go:9: wrong in the end\n"}
{"Action":"fail","Test":"TestC"}
{"Action":"run","Test":"TestHangs"}
{"Action":"fail"}
`
	var events []testlog.Event
	if err := testlog.Read(strings.NewReader(printed), func(e testlog.Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	want := counts{
		Passed: 2, Skipped: map[string]string{"TestA/two": "lacks IP_VS"},
		Failed: map[string]string{"TestB/one": "it is wrong\n", "TestC": "    c_test.go:9: wrong in the end\n", "TestHangs": ""},
	}
	if diff := cmp.Diff(want, count(events)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPublish_ReplacesTheKernel(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("hack/kernels", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range []result{
		{Kernel: "6.12", Packages: map[string]counts{"pkg/kernel/steering": {Passed: 3}, "hack/lab": {Passed: 1}}},
		{Kernel: "5.10", Packages: map[string]counts{"pkg/kernel/steering": {Failed: map[string]string{"TestX": "words"}}}},
		{Kernel: "6.12", Packages: map[string]counts{"pkg/kernel/steering": {Passed: 4, Skipped: map[string]string{"TestY": "no module"}}}},
	} {
		if r.Kernel == "5.10" {
			r.Release = "5.10.0-32"
		}
		if err := publishResult(r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("hack/kernels/RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Linux 5.10 | Linux 6.12 |", "| 5.10.0-32 |", "`pkg/kernel/steering`) | 0, **1 failed** | 4, 1 skipped |", "`hack/lab`) | - | 1 |",
		"- failed: `TestX`", "- 1 of `pkg/kernel/steering` skipped: no module",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
