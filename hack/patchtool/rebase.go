package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// rebase is one run of the rebase command.
type rebase struct {
	*project
	version string
	// merge writes also what was merged, with other lines around it than those it was made for.
	merge bool
	// dir takes the series as it is on the release; empty writes to patches/.
	dir string

	all    branch.Branches
	base   branch.Branch // whose release a patch that does not apply is merged from
	target branch.Branch // the release's own; without a version if no such branch is pinned
	// beside tells that the release's branch is supported beside the vendored one, for which the shared
	// series is written.
	beside bool
	series []member
	// began is patches/ as it was when all of this was read.
	began folder
	// hasOld tells that the repository has the series on the base's release too.
	hasOld bool
}

// result is what became of a member of the series.
type result struct {
	merged bool
	// unresolved are its places that a person has to look at.
	unresolved int
}

func (p *project) rebaseCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	r := &rebase{project: p}
	flags.BoolVar(&r.merge, "merge", false, "write also what had to be merged, after you have read it")
	flags.StringVar(&r.dir, "dir", "", "write the series as it is on the release into this directory, which is empty or not there, and nothing else")
	return func(ctx context.Context, arguments []string) error {
		if err := exactly(1, "a release, for example v1.37.1", arguments); err != nil {
			return err
		}
		r.version = arguments[0]
		unlock, err := lock(r.patches)
		if err != nil {
			return err
		}
		defer unlock()
		return r.run(ctx)
	}
}

func (r *rebase) run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	repo, remove, err := repository(ctx)
	if err != nil {
		return err
	}
	defer remove()
	module, err := r.module(ctx, r.version)
	if err != nil {
		return err
	}
	if err := repo.Release(ctx, newRelease, module, directories(r.series)); err != nil {
		return err
	}
	r.printf("The series on %s, merged from %s where it does not apply:\n", r.version, r.base.Version)
	var results []result
	unresolved, merged := 0, 0
	for _, m := range r.series {
		result, err := r.try(ctx, repo, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		results = append(results, result)
		unresolved += result.unresolved
		if result.merged {
			merged++
		}
	}
	switch {
	case unresolved > 0:
		return fmt.Errorf("%s: %d places want a decision; nothing was written. CONTRIBUTING.adoc, \"A conflict\", says how to go on", r.version, unresolved)
	case merged > 0 && !r.merge:
		return fmt.Errorf("%s: %d patches had to be merged; nothing was written. Read the places above; if they are right, MERGE=1 writes them", r.version, merged)
	}
	return r.write(ctx, repo, results)
}

// prepare finds the branches that the release and the series belong to.
func (r *rebase) prepare() error {
	if r.dir != "" {
		if entries, err := os.ReadDir(r.dir); err == nil && len(entries) > 0 {
			return fmt.Errorf("%s is not empty; give a directory that is, or that is not there", r.dir)
		}
	}
	name, err := branch.Of(r.version)
	if err != nil {
		return err
	}
	if r.began, err = readFolder(r.patches); err != nil {
		return err
	}
	if r.all, err = branch.Load(r.patches); err != nil {
		return err
	}
	r.base, r.target = r.all.Vendored(), branch.Branch{Name: name}
	for _, b := range r.all {
		if b.Name == name {
			r.target = b
		}
	}
	r.beside = !r.target.Vendored
	if r.target.Version == "" {
		r.beside = branch.Before(name, r.base.Name)
	}
	if r.series, err = r.project.series(r.target); err != nil {
		return err
	}
	if r.target.Version != "" && slices.ContainsFunc(r.series, func(m member) bool { return m.Own }) {
		r.base = r.target // its own patches were made for it
	}
	return nil
}

// The tags of the scratch repository.
const (
	oldRelease = "old"
	newRelease = "new"
)

// oldPatch is the tag of a patch on the release that the series is merged from.
func oldPatch(m member) string { return oldRelease + "-" + m.Number() }

// old sees to it that the repository has the series on the release that it is merged from, and leaves
// checked out what is.
func (r *rebase) old(ctx context.Context, repo *scratch.Repository) error {
	if r.hasOld {
		return nil
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return err
	}
	module, err := r.module(ctx, r.base.Version)
	if err != nil {
		return err
	}
	if err := repo.Release(ctx, oldRelease, module, directories(r.series)); err != nil {
		return err
	}
	for _, m := range r.series {
		_, applied, err := repo.Apply(ctx, m.file, m.patch)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", m.Path, r.base.Version, err)
		}
		if !applied {
			return fmt.Errorf("%s does not apply to %s, which the series is for, so that nothing can be merged from there; if you have resolved a conflict, resolve all that follow, as CONTRIBUTING.adoc, \"A conflict\", says; else 'make verify-patches' says more", m.Path, r.base.Version)
		}
		if err := repo.Tag(ctx, oldPatch(m)); err != nil {
			return err
		}
	}
	r.hasOld = true
	return repo.Checkout(ctx, head)
}

// try puts a patch onto what is checked out, and tells of each hunk.
func (r *rebase) try(ctx context.Context, repo *scratch.Repository, m member) (result, error) {
	r.printf("\n%s\n", m.patch.Subject)
	ambiguous := ambiguities(ctx, repo, m.patch)
	hunks, applied, err := repo.Apply(ctx, m.file, m.patch)
	if err != nil {
		return result{}, err
	}
	if !applied {
		return r.pick(ctx, repo, m, hunks)
	}
	unresolved := 0
	for _, h := range hunks {
		word := outcome(h)
		if places := ambiguous[hunkID{h.Path, h.Number}]; h.Offset != 0 && len(places) > 0 {
			unresolved++
			word = fmt.Sprintf("conflict: its lines are there %d times, at lines %v; which place is meant only a reader can tell", len(places), places)
		}
		r.tell(h, word, "")
	}
	return result{unresolved: unresolved}, nil
}

