package source

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Packages are Go packages on disk as a build for linux/amd64 sees them, each read when it is asked for.
type Packages struct {
	find    func(importPath string) string
	stopped func() error
	context build.Context
	files   *token.FileSet

	imported     map[string]*types.Package
	declarations map[string]map[string]*Declaration
	names        map[types.Object]string // fields and methods to "Type.name"
	unknown      map[string]bool
}

// Open returns packages that find knows the directories of; it returns "" for one that it does not.
// What such a package declares is taken for unknown, without an error. The tags are those of
// the build. From when stopped returns an error on, nothing is read, and that error returned.
func Open(find func(importPath string) string, stopped func() error, tags ...string) *Packages {
	return &Packages{
		find: find, stopped: stopped, context: Linux(tags...), files: token.NewFileSet(),
		imported:     map[string]*types.Package{"unsafe": types.Unsafe},
		declarations: map[string]map[string]*Declaration{},
		names:        map[types.Object]string{}, unknown: map[string]bool{},
	}
}

// Linux returns the build constraints that hold: those of linux/amd64 without cgo, and the tags.
func Linux(tags ...string) build.Context {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	context.GOPATH = "" // packages are where find says
	context.BuildTags = tags
	return context
}

// Unknown returns the import paths whose packages were wanted and not found, sorted.
func (p *Packages) Unknown() []string { return slices.Sorted(maps.Keys(p.unknown)) }

// Declarations returns what a package declares, outside of tests. One that is not there declares nothing.
func (p *Packages) Declarations(importPath string) (map[string]*Declaration, error) {
	if known, ok := p.declarations[importPath]; ok {
		return known, nil
	}
	all := map[string]*Declaration{}
	p.declarations[importPath] = all
	dir := p.find(importPath)
	if dir == "" {
		return all, nil
	}
	files, err := p.sources(dir)
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
	checked, err := p.Import(importPath)
	if err != nil {
		return nil, err
	}
	shape(checked, all)
	return all, nil
}

// sources returns the files of the package in a directory that a build compiles, without tests.
func (p *Packages) sources(dir string) ([]string, error) {
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
		match, err := p.context.MatchFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
		}
		if match {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, nil
}

// Import type-checks a package, without the bodies of functions, and makes up an empty one if it is
// not found. It is for package types, which asks for every import.
func (p *Packages) Import(importPath string) (*types.Package, error) {
	if known := p.imported[importPath]; known != nil {
		return known, nil
	}
	dir := p.find(importPath)
	if dir == "" {
		return p.makeUp(importPath), nil
	}
	p.imported[importPath] = types.NewPackage(importPath, packageNames(importPath)[0]) // ends a cycle
	files, err := p.sources(dir)
	if err != nil {
		return nil, err
	}
	parsed, err := p.parse(files)
	if err != nil {
		return nil, err
	}
	checked := p.check(importPath, parsed, true, nil)
	p.imported[importPath] = checked
	p.index(checked)
	return checked, p.stopped() // what it imports may be missing
}

func (p *Packages) makeUp(importPath string) *types.Package {
	made := types.NewPackage(importPath, packageNames(importPath)[0])
	made.MarkComplete()
	p.imported[importPath] = made
	p.unknown[importPath] = true
	return made
}

func (p *Packages) parse(files []string) ([]*ast.File, error) {
	var parsed []*ast.File
	for _, file := range files {
		if err := p.stopped(); err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(p.files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		parsed = append(parsed, syntax)
	}
	return parsed, nil
}

// check type-checks as far as the sources allow.
func (p *Packages) check(importPath string, files []*ast.File, signaturesOnly bool, info *types.Info) *types.Package {
	config := types.Config{
		Importer: p, IgnoreFuncBodies: signaturesOnly, FakeImportC: true,
		Sizes: types.SizesFor("gc", "amd64"),
		Error: func(error) {}, // unknown dependencies make many
	}
	checked, _ := config.Check(importPath, p.files, files, info)
	return checked
}

// index notes the names of a package's fields and methods.
func (p *Packages) index(checked *types.Package) {
	for _, name := range checked.Scope().Names() {
		declared, ok := checked.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		for member := range members(declared) {
			p.names[member] = name + "." + member.Name()
		}
	}
}
