package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/source"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// finder knows where packages lie for a build of our code against a release: Kubernetes and what it depends
// on as go lists them for the tree, staging modules in the versions that belong to the release, and what our
// code alone depends on in vendor/.
type finder struct {
	own ourCode
	// listed has directories by import path, modules by the path of a module.
	listed, modules map[string]string
	// standard is where the standard library lies.
	standard string
}

// ourCode is our code.
type ourCode struct {
	// module is the path of our module, and root where it lies.
	module, root string
	// packages are the directories of our packages.
	packages []string
}

// path returns the import path of one of our packages.
func (o ourCode) path(dir string) string {
	name, err := filepath.Rel(o.root, dir)
	if err != nil {
		return dir
	}
	return o.module + "/" + filepath.ToSlash(name)
}

// ownCode finds the packages in folders of our repository.
func (p *project) ownCode(ctx context.Context, folders []string) (ourCode, error) {
	m, err := readModule(ctx, p.root)
	if err != nil {
		return ourCode{}, err
	}
	o := ourCode{module: m.Module.Path, root: p.root}
	for _, folder := range folders {
		err = filepath.WalkDir(filepath.Join(p.root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" || entry.Name() == "vendor" {
				return fs.SkipDir
			}
			o.packages = append(o.packages, name)
			return nil
		})
		if err != nil {
			return ourCode{}, fmt.Errorf("find our packages: %w", err)
		}
	}
	return o, nil
}

// newFinder lists the packages that our code, built with the tags, and the tree's packages in the
// folders depend on.
func newFinder(ctx context.Context, o ourCode, dir string, folders []string, tags ...string) (*finder, error) {
	wanted, err := imports(o, tags)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		wanted = append(wanted, "./"+folder)
	}
	f := &finder{own: o, listed: map[string]string{}, modules: map[string]string{}}
	command := tree.Go(ctx, dir, append([]string{"list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Module"}, wanted...)...)
	command.Env = append(command.Env, "GOARCH=amd64")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w: %s", dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return f, f.read(bytes.NewReader(output))
}

// imports returns what of the standard library and of Kubernetes' modules our code imports.
func imports(o ourCode, tags []string) ([]string, error) {
	var all []string
	linux := source.Linux(tags...)
	for _, dir := range o.packages {
		p, err := linux.ImportDir(dir, 0)
		var none *build.NoGoError
		if errors.As(err, &none) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the imports of %s: %w", dir, err)
		}
		for _, name := range p.Imports {
			first, _, _ := strings.Cut(name, "/")
			if strings.HasPrefix(name, upstreamPrefix) || !strings.Contains(first, ".") {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// read takes what `go list -json` prints.
func (f *finder) read(output io.Reader) error {
	decoder := json.NewDecoder(output)
	for {
		var p struct {
			ImportPath, Dir string
			Standard        bool
			Module          *struct{ Path, Dir string }
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read what go lists: %w", err)
		case p.Dir == "":
			continue // not found; whether it is needed will show
		}
		f.listed[p.ImportPath] = p.Dir
		if p.Standard {
			f.standard = strings.TrimSuffix(p.Dir, "/"+p.ImportPath)
		}
		if p.Module != nil && p.Module.Dir != "" {
			f.modules[p.Module.Path] = p.Module.Dir
		}
	}
}

// find returns the directory of a package; "" if it is not known.
func (f *finder) find(importPath string) string {
	if dir, ok := f.listed[importPath]; ok {
		return dir
	}
	if name, ok := strings.CutPrefix(importPath, f.own.module+"/"); ok {
		return existing(f.own.root, name)
	}
	for module := importPath; strings.Contains(module, "/"); module = module[:strings.LastIndex(module, "/")] {
		if dir, ok := f.modules[module]; ok {
			return existing(dir, strings.TrimPrefix(importPath, module))
		}
	}
	if dir := existing(f.own.root, "vendor", importPath); dir != "" && !strings.HasPrefix(importPath, upstreamPrefix) {
		return dir
	}
	if f.standard == "" {
		return ""
	}
	if dir := existing(f.standard, "vendor", importPath); dir != "" {
		return dir
	}
	return existing(f.standard, importPath)
}

func existing(elements ...string) string {
	dir := filepath.Join(elements...)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
