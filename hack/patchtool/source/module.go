package source

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Module is a module's sources on disk, as Linux sees them. It may be without its
// dependencies: what they declare is taken for unknown, without an error.
type Module struct {
	path, root string

	files    *token.FileSet
	context  build.Context
	imported map[string]*types.Package
	names    map[types.Object]string // fields and methods to "Type.name"
}

// Open returns the module with the import path whose go.mod lies in root.
func Open(modulePath, root string) *Module {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	context.GOPATH = "" // packages are where we say
	return &Module{
		path: modulePath, root: root, files: token.NewFileSet(), context: context,
		imported: map[string]*types.Package{}, names: map[types.Object]string{},
	}
}

// Declarations returns what the package in the module's folder declares for Linux, outside of
// tests. A folder that is not there declares nothing.
func (m *Module) Declarations(folder string) (map[string]*Declaration, error) {
	all := map[string]*Declaration{}
	files, err := m.sources(filepath.Join(m.root, folder))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a source: %w", err)
		}
		declarations, err := Parse(file, string(content))
		if err != nil {
			return nil, err
		}
		for i := range declarations {
			if d := &declarations[i]; d.Kind != Imports {
				all[d.Name] = d
			}
		}
	}
	return all, nil
}

// sources returns the files of the package in a directory that a build for Linux compiles.
func (m *Module) sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a package: %w", err)
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		match, err := m.context.MatchFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
		}
		if match {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, nil
}

// Import type-checks a package of the module from its source, and makes up an empty one for any other
// path. It is for package types, which asks for every import.
func (m *Module) Import(importPath string) (*types.Package, error) {
	if known := m.imported[importPath]; known != nil {
		return known, nil
	}
	folder, ours := strings.CutPrefix(importPath, m.path+"/")
	if !ours {
		return m.unknown(importPath), nil
	}
	m.imported[importPath] = types.NewPackage(importPath, path.Base(importPath)) // ends a cycle
	files, err := m.sources(filepath.Join(m.root, folder))
	if err != nil {
		return nil, err
	}
	parsed, err := m.parse(files)
	if err != nil {
		return nil, err
	}
	checked := m.check(importPath, parsed, true, nil)
	m.imported[importPath] = checked
	m.index(checked)
	return checked, nil
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// unknown makes up an empty package, also for one of the standard library: nothing in them leads
// back to the module.
func (m *Module) unknown(importPath string) *types.Package {
	name := path.Base(importPath)
	if version.MatchString(name) {
		name = path.Base(path.Dir(importPath))
	}
	made := types.NewPackage(importPath, name)
	made.MarkComplete()
	m.imported[importPath] = made
	return made
}

func (m *Module) parse(files []string) ([]*ast.File, error) {
	var parsed []*ast.File
	for _, file := range files {
		syntax, err := parser.ParseFile(m.files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		parsed = append(parsed, syntax)
	}
	return parsed, nil
}

// check type-checks as far as the sources allow.
func (m *Module) check(importPath string, files []*ast.File, signaturesOnly bool, info *types.Info) *types.Package {
	config := types.Config{
		Importer: m, IgnoreFuncBodies: signaturesOnly, FakeImportC: true,
		Error: func(error) {}, // unknown dependencies make many
	}
	checked, _ := config.Check(importPath, m.files, files, info)
	return checked
}

// index notes the names of a package's fields and methods.
func (m *Module) index(p *types.Package) {
	for _, name := range p.Scope().Names() {
		declared, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		if named, ok := declared.Type().(*types.Named); ok {
			for method := range named.Methods() {
				m.names[method] = name + "." + method.Name()
			}
		}
		switch underlying := declared.Type().Underlying().(type) {
		case *types.Struct:
			for field := range underlying.Fields() {
				m.names[field] = name + "." + field.Name()
			}
		case *types.Interface:
			for method := range underlying.ExplicitMethods() {
				m.names[method] = name + "." + method.Name()
			}
		}
	}
}
