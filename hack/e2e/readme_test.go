package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testsTable is the table of README.md, its rows in the group.
var testsTable = regexp.MustCompile("(?m)^\\| Test \\|.*\n\\|---.*\n((?:\\|.*\n)*)")

// measured is a row's test and seconds.
var measured = regexp.MustCompile("(?m)^\\| `(\\w+)`.* \\| (\\S*) \\|$")

// TestReadme_TableIsGenerated: the table of all tests is that of their comments. 'go test ./hack/e2e -run TestReadme -update' writes it, and
// keeps the seconds.
func TestReadme_TableIsGenerated(t *testing.T) {
	document, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	at := testsTable.FindSubmatchIndex(document)
	if at == nil {
		t.Fatal("hack/e2e/README.md has no table of the tests")
	}
	seconds := map[string]string{}
	for _, row := range measured.FindAllSubmatch(document[at[2]:at[3]], -1) {
		seconds[string(row[1])] = string(row[2])
	}
	rows := testRows(t, seconds, "*_test.go", "../cluster/*_test.go")
	if want := slices.Concat(document[:at[2]], []byte(rows), document[at[3]:]); *update {
		err = os.WriteFile("README.md", want, 0o644) //nolint:gosec // a document
	} else if !slices.Equal(document, want) {
		err = fmt.Errorf("the table of the tests in hack/e2e/README.md is not that of their comments: run 'go test ./hack/e2e -run TestReadme -update'")
	}
	if err != nil {
		t.Error(err)
	}
}

// testRows returns the rows of the table for the tests in files, by their names.
func testRows(t *testing.T, seconds map[string]string, patterns ...string) string {
	t.Helper()
	tests := testsIn(t, patterns...)
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", described(tests[name]), shareOf(tests[name]), seconds[name])
	}
	return table.String()
}

// testsIn returns the tests in files, by their names.
func testsIn(t *testing.T, patterns ...string) map[string]*ast.FuncDecl {
	t.Helper()
	tests := map[string]*ast.FuncDecl{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				if f, is := declaration.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
					tests[f.Name.Name] = f
				}
			}
		}
	}
	return tests
}

// described is a test's name, and the first sentence of its comment.
func described(f *ast.FuncDecl) string {
	text := strings.Join(strings.Fields(f.Doc.Text()), " ")
	sentence, _, _ := strings.Cut(text+" ", ". ")
	sentence = strings.TrimRight(sentence, ". ")
	return "`" + f.Name.Name + "`" + strings.ReplaceAll(strings.TrimPrefix(sentence, f.Name.Name), "|", `\|`)
}

// shareOf is the smallest share that a test belongs to, by what it calls itself.
func shareOf(f *ast.FuncDecl) (share string) {
	share = "ci"
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit: // only a part of it
			return false
		case *ast.CallExpr:
			switch call := types.ExprString(n); {
			case call == "belongsTo(t, usual)":
				share = "default"
			case call == "belongsTo(t, long)", strings.HasPrefix(call, "askedConformance("):
				share = "all"
			case strings.HasPrefix(call, "lab.NeedsLack("):
				share = "kernels"
			}
		}
		return true
	})
	return share
}
