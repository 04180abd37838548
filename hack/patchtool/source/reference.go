package source

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Reference is a use of something that a package declares.
type Reference struct {
	// Package is an import path.
	Package string
	// Name is that of the Declaration.
	Name string
}

// Short returns the reference with the last part of the package's path alone.
func (r Reference) Short() string { return packageNames(r.Package)[0] + "." + r.Name }

// Users are the files that use a declaration, sorted, without repetition.
type Users map[Reference][]string

// Places tells of places in files which of them matter.
type Places func(file string, line int) bool

// Usage is what is asked of code that uses others'.
type Usage struct {
	// Package is the import path of the code, and Dir where it lies.
	Package, Dir string
	// Label turns a file's path into what is shown of it.
	Label func(file string) string
	// Uses tells which uses count; nil counts all.
	Uses Places
	// Own tells which declarations are not of others; nil is for none.
	Own Places
	// Prefix is what the import paths of the others begin with.
	Prefix string
}

// References returns what the code uses of others, outside of tests.
func (p *Packages) References(u Usage) (Users, error) {
	files, err := p.sources(u.Dir)
	if err != nil {
		return nil, err
	}
	parsed, err := p.parse(files)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	p.index(p.check(u.Package, parsed, false, info))
	if err := p.stopped(); err != nil {
		return nil, err
	}
	users := Users{}
	for ident, used := range info.Uses {
		at := p.files.Position(ident.Pos())
		if u.Uses != nil && !u.Uses(at.Filename, at.Line) {
			continue
		}
		reference, ok := p.reference(used)
		if !ok || !strings.HasPrefix(reference.Package, u.Prefix) || u.Own != nil && p.declaredIn(used, u.Own) {
			continue
		}
		users[reference] = append(users[reference], u.Label(at.Filename))
	}
	for reference, places := range users {
		slices.Sort(places)
		users[reference] = slices.Compact(places)
	}
	return users, nil
}

// reference names a used object; false for what no package declares: the local variables and parameters of a
// function, and the members of a type without a name.
func (p *Packages) reference(used types.Object) (Reference, bool) {
	switch o := used.(type) {
	case *types.Func:
		used = o.Origin()
	case *types.Var:
		used = o.Origin()
	}
	if used.Pkg() == nil {
		return Reference{}, false
	}
	if name, ok := p.names[used]; ok {
		return Reference{Package: used.Pkg().Path(), Name: name}, true
	}
	if used.Parent() != used.Pkg().Scope() {
		return Reference{}, false
	}
	return Reference{Package: used.Pkg().Path(), Name: used.Name()}, true
}

func (p *Packages) declaredIn(used types.Object, places Places) bool {
	at := p.files.Position(used.Pos())
	return used.Pos() != token.NoPos && places(at.Filename, at.Line)
}

// Declaration returns the declaration that is referred to; nil if there is none. A method or a field
// that its type has from another one, or under an alias, is found there.
func (p *Packages) Declaration(r Reference) (*Declaration, error) {
	all, err := p.Declarations(r.Package)
	if err != nil || all[r.Name] != nil {
		return all[r.Name], err
	}
	typeName, member, isMember := strings.Cut(r.Name, ".")
	if !isMember || all[typeName] == nil {
		return nil, nil
	}
	object, err := p.lookup(r.Package, typeName)
	if err != nil || object == nil {
		return nil, err
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, object.Pkg(), member)
	if found == nil {
		return nil, nil
	}
	elsewhere, ok := p.reference(found)
	if !ok || elsewhere == r {
		return nil, nil
	}
	all, err = p.Declarations(elsewhere.Package)
	return all[elsewhere.Name], err
}

func (p *Packages) lookup(importPath, name string) (*types.TypeName, error) {
	checked, err := p.Import(importPath)
	if err != nil {
		return nil, err
	}
	object, _ := checked.Scope().Lookup(name).(*types.TypeName)
	return object, nil
}

// Implementations returns the methods that the types of an interface's own package have for a method
// of the interface, sorted; none for what is no such method. They may be another package's.
func (p *Packages) Implementations(r Reference) ([]Reference, error) {
	typeName, method, isMember := strings.Cut(r.Name, ".")
	if !isMember {
		return nil, nil
	}
	declared, err := p.lookup(r.Package, typeName)
	if err != nil || declared == nil || !types.IsInterface(declared.Type()) || generic(declared) {
		return nil, err
	}
	wanted, _ := declared.Type().Underlying().(*types.Interface)
	var found []Reference
	scope := declared.Pkg().Scope()
	for _, name := range scope.Names() {
		other, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || types.IsInterface(other.Type()) || generic(other) || !types.Implements(types.NewPointer(other.Type()), wanted) {
			continue
		}
		object, _, _ := types.LookupFieldOrMethod(other.Type(), true, other.Pkg(), method)
		if object == nil {
			continue
		}
		if reference, ok := p.reference(object); ok && reference != r && !slices.Contains(found, reference) {
			found = append(found, reference)
		}
	}
	slices.SortFunc(found, compareReferences)
	return found, nil
}

func generic(declared *types.TypeName) bool {
	named, ok := declared.Type().(*types.Named)
	return ok && named.TypeParams().Len() > 0
}

// Sorted returns the references by package and name.
func (u Users) Sorted() []Reference {
	var all []Reference
	for reference := range u {
		all = append(all, reference)
	}
	slices.SortFunc(all, compareReferences)
	return all
}

func compareReferences(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
}

// Add takes over the users of others.
func (u Users) Add(others Users) {
	for reference, places := range others {
		all := append(slices.Clone(u[reference]), places...)
		slices.Sort(all)
		u[reference] = slices.Compact(all)
	}
}
