package source

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Change is what became of a declaration.
type Change string

// The changes, from the least to the most that a reviewer has to think about.
const (
	Unchanged Change = "unchanged"
	Comments  Change = "comments or layout"
	Doc       Change = "doc comment"
	Members   Change = "members"
	Body      Change = "body"
	Signature Change = "signature"
	Gone      Change = "gone"
	New       Change = "new"
)

// Compare tells what became of a declaration that was old and is current; nil if it is not there. Neither
// the layout of the code makes a difference nor what a file calls the packages that it imports,
// and to a signature neither do the names of parameters. The members of a type, and the value of a
// constant or a variable, stand for its body.
func Compare(old, current *Declaration) Change {
	switch {
	case current == nil:
		return Gone
	case old == nil:
		return New
	case !sameSignature(old, current):
		return Signature
	case old.code != current.code && old.Kind == Type:
		return Members
	case old.code != current.code || old.value != current.value:
		return Body
	case DocChanged(old, current):
		return Doc
	case old.Text != current.Text:
		return Comments
	}
	return Unchanged
}

// DocChanged tells whether the doc comment says something else.
func DocChanged(old, current *Declaration) bool {
	return !slices.Equal(strings.Fields(old.Doc), strings.Fields(current.Doc))
}

func sameSignature(old, current *Declaration) bool {
	known := old.shape != "" && current.shape != ""
	switch {
	case old.Kind == current.Kind && known:
		return old.shape == current.shape
	case old.Kind == current.Kind:
		return old.head == current.head
	}
	// A method may come to a type from an interface that it embeds.
	return known && method(old) != "" && method(old) == method(current)
}

// method returns what a caller sees of a function or a method; "" of anything else.
func method(d *Declaration) string {
	text := strings.TrimPrefix(d.shape, "*")
	if !strings.HasPrefix(text, "func(") {
		return ""
	}
	return text
}

// BodyChanged tells whether a function does something else, whatever became of its signature.
func BodyChanged(old, current *Declaration) bool {
	return old.Kind == Function && current.Kind == Function &&
		strings.TrimPrefix(old.code, old.head) != strings.TrimPrefix(current.code, current.head)
}

// tokens returns a part of the content without its layout and comments, with the paths of imports, and these
// paths.
func (r *reader) tokens(start, end int) (code string, imports []string) {
	text := r.content[start:end]
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, 0)
	var result strings.Builder
	semicolon := false
	for {
		at, tok, literal := s.Scan()
		if tok == token.SEMICOLON {
			semicolon = true
			continue
		}
		// The end of a line makes one that "return nil }" does without.
		if semicolon && tok != token.RBRACE && tok != token.RPAREN && tok != token.EOF {
			result.WriteString(";\n")
		}
		semicolon = false
		if tok == token.EOF {
			slices.Sort(imports)
			return result.String(), slices.Compact(imports)
		}
		if imported, ok := r.imported[start+file.Offset(at)]; ok {
			literal = imported
			imports = append(imports, imported)
		} else if literal == "" {
			literal = tok.String()
		}
		result.WriteString(literal + "\n")
	}
}

// importNames returns the path that each use of an import's name stands for, by its offset.
func importNames(files *token.FileSet, file *ast.File) map[int]string {
	paths := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it
		}
		if spec.Name != nil {
			paths[spec.Name.Name] = imported
			continue
		}
		for _, name := range packageNames(imported) {
			if paths[name] == "" {
				paths[name] = imported
			}
		}
	}
	uses := map[int]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if name, ok := selector.X.(*ast.Ident); ok && name.Obj == nil && paths[name.Name] != "" {
			uses[files.Position(name.Pos()).Offset] = paths[name.Name]
		}
		return true
	})
	return uses
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// packageNames guesses what a package may call itself: "k8s.io/klog/v2" is klog, "k8s.io/api/core/v1" is v1.
func packageNames(importPath string) []string {
	name := path.Base(importPath)
	if version.MatchString(name) {
		return []string{path.Base(path.Dir(importPath)), name}
	}
	name, _, _ = strings.Cut(name, ".v") // gopkg.in/yaml.v3
	return []string{name}
}
