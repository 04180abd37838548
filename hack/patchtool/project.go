package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// project is the repository that a command works on.
type project struct {
	// root is where our own go.mod is, absolute.
	root           string
	patches, cache string
	stdout, stderr io.Writer
	unwritten      error // why something did not reach stdout
	// download returns the directory of a release's module; nil takes it from the module cache.
	download func(ctx context.Context, version string) (string, error)
}

// printf writes to stdout. An error is for the end of the command.
func (p *project) printf(format string, arguments ...any) {
	if _, err := fmt.Fprintf(p.stdout, format, arguments...); err != nil && p.unwritten == nil {
		p.unwritten = fmt.Errorf("print: %w", err)
	}
}

// patched are the packages that the series is about: they are compiled, tested and merged as a whole.
var patched = []string{"cmd/kube-proxy", "pkg/proxy"}

// member is a patch of a branch's series.
type member struct {
	branch.Entry
	// file is the path of the patch's file.
	file  string
	patch *patch.Patch
}

func (p *project) module(ctx context.Context, version string) (string, error) {
	if p.download != nil {
		return p.download(ctx, version)
	}
	return tree.Download(ctx, version)
}

// release returns what a tree of a version is made of.
func (p *project) release(ctx context.Context, version string) (tree.Release, error) {
	module, err := p.module(ctx, version)
	if err != nil {
		return tree.Release{}, err
	}
	sums, err := branch.Sums(p.patches)
	if err != nil {
		return tree.Release{}, err
	}
	return tree.Release{Version: version, Module: module, Sums: sums}, nil
}

// series reads the patches of a branch in their order.
func (p *project) series(b branch.Branch) ([]member, error) {
	entries, err := branch.Series(os.DirFS(p.patches), b)
	if err != nil {
		return nil, err
	}
	var series []member
	for _, entry := range entries {
		m, err := p.member(entry)
		if err != nil {
			return nil, err
		}
		series = append(series, m)
	}
	return series, nil
}

// member reads a patch.
func (p *project) member(entry branch.Entry) (member, error) {
	file, err := filepath.Abs(filepath.Join(p.patches, entry.Path))
	if err != nil {
		return member{}, fmt.Errorf("find a patch: %w", err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return member{}, fmt.Errorf("read a patch: %w", err)
	}
	parsed, err := patch.Parse(entry.Path, string(content))
	return member{Entry: entry, file: file, patch: parsed}, err
}

// files returns the paths of the series' patches.
func files(series []member) []string {
	var paths []string
	for _, m := range series {
		paths = append(paths, m.file)
	}
	return paths
}

// directories returns what a scratch repository needs of a module: the patched packages, and whatever
// else the series touches.
func directories(series []member) []string {
	names := slices.Clone(patched)
	for _, m := range series {
		for _, file := range m.patch.Files {
			if !slices.ContainsFunc(names, func(dir string) bool { return within(file.Path, dir) }) {
				names = append(names, path.Dir(file.Path))
			}
		}
	}
	return names
}

func within(file, dir string) bool {
	return file == dir || len(file) > len(dir) && file[:len(dir)+1] == dir+"/"
}

// packages returns the patterns of the packages to compile.
func packages(series []member) []string {
	var patterns []string
	for _, dir := range directories(series) {
		pattern := "./" + dir
		if slices.Contains(patched, dir) {
			pattern += "/..."
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}

// repository returns a new scratch repository; remove deletes it.
func repository(ctx context.Context) (r *scratch.Repository, remove func(), err error) {
	dir, err := os.MkdirTemp("", "patchtool-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a scratch repository: %w", err)
	}
	remove = func() {
		_ = os.RemoveAll(dir) // a temporary directory; what stays is nobody's harm
	}
	r, err = scratch.New(ctx, dir)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return r, remove, nil
}

// exactly refuses any other number of arguments; make gives empty ones for variables that are not set.
func exactly(count int, what string, arguments []string) error {
	if len(arguments) != count || slices.Contains(arguments, "") {
		return fmt.Errorf("arguments %q: want %s", arguments, what)
	}
	return nil
}
