package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// side is one of the two releases that are compared.
type side struct {
	branch.Branch
	series []member
	tree   *tree.Tree
	// packages has the folders of the packages that we rely on, by import path; an empty one if the release
	// does not have the package.
	packages map[string]string
}

func (p *project) reviewCommand(*flag.FlagSet) func(context.Context, []string) error {
	return func(ctx context.Context, arguments []string) error {
		if len(arguments) != 2 || arguments[0] == arguments[1] {
			return fmt.Errorf("arguments %q: expected two releases, for example v1.36.4 v1.37.1", arguments)
		}
		all, err := branch.Load(p.Patches)
		if err != nil {
			return err
		}
		from, err := p.side(ctx, all, arguments[0])
		if err != nil {
			return err
		}
		to, err := p.side(ctx, all, arguments[1])
		if err != nil {
			return err
		}
		return inScratch(ctx, func(r *scratch.Repository) error { return p.review(ctx, r, from, to) })
	}
}

// side makes the patched tree of a release, and finds the packages that we rely on: those that our code
// imports, and those that the series changes.
func (p *project) side(ctx context.Context, all branch.Branches, version string) (*side, error) {
	b, err := all.Of(version)
	if err != nil {
		return nil, err
	}
	s := &side{Branch: b, packages: map[string]string{}}
	if s.series, err = p.series(b); err != nil {
		return nil, err
	}
	if s.tree, err = p.Tree(ctx, b, true); err != nil {
		return nil, err
	}
	imports, err := output(tree.Go(ctx, p.root, "list", "-mod=vendor", "-f", `{{join .Imports "\n"}}`, "./cmd/...", "./pkg/..."))
	if err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(strings.Fields(imports), func(name string) bool { return !strings.HasPrefix(name, "k8s.io/") })
	for _, file := range touched(s.series) {
		wanted = append(wanted, tree.Kubernetes+"/"+path.Dir(file))
	}
	listed, err := output(tree.Go(ctx, s.tree.Dir, append([]string{"list", "-e", "-f", "{{.ImportPath}} {{.Dir}}"}, wanted...)...))
	for line := range strings.Lines(listed) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.packages[name] = dir
	}
	return s, err
}

// touched returns the files that a series touches.
func touched(series []member) (files []string) {
	for _, m := range series {
		files = append(files, patch.Files(m.content)...)
	}
	return files
}

// output runs a command and returns what it prints to stdout.
func output(command *exec.Cmd) (string, error) {
	printed, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s in %s: %w\n%s", strings.Join(command.Args, " "), command.Dir, err, exit.Stderr)
	}
	return string(printed), err
}

// review writes the page: a summary first, then what it is made of.
func (p *project) review(ctx context.Context, r *scratch.Repository, from, to *side) error {
	for _, s := range []*side{from, to} {
		if err := p.release(ctx, r, s.Version, s.Version, slices.Concat(from.series, to.series)); err != nil {
			return err
		}
		if err := apply(ctx, r, s.series, s.Version+"-patch", s.Version); err != nil {
			return err
		}
	}
	series := func(s *side) string { return fmt.Sprintf("%s..%s-patch%d", s.Version, s.Version, len(s.series)-1) }
	rangeDiff, err := r.Git(ctx, "range-diff", "--no-color", series(from), series(to))
	if err != nil {
		return err
	}
	stat, err := r.Git(ctx, append([]string{"diff", "--stat=100", from.Version, to.Version, "--"}, touched(from.series)...)...)
	if err != nil {
		return err
	}
	changes, err := p.apiChanges(ctx, from, to)
	if err != nil {
		return err
	}
	p.printf("# Kubernetes %s to %s: what it means for patches/\n\n", from.Version, to.Version)
	p.printf("* **The series** applies to both releases: %s.\n", sameness(rangeDiff))
	p.printf("* **Files that it changes**: upstream made these changes to them: %s.\n", lastLine(stat))
	p.printf("* **API that our code and the series rely on**: of %d packages, %d have incompatible changes.\n\n", len(from.packages), len(changes))
	p.printf("## The series on both releases: git range-diff\n\n\"=\" marks a patch that is the same, \"!\" one whose lines or context differ.\n\n```diff\n%s```\n\n", rangeDiff)
	p.printf("## What upstream changed in these files: git diff --stat\n\n```\n%s```\n\n", stat)
	p.printf("## Incompatible changes of the packages that we rely on: apidiff\n\n")
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		p.printf("### %s\n\n%s\n", name, changes[name])
	}
	return nil
}

var compared = regexp.MustCompile(`(?m)^ *[0-9-]+: +\S+ ([=!<>])`)

// sameness tells how many patches a range-diff does not call the same.
func sameness(rangeDiff string) string {
	all := compared.FindAllStringSubmatch(rangeDiff, -1)
	differ := len(slices.DeleteFunc(slices.Clone(all), func(match []string) bool { return match[1] == "=" }))
	if differ == 0 {
		return fmt.Sprintf("%d patches, the same on both", len(all))
	}
	return fmt.Sprintf("**%d of %d patches differ**, in lines or context", differ, len(all))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "none"
	}
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}

// apiChanges returns what apidiff says of the incompatible changes of each package; nothing of one that has
// none.
func (p *project) apiChanges(ctx context.Context, from, to *side) (map[string]string, error) {
	apidiff, err := filepath.Abs(filepath.Join(p.output, "tools/apidiff"))
	if err != nil {
		return nil, fmt.Errorf("find apidiff: %w", err)
	}
	if _, err := output(tree.Go(ctx, filepath.Join(p.root, "hack/tools"), "build", "-o", apidiff, "golang.org/x/exp/cmd/apidiff")); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "apidiff-")
	if err != nil {
		return nil, fmt.Errorf("compare packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	run := func(s *side, arguments ...string) (string, error) {
		command := tree.Go(ctx, s.tree.Dir)
		command.Path, command.Args = apidiff, append([]string{apidiff}, arguments...)
		return output(command)
	}
	changes := map[string]string{}
	for name, folder := range from.packages {
		other := to.packages[name]
		switch {
		case folder == "":
			continue // we cannot have relied on it
		case other == "":
			changes[name] = "- the package: removed\n"
			continue
		case exec.CommandContext(ctx, "diff", "-q", "--exclude=*_test.go", folder, other).Run() == nil:
			continue // its files are the same
		}
		export := filepath.Join(dir, "export")
		if _, err := run(from, "-w", export, name); err != nil {
			return nil, err
		}
		said, err := run(to, "-incompatible", export, name)
		if err != nil {
			return nil, err
		}
		if said != "" {
			changes[name] = said
		}
	}
	return changes, nil
}
