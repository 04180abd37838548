//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// dirPrefix is what the names of all labs' temporary directories begin with.
const dirPrefix = "origin-node-lab-"

// A namespace and a directory of labs that had no prefix of their own.
var (
	nobodysNamespace = regexp.MustCompile(`^(lab-[0-9]+-[0-9]+)-`)
	nobodysDir       = regexp.MustCompile(`^` + dirPrefix + `(lab-[0-9]+-[0-9]+)-`)
)

// sweep removes what labs without a prefix of their own left behind whose process has
// ended. A lab that lives holds its lock.
func sweep(ctx context.Context) error {
	prefixes := map[string]bool{}
	for dir, pattern := range map[string]*regexp.Regexp{netnsDir: nobodysNamespace, os.TempDir(): nobodysDir} {
		names, err := matching(dir, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			prefixes[pattern.FindStringSubmatch(name)[1]] = true
		}
	}
	for prefix := range prefixes {
		if err := Remove(ctx, prefix); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return nil
}

// Remove removes what a killed process left behind of the lab with a prefix:
// namespaces, the processes in them, and temporary files. It does nothing where
// nothing is left; a lab whose process lives is an error, unix.EADDRINUSE.
func Remove(ctx context.Context, prefix string) error {
	lock, err := reserve(ctx, prefix)
	if err != nil {
		return err
	}
	return errors.Join(remove(ctx, prefix), lock.Close())
}

// remove is Remove for a caller that holds the lock.
func remove(ctx context.Context, prefix string) error {
	names, err := matching(netnsDir, regexp.MustCompile("^"+regexp.QuoteMeta(prefix)+"-(outside|control|router|far|node(-[0-9]+)?|pod-[0-9]+)$"))
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, removeNamespace(ctx, name))
	}
	names, err = matching(os.TempDir(), regexp.MustCompile("^"+dirPrefix+regexp.QuoteMeta(prefix)+"-[0-9]+$"))
	errs = append(errs, err)
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(os.TempDir(), name)))
	}
	return errors.Join(errs...)
}

func (l *Lab) removeLeftovers(ctx context.Context) error { return remove(ctx, l.cfg.Prefix) }

// matching returns the names in a directory that match; none if there is no such directory.
func matching(dir string, pattern *regexp.Regexp) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look for what labs left: %w", err)
	}
	for _, e := range entries {
		if pattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// makeDir makes the directory of temporary files. Each file in it has permissions of its own.
func (l *Lab) makeDir(context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", dirPrefix+l.cfg.Prefix+"-"); err != nil {
		return err
	}
	return os.Chmod(l.dir, 0o711)
}

// MkdirTemp makes a directory for files of the host that go with the lab. pattern is
// as in [os.MkdirTemp].
func (h *Host) MkdirTemp(pattern string) (string, error) { return os.MkdirTemp(h.lab.dir, pattern) }
