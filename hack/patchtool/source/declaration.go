package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// Kind is what a declaration declares.
type Kind string

// The kinds of declarations.
const (
	Function Kind = "func"
	Type     Kind = "type"
	Value    Kind = "value" // a constant or a variable
	Member   Kind = "member"
	Imports  Kind = "imports"
)

// Declaration is a named piece of a Go file.
type Declaration struct {
	// Name is "NewProxier" for what a package declares, and "Proxier.syncProxyRules" for a
	// method, a field, or a method of an interface.
	Name string
	Kind Kind
	// Text is the source without the doc comment. A member's is its own line or lines.
	Text string
	// First and Last are the lines that it covers, with its doc comment.
	First, Last int
	// signature is how many bytes of Text others compile against: all of it for what is not a function.
	signature int
}

// Change is what became of a declaration.
type Change string

// The changes, from the least to the most that a reviewer has to think about.
const (
	Unchanged Change = "unchanged"
	Comments  Change = "comments or layout"
	Body      Change = "body"
	Signature Change = "signature"
	Gone      Change = "gone"
)

// Compare tells what became of a declaration that was old and is current; nil if it is not
// there any more. The layout of the code makes no difference.
func Compare(old, current *Declaration) Change {
	switch {
	case current == nil || old.Kind != current.Kind:
		return Gone
	case old.Text == current.Text:
		return Unchanged
	case tokens(old.Text[:old.signature]) != tokens(current.Text[:current.signature]):
		return Signature
	case tokens(old.Text) != tokens(current.Text):
		return Body
	}
	return Comments
}

// tokens returns the code without its layout and comments.
func tokens(text string) string {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", -1, len(text)), []byte(text), nil, 0)
	var result strings.Builder
	semicolon := false
	for {
		_, tok, literal := s.Scan()
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
			return result.String()
		}
		if literal == "" {
			literal = tok.String()
		}
		result.WriteString(literal + "\n")
	}
}

// Parse returns the declarations of a file in their order; the members of a type come behind it.
func Parse(name, content string) ([]Declaration, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	r := reader{files: files, content: content}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			r.function(d)
		case *ast.GenDecl:
			r.general(d)
		}
	}
	return r.found, nil
}

// At returns the declaration that the line belongs to, members left aside; nil if it stands between two.
func At(declarations []Declaration, line int) *Declaration {
	for i, d := range declarations {
		if d.Kind != Member && d.First <= line && line <= d.Last {
			return &declarations[i]
		}
	}
	return nil
}

type reader struct {
	files   *token.FileSet
	content string
	found   []Declaration
}

// add takes the declaration between two positions. end is where others stop to compile against it.
func (r *reader) add(name string, kind Kind, doc *ast.CommentGroup, node ast.Node, end token.Pos) {
	first := node.Pos()
	start := r.files.Position(first).Offset
	if doc != nil {
		first = doc.Pos()
	}
	r.found = append(r.found, Declaration{
		Name: name, Kind: kind,
		Text:      r.content[start:r.files.Position(node.End()).Offset],
		First:     r.files.Position(first).Line,
		Last:      r.files.Position(node.End()).Line,
		signature: r.files.Position(end).Offset - start,
	})
}

func (r *reader) function(d *ast.FuncDecl) {
	name, end := d.Name.Name, d.End()
	if d.Recv != nil && len(d.Recv.List) > 0 {
		name = receiver(d.Recv.List[0].Type) + "." + name
	}
	if d.Body != nil {
		end = d.Body.Lbrace
	}
	r.add(name, Function, d.Doc, d, end)
}

// receiver returns the name of the type that a method belongs to.
func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func (r *reader) general(d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		r.add("imports", Imports, d.Doc, d, d.End())
		return
	}
	for _, spec := range d.Specs {
		var node ast.Node = spec
		doc := d.Doc
		if !d.Lparen.IsValid() {
			node = d // "type T …" and not "T …"
		}
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Doc != nil {
				doc = s.Doc
			}
			r.add(s.Name.Name, Type, doc, node, node.End())
			r.members(s)
		case *ast.ValueSpec:
			if s.Doc != nil {
				doc = s.Doc
			} else if d.Lparen.IsValid() {
				doc = nil // the group's does not belong to each
			}
			for _, name := range s.Names {
				r.add(name.Name, Value, doc, node, node.End())
			}
		}
	}
}

func (r *reader) members(s *ast.TypeSpec) {
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			r.add(s.Name.Name+"."+name.Name, Member, field.Doc, field, field.End())
		}
		if len(field.Names) == 0 {
			r.add(s.Name.Name+"."+embedded(field.Type), Member, field.Doc, field, field.End())
		}
	}
}

// embedded returns the name under which a type is embedded.
func embedded(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return embedded(e.X)
	}
	return receiver(expression)
}
