package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// Kubernetes is the path of the module.
const Kubernetes = "k8s.io/kubernetes"

// Tree is a release's source on disk.
type Tree struct {
	Version string
	// Dir is the module's root, with its go.mod.
	Dir string
	// Patches are the files that were applied, in order.
	Patches []string
	// Replace has what a go.mod must say so that a build uses this tree and the staging modules of its
	// release, as "OLD => NEW" or "OLD => NEW VERSION", sorted.
	Replace []string
}

// Key names what the tree was made of, as [Key] does.
func (t *Tree) Key() string { return filepath.Base(t.Dir) }

// Release is what a tree is made of.
type Release struct {
	Version string
	// Module is the directory that Download returns.
	Module string
	// Sums are lines for go.sum that the checksum database does not have.
	Sums []string
}

// Download returns the directory of the module in the module cache, where it is put if it is
// not there. Nothing in it may be changed.
func Download(ctx context.Context, version string) (string, error) {
	command := Go(ctx, os.TempDir(), "mod", "download", "-json", Kubernetes+"@"+version)
	output, err := command.Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &result); jsonErr == nil && result.Error != "" {
		return "", fmt.Errorf("download %s %s: %s", Kubernetes, version, result.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s %s: %w", Kubernetes, version, exitText(err))
	}
	if result.Dir == "" {
		return "", fmt.Errorf("download %s %s: go names no directory", Kubernetes, version)
	}
	return result.Dir, nil
}

// Go returns a go command that works on a module of its own: no workspace, no vendor/, and
// compiling as `make build` does, so that both share what they compile.
func Go(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "CGO_ENABLED=0", "GOOS=linux", "PWD="+dir)
	return command
}

// exitText adds what the command said to its exit status.
func exitText(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// Key names the tree that Make would make: the same release and the same patches give the same.
func Key(release Release, patches []string) (string, error) {
	var all strings.Builder
	// A change of how trees are made makes all of them anew: raise the number.
	fmt.Fprintf(&all, "2 %s %q\n", release.Version, release.Sums)
	for _, patch := range patches {
		content, err := os.ReadFile(patch)
		if err != nil {
			return "", fmt.Errorf("read a patch: %w", err)
		}
		fmt.Fprintf(&all, "%d\n%s", len(content), content)
	}
	sum := sha256.Sum256([]byte(all.String()))
	return release.Version + "-" + hex.EncodeToString(sum[:6]), nil
}

// Ensure returns the tree of the release with the patches applied. It lies below cache, where it is
// made once. Nobody but go, which adds to its go.mod and go.sum, may change it, for what it holds is not looked at
// again: whoever needs to copies it. Where one is made, the release's trees that nobody has used for a week
// are removed.
func Ensure(ctx context.Context, cache string, release Release, patches []string) (*Tree, error) {
	key, err := Key(release, patches)
	if err != nil {
		return nil, err
	}
	cache, err = filepath.Abs(cache)
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	dir := filepath.Join(cache, key)
	if use(dir) {
		return describe(dir, release.Version, patches)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	if err := prune(cache, release.Version, time.Now().Add(-kept)); err != nil {
		return nil, err
	}
	unfinished, err := os.MkdirTemp(cache, unfinishedPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := Make(ctx, release, unfinished, patches); err != nil {
		return nil, err
	}
	if err := protect(unfinished); err != nil {
		return nil, err
	}
	if err := os.Rename(unfinished, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr != nil { // else another process was faster
			return nil, fmt.Errorf("make a tree: %w", err)
		}
	}
	return describe(dir, release.Version, patches)
}

const (
	// kept is how long a tree stays that nobody uses.
	kept = 7 * 24 * time.Hour
	// unfinishedPrefix begins the names of what is being made, or was when a process died.
	unfinishedPrefix = "unfinished-"
)

// use tells whether a tree is there, and notes that it is used.
func use(dir string) bool {
	now := time.Now()
	return os.Chtimes(dir, now, now) == nil
}

// prune removes the trees of a version that were last used before a time, and what dead processes have left
// from before it. A tree gets another name first, so that nobody finds a half of it.
func prune(cache, version string, before time.Time) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("look for old trees: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(cache, entry.Name())
		isTree := of(entry.Name()) == version
		info, err := entry.Info()
		if err != nil || info.ModTime().After(before) || !isTree && !strings.HasPrefix(entry.Name(), unfinishedPrefix) {
			continue // an error tells that it is gone
		}
		if isTree {
			dead := filepath.Join(cache, unfinishedPrefix+entry.Name())
			if err := os.Rename(name, dead); errors.Is(err, fs.ErrNotExist) {
				continue // another process does the same
			} else if err != nil {
				return fmt.Errorf("remove an old tree: %w", err)
			}
			name = dead
		}
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("remove an old tree: %w", err)
		}
	}
	return nil
}

var key = regexp.MustCompile(`^(v.*)-[0-9a-f]{12}$`)

// of returns the version of the tree that has a name; empty if no tree has it.
func of(name string) string {
	if match := key.FindStringSubmatch(name); match != nil {
		return match[1]
	}
	return ""
}

// protect lets nobody write into the files of a tree but those that go changes.
func protect(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == filepath.Join(dir, "go.mod") || path == filepath.Join(dir, "go.sum") {
			return err
		}
		return os.Chmod(path, 0o444)
	})
	if err != nil {
		return fmt.Errorf("protect a tree: %w", err)
	}
	return nil
}

