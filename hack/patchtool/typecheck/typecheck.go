package typecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// maxFaults is how many are reported of a package; the others mostly follow from these.
const maxFaults = 10

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	// DepOnly tells that nobody asked for it; another package imports it.
	DepOnly bool
	Module  *struct {
		GoVersion string
		Main      bool
	}
}

// declared tells that only the package's declarations count: it is a dependency from another module.
func (p listed) declared() bool { return p.DepOnly && (p.Module == nil || !p.Module.Main) }

// Arguments are those of the go command that [Check] runs, in front of the patterns of packages.
func Arguments() []string { return []string{"list", "-deps", "-test", "-json"} }

// Check type-checks the packages that the command lists, which is `go` with [Arguments], with their
// tests, and those that they import of their own module. Of their other dependencies it reads only the declarations. It
// returns how many packages it checked, tests included, and what is wrong with them; the error is one of listing or reading them.
func Check(list *exec.Cmd) (count int, faults []string, err error) {
	packages, err := read(list)
	if err != nil {
		return 0, nil, err
	}
	c := &checker{files: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	parsed, err := c.parse(packages)
	if err != nil {
		return 0, nil, err
	}
	for i, p := range packages { // go lists each after those that it imports
		if strings.HasSuffix(p.ImportPath, ".test") || p.ImportPath == "unsafe" {
			continue // the main package that go generates for a test
		}
		found := c.check(p, parsed[i])
		if !p.declared() { // a fault of a dependency shows in the package that uses what is wrong
			faults = append(faults, found[:min(len(found), maxFaults)]...)
			count++
		}
	}
	return count, faults, nil
}

// read returns the packages in the order of their dependencies.
func read(list *exec.Cmd) ([]listed, error) {
	var stderr bytes.Buffer
	list.Stderr = &stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", strings.Join(list.Args, " "), list.Dir, err, strings.TrimSpace(stderr.String()))
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

type checker struct {
	files *token.FileSet
	done  map[string]*types.Package
}

// parse parses the files of all packages. A syntax error is an error here: go has read the files before.
func (c *checker) parse(packages []listed) ([][]*ast.File, error) {
	parsed, failed := make([][]*ast.File, len(packages)), make([]error, len(packages))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, p := range packages {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for _, name := range p.GoFiles {
				if !filepath.IsAbs(name) { // those that go generates are
					name = filepath.Join(p.Dir, name)
				}
				file, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
				failed[i] = errors.Join(failed[i], err)
				parsed[i] = append(parsed[i], file)
			}
		})
	}
	wait.Wait()
	return parsed, errors.Join(failed...)
}

// check type-checks one package.
func (c *checker) check(p listed, files []*ast.File) []string {
	var faults []string
	config := types.Config{
		IgnoreFuncBodies: p.declared(),
		Importer:         importer{c.done, p.ImportMap},
		Sizes:            types.SizesFor("gc", "amd64"),
		Error:            func(err error) { faults = append(faults, err.Error()) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // "p [p.test]"
	c.done[p.ImportPath], _ = config.Check(path, c.files, files, nil)
	return faults
}

// importer knows the packages that are checked, and as what a package imports them.
type importer struct {
	done map[string]*types.Package
	as   map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if as, ok := i.as[path]; ok {
		path = as
	}
	if found := i.done[path]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("go does not list %s before the package that imports it", path)
}
