package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/patchtool/scratch"
)

// rebases runs hack/rebase-patches.sh, and returns what it says and the repository that it makes.
func (b *bench) rebases(version string, module ...string) (string, *scratch.Repository, error) {
	b.t.Helper()
	script, err := os.ReadFile("../rebase-patches.sh")
	wantError(b.t, err)
	b.write(b.root, map[string]string{"hack/rebase-patches.sh": string(script)})
	b.write(filepath.Join(b.root, "patches"), b.files(b.Patches))
	cache := b.t.TempDir()
	b.t.Setenv("GOMODCACHE", cache)
	for release, module := range b.modules {
		b.write(filepath.Join(cache, release), b.files(module))
	}
	command := exec.CommandContext(b.t.Context(), "bash", append([]string{filepath.Join(b.root, "hack/rebase-patches.sh"), version}, module...)...)
	said, err := command.CombinedOutput()
	return string(said), &scratch.Repository{Dir: filepath.Join(b.root, "_output/rebase", strings.Join(append(module, version), "@"))}, err
}

// TestRebase_WritesBack fails when a series is another one after going to the release that it was written for, or
// does not get the line numbers of another.
func TestRebase_WritesBack(t *testing.T) {
	b := newBench(t)
	b.withOwn()
	b.release("v1.1.1", upstream(append(aside, moved...)...))
	for version, name := range map[string]string{"v1.2.0": shared, "v1.1.0": own, "v1.1.1": own} {
		said, r, err := b.rebases(version)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		wantText(t, said, "1:  ", " = 1:  ")
		dir := t.TempDir()
		_, err = r.Format(t.Context(), "upstream", dir)
		wantError(t, err)
		if same := b.files(dir)[shared] == b.files(b.Patches)[name]; same != (version != "v1.1.1") {
			t.Errorf("on %s the series is the same: %t:\n%s", version, same, b.files(dir)[shared])
		}
	}
}

// TestRebase_Conflict goes the way out of a conflict that patches/README.md describes.
func TestRebase_Conflict(t *testing.T) {
	b := newBench(t)
	b.release("v1.3.0", upstream(conflicting...))
	said, r, err := b.rebases("v1.3.0")
	wantError(t, err, "exit status 1")
	wantText(t, said, "git rebase --continue", "both modified:   pkg/proxy/proxier.go", "go on in "+r.Dir)
	b.write(r.Dir, map[string]string{"pkg/proxy/proxier.go": upstream("	p.synced++\n", "	p.synced += 2\n	p.tell()\n")["pkg/proxy/proxier.go"]})
	b.git(r.Dir, "add", "-A")
	b.git(r.Dir, "rebase", "--continue")
	said, _, err = b.rebases("v1.3.0")
	wantError(t, err)
	wantText(t, said, " pkg/proxy/proxier.go | 2 +-\n", " ! 1:  ", "+ \tp.synced += 2\n")
}

// TestRebase_LeftBehind: what an earlier run has left is neither taken for another series, nor for one that git has rebased.
func TestRebase_LeftBehind(t *testing.T) {
	b := newBench(t)
	b.release("v1.3.0", upstream(conflicting...))
	_, r, err := b.rebases("v1.3.0")
	wantError(t, err, "exit status 1")
	b.git(r.Dir, "rebase", "--abort")
	said, _, err := b.rebases("v1.3.0")
	wantError(t, err, "exit status 1")
	wantText(t, said, "git has not rebased the series")
	b.edit(shared, "It tells.", "It tells more.")
	said, _, err = b.rebases("v1.3.0")
	wantError(t, err, "exit status 1")
	wantText(t, said, "was made from another series")
}
