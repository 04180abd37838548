package source

import (
	"fmt"
	"go/ast"
	"go/parser"
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
	// Doc is the doc comment without its marks, and without lines that are for generators ("+k8s:…"). What
	// stands at a group belongs to none of it.
	Doc string
	// First and Last are the lines that it covers, with its doc comment.
	First, Last int

	// signature is how many bytes of Text others compile against.
	signature int
	// head is the code of these bytes, and code that of all, without layout and comments, and
	// with the paths of imported packages in the place of their names in the file.
	head, code string
	// headImports and imports are the paths that head and code have.
	headImports, imports []string
	// shape is what type-checking makes of head, where it was possible, and value what it makes
	// of a constant.
	shape, value string
}

// Head returns the source that others compile against: a function without its body.
func (d *Declaration) Head() string { return strings.TrimSpace(d.Text[:d.signature]) }

// HeadImports returns the paths of the packages that Head names, sorted.
func (d *Declaration) HeadImports() []string { return d.headImports }

// Imports returns the paths of the packages that Text names, sorted.
func (d *Declaration) Imports() []string { return d.imports }

// Parse returns the declarations of a file in their order; the members of a type come behind it.
func Parse(name, content string) ([]Declaration, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments) // resolves what is local to the file
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	r := reader{files: files, content: content, imported: importNames(files, file)}
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
	// imported has, by the offset of an import's name in the content, the path that it stands for.
	imported map[int]string
	found    []Declaration
}

// add takes the declaration between two positions. end is where others stop to compile against it.
func (r *reader) add(name string, kind Kind, doc *ast.CommentGroup, node ast.Node, end token.Pos) {
	first := node.Pos()
	start, stop := r.offset(first), r.offset(node.End())
	if doc != nil {
		first = doc.Pos()
	}
	head, headImports := r.tokens(start, r.offset(end))
	code, imports := r.tokens(start, stop)
	r.found = append(r.found, Declaration{
		Name: name, Kind: kind,
		Text:      r.content[start:stop],
		Doc:       prose(doc.Text()),
		First:     r.files.Position(first).Line,
		Last:      r.files.Position(node.End()).Line,
		signature: r.offset(end) - start,
		head:      head, headImports: headImports,
		code: code, imports: imports,
	})
}

// prose returns a doc comment without the lines that are for generators.
func prose(doc string) string {
	var kept strings.Builder
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "+") {
			kept.WriteString(line)
		}
	}
	return strings.TrimSpace(kept.String())
}

func (r *reader) offset(at token.Pos) int { return r.files.Position(at).Offset }

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
		if d.Lparen.IsValid() {
			doc = nil // the group's does not belong to each
		}
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Doc != nil {
				doc = s.Doc
			}
			r.add(s.Name.Name, Type, doc, node, opening(s, node.End()))
			r.members(s)
		case *ast.ValueSpec:
			if s.Doc != nil {
				doc = s.Doc
			}
			end := s.Names[len(s.Names)-1].End()
			if s.Type != nil {
				end = s.Type.End()
			}
			for _, name := range s.Names {
				r.add(name.Name, Value, doc, node, end)
			}
		}
	}
}

// opening is where the members of a type begin, which are declarations of their own; end if it has none.
func opening(s *ast.TypeSpec, end token.Pos) token.Pos {
	switch t := s.Type.(type) {
	case *ast.StructType:
		return t.Fields.Opening
	case *ast.InterfaceType:
		return t.Methods.Opening
	}
	return end
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
