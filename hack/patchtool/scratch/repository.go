package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Repository is a git repository to try patches in. Its work tree is what was last checked out
// or applied.
type Repository struct {
	dir string
}

// New makes an empty repository in a directory that is there.
func New(ctx context.Context, dir string) (*Repository, error) {
	if _, err := Git(ctx, dir, "init", "-q", "-b", "scratch"); err != nil {
		return nil, err
	}
	// What a file holds counts, and nothing that a platform does to it.
	for _, setting := range []string{"core.autocrlf=false", "core.fileMode=false", "gc.auto=0"} {
		name, value, _ := strings.Cut(setting, "=")
		if _, err := Git(ctx, dir, "config", name, value); err != nil {
			return nil, err
		}
	}
	return &Repository{dir: dir}, nil
}

// Release commits the named files and directories of a module as they are in its directory, in the place of
// whatever was there, and tags the commit. Names that the module does not have are passed over.
func (r *Repository) Release(ctx context.Context, tag, module string, names []string) error {
	if err := r.clear(); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyInto(filepath.Join(r.dir, name), filepath.Join(module, name)); err != nil {
			return fmt.Errorf("take %s of %s: %w", name, tag, err)
		}
	}
	for _, arguments := range [][]string{
		{"add", "--all", "--force"}, {"commit", "-q", "--allow-empty", "-m", tag}, {"tag", tag},
	} {
		if _, err := Git(ctx, r.dir, arguments...); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repository) clear() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("clear the repository: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.dir, entry.Name())); err != nil {
			return fmt.Errorf("clear the repository: %w", err)
		}
	}
	return nil
}

// copyInto copies a file or a directory, writable; nothing if there is none.
func copyInto(to, from string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Checkout makes the work tree that of a tag or commit.
func (r *Repository) Checkout(ctx context.Context, ref string) error {
	_, err := Git(ctx, r.dir, "checkout", "-q", "--force", "--detach", ref)
	return err
}

// Head returns the id of the commit that is checked out.
func (r *Repository) Head(ctx context.Context) (string, error) {
	id, err := Git(ctx, r.dir, "rev-parse", "HEAD")
	return strings.TrimSpace(id), err
}

// Tag names what is checked out.
func (r *Repository) Tag(ctx context.Context, tag string) error {
	_, err := Git(ctx, r.dir, "tag", tag)
	return err
}

// File returns a file of a tag or commit; ok tells whether it has one.
func (r *Repository) File(ctx context.Context, ref, path string) (content string, ok bool) {
	content, err := Git(ctx, r.dir, "show", ref+":"+path)
	return content, err == nil
}

func (r *Repository) reset(ctx context.Context) error {
	if _, err := Git(ctx, r.dir, "reset", "-q", "--hard"); err != nil {
		return err
	}
	_, err := Git(ctx, r.dir, "clean", "-q", "-d", "--force")
	return err
}
