package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repository is a git repository to try patches in.
type Repository struct {
	// Dir is the work tree: what was last checked out or applied.
	Dir string
}

// New makes an empty repository in a directory, which is made if it is not there.
func New(ctx context.Context, dir string) (*Repository, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a repository: %w", err)
	}
	r := &Repository{dir}
	if _, err := r.Git(ctx, "init", "-q", "-b", "scratch"); err != nil {
		return nil, err
	}
	for _, setting := range [][2]string{
		// Only the content of a file counts, not what a platform makes of it.
		{"core.autocrlf", "false"}, {"core.fileMode", "false"}, {"gc.auto", "0"},
	} {
		if _, err := r.Git(ctx, "config", setting[0], setting[1]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Git runs git in the work tree and returns what it prints to stdout; the error has the rest.
func (r *Repository) Git(ctx context.Context, arguments ...string) (string, error) {
	return Git(ctx, r.Dir, arguments...)
}

// Release commits the named directories of a module, without history, and tags the commit. Directories
// that the module does not have are skipped.
func (r *Repository) Release(ctx context.Context, tag, module string, directories []string) error {
	if _, err := r.Git(ctx, "checkout", "-q", "--force", "--orphan", "import-"+tag); err != nil {
		return err
	}
	if _, err := r.Git(ctx, "rm", "-r", "-q", "--force", "--ignore-unmatch", "."); err != nil {
		return err
	}
	for _, name := range directories {
		err := os.CopyFS(filepath.Join(r.Dir, name), os.DirFS(filepath.Join(module, name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy %s of %s: %w", name, tag, err)
		}
	}
	for _, arguments := range [][]string{{"add", "--all", "--force"}, {"commit", "-q", "--allow-empty", "-m", tag}, {"tag", tag}} {
		if _, err := r.Git(ctx, arguments...); err != nil {
			return err
		}
	}
	return nil
}

// ErrDoesNotApply tells that the lines that a patch expects are not there; it wraps git's words.
var ErrDoesNotApply = errors.New("does not apply without fuzz")

// Apply commits a patch on top of what is checked out if every line of its context is there, and returns
// what git said of each hunk that it found at another line. Otherwise the error is [ErrDoesNotApply], and
// the work tree stays as it is.
func (r *Repository) Apply(ctx context.Context, file string) (said string, err error) {
	_, said, err = run(ctx, r.Dir, "apply", "--check", "--verbose", "--whitespace=nowarn", file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDoesNotApply, err)
	}
	_, err = r.Git(ctx, "am", "-q", "--keep-cr", "--whitespace=nowarn", file)
	return said, err
}

// Picks tells whether git merges a commit onto what is checked out with the same result as another commit
// has.
func (r *Repository) Picks(ctx context.Context, commit, as string) (bool, error) {
	if _, err := r.Git(ctx, "cherry-pick", "--allow-empty", commit); err != nil {
		_, err = r.Git(ctx, "cherry-pick", "--abort")
		return false, err
	}
	_, err := r.Git(ctx, "diff", "--quiet", "HEAD", as)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// Format writes the commits behind a tag into a directory as a series, and returns the files in order.
// The same commits give the same bytes.
func (r *Repository) Format(ctx context.Context, tag, dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("write the series: %w", err)
	}
	listed, err := r.Git(ctx, "format-patch", "--zero-commit", "--no-signature", "--no-numbered", "-o", dir, tag)
	return strings.FieldsFunc(listed, func(r rune) bool { return r == '\n' }), err
}

// Git runs git in a directory and returns what it prints to stdout. git finds no repository above the
// directory: git apply would silently skip what lies outside of that one.
func Git(ctx context.Context, dir string, arguments ...string) (string, error) {
	stdout, _, err := run(ctx, dir, arguments...)
	return stdout, err
}

func run(ctx context.Context, dir string, arguments ...string) (stdout, stderr string, err error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = dir
	command.Env = environment(dir)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		return out.String(), said.String(), fmt.Errorf("git %s: %w: %s%s", arguments[0], err, out.String(), strings.TrimSpace(said.String()))
	}
	return out.String(), said.String(), nil
}

const name, mail = "patchtool", "patchtool@localhost"

// environment leaves out the user's configuration of git.
func environment(dir string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") { // set by a hook that runs this program, or by the user
			kept = append(kept, variable)
		}
	}
	const date = "2000-01-01T00:00:00Z"
	return append(kept,
		"LC_ALL=C", "TZ=UTC", "PAGER=cat", "PWD="+dir,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+mail, "GIT_COMMITTER_DATE="+date)
}
