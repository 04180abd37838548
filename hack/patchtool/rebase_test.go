package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (b *bench) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.patches, name)); err != nil {
		b.t.Fatal(err)
	}
}

// sync is the body of Sync.
const sync = "	if err := p.write(); err != nil {\n		p.failed++\n		return err\n	}\n	p.synced++\n	p.last = nil\n	return nil\n}\n"

func TestRebaseWrites(t *testing.T) {
	for name, test := range map[string]struct {
		version   string
		upstream  map[string]string
		arguments []string
		says      []string
		branches  string
		versions  string // in the header of the shared patch
		files     []string
		own       string   // the version in the headers of the files
		more      []string // files too, for other versions
		changed   bool     // the shared patch itself
	}{
		"the same release": {
			version: "v1.2.0", upstream: upstream(),
			says:     []string{"pkg/proxy/proxier.go, hunk 1: clean", "make verify-patches"},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.0, v1.1.0",
		},
		"the next one of the vendored branch": {
			version: "v1.2.1", upstream: upstream(moved...),
			says:     []string{"pkg/proxy/extension.go, hunk 1: clean", "pkg/proxy/proxier.go, hunk 1: offset +2", "the same version in go.mod"},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.1, v1.1.0", changed: true,
		},
		"a new branch": {
			version: "v1.3.0", upstream: upstream(moved...),
			says:     []string{"the same version in go.mod"},
			branches: "release-1.3 v1.3.0 vendored\nrelease-1.2 v1.2.0\nrelease-1.1 v1.1.0\n", versions: "v1.3.0, v1.2.0, v1.1.0", changed: true,
		},
		"an older branch, where the shared patch stays": {
			version: "v1.1.1", upstream: upstream(moved...),
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.1\n", versions: "v1.2.0, v1.1.1",
		},
		"an older branch that is new": {
			version: "v1.0.3", upstream: upstream(moved...),
			says:     []string{"pkg/proxy/proxier.go, hunk 1: offset +2", "make verify-patches"},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.0\nrelease-1.0 v1.0.3\n", versions: "v1.2.0, v1.1.0, v1.0.3",
		},
		"lines that are there twice, once at their own place": {
			version: "v1.2.1", upstream: upstream("func (p *Proxier) write()", "func (p *Proxier) Again() error {\n"+sync+"\nfunc (p *Proxier) write()"),
			says:     []string{"pkg/proxy/proxier.go, hunk 1: clean"},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.1, v1.1.0", changed: true,
		},
		"merged, so that the branch beside it keeps what it had": {
			version: "v1.2.1", upstream: upstream(aside...), arguments: []string{"-merge"},
			says: []string{"pkg/proxy/proxier.go, hunk 1: merged: upstream changed the lines around it",
				`release-1.1 has a patch of its own now; add a paragraph "Why it differs: …"`},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n", versions: "v1.2.1", changed: true,
			files: []string{"release-1.1/" + series}, own: "v1.1.0",
		},
		"merged onto a new branch, so that those before it keep what they had": {
			version: "v1.3.0", upstream: upstream(aside...), arguments: []string{"-merge"},
			branches: "release-1.3 v1.3.0 vendored\nrelease-1.2 v1.2.0\nrelease-1.1 v1.1.0\n", versions: "v1.3.0", changed: true,
			files: []string{"release-1.1/" + series}, own: "v1.1.0", more: []string{"release-1.2/" + series},
		},
		"merged into an older branch, which gets a patch of its own": {
			version: "v1.1.1", upstream: upstream(aside...), arguments: []string{"-merge"},
			says:     []string{`release-1.1 has a patch of its own now; add a paragraph "Why it differs: …"`},
			branches: "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.1\n", versions: "v1.2.0",
			files: []string{"release-1.1/" + series}, own: "v1.1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.release(test.version, test.upstream)
			before := b.snapshot()
			said, err := b.run(append(append([]string{"rebase"}, test.arguments...), test.version)...)
			wantError(t, err)
			wantText(t, said, test.says...)
			after := b.snapshot()
			if diff := cmp.Diff(test.branches, after["branches"]); diff != "" {
				t.Errorf("branches (-want +got):\n%s", diff)
			}
			former := strings.Replace(before[series], "v1.2.0, v1.1.0", test.versions, 1)
			if same := after[series] == former; same == test.changed {
				t.Errorf("the shared patch became (-former +got):\n%s", cmp.Diff(former, after[series]))
			}
			wantText(t, after[series], "Versions checked: "+test.versions+"\n")
			if len(after) != len(before)+len(test.files)+len(test.more) {
				t.Errorf("the files are %v", after)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(b.patches), ".patches-*")); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
			for _, file := range test.files {
				wantText(t, after[file], "Versions checked: "+test.own+"\n", "+\tp.tell()")
			}
		})
	}
}

