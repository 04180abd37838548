package branch

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var supported = Branches{
	{Name: "release-1.37", Version: "v1.37.1", Vendored: true},
	{Name: "release-1.36", Version: "v1.36.4"},
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    Branches
		err     string
	}{
		"branches, comments and empty lines": {
			content: "# why\nrelease-1.37  v1.37.1 vendored\n\nrelease-1.36 v1.36.4\n",
			want:    supported,
		},
		"a release candidate": {
			content: "release-1.38 v1.38.0-rc.1 vendored",
			want:    Branches{{Name: "release-1.38", Version: "v1.38.0-rc.1", Vendored: true}},
		},
		"none vendored":      {content: "release-1.37 v1.37.1", err: "branches: no branch is vendored"},
		"two vendored":       {content: "release-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.4 vendored", err: "branches:2: a second branch is vendored"},
		"twice":              {content: "release-1.37 v1.37.1 vendored\nrelease-1.37 v1.37.2", err: "branches:2: release-1.37 is there twice"},
		"of another branch":  {content: "release-1.37 v1.36.4", err: "branches:1: v1.36.4 is not a release of release-1.37"},
		"not a version":      {content: "release-1.37 1.37.1", err: `branches:1: "1.37.1" is not a release`},
		"not a branch":       {content: "master v1.37.1", err: `branches:1: "master" is not a release branch`},
		"no version":         {content: "release-1.37", err: `branches:1: "release-1.37": want`},
		"an unknown word":    {content: "release-1.37 v1.37.1 vendor", err: "branches:1:"},
		"too many words":     {content: "release-1.37 v1.37.1 vendored yes", err: "branches:1:"},
		"nothing but spaces": {content: " \n", err: "no branch is vendored"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.content)
			wantError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	for _, name := range []string{"release-1.36", "1.36", "v1.36.4", "1.36.4"} {
		if got, err := supported.Find(name); err != nil || got != supported[1] {
			t.Errorf("Find(%q) = %v, %v", name, got, err)
		}
	}
	if got, err := supported.Find("vendored"); err != nil || got != supported[0] {
		t.Errorf("Find vendored = %v, %v", got, err)
	}
	_, err := supported.Find("1.2")
	wantError(t, err, `"1.2" is no supported branch: patches/branches has release-1.37, release-1.36`)
}

func TestChoose(t *testing.T) {
	for name, want := range map[string]Branches{"": supported, "all": supported, "1.36": {supported[1]}, "vendored": {supported[0]}} {
		got, err := supported.Choose(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Choose(%q) (-want +got):\n%s", name, diff)
		}
	}
	_, err := supported.Choose("1.2")
	wantError(t, err, `"1.2" is no supported branch`)
}

