package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// Tree is a release's source on disk.
type Tree struct {
	Version string
	// Dir is the module's root, with its go.mod.
	Dir string
	// Replace has what a go.mod must say so that a build uses this tree and, of Kubernetes, the staging modules of its
	// release, as "OLD => NEW" or "OLD => NEW VERSION".
	Replace []string
}

// Key names what the tree was made of.
func (t *Tree) Key() string { return filepath.Base(t.Dir) }

// Release is what a tree is made of.
type Release struct {
	// Path is the module's, Version the release's.
	Path, Version string
	// Module is the directory that Download returns.
	Module string
	// Sums are lines for go.sum that the checksum database does not have.
	Sums []string
}

// Maker makes the trees of branches.
type Maker struct {
	// Patches is the folder of the series, Cache where trees are kept.
	Patches, Cache string
	// Download returns the directory of a module's release; nil stands for [Download].
	Download func(ctx context.Context, path, version string) (string, error)
}

// Release returns what a tree of a branch is made of.
func (m Maker) Release(ctx context.Context, b branch.Branch) (Release, error) {
	download := m.Download
	if download == nil {
		download = Download
	}
	module, err := download(ctx, b.Module, b.Version)
	if err != nil {
		return Release{}, err
	}
	release := Release{Path: b.Module, Version: b.Version, Module: module}
	if b.Module == branch.Kubernetes {
		release.Sums, err = branch.Sums(m.Patches)
	}
	return release, err
}

// Tree returns the tree of a branch, with its series applied if patched.
func (m Maker) Tree(ctx context.Context, b branch.Branch, patched bool) (*Tree, error) {
	var patches []string
	if patched {
		series, err := branch.Series(os.DirFS(m.Patches), b)
		if err != nil {
			return nil, err
		}
		for _, entry := range series {
			patches = append(patches, filepath.Join(m.Patches, entry.Path))
		}
	}
	release, err := m.Release(ctx, b)
	if err != nil {
		return nil, err
	}
	return Ensure(ctx, m.Cache, release, patches)
}

// Download returns the directory of a module's release in the module cache, where it is put if it is
// not there. Nothing in it may be changed.
func Download(ctx context.Context, path, version string) (string, error) {
	output, err := Go(ctx, os.TempDir(), "mod", "download", "-json", path+"@"+version).Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &result); jsonErr == nil && result.Error != "" {
		err = errors.New(result.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s %s: %w", path, version, exitText(err))
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

// Key names the tree that Ensure would make: the same release and the same patches give the same.
func Key(release Release, patches []string) (string, error) {
	// A change of how trees are made makes all of them anew: raise the number.
	all := fmt.Sprintf("3 %s %q\n", release.Version, release.Sums)
	for _, patch := range patches {
		content, err := os.ReadFile(patch)
		if err != nil {
			return "", fmt.Errorf("read a patch: %w", err)
		}
		all += fmt.Sprintf("%d\n%s", len(content), content)
	}
	name := release.Version
	if release.Path != branch.Kubernetes {
		all += release.Path
		name = path.Base(release.Path) + "-" + name
	}
	sum := sha256.Sum256([]byte(all))
	return name + "-" + hex.EncodeToString(sum[:6]), nil
}

// Ensure returns the tree of the release with the patches applied, without fuzz. It lies below cache,
// where it is made once and not checked again: copy it to change it. go adds to its go.mod and go.sum. Where
// one is made, what has not been used for a week is removed.
func Ensure(ctx context.Context, cache string, release Release, patches []string) (*Tree, error) {
	key, err := Key(release, patches)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(cache, key))
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	if now := time.Now(); os.Chtimes(dir, now, now) == nil { // it is there, and stays for another week
		return describe(dir, release)
	}
	if err := prune(filepath.Dir(dir), time.Now().Add(-7*24*time.Hour)); err != nil {
		return nil, err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), "unfinished-")
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := fill(ctx, unfinished, release, patches); err != nil {
		return nil, err
	}
	if err := os.Rename(unfinished, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr != nil { // else another process was faster
			return nil, fmt.Errorf("make a tree: %w", err)
		}
	}
	return describe(dir, release)
}

// prune makes the cache if it is not there, and removes from it what was last used before a time.
func prune(cache string, before time.Time) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make a tree: %w", err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("look for old trees: %w", err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			if err := os.RemoveAll(filepath.Join(cache, entry.Name())); err != nil {
				return fmt.Errorf("remove an old tree: %w", err)
			}
		}
	}
	return nil
}

// notBuilt is what the module has and a build outside of Kubernetes' repository must not see.
var notBuilt = []string{"vendor", "staging", "go.work", "go.work.sum"}

// fill fills a directory with the patched module. The go.mod of Kubernetes takes the staging modules from where they
// are published.
func fill(ctx context.Context, dir string, release Release, patches []string) error {
	if err := os.CopyFS(dir, os.DirFS(release.Module)); err != nil {
		return fmt.Errorf("copy the module: %w", err)
	}
	for _, name := range notBuilt {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("copy the module: %w", err)
		}
	}
	for _, patch := range patches {
		file, err := filepath.Abs(patch)
		if err != nil {
			return fmt.Errorf("find a patch: %w", err)
		}
		if _, err := scratch.Git(ctx, dir, "apply", "--whitespace=nowarn", file); err != nil {
			b := branch.Branch{Module: release.Path, Version: release.Version}
			return fmt.Errorf("%s does not apply to %s %s: %w; run '%s'", patch, b.Module, b.Version, err, b.Rebase())
		}
	}
	if release.Path != branch.Kubernetes {
		return nil
	}
	return errors.Join(
		edit(filepath.Join(dir, "go.mod"), func(mod string) string { return publish(mod, release.Version) }),
		edit(filepath.Join(dir, "go.sum"), func(sums string) string { return sums + strings.Join(release.Sums, "\n") + "\n" }))
}

// edit changes a file, which is empty if it is not there.
func edit(file string, change func(string) string) error {
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("make a tree: %w", err)
	}
	if err := os.WriteFile(file, []byte(change(string(content))), 0o600); err != nil {
		return fmt.Errorf("make a tree: %w", err)
	}
	return nil
}

var (
	staging   = regexp.MustCompile(`(?m)^(\s*(k8s\.io/\S+) => )\./staging/src/\S+$`)
	required  = regexp.MustCompile(`(?m)^(\s*(?:require )?k8s\.io/\S+) v0\.0\.0((?: //.*)?)$`)
	published = regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+ => k8s\.io/\S+ v0\.\S+)$`)
)

// publish returns a go.mod of Kubernetes whose staging modules come from where they are
// published, at the version that belongs to the release: v0.37.1 to v1.37.1. The requirements name
// that version too, so that go has nothing to correct and reads only the modules that a build needs.
func publish(mod, version string) string {
	of := "v0" + strings.TrimPrefix(version, "v1")
	mod = required.ReplaceAllString(mod, "${1} "+of+"${2}")
	return staging.ReplaceAllString(mod, "${1}${2} "+of)
}

func describe(dir string, release Release) (*Tree, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("%s is broken, remove it: %w", dir, err)
	}
	replace := []string{release.Path + " => " + strconv.Quote(dir)}
	for _, match := range published.FindAllStringSubmatch(string(mod), -1) {
		replace = append(replace, match[1])
	}
	slices.Sort(replace)
	return &Tree{Version: release.Version, Dir: dir, Replace: replace}, nil
}
