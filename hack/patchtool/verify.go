package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
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

// Which branches are compiled.
const (
	compileAll      = "all"
	compileVendored = "vendored"
	compileNone     = "none"
)

// verification is one run of the verify command.
type verification struct {
	*project
	compile string
	faults  []string
}

func (p *project) verifyCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	name := flags.String("branch", "", "this branch alone, for example 1.36, or vendored; all if empty")
	v := &verification{project: p}
	flags.StringVar(&v.compile, "compile", compileAll, "whose packages to compile: of all branches, of the vendored one (those of the others are type-checked), or none")
	return func(ctx context.Context, arguments []string) error {
		if err := exactly(0, "none", arguments); err != nil {
			return err
		}
		if !slices.Contains([]string{compileAll, compileVendored, compileNone}, v.compile) {
			return fmt.Errorf("-compile=%s: want %s, %s or %s", v.compile, compileAll, compileVendored, compileNone)
		}
		all, err := branch.Load(p.patches)
		if err != nil {
			return err
		}
		chosen, err := all.Choose(*name)
		if err != nil {
			return err
		}
		if err := p.vendored(ctx, all.Vendored()); err != nil {
			return err
		}
		return v.run(ctx, all, chosen)
	}
}

// run looks at all of the branches, whatever is wrong with one, and tells of everything that it found.
func (v *verification) run(ctx context.Context, all, chosen branch.Branches) error {
	failed := v.headers(all, chosen)
	for _, b := range chosen {
		if ctx.Err() != nil {
			failed = errors.Join(failed, ctx.Err())
			break
		}
		if err := v.branch(ctx, b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", b.Name, err))
		}
	}
	if len(v.faults) > 0 {
		failed = errors.Join(fmt.Errorf("patches/ is not as patches/README.md wants it:\n  %s", strings.Join(v.faults, "\n  ")), failed)
	}
	return failed
}

func (v *verification) fault(b branch.Branch, format string, arguments ...any) {
	v.faults = append(v.faults, b.Name+": "+fmt.Sprintf(format, arguments...))
}

// vendored tells if go.mod requires another release than the one that is pinned as vendored.
func (p *project) vendored(ctx context.Context, b branch.Branch) error {
	m, err := readModule(ctx, p.root)
	if err != nil {
		return err
	}
	for _, r := range m.Require {
		if r.Path == tree.Kubernetes && r.Version != b.Version {
			return fmt.Errorf("go.mod requires %s %s, but patches/%s says that %s is vendored; make them agree, then 'make update-vendor'", r.Path, r.Version, branch.File, b.Version)
		}
	}
	return nil
}

// headers judges every patch once, however many branches have it. What cannot be read its branch tells.
func (v *verification) headers(all, chosen branch.Branches) error {
	seen := map[string]bool{}
	for _, b := range chosen {
		series, err := v.series(b)
		if err != nil {
			continue
		}
		for _, m := range series {
			if seen[m.Path] {
				continue
			}
			seen[m.Path] = true
			versions, err := branch.Checked(os.DirFS(v.patches), all, m.Entry)
			if err != nil {
				return err
			}
			v.faults = append(v.faults, m.patch.Check(versions, m.Own)...)
		}
	}
	return errors.Join(v.strangers(all), v.staleSums(all))
}

