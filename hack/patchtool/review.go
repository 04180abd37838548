package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/source"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// upstreamPrefix is what the import paths of Kubernetes and of its staging modules begin with.
const upstreamPrefix = "k8s.io/"

// review is one run of the review command.
type review struct {
	*project
	// code is what may rely on upstream besides the series; results has what tests gave.
	code, results string
	// most is how many lines of a diff are shown; 0 is for all.
	most     int
	from, to *side

	repo *scratch.Repository
	// used is what the series and our own code use of upstream's, of either release.
	used source.Users
	// exact is the series as it is on the release that is left, by number.
	exact map[string]*patch.Patch
}

// side is one of the two releases that are compared.
type side struct {
	branch.Branch
	series []member
	// module is upstream's source, patched the same with the series, and key names that tree.
	module, patched, key string
	// pinned tells that the release is the one of its branch.
	pinned bool
	// packages are those of the patched release, and of our code as it is built against it.
	packages *source.Packages
	// added are the lines of the patched files that the series adds, and folders where these files lie.
	added   map[string]map[int]bool
	folders []string
	own     ourCode
}

// tag returns a name in the scratch repository.
func (s *side) tag(what string) string { return what + "-" + s.Version }

// buildTags returns the build tags of our code, with which pkg/upstream knows the branch.
func (s *side) buildTags() []string {
	if s.Vendored {
		return nil
	}
	return []string{"kube" + strings.TrimPrefix(s.Name, "release-")}
}

// isAdded tells whether a line is the series' own.
func (s *side) isAdded(file string, line int) bool { return s.added[file][line] }

func (p *project) reviewCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	r := &review{project: p}
	flags.StringVar(&r.code, "code", "cmd,pkg", "the folders of our repository whose code may rely on upstream, with commas between them")
	flags.StringVar(&r.results, "results", "_output/upstream", "where 'make test-upstream' leaves the results of tests")
	flags.IntVar(&r.most, "lines", 30, "how many lines of a diff are shown; 0 for all")
	return func(ctx context.Context, arguments []string) error {
		if err := exactly(2, "the release that is left and the one that is gone to", arguments); err != nil {
			return err
		}
		from, err := r.find(arguments[0])
		if err != nil {
			return err
		}
		to, err := r.find(arguments[1])
		switch {
		case err != nil:
			return err
		case from.Version == to.Version:
			return fmt.Errorf("%s and %s are the same release: %s", arguments[0], arguments[1], from.Version)
		}
		if r.from, err = r.side(ctx, from); err != nil {
			return err
		}
		if r.to, err = r.side(ctx, to); err != nil {
			return err
		}
		return r.write(ctx)
	}
}

// find returns the branch of a release, or the vendored one if none is pinned for it, with that release.
func (r *review) find(version string) (branch.Branch, error) {
	all, err := branch.Load(r.patches)
	if err != nil {
		return branch.Branch{}, err
	}
	if b, err := all.Find(version); err == nil {
		return b, nil
	}
	b, err := ofRelease(all, version)
	b.Version = version
	return b, err
}

// side applies the series to a release.
func (r *review) side(ctx context.Context, b branch.Branch) (*side, error) {
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
	all, err := branch.Load(r.patches)
	if err != nil {
		return nil, err
	}
	return &side{Branch: b, series: series, module: release.Module, patched: made.Dir, key: made.Key(), pinned: slices.Contains(all, b)}, nil
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

// write writes the page: what decides comes first.
func (r *review) write(ctx context.Context) error {
	repo, remove, err := repository(ctx)
	if err != nil {
		return err
	}
	defer remove()
	r.repo = repo
	if err := r.apply(ctx); err != nil {
		return err
	}
	for _, s := range []*side{r.from, r.to} {
		if err := r.open(ctx, s); err != nil {
			return err
		}
	}
	touched, err := r.touched(ctx)
	if err != nil {
		return err
	}
	relied, err := r.relied()
	if err != nil {
		return err
	}
	tests, err := r.tests()
	if err != nil {
		return err
	}
	rangeDiff, err := r.repo.RangeDiff(ctx, r.from.tag("release"), r.from.tag("series"), r.to.tag("release"), r.to.tag("series"))
	if err != nil {
		return err
	}
	r.printf("# Kubernetes %s to %s: what it means for the patches\n\n", r.from.Version, r.to.Version)
	r.summary(touched, relied, tests, rangeDiff)
	if err := r.reliance(ctx, relied); err != nil {
		return err
	}
	if err := r.patchSections(ctx, touched); err != nil {
		return err
	}
	r.printf("## The series on both: git range-diff\n\n\"=\" is a patch that is the same, \"!\" one whose lines or whose context differ.\n\n```diff\n%s```\n\n", rangeDiff)
	r.testSection(tests)
	r.unchanged(relied)
	return nil
}

// summary writes what a reviewer wants to know first.
func (r *review) summary(touched []touched, relied *reliances, tests *tests, rangeDiff string) {
	r.printf("* **The series** applies to both without fuzz: %s, %s.\n", count(len(r.from.series), "patch", "patches"), sameness(rangeDiff))
	r.printf("* **What it touches**: %s.\n", summarize(count(len(touched), "upstream function or type", "upstream functions and types"), changed(touched)))
	r.printf("* **Signatures** of what it and our code rely on: %s.\n", summarize(count(len(relied.all), "declaration", "declarations"), names(relied.signatures)))
	r.printf("* **Meaning** of what they rely on: %d changed in their bodies or values, %d in their doc comments alone, %d types in members that are not used.\n",
		len(relied.of(source.Body)), len(relied.of(source.Doc)), len(relied.of(source.Members)))
	r.printf("* **Upstream's tests**: %s\n", tests.summary())
	if unknown := r.unknown(); len(unknown) > 0 {
		r.printf("* **Not looked at**, because they were not found: calls into %s.\n", strings.Join(unknown, ", "))
	}
	r.printf("\n")
}

// summarize names those of something that changed.
func summarize(what string, changed []string) string {
	if len(changed) == 0 {
		return fmt.Sprintf("of %s, none changed", what)
	}
	return fmt.Sprintf("of %s, %d changed: %s", what, len(changed), strings.Join(changed, ", "))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// sameness tells how many patches a range-diff does not call the same.
func sameness(rangeDiff string) string {
	differ := 0
	for line := range strings.Lines(rangeDiff) {
		// For example "1:  ad9c4ff = 1:  2ad6d0a SUBJECT"; a diff is indented.
		if words := strings.Fields(line); len(words) > 2 && !strings.HasPrefix(line, "  ") && strings.HasSuffix(words[0], ":") && words[2] != "=" {
			differ++
		}
	}
	if differ == 0 {
		return "the same on both"
	}
	return fmt.Sprintf("**not the same: %d**, in lines or context", differ)
}
