package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
	"github.com/openshift/origin-node/hack/patchtool/typecheck"
)

// What becomes of the packages of the branches.
const (
	compileAll   = "all"
	compileTypes = "types"
	compileNone  = "none"
)

// verification is one run of the verify command.
type verification struct {
	*project
	compile string
	// all are the branches of Kubernetes, modules the others that carry patches.
	all, modules branch.Branches
	// commits are what git made of a module's vendored series.
	commits map[string][]string
	faults  []string
}

func (p *project) verifyCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	name := flags.String("branch", "", "this branch alone, for example 1.36, or vendored; all if empty")
	v := &verification{project: p, commits: map[string][]string{}}
	flags.StringVar(&v.compile, "compile", compileAll, "what becomes of the packages of the branches: all are compiled, only their types are checked, or none is looked at")
	return func(ctx context.Context, arguments []string) error {
		if len(arguments) > 0 || !slices.Contains([]string{compileAll, compileTypes, compileNone}, v.compile) {
			return fmt.Errorf("arguments %q, -compile=%s: expected no arguments, and -compile=%s, %s or %s", arguments, v.compile, compileAll, compileTypes, compileNone)
		}
		var err error
		if v.all, err = branch.Load(p.Patches); err != nil {
			return err
		}
		chosen, err := v.all.Choose(*name)
		if err != nil {
			return err
		}
		if err := v.prepare(ctx); err != nil {
			return err
		}
		return v.run(ctx, chosen)
	}
}

// prepare checks what holds for patches/ as a whole, and finds the modules.
func (v *verification) prepare(ctx context.Context) error {
	vendored := v.all.Vendored()
	m, err := readModule(ctx, v.root)
	if err != nil {
		return err
	}
	for _, r := range m.Require {
		if r.Path == branch.Kubernetes && r.Version != vendored.Version {
			return fmt.Errorf("go.mod requires %s %s, but in patches/%s %s is vendored; make them agree, then run 'make update-vendor'", r.Path, r.Version, branch.File, vendored.Version)
		}
	}
	v.modules, err = v.project.modules(ctx)
	return err
}

// fault notes a fault, once: a shared patch has the same ones on every branch.
func (v *verification) fault(format string, arguments ...any) {
	if text := fmt.Sprintf(format, arguments...); !slices.Contains(v.faults, text) {
		v.faults = append(v.faults, text)
	}
}

// run checks the series of all modules, whatever is wrong with one, and reports everything that it found. Each has a
// repository of its own.
func (v *verification) run(ctx context.Context, chosen branch.Branches) error {
	vendored := v.all.Vendored()
	compiled := slices.Contains(chosen, vendored)
	others := slices.DeleteFunc(slices.Clone(chosen), func(b branch.Branch) bool { return b.Vendored })
	failed := inScratch(ctx, func(r *scratch.Repository) error { return v.module(ctx, r, vendored, compiled, others) })
	for _, m := range v.modules {
		err := inScratch(ctx, func(r *scratch.Repository) error { return v.module(ctx, r, m, compiled, nil) })
		failed = errors.Join(failed, err)
	}
	if len(v.faults) > 0 {
		failed = errors.Join(fmt.Errorf("patches/ is not as patches/README.md demands:\n  %s", strings.Join(v.faults, "\n  ")), failed)
	}
	return failed
}

// module checks the series of a module on the vendored branch, whose packages are compiled if that was asked for, and
// on others. The vendored one comes first, for its commits are compared with those of the others.
func (v *verification) module(ctx context.Context, r *scratch.Repository, vendored branch.Branch, compiled bool, others branch.Branches) error {
	series, err := v.series(vendored)
	if err != nil {
		return fmt.Errorf("%s: %w", vendored, err)
	}
	var failed error
	for _, b := range append(branch.Branches{vendored}, others...) {
		err := v.release(ctx, r, b, series)
		if err == nil {
			err = v.branch(ctx, r, b, compiled || !b.Vendored)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", b, err))
		}
	}
	return failed
}