// strangers finds folders of branches that are not supported, whose patches nothing would apply, and such
// without a patch, which go cannot embed.
func (v *verification) strangers(all branch.Branches) error {
	entries, err := os.ReadDir(v.patches)
	if err != nil {
		return fmt.Errorf("list the patches: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folder := filepath.Join(v.patches, entry.Name())
		found, err := filepath.Glob(filepath.Join(folder, "*.patch"))
		switch {
		case err != nil:
			return fmt.Errorf("list the patches: %w", err)
		case len(found) == 0:
			v.faults = append(v.faults, folder+": has no patch; remove the folder")
		case !slices.ContainsFunc(all, func(b branch.Branch) bool { return b.Name == entry.Name() }):
			v.faults = append(v.faults, fmt.Sprintf("%s: %s is no supported branch; remove the folder", folder, entry.Name()))
		}
	}
	return nil
}

// staleSums finds checksums for releases that are not pinned.
func (v *verification) staleSums(all branch.Branches) error {
	sums, err := branch.Sums(v.patches)
	if err != nil {
		return err
	}
	for _, line := range sums {
		if !slices.ContainsFunc(all, func(b branch.Branch) bool { return tree.Sums(line, b.Version) }) {
			v.faults = append(v.faults, fmt.Sprintf("%s.sum: no branch is pinned at the release of %q; remove the line", branch.File, line))
		}
	}
	return nil
}

// branch tries the series on one branch and says what became of it.
func (v *verification) branch(ctx context.Context, b branch.Branch) error {
	began := len(v.faults)
	series, err := v.series(b)
	if err != nil {
		return err
	}
	module, err := v.module(ctx, b.Version)
	if err != nil {
		return err
	}
	note := ""
	if b.Vendored {
		note = ", vendored"
	}
	v.printf("%s (%s%s)\n", b.Name, b.Version, note)
	r, remove, err := repository(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := r.Release(ctx, b.Version, module, directories(series)); err != nil {
		return err
	}
	for i, m := range series {
		faults := misplaced(m.patch, os.DirFS(module))
		if b.Vendored {
			faults = append(faults, v.unvendored(m.patch, series[:i])...)
		}
		for _, fault := range faults {
			v.fault(b, "%s: %s", m.Path, fault)
		}
		if err := v.needed(ctx, r, b, m); err != nil {
			return err
		}
		applied, err := v.try(ctx, r, b, m)
		if err != nil {
			return err
		}
		if !applied {
			break // what follows may build on it
		}
	}
	if len(v.faults) > began {
		return nil
	}
	if err := v.rewritten(ctx, r, b, series); err != nil {
		return err
	}
	switch {
	case v.compile == compileAll || v.compile == compileVendored && b.Vendored:
		return v.compiles(ctx, b, packages(series))
	case v.compile == compileVendored:
		return v.typeChecks(ctx, b, packages(series))
	}
	v.printf("  not compiled\n")
	return nil
}

// try applies a patch and tells of its hunks.
func (v *verification) try(ctx context.Context, r *scratch.Repository, b branch.Branch, m member) (bool, error) {
	ambiguous := ambiguities(ctx, r, m.patch)
	hunks, applied, err := r.Apply(ctx, m.file, m.patch)
	if errors.Is(err, scratch.ErrUnseen) {
		v.fault(b, "%s: %v", m.Path, err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", m.Path, err)
	}
	mark := ""
	if m.Own {
		mark = ", of this branch alone"
	}
	v.printf("  %s%s\n", m.patch.Subject, mark)
	for _, line := range summary(hunks) {
		v.printf("    %s\n", line)
	}
	for _, h := range hunks {
		switch places := ambiguous[hunkID{h.Path, h.Number}]; {
		case h.Failed != "":
			v.fault(b, "%s: %s, hunk %d: %s; see what upstream made of it with 'make rebase-patches VERSION=%s'", m.Path, h.Path, h.Number, h.Failed, b.Version)
		case h.Offset != 0 && b.Vendored:
			v.fault(b, "%s: %s, hunk %d: has an offset of %d lines, so it was written for another release; 'make rebase-patches VERSION=%s'", m.Path, h.Path, h.Number, h.Offset, b.Version)
		case h.Offset != 0 && len(places) > 1:
			v.fault(b, "%s: %s, hunk %d: its lines are at %v, and only nearness chose one; give the branch a patch of its own, written for it", m.Path, h.Path, h.Number, places)
		}
	}
	return applied, nil
}

// needed finds patches of a branch's own in whose place the shared one would do, or that take the place of
// another one than they say.
func (v *verification) needed(ctx context.Context, r *scratch.Repository, b branch.Branch, m member) error {
	if m.Shared == "" {
		return nil
	}
	shared, err := v.member(branch.Entry{Path: m.Shared})
	if err != nil {
		return err
	}
	if shared.patch.Subject != m.patch.Subject {
		v.fault(b, "%s: stands for %s, and has another subject; if it is another patch, number it behind the shared ones", m.Path, m.Shared)
	}
	ambiguous := ambiguities(ctx, r, shared.patch)
	hunks, applies, err := r.Try(ctx, shared.file, shared.patch)
	if err != nil || !applies {
		return err
	}
	for _, h := range hunks {
		if h.Offset != 0 && len(ambiguous[hunkID{h.Path, h.Number}]) > 1 {
			return nil
		}
	}
	if why, _ := m.patch.Text(patch.Differs); strings.Contains(strings.Join(strings.Fields(why), " "), "does not compile") {
		return nil
	}
	v.fault(b, "%s: is no longer needed, for %s applies; remove it, or say in \"%s: …\" that it does not compile", m.Path, m.Shared, patch.Differs)
	return nil
}

// unvendored finds what `make update-vendor` could not apply a patch to: vendor/ has only the packages that
// are used.
func (v *verification) unvendored(p *patch.Patch, before []member) []string {
	vendored := func(name string) bool {
		_, err := os.Stat(filepath.Join(v.root, "vendor", tree.Kubernetes, name))
		return err == nil
	}
	added := func(name string) bool {
		return slices.ContainsFunc(before, func(m member) bool {
			return slices.ContainsFunc(m.patch.Files, func(f patch.File) bool { return f.New && f.Path == name })
		})
	}
	var faults []string
	for _, file := range p.Files {
		switch dir := path.Dir(file.Path); {
		case !vendored(dir):
			faults = append(faults, fmt.Sprintf("touches %s, and vendor/ does not have that package", file.Path))
		case !file.New && !vendored(file.Path) && !added(file.Path):
			faults = append(faults, fmt.Sprintf("touches %s, which vendor/ does not have", file.Path))
		}
	}
	return faults
}

// rewritten writes out the series as git has it, and finds patches that are something else: then they have
// text that git does not keep, or were edited by hand. A shared patch is written for the vendored branch; on
// another one its line numbers differ. Of a branch's own patch the line numbers may have moved since.
func (v *verification) rewritten(ctx context.Context, r *scratch.Repository, b branch.Branch, series []member) error {
	dir, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	written, err := r.Format(ctx, b.Version, dir)
	if err != nil {
		return err
	}
	for i, m := range series {
		if !b.Vendored && !m.Own {
			continue
		}
		content, err := os.ReadFile(m.file)
		if err != nil {
			return fmt.Errorf("read a patch: %w", err)
		}
		again, err := os.ReadFile(written[i])
		if err != nil {
			return fmt.Errorf("read what was written: %w", err)
		}
		is, was := strings.Split(string(content), "\n"), strings.Split(string(again), "\n")
		for n := range max(len(is), len(was)) {
			if here, there := at(is, n), at(was, n); here != there && (b.Vendored || !movable(here) || !movable(there)) {
				v.fault(b, "%s:%d: has %q where git format-patch writes %q; write the file with it", m.Path, n+1, here, there)
				break
			}
		}
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// movable tells whether a line depends on what surrounds the patch's own.
func movable(line string) bool {
	return strings.HasPrefix(line, "index ") || strings.HasPrefix(line, "@@ ")
}

type hunkID struct {
	path   string
	number int
}

// ambiguities returns the hunks whose lines are found in more than one place.
func ambiguities(ctx context.Context, r *scratch.Repository, p *patch.Patch) map[hunkID][]int {
	found := map[hunkID][]int{}
	for _, file := range p.Files {
		content, ok := r.File(ctx, "HEAD", file.Path)
		for i, hunk := range file.Hunks {
			if places := hunk.Places(content); ok && len(places) > 1 {
				found[hunkID{file.Path, i + 1}] = places
			}
		}
	}
	return found
}

// summary tells in a line for each file how its hunks applied.
func summary(hunks []scratch.Hunk) []string {
	var lines []string
	for len(hunks) > 0 {
		file := hunks[0].Path
		var words []string
		for len(hunks) > 0 && hunks[0].Path == file {
			words = append(words, outcome(hunks[0]))
			hunks = hunks[1:]
		}
		lines = append(lines, file+": "+strings.Join(words, ", "))
	}
	return lines
}

func outcome(h scratch.Hunk) string {
	switch {
	case h.Failed != "":
		return "does not apply"
	case h.Offset != 0:
		return fmt.Sprintf("offset %+d", h.Offset)
	}
	return "clean"
}

// misplaced finds new files that upstream has, or that would make a new package: vendor/modules.txt
// would not list it.
func misplaced(p *patch.Patch, module fs.FS) []string {
	var faults []string
	for _, file := range p.Files {
		if !file.New {
			continue
		}
		dir := path.Dir(file.Path)
		if !strings.HasSuffix(file.Path, ".go") {
			faults = append(faults, fmt.Sprintf("adds %s; only Go files are vendored", file.Path))
			continue
		}
		if len(file.Hunks) == 0 {
			faults = append(faults, fmt.Sprintf("adds %s, which is empty", file.Path))
			continue
		}
		content := strings.Join(file.Hunks[0].After(), "\n")
		syntax, err := parser.ParseFile(token.NewFileSet(), file.Path, content, parser.PackageClauseOnly)
		if err != nil {
			faults = append(faults, fmt.Sprintf("adds %s: %v", file.Path, err))
			continue
		}
		switch there := packageOf(module, dir); {
		case there == "":
			faults = append(faults, fmt.Sprintf("adds package %s; put the file into a package that upstream has", dir))
		case there != syntax.Name.Name:
			faults = append(faults, fmt.Sprintf("adds %s as package %s, where upstream has package %s", file.Path, syntax.Name.Name, there))
		}
	}
	return faults
}

// packageOf returns the name of the package in a directory, tests aside; empty if there is none.
func packageOf(module fs.FS, dir string) string {
	sources, err := fs.Glob(module, dir+"/*.go")
	if err != nil {
		return ""
	}
	name := ""
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		content, err := fs.ReadFile(module, source)
		if err != nil {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), source, content, parser.PackageClauseOnly)
		if err == nil && (name == "" || name == "main") { // which a generator beside it may be
			name = syntax.Name.Name
		}
	}
	return name
}

// ours are our own packages that are compiled against every branch.
var ours = []string{"./cmd/...", "./pkg/..."}

// work is a go command to be run on packages.
type work func(verb string, arguments ...string) (*exec.Cmd, error)

// works returns what runs go on the patched packages in the patched tree, and on our own against it.
func (v *verification) works(ctx context.Context, b branch.Branch) (theirs, own work, err error) {
	made, err := v.tree(ctx, b, false)
	if err != nil {
		return nil, nil, err
	}
	theirs = func(verb string, arguments ...string) (*exec.Cmd, error) {
		return tree.Go(ctx, made.Dir, append([]string{verb}, arguments...)...), nil
	}
	own = func(verb string, arguments ...string) (*exec.Cmd, error) {
		return v.against(ctx, b, verb, arguments...)
	}
	return theirs, own, nil
}

// compiles builds and vets the patched packages, and our own, tests included.
func (v *verification) compiles(ctx context.Context, b branch.Branch, patterns []string) error {
	theirs, own, err := v.works(ctx, b)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		work     work
		verb     string
		patterns []string
	}{{theirs, "build", patterns}, {theirs, "vet", patterns}, {own, "build", ours}, {own, "vet", ours}} {
		command, err := part.work(part.verb, part.patterns...)
		if err != nil {
			return err
		}
		if output, err := command.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.fault(b, "%s in %s: %v\n%s", strings.Join(command.Args, " "), command.Dir, err, indent(string(output)))
			return nil
		}
	}
	v.printf("  compiles: %s, and of ours %s\n", strings.Join(patterns, " "), strings.Join(ours, " "))
	return nil
}

// typeChecks checks the same packages as compiles does, where nothing is cached in a fraction of its time.
func (v *verification) typeChecks(ctx context.Context, b branch.Branch, patterns []string) error {
	theirs, own, err := v.works(ctx, b)
	if err != nil {
		return err
	}
	checked := 0
	for _, part := range []struct {
		work     work
		patterns []string
	}{{theirs, patterns}, {own, ours}} {
		arguments := typecheck.Arguments()
		command, err := part.work(arguments[0], append(arguments[1:], part.patterns...)...)
		if err != nil {
			return err
		}
		count, faults, err := typecheck.Check(ctx, command)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // what go cannot list does not compile
			v.fault(b, "%v", err)
			return nil
		}
		checked += count
		for _, fault := range faults {
			v.fault(b, "%s", fault)
		}
	}
	v.printf("  type-checked %d packages, tests among them: %s, and of ours %s\n", checked, strings.Join(patterns, " "), strings.Join(ours, " "))
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