func describe(dir, version string, patches []string) (*Tree, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read a tree: %w; remove it if it is broken", err)
	}
	replace := []string{Kubernetes + " => " + strconv.Quote(dir)}
	for _, match := range published.FindAllStringSubmatch(string(mod), -1) {
		replace = append(replace, match[1])
	}
	slices.Sort(replace)
	return &Tree{Version: version, Dir: dir, Patches: patches, Replace: replace}, nil
}

// Make fills the directory with the module's source, applies the patches without fuzz, and
// has go.mod take the staging modules from where they are published.
func Make(ctx context.Context, release Release, dir string, patches []string) error {
	if err := Copy(ctx, release.Module, dir); err != nil {
		return err
	}
	for _, patch := range patches {
		if err := apply(ctx, dir, patch); err != nil {
			return fmt.Errorf("%s on %s %s: %w", filepath.Base(patch), Kubernetes, release.Version, err)
		}
	}
	name := filepath.Join(dir, "go.mod")
	mod, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read go.mod: %w", err)
	}
	if err := os.WriteFile(name, []byte(Publish(string(mod), release.Version)), 0o600); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	return addSums(filepath.Join(dir, "go.sum"), release)
}

// addSums adds to go.sum what the release's own modules need.
func addSums(file string, release Release) error {
	known, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read go.sum: %w", err)
	}
	sums := strings.SplitAfter(string(known), "\n")
	for _, line := range release.Sums {
		if Sums(line, release.Version) {
			sums = append(sums, line+"\n")
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(sums, "")), 0o600); err != nil {
		return fmt.Errorf("write go.sum: %w", err)
	}
	return nil
}

// Sums tells whether a line of go.sum is for a staging module as a release of Kubernetes has it.
func Sums(line, version string) bool {
	words := strings.Fields(line)
	return len(words) == 3 && strings.TrimSuffix(words[1], "/go.mod") == "v0"+strings.TrimPrefix(version, "v1")
}

var (
	staging   = regexp.MustCompile(`(?m)^(\s*(k8s\.io/\S+) => )\./staging/src/\S+$`)
	required  = regexp.MustCompile(`(?m)^(\s*(?:require )?k8s\.io/\S+) v0\.0\.0((?: //.*)?)$`)
	published = regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+ => k8s\.io/\S+ v0\.\S+)$`)
)

// Publish returns a go.mod of Kubernetes whose staging modules come from where they are
// published, at the version that belongs to the release: v0.37.1 to v1.37.1. The requirements name
// that version too, so that go has nothing to correct and reads only the modules that a build needs.
func Publish(mod, version string) string {
	of := "v0" + strings.TrimPrefix(version, "v1")
	mod = required.ReplaceAllString(mod, "${1} "+of+"${2}")
	return staging.ReplaceAllString(mod, "${1}${2} "+of)
}

// leftOut is what the module has but no build outside of its repository may see.
var leftOut = []string{"vendor", "staging", "go.work", "go.work.sum"}

// Copy copies a module from the module cache, writable. Other files than the module's own are left out.
func Copy(ctx context.Context, module, dir string) error {
	err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(module, path)
		switch {
		case err != nil:
			return err
		case slices.Contains(leftOut, name) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(leftOut, name):
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
	if err != nil {
		return fmt.Errorf("copy the module: %w", err)
	}
	return nil
}

// apply applies a patch with all of its context.
func apply(ctx context.Context, dir, patch string) error {
	patch, err := filepath.Abs(patch)
	if err != nil {
		return fmt.Errorf("find the patch: %w", err)
	}
	_, err = scratch.Git(ctx, dir, "apply", "--whitespace=nowarn", patch)
	return err
}
