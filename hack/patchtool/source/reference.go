package source

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// Reference is a use of something that a module's package declares.
type Reference struct {
	// Folder is the package's within the module, for example "pkg/proxy".
	Folder string
	// Name is that of the Declaration.
	Name string
}

// Users are the files that use a declaration, sorted, without repetition.
type Users map[Reference][]string

// References returns what the packages in dirs, which may lie anywhere, use of the module. label turns
// a file's path into what is shown of it. ours tells of a line of a file whether its uses
// count, and of a declaration's line whether it is not the module's own; nil counts all.
func (m *Module) References(dirs []string, label func(file string) string, ours func(file string, line int) bool) (Users, error) {
	users := Users{}
	for _, dir := range dirs {
		files, err := m.sources(dir)
		if err != nil {
			return nil, err
		}
		parsed, err := m.parse(files)
		if err != nil {
			return nil, err
		}
		importPath := dir
		if folder, err := filepath.Rel(m.root, dir); err == nil && filepath.IsLocal(folder) {
			importPath = m.path + "/" + filepath.ToSlash(folder)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		m.index(m.check(importPath, parsed, false, info))
		for ident, used := range info.Uses {
			at := m.files.Position(ident.Pos())
			if ours != nil && !ours(at.Filename, at.Line) {
				continue
			}
			reference, ok := m.reference(used)
			if !ok || ours != nil && m.declaredBy(used, ours) {
				continue
			}
			users[reference] = append(users[reference], label(at.Filename))
		}
	}
	for reference, places := range users {
		slices.Sort(places)
		users[reference] = slices.Compact(places)
	}
	return users, nil
}

// reference names a used object; false for what the module does not declare, and for the local
// variables and parameters of a function.
func (m *Module) reference(used types.Object) (Reference, bool) {
	if used.Pkg() == nil {
		return Reference{}, false
	}
	folder, ok := strings.CutPrefix(used.Pkg().Path(), m.path+"/")
	if !ok {
		return Reference{}, false
	}
	if function, ok := used.(*types.Func); ok {
		used = function.Origin()
	}
	if name, ok := m.names[used]; ok {
		return Reference{Folder: folder, Name: name}, true
	}
	if used.Parent() != used.Pkg().Scope() {
		return Reference{}, false
	}
	return Reference{Folder: folder, Name: used.Name()}, true
}

func (m *Module) declaredBy(used types.Object, ours func(string, int) bool) bool {
	at := m.files.Position(used.Pos())
	return used.Pos() != token.NoPos && ours(at.Filename, at.Line)
}

// Sorted returns the references by folder and name.
func (u Users) Sorted() []Reference {
	var all []Reference
	for reference := range u {
		all = append(all, reference)
	}
	slices.SortFunc(all, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Folder, b.Folder), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Add takes over the users of others.
func (u Users) Add(others Users) {
	for reference, places := range others {
		all := append(u[reference], places...)
		slices.Sort(all)
		u[reference] = slices.Compact(all)
	}
}
