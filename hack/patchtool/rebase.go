package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// rebase is one run of the rebase command.
type rebase struct {
	*project
	// merge writes also what git had to merge.
	merge bool
	// dir takes the series as it is on the release; empty writes to patches/.
	dir string

	target branch.Branch // the release's own
	base   branch.Branch // whose release the series was made for
	series []member
	repo   *scratch.Repository
}

// The tags of the scratch repository: the release that the series was made for, the commits of the series
// on it, numbered from 0, and the release that it goes to.
const oldRelease, oldPatch, newRelease = "old", "old-patch", "new"

func (p *project) rebaseCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	r := &rebase{project: p}
	flags.BoolVar(&r.merge, "merge", false, "write also what had to be merged, after you have read it")
	flags.StringVar(&r.dir, "dir", "", "write the series as it is on the release into this directory, and nothing else")
	return func(ctx context.Context, arguments []string) error {
		if len(arguments) != 1 {
			return fmt.Errorf("arguments %q: expected a release, for example v1.37.1", arguments)
		}
		all, err := branch.Load(p.Patches)
		if err != nil {
			return err
		}
		if r.target, err = all.Of(arguments[0]); err != nil {
			return err
		}
		if r.series, err = p.series(r.target); err != nil {
			return err
		}
		r.base = all.Vendored()
		if slices.ContainsFunc(r.series, func(m member) bool { return m.Own }) {
			if r.base, err = all.Find(r.target.Name); err != nil {
				return err
			}
		}
		return r.run(ctx)
	}
}

// run takes the series to the release in a scratch repository. That stays if a person has to look at it,
// and the next run continues with what is there.
func (r *rebase) run(ctx context.Context) error {
	dir, err := r.scratchDir(ctx)
	if err != nil {
		return err
	}
	r.repo = &scratch.Repository{Dir: dir}
	if exists(dir) {
		r.printf("Continuing with what is in %s; remove it to start again.\n", dir)
	} else if err := r.pick(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(dir)) // nobody can continue with half of it
	}
	if r.picking() {
		status, err := r.repo.Git(ctx, "status")
		if err != nil {
			return err
		}
		conflicts, err := r.repo.Git(ctx, "diff")
		if err != nil {
			return err
		}
		r.printf("%s\n%s", status, conflicts)
		return fmt.Errorf("%s: nothing was written: git cannot merge the series. Go on in %s, as git says above; then run 'make rebase-patches VERSION=%s MERGE=1'", r.target.Version, dir, r.target.Version)
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// scratchDir returns where the scratch repository is for this release and this series.
func (r *rebase) scratchDir(ctx context.Context) (string, error) {
	release, err := r.Release(ctx, r.target.Version)
	if err != nil {
		return "", err
	}
	var files []string
	for _, m := range r.series {
		files = append(files, m.file)
	}
	key, err := tree.Key(release, files)
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(r.output, "rebase", key))
}

// picking tells whether git waits for a person.
func (r *rebase) picking() bool {
	return exists(filepath.Join(r.repo.Dir, ".git/CHERRY_PICK_HEAD")) || exists(filepath.Join(r.repo.Dir, ".git/sequencer"))
}

// pick fills the scratch repository, and merges the series into the release as far as git can.
func (r *rebase) pick(ctx context.Context) error {
	repo, err := scratch.New(ctx, r.repo.Dir)
	if err != nil {
		return err
	}
	if err := r.release(ctx, repo, oldRelease, r.base.Version, r.series); err != nil {
		return err
	}
	if err := apply(ctx, repo, r.series, oldPatch, r.base.Version); err != nil {
		return err
	}
	if err := r.release(ctx, repo, newRelease, r.target.Version, r.series); err != nil {
		return err
	}
	last := fmt.Sprint(oldPatch, len(r.series)-1)
	if _, err := repo.Git(ctx, "cherry-pick", "--allow-empty", oldRelease+".."+last); err != nil && !r.picking() {
		return err
	}
	return nil
}

// result is what became of a patch of the series.
type result struct {
	member
	// merged tells that the former file does not apply, or lands elsewhere.
	merged bool
}

// finish reports what became of each patch, and writes the series.
func (r *rebase) finish(ctx context.Context) error {
	commits, err := r.repo.Commits(ctx, newRelease+"..HEAD")
	if err != nil {
		return err
	}
	if len(commits) == 0 {
		return fmt.Errorf("%s: nothing is left of the series", r.target.Version)
	}
	r.printf("The series of %s on %s:\n", r.base.Version, r.target.Version)
	var results []result
	merged := 0
	for _, commit := range commits {
		result, err := r.judge(ctx, commit)
		if err != nil {
			return err
		}
		if result.merged {
			merged++
		}
		results = append(results, result)
	}
	if _, err := r.repo.Git(ctx, "checkout", "-q", commits[len(commits)-1]); err != nil {
		return err
	}
	if merged > 0 && !r.merge {
		return fmt.Errorf("%s: nothing was written: %d patches had to be merged. Read the differences above; if they are right, 'make rebase-patches VERSION=%s MERGE=1' writes them", r.target.Version, merged, r.target.Version)
	}
	return r.write(ctx, results)
}

