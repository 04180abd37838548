package patches

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func mail(subject string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("From 0\nSubject: [PATCH] " + subject + "\n\nText\n")}
}

func TestList(t *testing.T) {
	files := fstest.MapFS{
		"README.md":                    {},
		"0001-a.patch":                 mail("UPSTREAM: <carry>: a subject that\n is folded"),
		"0002-b.patch":                 mail("UPSTREAM: <carry>: b"),
		"release-1.36/0002-b.patch":    mail("UPSTREAM: <carry>: b, as 1.36 needs it"),
		"release-1.35/0003-c.patch":    mail("UPSTREAM: 1234: c"),
		"release-1.3/0001-other.patch": mail("UPSTREAM: <carry>: of another branch"),

		"example.test/b/v2/0001-d.patch": mail("UPSTREAM: <carry>: d"),
		"example.test/b/v2/0002-e.patch": mail("UPSTREAM: <drop>: e"),
		"example.test/b-a/0001-f.patch":  mail("UPSTREAM: <carry>: f"),
		"example.test/b-a/README.md":     {},
	}
	others := []Series{
		{"example.test/b-a", []Patch{{"0001", "UPSTREAM: <carry>: f"}}},
		{"example.test/b/v2", []Patch{{"0001", "UPSTREAM: <carry>: d"}, {"0002", "UPSTREAM: <drop>: e"}}},
	}
	shared := Patch{"0001", "UPSTREAM: <carry>: a subject that is folded"}
	for version, want := range map[string][]Patch{
		"v1.37.1":      {shared, {"0002", "UPSTREAM: <carry>: b"}},
		"v1.36.4":      {shared, {"0002", "UPSTREAM: <carry>: b, as 1.36 needs it"}},
		"v1.36.0-rc.1": {shared, {"0002", "UPSTREAM: <carry>: b, as 1.36 needs it"}},
		"v1.35.8":      {shared, {"0002", "UPSTREAM: <carry>: b"}, {"0003", "UPSTREAM: 1234: c"}},
		"unknown":      {shared, {"0002", "UPSTREAM: <carry>: b"}},
	} {
		if diff := cmp.Diff(append([]Series{{"k8s.io/kubernetes", want}}, others...), list(files, version)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", version, diff)
		}
	}
}

func TestListOfThisRepository(t *testing.T) {
	carried := map[string]int{}
	for _, series := range List("v1.37.1") {
		for i, patch := range series.Patches {
			carried[series.Module]++
			if patch.Number != fmt.Sprintf("%04d", i+1) || !strings.HasPrefix(patch.Subject, "UPSTREAM: ") {
				t.Errorf("%s: patch %d that was compiled in is %v", series.Module, i+1, patch)
			}
		}
	}
	for _, module := range []string{"k8s.io/kubernetes", "github.com/google/nftables"} {
		if carried[module] == 0 {
			t.Errorf("no patch of %s was compiled in; there are %v", module, carried)
		}
	}
}
