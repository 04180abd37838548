package pool

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// TestReasons_AreAll: each constant of the type is in the table of what it means.
func TestReasons_AreAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if of, is := spec.Type.(*ast.Ident); is && of.Name == "Reason" {
			constants++
			text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if Reason(text).Because() == "" {
				t.Errorf("reasons has no text of %s", spec.Names[0])
			}
		}
		return true
	})
	if constants != len(reasons) {
		t.Errorf("there are %d constants, and reasons has %d", constants, len(reasons))
	}
}
