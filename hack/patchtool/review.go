package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/source"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// review is one run of the review command.
type review struct {
	*project
	// code is what may rely on upstream besides the series; results has what tests gave.
	code, results string
	from, to      *side

	repo    *scratch.Repository
	changes *changes
	// exact is the series as it is on the release that is left, by number.
	exact map[string]*patch.Patch
}

// side is one of the two releases that are compared.
type side struct {
	version string
	series  []member
	// module is upstream's source, patched the same with the series.
	module, patched string
}

// tag returns a name in the scratch repository.
func (s *side) tag(what string) string { return what + "-" + s.version }

func (p *project) reviewCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	r := &review{project: p}
	flags.StringVar(&r.code, "code", "cmd,pkg", "the folders whose code may rely on upstream, with commas between them")
	flags.StringVar(&r.results, "results", "", "a folder with VERSION.json, what 'go test -json' printed on the patched tree of each")
	return func(ctx context.Context, arguments []string) error {
		if err := exactly(2, "the release that is left and the one that is gone to", arguments); err != nil {
			return err
		}
		if arguments[0] == arguments[1] {
			return fmt.Errorf("%s is compared with itself", arguments[0])
		}
		var err error
		if r.from, err = r.side(ctx, arguments[0]); err != nil {
			return err
		}
		if r.to, err = r.side(ctx, arguments[1]); err != nil {
			return err
		}
		return r.write(ctx)
	}
}

// side finds the series for a release: that of its branch, or of the vendored one if none is pinned for it.
func (r *review) side(ctx context.Context, version string) (*side, error) {
	all, err := branch.Load(r.patches)
	if err != nil {
		return nil, err
	}
	b, err := all.Find(version)
	if err != nil {
		if b, err = ofRelease(all, version); err != nil {
			return nil, err
		}
		b.Version = version
	}
	series, err := r.project.series(b)
	if err != nil {
		return nil, err
	}
	release, err := r.release(ctx, b.Version)
	if err != nil {
		return nil, err
	}
	made, err := tree.Ensure(ctx, r.cache, release, files(series))
	if err != nil {
		return nil, fmt.Errorf("%w; 'make rebase-patches VERSION=%s' says more", err, b.Version)
	}
	return &side{version: b.Version, series: series, module: release.Module, patched: made.Dir}, nil
}

// ofRelease returns the branch of a release, or the vendored one.
func ofRelease(all branch.Branches, version string) (branch.Branch, error) {
	name, err := branch.Of(version)
	if err != nil {
		return branch.Branch{}, err
	}
	for _, b := range all {
		if b.Name == name {
			return b, nil
		}
	}
	return all.Vendored(), nil
}