// judge tells whether a commit is what the former file gives, and prints git's words on the difference.
func (r *rebase) judge(ctx context.Context, commit string) (result, error) {
	subject, err := r.repo.Git(ctx, "show", "--no-patch", "--format=%s", commit)
	if err != nil {
		return result{}, err
	}
	i := slices.IndexFunc(r.series, func(m member) bool { return patch.Subject(m.content) == strings.TrimSpace(subject) })
	if i < 0 {
		return result{}, fmt.Errorf("%s: no patch has the subject %q of a commit there; keep the subjects", r.repo.Dir, strings.TrimSpace(subject))
	}
	judged := result{member: r.series[i]}
	r.printf("  %s\n", judged.Path)
	if _, err := r.repo.Git(ctx, "checkout", "-q", commit+"^"); err != nil {
		return result{}, err
	}
	said, err := r.repo.Apply(ctx, judged.file)
	if err != nil && !errors.Is(err, scratch.ErrDoesNotApply) {
		return result{}, err
	}
	if err == nil {
		same, err := r.repo.Same(ctx, "HEAD", commit)
		if err != nil {
			return result{}, err
		}
		if same {
			r.printf("%s\n", indent(said))
			return judged, nil
		}
	}
	judged.merged = true
	difference, err := r.repo.Git(ctx, "range-diff", "--no-color", fmt.Sprint(oldPatch, i, "^!"), commit+"^!")
	r.printf("    merged; git range-diff:\n%s\n", indent(difference))
	return judged, err
}

// write writes the series as it is in the repository.
func (r *rebase) write(ctx context.Context, results []result) error {
	if r.dir != "" {
		written, err := r.repo.Format(ctx, newRelease, r.dir)
		r.printf("\nWrote %d patches to %s.\n", len(written), r.dir)
		return err
	}
	dir, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := r.repo.Format(ctx, newRelease, dir)
	if err != nil {
		return err
	}
	if r.target.Vendored {
		err = r.replace(r.series, files, ".")
	} else {
		err = r.replaceOwn(results, files)
	}
	if err := errors.Join(err, r.pin(), r.headers()); err != nil {
		return fmt.Errorf("%w; 'git checkout patches' takes back what was written", err)
	}
	r.printf("\npatches/ has the series for %s. Read 'git diff patches'.\n", r.target.Version)
	if r.target.Vendored && r.target.Version != r.base.Version {
		r.printf("Next: require %s in go.mod, then make update-vendor verify-patches verify-vendor test.\n", r.target.Version)
	} else {
		r.printf("Next: make verify-patches.\n")
	}
	return nil
}

// replace removes former patches, and puts the files into a folder of patches/.
func (r *rebase) replace(former []member, files []string, folder string) error {
	for _, m := range former {
		if err := os.Remove(m.file); err != nil {
			return fmt.Errorf("replace a patch: %w", err)
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the series: %w", err)
		}
		if err := write(filepath.Join(r.Patches, folder, filepath.Base(file)), string(content)); err != nil {
			return err
		}
	}
	return nil
}

// replaceOwn writes for a branch beside the vendored one the patches that are its own, or have to be from
// now on. The shared ones stay as they are.
func (r *rebase) replaceOwn(results []result, files []string) error {
	if len(results) != len(r.series) {
		return fmt.Errorf("%s: one branch cannot leave out a shared patch; see patches/README.md", r.target.Name)
	}
	for i, result := range results {
		var former []member
		switch {
		case result.Own:
			former = append(former, result.member)
		case !result.merged:
			continue
		default:
			r.printf("\n%s has a patch of its own now; add a paragraph \"Why it differs: …\" to its header.\n", r.target.Name)
		}
		if err := r.replace(former, files[i:i+1], r.target.Name); err != nil {
			return err
		}
	}
	return nil
}

// pin writes the release into patches/branches.
func (r *rebase) pin() error {
	file := filepath.Join(r.Patches, branch.File)
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the pinned versions: %w", err)
	}
	pinned, err := branch.Pin(string(content), r.target)
	if err != nil {
		return err
	}
	return write(file, pinned)
}

// headers has the headers of all patches name the releases that they are for.
func (r *rebase) headers() error {
	all, err := branch.Load(r.Patches)
	if err != nil {
		return err
	}
	for _, b := range all {
		series, err := r.project.series(b)
		if err != nil {
			return err
		}
		for _, m := range series {
			versions, err := branch.Checked(os.DirFS(r.Patches), all, m.Entry)
			if err != nil {
				return err
			}
			if err := write(m.file, patch.WithVersions(m.content, versions)); err != nil {
				return err
			}
		}
	}
	return nil
}
