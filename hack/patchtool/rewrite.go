package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// write writes the series as it is in the repository.
func (r *rebase) write(ctx context.Context, repo *scratch.Repository, results []result) error {
	if r.dir != "" {
		written, err := repo.Format(ctx, newRelease, r.dir)
		if err != nil {
			return err
		}
		r.printf("\nWrote %d patches to %s.\n", len(written), r.dir)
		return nil
	}
	formatted, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(formatted) }()
	written, err := repo.Format(ctx, newRelease, formatted)
	if err != nil {
		return err
	}
	err = r.staged(func(staged *rebase) error {
		if err := staged.replace(written, results); err != nil {
			return err
		}
		if err := staged.pin(); err != nil {
			return err
		}
		if err := staged.others(ctx); err != nil {
			return err
		}
		return staged.headers()
	})
	if err != nil {
		return err
	}
	r.next()
	return nil
}

// staged works on a copy of patches/, and writes into patches/ what became of it if all went well.
func (r *rebase) staged(work func(*rebase) error) error {
	copied, err := os.MkdirTemp("", "patches-")
	if err != nil {
		return fmt.Errorf("copy the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(copied) }()
	for name, content := range r.began {
		if err := put(filepath.Join(copied, name), content); err != nil {
			return err
		}
	}
	project, staged := *r.project, *r
	project.patches = copied
	staged.project = &project
	if err := work(&staged); err != nil {
		return err
	}
	made, err := readFolder(copied)
	if err != nil {
		return err
	}
	return made.replace(r.patches, r.began)
}

// replace puts the patches as they are on the release into patches/. For a branch beside the vendored one
// the shared ones stay as they are, for they apply; what had to be merged becomes its own.
func (r *rebase) replace(written []string, results []result) error {
	for i, m := range r.series {
		folder := filepath.Dir(m.Path)
		if r.beside && !m.Own {
			if !results[i].merged {
				continue
			}
			folder = r.target.Name
			r.differs(r.target.Name)
		}
		content, err := os.ReadFile(written[i])
		if err != nil {
			return fmt.Errorf("read what was rebased: %w", err)
		}
		if folder == filepath.Dir(m.Path) {
			if err := os.Remove(filepath.Join(r.patches, m.Path)); err != nil { // its subject, and so its name, may have changed
				return fmt.Errorf("replace a patch: %w", err)
			}
		}
		if err := put(filepath.Join(r.patches, folder, filepath.Base(written[i])), string(content)); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebase) differs(branch string) {
	r.printf("\n%s has a patch of its own now; add a paragraph \"%s: …\" to its header.\n", branch, patch.Differs)
}

// others tries the shared patches as they are now on the other branches, and leaves those to which they no
// longer apply the former ones, as patches of their own.
func (r *rebase) others(ctx context.Context) error {
	if r.beside {
		return nil // the shared patches are as they were
	}
	all, err := branch.Load(r.patches)
	if err != nil {
		return err
	}
	var failed error
	for _, b := range all {
		if b.Name == r.target.Name {
			continue
		}
		if err := r.other(ctx, b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", b.Name, err))
		}
	}
	return failed
}

func (r *rebase) other(ctx context.Context, b branch.Branch) error {
	series, err := r.project.series(b)
	if err != nil {
		return err
	}
	module, err := r.module(ctx, b.Version)
	if err != nil {
		return err
	}
	repo, remove, err := repository(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := repo.Release(ctx, b.Version, module, directories(series)); err != nil {
		return err
	}
	for i, m := range series {
		_, applied, err := repo.Apply(ctx, m.file, m.patch)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.Path, err)
		case applied:
			continue
		case m.Own:
			return fmt.Errorf("%s does not apply to %s any more, on top of what was rebased; nothing was written. CONTRIBUTING.adoc, \"To go to another release\", says how to go on", m.Path, b.Version)
		}
		former := r.series[i]
		content, err := os.ReadFile(former.file) // the series is still where it was
		if err != nil {
			return fmt.Errorf("read a patch: %w", err)
		}
		if err := put(filepath.Join(r.patches, b.Name, filepath.Base(former.Path)), string(content)); err != nil {
			return err
		}
		r.differs(b.Name)
		if _, applied, err = repo.Apply(ctx, former.file, former.patch); err != nil {
			return fmt.Errorf("%s: %w", former.Path, err)
		}
		if !applied {
			name := filepath.Join(b.Name, filepath.Base(former.Path))
			return fmt.Errorf("%s does not apply to %s; give the branch what it had as its own, with 'mkdir -p patches/%s && git show HEAD:patches/%s >patches/%s' if that was its name, and then again", former.Path, b.Version, b.Name, former.Path, name)
		}
	}
	return nil
}

func put(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// pin writes the release into patches/branches. A branch that is new, and newer than the vendored one, is to
// be vendored from now on.
func (r *rebase) pin() error {
	file := filepath.Join(r.patches, branch.File)
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the pinned versions: %w", err)
	}
	pinned, err := branch.Pin(string(content), r.version)
	if err != nil {
		return err
	}
	return put(file, pinned)
}

// headers has the headers of all patches name the versions that they are for.
func (r *rebase) headers() error {
	all, err := branch.Load(r.patches)
	if err != nil {
		return err
	}
	for _, b := range all {
		series, err := r.project.series(b)
		if err != nil {
			return err
		}
		for _, m := range series {
			versions, err := branch.Checked(os.DirFS(r.patches), all, m.Entry)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(m.file)
			if err != nil {
				return fmt.Errorf("read a patch: %w", err)
			}
			if err := put(m.file, patch.WithVersions(string(content), versions)); err != nil {
				return err
			}
		}
	}
	return nil
}

// next says what is left to do.
func (r *rebase) next() {
	r.printf("\npatches/ has the series for %s.\n", r.version)
	if r.beside || r.version == r.base.Version {
		r.printf("%s\n", "Next: make verify-patches, and read 'git diff patches'.")
		return
	}
	r.printf("%s\n", "Next: the same version in go.mod, make update-vendor verify-patches verify-vendor test.")
}