// branch applies the series to a branch's release, which is checked out, and judges what becomes of it.
func (v *verification) branch(ctx context.Context, r *scratch.Repository, b branch.Branch, compiled bool) error {
	series, err := v.series(b)
	if err != nil {
		return err
	}
	began := len(v.faults)
	v.printf("%s (%s)\n", b, b.Version)
	for i, m := range series {
		versions, err := branch.Checked(os.DirFS(v.Patches), slices.Concat(v.all, v.modules), m.Entry)
		if err != nil {
			return err
		}
		for _, fault := range patch.Check(m.content, versions, b.PinnedBy(), m.Own) {
			v.fault("%s: %s: %s", b.Module, m.name, fault)
		}
		v.printf("  %s\n", m.name)
		said, err := r.Apply(ctx, m.file)
		if errors.Is(err, scratch.ErrDoesNotApply) {
			v.fault("%s: %s: run '%s'; it\n%s", b, m.name, b.Rebase(), indent(err.Error()))
			return nil // what follows may build on it
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		v.printf("%s\n", indent(said))
		if err := v.applied(ctx, r, b, i, m); err != nil {
			return err
		}
	}
	if err := v.rewritten(ctx, r, b, series); err != nil || len(v.faults) > began || !compiled {
		return err
	}
	return v.compiles(ctx, b, directories(b, series))
}

// applied judges the commit that git made of a patch.
func (v *verification) applied(ctx context.Context, r *scratch.Repository, b branch.Branch, i int, m member) error {
	listed, err := r.Git(ctx, "diff", "--name-status", "--no-renames", "HEAD^", "HEAD")
	if err != nil {
		return err
	}
	modules, err := os.ReadFile(filepath.Join(v.root, "vendor/modules.txt"))
	if err != nil {
		return fmt.Errorf("find the vendored packages: %w", err)
	}
	for line := range strings.Lines(listed) { // for example "M	pkg/proxy/iptables/proxier.go"
		change, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch {
		case change == "D":
			v.fault("%s: %s: deletes or moves %s; leave it where upstream has it", b.Module, m.name, name)
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			v.fault("%s: %s: touches %s; vendor/ has only Go files that are not tests. Tests belong to hack/upstreamtest, or to the code of ours that uses the module", b.Module, m.name, name)
		case !strings.Contains(string(modules), "\n"+path.Join(b.Module, path.Dir(name))+"\n"):
			v.fault("%s: %s: touches %s, whose package vendor/modules.txt does not list; put it into one that it lists", b.Module, m.name, name)
		}
	}
	commit, err := r.Git(ctx, "rev-parse", "HEAD")
	switch {
	case b.Vendored:
		v.commits[b.Module] = append(v.commits[b.Module], strings.TrimSpace(commit))
	case !m.Own && i < len(v.commits[b.Module]) && err == nil:
		err = v.placed(ctx, r, b, m, v.commits[b.Module][i], strings.TrimSpace(commit))
	}
	return err
}

// placed finds a shared patch that lands somewhere else than on the vendored release: git apply looks for
// a hunk's lines, and takes the nearest ones if they are there twice. git merge compares whole files.
func (v *verification) placed(ctx context.Context, r *scratch.Repository, b branch.Branch, m member, vendored, applied string) error {
	if _, err := r.Git(ctx, "checkout", "-q", "HEAD^"); err != nil {
		return err
	}
	if same, err := r.Picks(ctx, vendored, applied); same || err != nil {
		return err
	}
	v.fault("%s: %s: git apply puts it elsewhere than git's merge from the vendored release does, so its lines may be there twice; give the branch a patch of its own, from '%s'", b, m.name, b.Rebase())
	_, err := r.Git(ctx, "checkout", "-q", "--force", applied)
	return err
}

// rewritten has git write the series, and finds patches that are something else: they were edited by hand,
// or written for another release. The shared series is written for the vendored branch.
func (v *verification) rewritten(ctx context.Context, r *scratch.Repository, b branch.Branch, series []member) error {
	dir, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := r.Format(ctx, b.Version, dir)
	if err != nil {
		return err
	}
	for i, m := range series {
		if !b.Vendored && !m.Own {
			continue
		}
		content, err := os.ReadFile(files[i])
		if err != nil {
			return fmt.Errorf("read the series: %w", err)
		}
		if want := filepath.Base(files[i]); filepath.Base(m.Path) != want {
			v.fault("%s: %s: git format-patch names it %s; rename it", b.Module, m.name, want)
		}
		if line := differs(m.content, string(content)); line > 0 {
			v.fault("%s: %s:%d: is not what git format-patch writes for %s; write it with that, from '%s'", b.Module, m.name, line, b.Version, b.Rebase())
		}
	}
	return nil
}

// differs returns the number of the first line that differs; 0 if none does.
func differs(a, b string) int {
	if a == b {
		return 0
	}
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return i + 1
		}
	}
	return min(len(linesA), len(linesB)) + 1
}

// compiles builds and vets the patched packages in their tree, tests included, and our own against a tree of Kubernetes, with
// the other modules patched; or it checks their types, which costs seconds where nothing is cached.
func (v *verification) compiles(ctx context.Context, b branch.Branch, folders []string) error {
	if v.compile == compileNone {
		v.printf("  not compiled\n")
		return nil
	}
	made, err := v.Tree(ctx, b, true)
	if err != nil {
		return err
	}
	var theirs []string
	for _, folder := range folders {
		theirs = append(theirs, "./"+path.Join(folder, "..."))
	}
	run := v.goes
	verbs := [][]string{{"build"}, {"vet"}}
	word := "compiles"
	if v.compile == compileTypes {
		run, verbs, word = v.typeChecks, [][]string{typecheck.Arguments()}, "type-checks"
	}
	said := word + ": " + strings.Join(theirs, " ")
	if b.Module == branch.Kubernetes {
		said += ", and of ours ./cmd/... ./pkg/..."
	}
	for _, verb := range verbs {
		commands := []*exec.Cmd{tree.Go(ctx, made.Dir, append(verb, theirs...)...)}
		if b.Module == branch.Kubernetes {
			ours, err := v.against(ctx, b, verb[0], append(verb[1:], "./cmd/...", "./pkg/...")...)
			if err != nil {
				return err
			}
			commands = append(commands, ours)
		}
		for _, command := range commands {
			if !run(b, command) {
				return ctx.Err()
			}
		}
	}
	v.printf("  %s\n", said)
	return nil
}

// goes runs a go command and tells whether it succeeds.
func (v *verification) goes(b branch.Branch, command *exec.Cmd) bool {
	output, err := command.CombinedOutput()
	if err != nil {
		v.fault("%s: %s in %s: %v\n%s", b, strings.Join(command.Args, " "), command.Dir, err, indent(string(output)))
	}
	return err == nil
}

// typeChecks checks the types of the packages that a go command lists.
func (v *verification) typeChecks(b branch.Branch, command *exec.Cmd) bool {
	_, faults, err := typecheck.Check(command)
	if err != nil { // what go cannot list does not compile
		faults = []string{err.Error()}
	}
	for _, fault := range faults {
		v.fault("%s: %s", b, fault)
	}
	return len(faults) == 0
}