// pick merges a patch that does not apply, and tells of each hunk.
func (r *rebase) pick(ctx context.Context, repo *scratch.Repository, m member, hunks []scratch.Hunk) (result, error) {
	if err := r.old(ctx, repo); err != nil {
		for _, h := range hunks {
			r.tell(h, outcome(h), "")
		}
		return result{}, err
	}
	var outcomes []merged
	for _, h := range hunks {
		outcome, err := r.merged(ctx, repo, m, h)
		if err != nil {
			return result{}, err
		}
		outcomes = append(outcomes, outcome)
	}
	picked, unmerged, err := repo.Pick(ctx, oldPatch(m))
	if err != nil {
		return result{}, err
	}
	if picked {
		if outcomes, err = r.followed(ctx, repo, m, hunks, outcomes); err != nil {
			return result{}, err
		}
	}
	unresolved, there := 0, 0
	for i, h := range hunks {
		r.tell(h, outcomes[i].word, outcomes[i].sides)
		if outcomes[i].conflict {
			unresolved++
		}
		if outcomes[i].there {
			there++
		}
	}
	switch {
	case picked:
		return result{merged: true}, nil
	case there == len(hunks) && len(unmerged) == 0:
		r.printf("  nothing of it is left to do: drop it, as CONTRIBUTING.adoc says\n")
	case unresolved == 0:
		r.printf("  conflict: git cannot merge it as a whole: %s\n", strings.Join(unmerged, ", "))
	}
	r.printf("  left out below\n")
	return result{unresolved: max(unresolved, 1)}, nil
}

// followed tells of hunks that seemed to be in conflict and that git has merged all the same: it follows a file
// that upstream has moved.
func (r *rebase) followed(ctx context.Context, repo *scratch.Repository, m member, hunks []scratch.Hunk, outcomes []merged) ([]merged, error) {
	moved, err := repo.Moved(ctx, oldPatch(m)+"^", "HEAD^")
	if err != nil {
		return nil, err
	}
	diff, err := repo.Changes(ctx, "HEAD^", "HEAD")
	if err != nil {
		return nil, err
	}
	files, err := patch.ParseDiff(diff)
	if err != nil {
		return nil, err
	}
	for i, h := range hunks {
		if !outcomes[i].conflict {
			continue
		}
		path := h.Path
		if moved[path] != "" {
			path = moved[path]
		}
		outcomes[i] = merged{word: "merged, in " + path}
		for _, file := range files {
			if file.Path == path && h.Number == 1 { // all of them: git may have cut them otherwise
				outcomes[i].sides = file.String()
			}
		}
	}
	return outcomes, nil
}

func (r *rebase) tell(h scratch.Hunk, word, sides string) {
	r.printf("  %s, hunk %d: %s\n", h.Path, h.Number, word)
	if sides != "" {
		r.printf("%s\n", indent(sides))
	}
}

// merged is what a three-way merge makes of a hunk.
type merged struct {
	word, sides string
	conflict    bool
	// there tells that upstream has what it does.
	there bool
}

// merged merges one hunk into what is checked out.
func (r *rebase) merged(ctx context.Context, repo *scratch.Repository, m member, h scratch.Hunk) (merged, error) {
	if h.Failed == "" {
		return merged{word: outcome(h)}, nil
	}
	hunk := hunkOf(m.patch, h)
	ours, there := repo.File(ctx, "HEAD", h.Path)
	base, _ := repo.File(ctx, oldPatch(m)+"^", h.Path)
	if there && hunk.There(ours) {
		return merged{word: "upstream has it", there: true}, nil
	}
	if !there || hunk.OldLines == 0 {
		if !there {
			ours = "(there is no " + h.Path + ")"
		}
		sides := fmt.Sprintf("<<<<<<< upstream %s\n%s\n=======\n%s\n>>>>>>> %s", r.version, strings.TrimSuffix(ours, "\n"), strings.Join(hunk.Lines, "\n"), m.Path)
		return merged{word: "conflict: " + h.Failed, sides: sides, conflict: true}, nil
	}
	theirs, ok := scratch.Only(base, hunk)
	if !ok {
		return merged{}, fmt.Errorf("%s, hunk %d: its lines are not in %s", h.Path, h.Number, r.base.Version)
	}
	regions, err := repo.Merge(ctx, scratch.Side{Label: "upstream " + r.version, Text: ours},
		scratch.Side{Label: "upstream " + r.base.Version, Text: base}, scratch.Side{Label: m.Path, Text: theirs})
	if err != nil {
		return merged{}, err
	}
	if len(regions) == 0 {
		return merged{word: "merged: upstream changed the lines around it", sides: strings.Join(hunk.Lines, "\n")}, nil
	}
	return merged{word: "conflict", sides: strings.Join(regions, "\n"), conflict: true}, nil
}

func hunkOf(p *patch.Patch, h scratch.Hunk) patch.Hunk {
	for _, file := range p.Files {
		if file.Path == h.Path {
			return file.Hunks[h.Number-1]
		}
	}
	return patch.Hunk{} // what was tried is the patch's own
}
