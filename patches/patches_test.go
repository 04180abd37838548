package patches

import (
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
	}
	shared := Patch{"0001", "UPSTREAM: <carry>: a subject that is folded"}
	for version, want := range map[string][]Patch{
		"v1.37.1":      {shared, {"0002", "UPSTREAM: <carry>: b"}},
		"v1.36.4":      {shared, {"0002", "UPSTREAM: <carry>: b, as 1.36 needs it"}},
		"v1.36.0-rc.1": {shared, {"0002", "UPSTREAM: <carry>: b, as 1.36 needs it"}},
		"v1.35.8":      {shared, {"0002", "UPSTREAM: <carry>: b"}, {"0003", "UPSTREAM: 1234: c"}},
		"unknown":      {shared, {"0002", "UPSTREAM: <carry>: b"}},
	} {
		if diff := cmp.Diff(want, list(files, version)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", version, diff)
		}
	}
}

func TestListOfThisRepository(t *testing.T) {
	if series := List("v1.37.1"); len(series) == 0 || series[0].Subject == "" {
		t.Errorf("the series that was compiled in is %v", series)
	}
}
