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
	if err := os.Remove(filepath.Join(b.patches, name)); err != nil {
		b.t.Fatal(err)
	}
}

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
	const sync = "	if err := p.write(); err != nil {\n		p.failed++\n		return err\n	}\n	p.synced++\n	p.last = nil\n	return nil\n}\n"
	twice := upstream("// Sync writes", "func (p *Proxier) Sync0() error {\n"+sync+"\n// Sync writes")
	adopted := upstream("	p.synced++\n", "	p.synced++\n	p.tell()\n")
	adopted["pkg/proxy/extension.go"] = "package proxy\n\nfunc (p *Proxier) tell() { p.told() }\n\nfunc (p *Proxier) told() { _ = p.write }\n"
	for name, test := range map[string]struct {
		version  string
		upstream map[string]string
		says     []string
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
	if _, err := b.run("rebase", "-to", there, "v1.1.0"); err != nil {
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
	if _, err := b.run("rebase", "-patches", there, "-to", back, "v1.2.0"); err != nil {
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