func TestSeries(t *testing.T) {
	for name, test := range map[string]struct {
		files  []string
		branch Branch
		want   []Entry
		err    string
	}{
		"shared": {
			files:  []string{"0001-a.patch", "0002-b.patch", "README.md", "release-1.36/0001-c.patch"},
			branch: supported[0],
			want:   []Entry{{Path: "0001-a.patch"}, {Path: "0002-b.patch"}},
		},
		"one of the branch's own": {
			files:  []string{"0001-a.patch", "0002-b.patch", "release-1.36/0002-c.patch", "release-1.35/0001-d.patch"},
			branch: supported[1],
			want:   []Entry{{Path: "0001-a.patch"}, {Path: "release-1.36/0002-c.patch", Own: true, Shared: "0002-b.patch"}},
		},
		"more than the vendored has": {
			files:  []string{"0001-a.patch", "release-1.36/0001-a.patch", "release-1.36/0002-c.patch", "release-1.36/0003-d.patch"},
			branch: supported[1],
			want: []Entry{
				{Path: "release-1.36/0001-a.patch", Own: true, Shared: "0001-a.patch"},
				{Path: "release-1.36/0002-c.patch", Own: true}, {Path: "release-1.36/0003-d.patch", Own: true},
			},
		},
		"a gap behind the shared ones": {files: []string{"0001-a.patch", "release-1.36/0003-c.patch"}, branch: supported[1], err: "release-1.36/0003-c.patch: no shared patch has this number, so that it stands for none, and goes on behind them as 0002"},
		"two for one behind them":      {files: []string{"0001-a.patch", "release-1.36/0002-b.patch", "release-1.36/0002-c.patch"}, branch: supported[1], err: "release-1.36/0002-c.patch: release-1.36/0002-b.patch has this number too"},
		"two for one":                  {files: []string{"0001-a.patch", "release-1.36/0001-b.patch", "release-1.36/0001-c.patch"}, branch: supported[1], err: "release-1.36/0001-c.patch: release-1.36/0001-b.patch has this number too"},
		"own of the vendored":          {files: []string{"0001-a.patch", "release-1.37/0001-a.patch"}, branch: supported[0], err: "release-1.37/0001-a.patch: the vendored branch has the shared series"},
		"a gap":                        {files: []string{"0001-a.patch", "0003-b.patch"}, branch: supported[0], err: "0003-b.patch: the series is numbered from 0001 without gaps, so this is 0002"},
		"a number twice":               {files: []string{"0001-a.patch", "0001-b.patch"}, branch: supported[0], err: "0001-b.patch: the series is numbered"},
		"nothing":                      {files: []string{"README.md"}, branch: supported[0], err: "patches/ has no patch"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Series(folder(test.files), test.branch)
			wantError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Series (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecked(t *testing.T) {
	patches := folder([]string{"0001-a.patch", "0002-b.patch", "release-1.36/0002-c.patch"})
	for entry, want := range map[Entry][]string{
		{Path: "0001-a.patch"}: {"v1.37.1", "v1.36.4"},
		{Path: "0002-b.patch"}: {"v1.37.1"},
		{Path: "release-1.36/0002-c.patch", Own: true, Shared: "0002-b.patch"}: {"v1.36.4"},
	} {
		got, err := Checked(patches, supported, entry)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", entry.Path, diff)
		}
	}
}

func TestPin(t *testing.T) {
	const content = "# why\nrelease-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.4\n"
	for version, want := range map[string]string{
		"v1.36.5": "# why\nrelease-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.5\n",
		"v1.37.2": "# why\nrelease-1.37 v1.37.2 vendored\nrelease-1.36 v1.36.4\n",
		"v1.38.0": "# why\nrelease-1.38 v1.38.0 vendored\nrelease-1.37 v1.37.1\nrelease-1.36 v1.36.4\n",
		"v1.35.8": "# why\nrelease-1.37 v1.37.1 vendored\nrelease-1.36 v1.36.4\nrelease-1.35 v1.35.8\n",
		"v1.37.1": content,
	} {
		got, err := Pin(content, version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Pin %s (-want +got):\n%s", version, diff)
		}
	}
	_, err := Pin(content, "latest")
	wantError(t, err, `"latest" is not a release`)
}

// TestVendoredIsRequired fails when go.mod and patches/branches name different releases.
func TestVendoredIsRequired(t *testing.T) {
	branches, err := Load("../../../patches")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`).FindSubmatch(mod)
	if match == nil {
		t.Fatal("go.mod does not require k8s.io/kubernetes")
	}
	if got := branches.Vendored().Version; got != string(match[1]) {
		t.Errorf("patches/branches has %s as the vendored release, go.mod requires %s; write the same into both", got, match[1])
	}
	for _, b := range branches {
		if _, err := Series(os.DirFS("../../../patches"), b); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
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
	switch {
	case text == "" && err != nil:
		t.Fatal(err)
	case text != "" && err == nil:
		t.Fatalf("no error; want %q", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Fatalf("error %q; want %q", err, text)
	}
}
