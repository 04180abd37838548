package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testsTable   = regexp.MustCompile(`(?m)^\|---\|---\|---\|---\|\n((?:\|.*\n)*)`)
	namedTest    = regexp.MustCompile("`(Test\\w+)(…?)`")
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// TestReadme_TableHasEveryTest: the table of README.md has the tests that there are, and no
// others. A name that ends with an ellipsis stands for all tests that begin so.
func TestReadme_TableHasEveryTest(t *testing.T) {
	document, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := testsTable.FindSubmatch(document)
	if table == nil {
		t.Fatal("hack/e2e/README.md has no table of the end-to-end tests")
	}
	named := namedTest.FindAllStringSubmatch(string(table[1]), -1)
	tests := testsIn(t, "*_test.go", "../cluster/*_test.go")
	isNamed := func(match []string, test string) bool {
		return test == match[1] || match[2] != "" && strings.HasPrefix(test, match[1])
	}
	for _, test := range tests {
		if !slices.ContainsFunc(named, func(match []string) bool { return isNamed(match, test) }) {
			t.Errorf("hack/e2e/README.md does not list %s; add it to the table of the end-to-end tests", test)
		}
	}
	for _, match := range named {
		if !slices.ContainsFunc(tests, func(test string) bool { return isNamed(match, test) }) {
			t.Errorf("hack/e2e/README.md lists %s, which does not exist", match[0])
		}
	}
}

// testsIn returns the names of the tests in files.
func testsIn(t *testing.T, patterns ...string) (tests []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
				tests = append(tests, match[1])
			}
		}
	}
	return tests
}
