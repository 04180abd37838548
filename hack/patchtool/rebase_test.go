package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (b *bench) remove(name string) {
	b.t.Helper()
	wantError(b.t, os.Remove(filepath.Join(b.Patches, name)))
}

func TestRebase_Writes(t *testing.T) {
	for name, test := range map[string]struct {
		version  string
		upstream map[string]string
		merge    bool
		says     []string
		branches string
		versions string // in the header of the shared patch
		changed  bool   // the shared patch is another one
		own      string // the versions in the header of release-1.1's own patch
	}{
		"the same release": {
			version: "v1.2.0", upstream: upstream(), says: []string{"Next: make verify-patches"},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.0, v1.1.0",
		},
		"the next one of the vendored branch": {
			version: "v1.2.1", upstream: upstream(moved...), says: []string{"Hunk #1 succeeded at 21 (offset 2 lines).", "Next: require v1.2.1 in go.mod"},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.1, v1.1.0", changed: true,
		},
		"a new branch": {
			version: "v1.3.0", upstream: upstream(moved...), says: []string{"Next: require v1.3.0 in go.mod"},
			branches: "release-1.3 v1.3.0 vendored\nrelease-1.2 v1.2.0\nrelease-1.1 v1.1.0\n", versions: "v1.3.0, v1.2.0, v1.1.0", changed: true,
		},
		"an older branch, where the shared patch stays": {
			version: "v1.1.1", upstream: upstream(moved...), says: []string{"Next: make verify-patches"},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.1\n", versions: "v1.2.0, v1.1.1",
		},
		"merged": {
			version: "v1.2.1", upstream: upstream(aside...), merge: true, says: []string{"merged; git range-diff:", "!"},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.1, v1.1.0", changed: true,
		},
		"merged into an older branch, which gets a patch of its own": {
			version: "v1.1.1", upstream: upstream(aside...), merge: true, says: []string{`release-1.1 has a patch of its own now; add a paragraph "Why it differs: …"`},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.1\n", versions: "v1.2.0", own: "v1.1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.release(test.version, test.upstream)
			before := b.files(b.Patches)
			arguments := []string{"rebase", test.version}
			if test.merge {
				_, err := b.run(arguments...)
				wantError(t, err, test.version+": nothing was written: 1 patches had to be merged", "MERGE=1")
				if diff := cmp.Diff(before, b.files(b.Patches)); diff != "" {
					t.Errorf("patches/ was touched (-before +after):\n%s", diff)
				}
				arguments = []string{"rebase", "-merge", test.version}
			}
			said, err := b.run(arguments...)
			wantError(t, err)
			wantText(t, said, test.says...)
			after := b.files(b.Patches)
			if diff := cmp.Diff(test.branches, after["branches"]); diff != "" {
				t.Errorf("branches (-want +got):\n%s", diff)
			}
			former := strings.Replace(before[shared], "v1.2.0, v1.1.0", test.versions, 1)
			if same := after[shared] == former; same == test.changed {
				t.Errorf("the shared patch became (-former +got):\n%s", cmp.Diff(former, after[shared]))
			}
			wantText(t, after[shared], "Versions checked: "+test.versions+"\n", "+\tp.tell()")
			if test.own != "" {
				wantText(t, after[own], "Versions checked: "+test.own+"\n", "+\tp.tell()", "return error(nil)")
			}
			if left := b.files(b.output); len(left) > 0 {
				t.Errorf("it leaves %d files", len(left))
			}
		})
	}
}

// TestRebase_OwnPatch takes a branch's own patch from that branch's release, not from the vendored one.
func TestRebase_OwnPatch(t *testing.T) {
	b := newBench(t)
	b.withOwn()
	b.release("v1.1.1", upstream(append(aside, moved...)...))
	before := b.files(b.Patches)
	said, err := b.run("rebase", "v1.1.1")
	wantError(t, err)
	wantText(t, said, "The series of v1.1.0 on v1.1.1", "(offset 2 lines)")
	after := b.files(b.Patches)
	wantText(t, after[own], "Versions checked: v1.1.1\n", "Why it differs: so.\n")
	if diff := cmp.Diff(before[shared], after[shared]); diff != "" {
		t.Errorf("the shared patch (-want +got):\n%s", diff)
	}
}