func TestRebaseRefuses(t *testing.T) {
	without := upstream(moved...)
	delete(without, "pkg/proxy/proxier.go")
	taken := upstream()
	taken["pkg/proxy/extension.go"] = "package proxy\n"
	twice := upstream("// Sync writes", "func (p *Proxier) Sync0() error {\n"+sync+"\n// Sync writes")
	adopted := upstream("	p.synced++\n", "	p.synced++\n	p.tell()\n")
	adopted["pkg/proxy/extension.go"] = "package proxy\n\nfunc (p *Proxier) tell() { p.told() }\n\nfunc (p *Proxier) told() { _ = p.write }\n"
	partly := upstream()
	partly["pkg/proxy/extension.go"] = adopted["pkg/proxy/extension.go"] + "\nfunc (p *Proxier) more() {}\n"
	away := upstream()
	away["pkg/proxy/rules.go"] = away["pkg/proxy/proxier.go"]
	delete(away, "pkg/proxy/proxier.go")
	for name, test := range map[string]struct {
		version  string
		upstream map[string]string
		says     []string
		not      string
		err      []string
	}{
		"a conflict": {
			version: "v1.3.0", upstream: upstream(conflicting...),
			says: []string{
				"pkg/proxy/extension.go, hunk 1: clean",
				"pkg/proxy/proxier.go, hunk 1: conflict\n" +
					"    <<<<<<< upstream v1.3.0\n    \tp.synced += 2\n    \tp.told = true\n" +
					"    ||||||| upstream v1.2.0\n    \tp.synced++\n" +
					"    =======\n    \tp.synced++\n    \tp.tell()\n" +
					"    >>>>>>> " + series + "\n",
			},
			err: []string{"v1.3.0: 1 places want a decision; nothing was written"},
		},
		"lines that upstream has twice": {
			version: "v1.3.0", upstream: twice,
			says: []string{"pkg/proxy/proxier.go, hunk 1: conflict: its lines are there 2 times, at lines ["},
			err:  []string{"1 places want a decision"},
		},
		"a merge that nobody has read": {
			version: "v1.3.0", upstream: upstream(aside...),
			says: []string{"hunk 1: merged: upstream changed the lines around it\n", "    +\tp.tell()\n"},
			err:  []string{"v1.3.0: 1 patches had to be merged; nothing was written", "MERGE=1"},
		},
		"a file that is gone": {
			version: "v1.3.0", upstream: without,
			says: []string{"pkg/proxy/proxier.go, hunk 1: conflict: No such file or directory\n    <<<<<<< upstream v1.3.0\n    (there is no pkg/proxy/proxier.go)\n    =======\n", "    +\tp.tell()\n"},
			err:  []string{"1 places want a decision"},
		},
		"a new file that upstream has too": {
			version: "v1.3.0", upstream: taken,
			says: []string{"pkg/proxy/extension.go, hunk 1: conflict: already exists in working directory\n    <<<<<<< upstream v1.3.0\n    package proxy\n    =======\n    +package proxy\n", "pkg/proxy/proxier.go, hunk 1: clean\n"},
			err:  []string{"1 places want a decision"},
		},
		"a change that upstream has taken": {
			version: "v1.3.0", upstream: adopted,
			says: []string{"pkg/proxy/extension.go, hunk 1: upstream has it\n", "pkg/proxy/proxier.go, hunk 1: upstream has it\n", "nothing of it is left to do: drop it"},
			err:  []string{"1 places want a decision"},
		},
		"a change of which upstream has taken a part": {
			version: "v1.3.0", upstream: partly,
			says: []string{"pkg/proxy/extension.go, hunk 1: upstream has it\n  pkg/proxy/proxier.go, hunk 1: clean\n  conflict: git cannot merge it as a whole: pkg/proxy/extension.go\n"},
			not:  "drop it",
			err:  []string{"1 places want a decision"},
		},
		"a file that upstream has moved": {
			version: "v1.3.0", upstream: away,
			says: []string{"pkg/proxy/proxier.go, hunk 1: merged, in pkg/proxy/rules.go\n    @@ -", "    +\tp.tell()\n"},
			not:  "conflict",
			err:  []string{"1 patches had to be merged; nothing was written"},
		},
		"what is no release":   {version: "latest", err: []string{`"latest" is not a release of Kubernetes`}},
		"what is not released": {version: "v1.9.0", err: []string{"there is no v1.9.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if test.upstream != nil {
				b.release(test.version, test.upstream)
			}
			before := b.snapshot()
			said, err := b.run("rebase", test.version)
			wantError(t, err, test.err...)
			wantText(t, said, test.says...)
			if test.not != "" && strings.Contains(said, test.not) {
				t.Errorf("it says\n%s\nwith %q", said, test.not)
			}
			if diff := cmp.Diff(before, b.snapshot()); diff != "" {
				t.Errorf("patches/ was touched (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRebaseAndBack proves that a series which goes to another release and comes back is the same.
func TestRebaseAndBack(t *testing.T) {
	b := newBench(t)
	before := b.snapshot()
	there := t.TempDir()
	if _, err := b.run("rebase", "-dir", there, "v1.1.0"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.snapshot()); diff != "" {
		t.Errorf("patches/ was touched (-before +after):\n%s", diff)
	}
	if got := snapshot(t, there)[series]; got == before[series] {
		t.Error("the series has the same line numbers on both")
	}
	back := t.TempDir()
	b.write(there, map[string]string{"branches": before["branches"]})
	if _, err := b.run("rebase", "-patches", there, "-dir", back, "v1.2.0"); err != nil {
		t.Fatal(err)
	}
	delete(before, "branches")
	if diff := cmp.Diff(before, snapshot(t, back)); diff != "" {
		t.Errorf("the series came back as (-want +got):\n%s", diff)
	}
}

// TestRebaseOwnPatch takes a branch's own patch from that branch's release, not from the vendored one.
func TestRebaseOwnPatch(t *testing.T) {
	b := newBench(t)
	b.own("Why it differs: so.\n\n")
	b.release("v1.1.1", upstream(append(aside, moved...)...))
	before := b.snapshot()
	said, err := b.run("rebase", "v1.1.1")
	wantError(t, err)
	wantText(t, said, "merged from v1.1.0", "pkg/proxy/proxier.go, hunk 1: offset +2")
	after := b.snapshot()
	wantText(t, after["release-1.1/"+series], "Versions checked: v1.1.1\n", "Why it differs: so.\n")
	if after[series] != before[series] {
		t.Error("the shared patch was touched")
	}
}

// resolved is what a person makes of the conflict.
func resolved() map[string]string {
	return upstream("	p.synced++\n", "	p.synced += 2\n	p.told = true\n	p.tell()\n", "	failed int\n", "	failed int\n	told   bool\n")
}

var theirs = append(conflicting, "	failed int\n", "	failed int\n	told   bool\n")

var extension = map[string]string{"pkg/proxy/extension.go": "package proxy\n\nfunc (p *Proxier) tell() { p.announce() }\n\nfunc (p *Proxier) announce() { _ = p.write }\n"}

// TestRebaseAfterAConflict goes the way out of a conflict that CONTRIBUTING.adoc describes.
func TestRebaseAfterAConflict(t *testing.T) {
	for name, test := range map[string]struct {
		version, branches string
		keep              []string // the branches that need what they had
	}{
		"on a new branch": {
			version: "v1.3.0", keep: []string{"release-1.2", "release-1.1"},
			branches: "release-1.3 v1.3.0 vendored\nrelease-1.2 v1.2.0\nrelease-1.1 v1.1.0\n",
		},
		"on the vendored branch": {
			version: "v1.2.1", keep: []string{"release-1.1"},
			branches: "release-1.2 v1.2.1 vendored\nrelease-1.1 v1.1.0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.release(test.version, upstream(theirs...))
			_, err := b.run("rebase", test.version)
			wantError(t, err, "1 places want a decision", `CONTRIBUTING.adoc, "A conflict"`)

			former := b.snapshot()[series]
			b.remove(series)
			b.commit(test.version, "", header, resolved(), extension)
			var wants []string
			for _, name := range test.keep {
				wants = append(wants, fmt.Sprintf("%s: %s does not apply to", name, series),
					fmt.Sprintf("'mkdir -p patches/%s && git show HEAD:patches/%s >patches/%s/%s'", name, series, name, series))
			}
			before := b.snapshot()
			_, err = b.run("rebase", test.version)
			wantError(t, err, wants...)
			if diff := cmp.Diff(before, b.snapshot()); diff != "" {
				t.Errorf("patches/ was touched (-before +after):\n%s", diff)
			}

			for _, name := range test.keep {
				b.write(b.patches, map[string]string{name + "/" + series: strings.Replace(former, "Versions checked", "Why it differs: so.\n\nVersions checked", 1)})
			}
			said, err := b.run("rebase", test.version)
			wantError(t, err)
			wantText(t, said, "pkg/proxy/proxier.go, hunk 1: clean", "patches/ has the series for "+test.version)
			after := b.snapshot()
			if after["branches"] != test.branches {
				t.Errorf("branches:\n%s\nwant\n%s", after["branches"], test.branches)
			}
			wantText(t, after[series], "Versions checked: "+test.version+"\n", "+\tp.tell()")
			b.write(b.root, map[string]string{"go.mod": "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes " + test.version + "\n"})
			_, err = b.run("verify", "-compile=none")
			wantError(t, err)
		})
	}
	t.Run("on an older branch", func(t *testing.T) {
		b := newBench(t)
		b.release("v1.1.1", upstream(theirs...))
		_, err := b.run("rebase", "v1.1.1")
		wantError(t, err, "1 places want a decision")
		shared := b.snapshot()[series]
		message := strings.Replace(header, "Versions checked: v1.2.0, v1.1.0", "Why it differs: so.\n\nVersions checked: v1.1.1", 1)
		b.commit("v1.1.1", "release-1.1", message, resolved(), extension)
		_, err = b.run("rebase", "v1.1.1")
		wantError(t, err)
		after := b.snapshot()
		if want := "release-1.2 v1.2.0 vendored\nrelease-1.1 v1.1.1\n"; after["branches"] != want {
			t.Errorf("branches:\n%s\nwant\n%s", after["branches"], want)
		}
		if want := strings.Replace(shared, "v1.2.0, v1.1.0", "v1.2.0", 1); after[series] != want {
			t.Errorf("the shared patch (-want +got):\n%s", cmp.Diff(want, after[series]))
		}
		_, err = b.run("verify", "-compile=none")
		wantError(t, err)
	})
}

// TestRebaseTwiceAtOnce fails when a run loses what another one, or a person, has written meanwhile.
func TestRebaseTwiceAtOnce(t *testing.T) {
	b := newBench(t)
	b.release("v1.2.1", upstream(moved...))
	unlock, err := lock(b.patches)
	wantError(t, err)
	_, err = b.run("rebase", "v1.2.1")
	wantError(t, err, "another rebase is at work on it")
	unlock()

	download := b.download
	b.download = func(ctx context.Context, version string) (string, error) {
		b.write(b.patches, map[string]string{"README.md": "Edited meanwhile.\n"})
		return download(ctx, version)
	}
	_, err = b.run("rebase", "v1.2.1")
	wantError(t, err, "was changed while the series was tried; nothing was written")
	wantText(t, b.snapshot()["branches"], "release-1.2 v1.2.0 vendored\n")
	_, err = b.run("rebase", "v1.2.1")
	wantError(t, err)
	wantText(t, b.snapshot()["branches"], "release-1.2 v1.2.1 vendored\n")
}

func TestRebaseIntoAFullDirectory(t *testing.T) {
	b, dir := newBench(t), t.TempDir()
	b.write(dir, map[string]string{"0009-other.patch": ""})
	_, err := b.run("rebase", "-dir", dir, "v1.2.0")
	wantError(t, err, dir+" is not empty")
}

// TestReplace fails when patches/ is not as it was after something could not be written.
func TestReplace(t *testing.T) {
	former := folder{"0001-a.patch": "a", "0002-b.patch": "b", "branches": "1", "release-1.1/0002-b.patch": "b"}
	for name, test := range map[string]struct {
		to   folder
		want folder
		err  []string
	}{
		"written":      {to: folder{"0001-a.patch": "A", "release-1.0/0001-a.patch": "a", "branches": "2"}, want: folder{"0001-a.patch": "A", "release-1.0/0001-a.patch": "a", "branches": "2"}},
		"not possible": {to: folder{"0001-a.patch": "A", "0002-b.patch/0001-a.patch": "a", "branches": "2"}, want: former, err: []string{"write the series"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.patches = t.TempDir()
			b.write(b.patches, former)
			wantError(t, test.to.replace(b.patches, former), test.err...)
			if diff := cmp.Diff(test.want, folder(b.snapshot())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(b.patches, "release-1.1")); test.err == nil && err == nil {
				t.Error("a folder without patches is left")
			}
		})
	}
}
