package branch

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const file = "# why\nrelease-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.4\n"

var (
	supported = Branches{{Module: Kubernetes, Name: "release-1.37", Version: "v1.37.1", Vendored: true}, {Module: Kubernetes, Name: "release-1.36", Version: "v1.36.4"}}
	other     = Branch{Module: "example.test/other", Version: "v0.3.0", Vendored: true}
)

func TestParse_Content(t *testing.T) {
	for content, want := range map[string]string{
		file + "\n": "",
		"release-1.37 v1.37.1 vendored\nrelease-1.36 v1.35.4\n":          `branches:2: invalid line "release-1.36 v1.35.4": expected`,
		"release-1.37 1.37.1 vendored\n":                                 "branches:1: invalid line",
		"release-1.37 v1.37.1-beta vendored\n":                           "branches:1: invalid line",
		"release-1.37 v1.37.1 vendor\n":                                  "branches:1: invalid line",
		"release-1.37 v1.37.1 vendored\nrelease-1.37 v1.37.0\n":          "branches:2: release-1.37 is listed twice",
		"release-1.37 v1.37.1\n":                                         `branches: 0 branches are marked "vendored"`,
		"release-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.4 vendored\n": `branches: 2 branches are marked "vendored"`,
	} {
		got, err := Parse(content)
		wantError(t, err, want)
		if diff := cmp.Diff(supported, got); want == "" && diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestBranches_Choose(t *testing.T) {
	for name, want := range map[string]Branches{
		"": supported, "all": supported, "vendored": supported[:1],
		"release-1.36": supported[1:], "1.36": supported[1:], "v1.36.4": supported[1:], "1.36.4": supported[1:],
	} {
		got, err := supported.Choose(name)
		wantError(t, err, "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", name, diff)
		}
	}
	_, err := supported.Choose("1.2")
	wantError(t, err, `"1.2" is not a supported branch: patches/branches has release-1.37, release-1.36`)
}

func TestSeries_Files(t *testing.T) {
	for name, test := range map[string]struct {
		files  []string
		branch Branch
		want   []Entry
		err    string
	}{
		"shared alone": {
			files:  []string{"0001-a.patch", "0002-b.patch", "README.md", "release-1.36/0001-c.patch"},
			branch: supported[0], want: []Entry{{Path: "0001-a.patch"}, {Path: "0002-b.patch"}},
		},
		"own in place of a shared one, and behind": {
			files:  []string{"0001-a.patch", "0002-b.patch", "release-1.36/0002-c.patch", "release-1.36/0003-d.patch", "release-1.35/0001-e.patch"},
			branch: supported[1], want: []Entry{{Path: "0001-a.patch"}, {Path: "release-1.36/0002-c.patch", Own: true}, {Path: "release-1.36/0003-d.patch", Own: true}},
		},
		"own of the vendored": {files: []string{"release-1.37/0001-a.patch"}, branch: supported[0], err: "release-1.37/0001-a.patch: the vendored branch has no patches of its own"},
		"a gap":               {files: []string{"0001-a.patch", "0003-b.patch"}, branch: supported[0], err: "0003-b.patch: patches are numbered from 0001 without gaps; rename it to 0002"},
		"a number twice":      {files: []string{"0001-a.patch", "0001-b.patch"}, branch: supported[0], err: "0001-b.patch: 0001-a.patch has the same number"},
		"nothing":             {files: []string{"README.md"}, branch: supported[0], err: "patches/ has no patch of k8s.io/kubernetes release-1.37"},
		"of another module": {
			files:  []string{"0001-a.patch", "example.test/other/0001-b.patch", "example.test/other/0002-c.patch", "example.test/other/v2/0001-d.patch"},
			branch: other, want: []Entry{{Path: "example.test/other/0001-b.patch"}, {Path: "example.test/other/0002-c.patch"}},
		},
		"a gap of another module": {
			files:  []string{"0001-a.patch", "example.test/other/0002-b.patch"},
			branch: other, err: "example.test/other/0002-b.patch: patches are numbered from 0001 without gaps; rename it to 0001",
		},
		"nothing of another module": {files: []string{"0001-a.patch", "example.test/other/README.md"}, branch: other, err: "patches/ has no patch of example.test/other"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Series(folder(test.files), test.branch)
			wantError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChecked_SharedAndOwn(t *testing.T) {
	patches := folder([]string{"0001-a.patch", "0002-b.patch", "release-1.36/0002-c.patch", "example.test/other/0001-a.patch"})
	for entry, want := range map[Entry][]string{
		{Path: "0001-a.patch"}:                         {"v1.37.1", "v1.36.4"},
		{Path: "0002-b.patch"}:                         {"v1.37.1"},
		{Path: "release-1.36/0002-c.patch", Own: true}: {"v1.36.4"},
		{Path: "example.test/other/0001-a.patch"}:      {"v0.3.0"},
	} {
		got, err := Checked(patches, append(supported[:2:2], other), entry)
		wantError(t, err, "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", entry.Path, diff)
		}
	}
}

func TestModules_Folders(t *testing.T) {
	required := map[string]string{"example.test/other": "v0.3.0", "example.test/other/v2": "v2.0.0", "example.test/unpatched": "v1.0.0"}
	for name, test := range map[string]struct {
		files []string
		want  Branches
		err   string
	}{
		"none": {files: []string{"0001-a.patch", "README.md", "release-1.36/0001-c.patch"}},
		"two": {
			files: []string{"0001-a.patch", "example.test/other/v2/0001-a.patch", "example.test/other/0001-a.patch"},
			want:  Branches{other, {Module: "example.test/other/v2", Version: "v2.0.0", Vendored: true}},
		},
		"not in its place":         {files: []string{"k8s.io/kubernetes/0001-a.patch"}, err: "k8s.io/kubernetes: patches of Kubernetes lie right in patches/"},
		"of no branch":             {files: []string{"release-1.30/0001-a.patch"}, err: "release-1.30: neither a branch in patches/branches nor a module that go.mod requires; remove the folder"},
		"of no module":             {files: []string{"example.test/gone/0001-a.patch"}, err: "example.test/gone: neither"},
		"between the parts of one": {files: []string{"example.test/0001-a.patch", "example.test/other/0001-a.patch"}, err: "example.test: neither"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Modules(folder(test.files), supported, required)
			wantError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	empty := folder([]string{"example.test/other/0001-a.patch"})
	empty["release-1.30"] = &fstest.MapFile{Mode: fs.ModeDir}
	_, err := Modules(empty, supported, required)
	wantError(t, err, "release-1.30: neither")
}

func folder(files []string) fstest.MapFS {
	folder := fstest.MapFS{}
	for _, file := range files {
		folder[file] = &fstest.MapFile{}
	}
	return folder
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Fatalf("error %v; want %q", err, text)
	}
}