// write writes the page.
func (r *review) write(ctx context.Context) error {
	repo, remove, err := repository(ctx)
	if err != nil {
		return err
	}
	defer remove()
	r.repo = repo
	r.changes = &changes{from: r.from, to: r.to, declarations: map[string]map[string]*source.Declaration{}}
	if err := r.apply(ctx); err != nil {
		return err
	}
	relied, err := r.relied(ctx)
	if err != nil {
		return err
	}
	r.printf("# The series from %s to %s\n\n", r.from.version, r.to.version)
	if err := r.summary(ctx, relied); err != nil {
		return err
	}
	for _, m := range r.from.series {
		if err := r.patch(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	if err := r.rangeDiff(ctx); err != nil {
		return err
	}
	if err := r.reliance(ctx, relied); err != nil {
		return err
	}
	return r.tests()
}

// summary writes what a reviewer wants to know first.
func (r *review) summary(ctx context.Context, relied source.Users) error {
	functions, changed := 0, 0
	for _, m := range r.from.series {
		places, _, err := r.places(ctx, m)
		if err != nil {
			return err
		}
		for _, place := range places {
			became, err := r.changes.of(path.Dir(place.path), place.name)
			if err != nil {
				return err
			}
			functions++
			if became.Change != source.Unchanged {
				changed++
			}
		}
	}
	differ, _, err := r.compared(relied)
	if err != nil {
		return err
	}
	signatures := 0
	for _, reference := range differ {
		if c, err := r.changes.of(reference.Folder, reference.Name); err == nil && c.Change != source.Body {
			signatures++
		}
	}
	r.printf("* The series applies to both without fuzz: %d patches.\n", len(r.from.series))
	r.printf("* Of the %d upstream functions and types that it touches, %d changed.\n", functions, changed)
	r.printf("* Of the %d upstream declarations that it and our code rely on, %d changed, %d of them in what a caller sees.\n\n",
		len(relied), len(differ), signatures)
	return nil
}

// change is what became of a declaration between the two releases.
type change struct {
	source.Change
	old, current *source.Declaration
}

// changes compares declarations, and reads each package once.
type changes struct {
	from, to     *side
	declarations map[string]map[string]*source.Declaration
}

func (c *changes) of(folder, name string) (change, error) {
	old, err := c.declaration(c.from, folder, name)
	if err != nil {
		return change{}, err
	}
	current, err := c.declaration(c.to, folder, name)
	if err != nil {
		return change{}, err
	}
	if old == nil {
		return change{Change: source.Gone, current: current}, fmt.Errorf("%s.%s is not found in %s", folder, name, c.from.version)
	}
	return change{Change: source.Compare(old, current), old: old, current: current}, nil
}

func (c *changes) declaration(s *side, folder, name string) (*source.Declaration, error) {
	dir := filepath.Join(s.module, folder)
	if c.declarations[dir] == nil {
		all, err := source.Open(tree.Kubernetes, s.module).Declarations(folder)
		if err != nil {
			return nil, err
		}
		c.declarations[dir] = all
	}
	return c.declarations[dir][name], nil
}

// touched is a declaration of upstream's that a patch changes.
type touched struct {
	path, name string
	added      int
}

// patch writes the section of one patch: its purpose, and what became of the functions it is in.
func (r *review) patch(ctx context.Context, m member) error {
	r.printf("## %s\n\n", strings.ReplaceAll(m.patch.Subject, "<", `\<`))
	for _, label := range patch.Labels {
		if text, ok := m.patch.Text(label); ok && label != patch.Versions {
			r.printf("_%s_: %s\n\n", label, text)
		}
	}
	places, created, err := r.places(ctx, m)
	if err != nil {
		return err
	}
	for _, file := range created {
		r.printf("Adds `%s`.\n\n", file)
	}
	if len(places) == 0 {
		r.printf("It touches no function of upstream's; what it relies on is in the list further below.\n\n")
		return nil
	}
	r.printf("| upstream function or type | lines added | from %s to %s |\n|---|---|---|\n", r.from.version, r.to.version)
	var found []change
	for _, place := range places {
		became, err := r.changes.of(path.Dir(place.path), place.name)
		if err != nil {
			return err
		}
		found = append(found, became)
		r.printf("| `%s` in `%s` | %d | %s |\n", place.name, place.path, place.added, became.Change)
	}
	r.printf("\n")
	for i, place := range places {
		title := fmt.Sprintf("Upstream's change of `%s` in `%s`", place.name, place.path)
		if err := r.difference(ctx, title, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// difference writes the unified diff of a declaration; nothing if it is unchanged.
func (r *review) difference(ctx context.Context, title string, c change) error {
	if c.Change == source.Unchanged {
		return nil
	}
	current := ""
	if c.current != nil {
		current = c.current.Text
	}
	diff, err := scratch.Diff(ctx, c.old.Text, current)
	if err != nil {
		return err
	}
	added, removed := 0, 0
	for _, line := range strings.Split(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	r.printf("### %s: %s, +%d −%d\n\n```diff\n%s\n```\n\n", title, c.Change, added, removed, diff)
	return nil
}

// places returns the declarations of upstream's that a patch changes, in the patch's order, and the files that
// it creates. What is added belongs to what surrounds it once it is there.
func (r *review) places(ctx context.Context, m member) (places []touched, created []string, err error) {
	exact, tag := r.exact[m.Number()], r.from.tag(m.Number())
	for _, file := range exact.Files {
		if file.New {
			created = append(created, file.Path)
			continue
		}
		upstream, err := r.declarations(ctx, r.from.tag("release"), file.Path)
		if err != nil {
			return nil, nil, err
		}
		before, err := r.declarations(ctx, tag+"^", file.Path)
		if err != nil {
			return nil, nil, err
		}
		after, err := r.declarations(ctx, tag, file.Path)
		if err != nil {
			return nil, nil, err
		}
		for _, hunk := range file.Hunks {
			for _, line := range hunk.Added() {
				places = note(places, file.Path, upstream, source.At(after, line), 1)
			}
			for _, line := range hunk.Removed() {
				places = note(places, file.Path, upstream, source.At(before, line), 0)
			}
		}
	}
	return places, created, nil
}

// declarations returns those of a file in the scratch repository; none of what is not Go.
func (r *review) declarations(ctx context.Context, tag, file string) ([]source.Declaration, error) {
	content, ok := r.repo.File(ctx, tag, file)
	if !ok || !strings.HasSuffix(file, ".go") {
		return nil, nil
	}
	return source.Parse(file, content)
}

// note adds a line to the declaration's place. A declaration that upstream does not have is the patch's own.
func note(places []touched, file string, upstream []source.Declaration, d *source.Declaration, added int) []touched {
	if d == nil || d.Kind == source.Imports ||
		!slices.ContainsFunc(upstream, func(u source.Declaration) bool { return u.Name == d.Name }) {
		return places
	}
	i := slices.IndexFunc(places, func(t touched) bool { return t.path == file && t.name == d.Name })
	if i < 0 {
		places = append(places, touched{path: file, name: d.Name})
		i = len(places) - 1
	}
	places[i].added += added
	return places
}

// apply fills the scratch repository with both releases and the series on each.
func (r *review) apply(ctx context.Context) error {
	for _, s := range []*side{r.from, r.to} {
		names := directories(append(slices.Clone(r.from.series), r.to.series...))
		if err := r.repo.Release(ctx, s.tag("release"), s.module, names); err != nil {
			return err
		}
		for _, m := range s.series {
			_, applied, err := r.repo.Apply(ctx, m.file, m.patch)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", m.Path, s.version, err)
			}
			if !applied {
				return fmt.Errorf("%s does not apply to %s; 'make rebase-patches VERSION=%s' says more", m.Path, s.version, s.version)
			}
			if err := r.repo.Tag(ctx, s.tag(m.Number())); err != nil {
				return err
			}
		}
		if err := r.repo.Tag(ctx, s.tag("series")); err != nil {
			return err
		}
	}
	if err := r.repo.Checkout(ctx, r.from.tag("series")); err != nil {
		return err
	}
	return r.asMade(ctx)
}

// asMade reads the series as it would be written on the release that is left: with its line numbers.
func (r *review) asMade(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	written, err := r.repo.Format(ctx, r.from.tag("release"), dir)
	if err != nil {
		return err
	}
	r.exact = map[string]*patch.Patch{}
	for _, file := range written {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the series: %w", err)
		}
		p, err := patch.Parse(filepath.Base(file), string(content))
		if err != nil {
			return err
		}
		r.exact[p.Number()] = p
	}
	return nil
}

// relied returns what of upstream the series and our own code use.
func (r *review) relied(ctx context.Context) (source.Users, error) {
	diff, err := r.repo.Changes(ctx, r.from.tag("release"), r.from.tag("series"))
	if err != nil {
		return nil, err
	}
	changed, err := patch.ParseDiff(diff)
	if err != nil {
		return nil, err
	}
	added := map[string]map[int]bool{}
	var dirs []string
	for _, file := range changed {
		path := filepath.Join(r.from.patched, file.Path)
		added[path] = map[int]bool{}
		for _, hunk := range file.Hunks {
			for _, line := range hunk.Added() {
				added[path][line] = true
			}
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	module := source.Open(tree.Kubernetes, r.from.patched)
	ours := func(file string, line int) bool { return added[file][line] }
	users, err := module.References(slices.Compact(dirs), r.label, ours)
	if err != nil {
		return nil, err
	}
	code, err := r.folders()
	if err != nil {
		return nil, err
	}
	others, err := module.References(code, r.label, nil)
	if err != nil {
		return nil, err
	}
	for reference, places := range others {
		if d, err := r.changes.of(reference.Folder, reference.Name); err != nil || d.old == nil {
			continue // of the series itself
		}
		users.Add(source.Users{reference: places})
	}
	return users, nil
}

// folders returns the packages of our own code.
func (r *review) folders() ([]string, error) {
	var dirs []string
	for _, root := range strings.Split(r.code, ",") {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" || entry.Name() == "vendor" {
				return fs.SkipDir
			}
			dirs = append(dirs, name)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list our packages: %w", err)
		}
	}
	return dirs, nil
}

// label shortens the path of a file for the reader.
func (r *review) label(file string) string {
	if name, err := filepath.Rel(r.from.patched, file); err == nil && filepath.IsLocal(name) {
		return "patched " + name
	}
	return file
}

// rangeDiff writes how the series itself differs.
func (r *review) rangeDiff(ctx context.Context) error {
	diff, err := r.repo.RangeDiff(ctx, r.from.tag("release"), r.from.tag("series"), r.to.tag("release"), r.to.tag("series"))
	if err != nil {
		return err
	}
	r.printf("## The series on both: git range-diff\n\n\"=\" is a patch that is the same, \"!\" one whose lines or whose context differ.\n\n```\n%s```\n\n", diff)
	return nil
}

// reliance writes what became of the declarations that are relied on.
func (r *review) reliance(ctx context.Context, relied source.Users) error {
	r.printf("## What the patches and our code rely on\n\n")
	differ, same, err := r.compared(relied)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		r.printf("| upstream | what changed | used in |\n|---|---|---|\n")
	}
	for _, reference := range differ {
		c, err := r.changes.of(reference.Folder, reference.Name)
		if err != nil {
			return err
		}
		r.printf("| `%s.%s` | **%s** | %s |\n", reference.Folder, reference.Name, c.Change, strings.Join(relied[reference], ", "))
	}
	r.printf("\nThe same in both:\n\n")
	for _, folder := range slices.Sorted(maps.Keys(same)) {
		r.printf("* `%s`: %s\n", folder, strings.Join(same[folder], ", "))
	}
	r.printf("\n")
	for _, reference := range differ {
		c, err := r.changes.of(reference.Folder, reference.Name)
		if err != nil {
			return err
		}
		if err := r.difference(ctx, fmt.Sprintf("`%s.%s`", reference.Folder, reference.Name), c); err != nil {
			return err
		}
	}
	return nil
}

// compared parts what is relied on into what differs and what is the same, by package.
func (r *review) compared(relied source.Users) (differ []source.Reference, same map[string][]string, err error) {
	same = map[string][]string{}
	for _, reference := range relied.Sorted() {
		c, err := r.changes.of(reference.Folder, reference.Name)
		if err != nil {
			return nil, nil, err
		}
		if c.Change == source.Unchanged || c.Change == source.Comments {
			same[reference.Folder] = append(same[reference.Folder], reference.Name)
			continue
		}
		differ = append(differ, reference)
	}
	return differ, same, nil
}

// tests writes how many tests there are, and what they gave where they were run.
func (r *review) tests() error {
	before, err := countTests(os.DirFS(r.from.module))
	if err != nil {
		return err
	}
	after, err := countTests(os.DirFS(r.to.module))
	if err != nil {
		return err
	}
	gave, err := results(r.results, r.from.version)
	if err != nil {
		return err
	}
	gives, err := results(r.results, r.to.version)
	if err != nil {
		return err
	}
	r.printf("## Upstream's tests\n\nTest functions in the source; where they were run on the patched tree, what tests and subtests gave.\n\n")
	r.printf("| package | %s | %s | | %s gave | %s gives |\n|---|---|---|---|---|---|\n", r.from.version, r.to.version, r.from.version, r.to.version)
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	total, totalAfter := 0, 0
	for _, name := range names {
		total, totalAfter = total+before[name], totalAfter+after[name]
		r.printf("| `%s` | %d | %d | %s | %s | %s |\n", name, before[name], after[name], difference(before[name], after[name]), gave[name], gives[name])
	}
	r.printf("| all | %d | %d | %s | | |\n", total, totalAfter, difference(total, totalAfter))
	return nil
}

func difference(before, after int) string {
	if before == after {
		return ""
	}
	return fmt.Sprintf("%+d", after-before)
}