// TestRebase_ThereAndBack proves that a series which goes to another release and comes back is the same.
func TestRebase_ThereAndBack(t *testing.T) {
	b := newBench(t)
	before, there, back := b.files(b.Patches), t.TempDir(), t.TempDir()
	_, err := b.run("rebase", "-dir", there, "v1.1.0")
	wantError(t, err)
	if diff := cmp.Diff(before, b.files(b.Patches)); diff != "" {
		t.Errorf("patches/ was touched (-before +after):\n%s", diff)
	}
	if b.files(there)[shared] == before[shared] {
		t.Error("the series has the same line numbers on both")
	}
	b.write(there, map[string]string{"branches": "release-1.1 v1.1.0 vendored\n"})
	b.Patches = there
	_, err = b.run("rebase", "-dir", back, "v1.2.0")
	wantError(t, err)
	if diff := cmp.Diff(before[shared], b.files(back)[shared]); diff != "" {
		t.Errorf("the series came back as (-want +got):\n%s", diff)
	}
}

// repository returns the scratch repository that a run has left.
func (b *bench) repository() string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.output, "rebase/*"))
	if err != nil || len(found) != 1 {
		b.t.Fatalf("scratch repositories %v, %v", found, err)
	}
	return found[0]
}

// TestRebase_Conflict goes the way out of a conflict that patches/README.md describes.
func TestRebase_Conflict(t *testing.T) {
	b := newBench(t)
	b.release("v1.2.1", upstream(conflicting...))
	before := b.files(b.Patches)
	for range 2 {
		said, err := b.run("rebase", "-merge", "v1.2.1")
		wantError(t, err, "v1.2.1: nothing was written: git cannot merge the series. Go on in "+b.repository())
		wantText(t, said, "git cherry-pick --continue", "both modified:   pkg/proxy/proxier.go", "p.synced += 2", "+ \tp.tell()")
	}
	if diff := cmp.Diff(before, b.files(b.Patches)); diff != "" {
		t.Errorf("patches/ was touched (-before +after):\n%s", diff)
	}
	r := b.repository()
	b.write(r, map[string]string{"pkg/proxy/proxier.go": upstream("	p.synced++\n", "	p.synced += 2\n	p.tell()\n")["pkg/proxy/proxier.go"]})
	b.git(r, "add", "-A")
	b.git(r, "cherry-pick", "--continue")
	said, err := b.run("rebase", "-merge", "v1.2.1")
	wantError(t, err)
	wantText(t, said, "Continuing with what is in "+r)
	after := b.files(b.Patches)
	wantText(t, after[shared], " \tp.synced += 2\n+\tp.tell()\n", "Versions checked: v1.2.1, v1.1.0")

	// The older branch now needs a patch of its own, and gets it the same way.
	b.write(b.root, map[string]string{"go.mod": "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.1\n"})
	_, err = b.run("verify", "-compile=none")
	wantError(t, err, "release-1.1: "+shared+": run 'make rebase-patches VERSION=v1.1.0'")
	_, err = b.run("rebase", "-merge", "v1.1.0")
	wantError(t, err, "git cannot merge the series")
	r = b.repository()
	b.write(r, map[string]string{"pkg/proxy/proxier.go": upstream(append(moved, told...)...)["pkg/proxy/proxier.go"]})
	b.git(r, "add", "-A")
	b.git(r, "cherry-pick", "--continue")
	_, err = b.run("rebase", "-merge", "v1.1.0")
	wantError(t, err)
	b.edit(own, "\nDrop when", "\nWhy it differs: so.\n\nDrop when")
	_, err = b.run("verify", "-compile=none")
	wantError(t, err)
}

func TestRebase_UpstreamHasIt(t *testing.T) {
	b := newBench(t)
	adopted := upstream(told...)
	adopted["pkg/proxy/extension.go"] = extension
	b.release("v1.3.0", adopted)
	said, err := b.run("rebase", "v1.3.0")
	wantError(t, err, "git cannot merge the series")
	wantText(t, said, "git cherry-pick --skip")
	b.git(b.repository(), "cherry-pick", "--skip")
	_, err = b.run("rebase", "v1.3.0")
	wantError(t, err, "v1.3.0: nothing is left of the series")
}

// TestRebase_ChangedSeries fails when a run continues with what another series has left.
func TestRebase_ChangedSeries(t *testing.T) {
	b := newBench(t)
	b.release("v1.2.1", upstream(aside...))
	_, err := b.run("rebase", "v1.2.1")
	wantError(t, err, "had to be merged")
	b.edit(shared, "It tells.", "It tells more.")
	said, err := b.run("rebase", "-merge", "v1.2.1")
	wantError(t, err)
	if strings.Contains(said, "Continuing") {
		t.Errorf("it says\n%s", said)
	}
	wantText(t, b.files(b.Patches)[shared], "It tells more.")
}
