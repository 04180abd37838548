package testlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead_Lines(t *testing.T) {
	const printed = `# a compiler's words
{"Time":"2026-05-04T03:02:01Z","Action":"run","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}
{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}
{"Action":"build-fail","ImportPath":"k8s.io/kubernetes/pkg/proxy/iptables"}
`
	var got []string
	if err := Read(strings.NewReader(printed), func(e Event) {
		got = append(got, strings.Join([]string{e.Package, e.Test, e.Action, e.ImportPath}, " "))
		if want := e.Action == "fail"; e.Ended() != want {
			t.Errorf("%s ends a test: %t", e.Action, e.Ended())
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"k8s.io/kubernetes/pkg/proxy TestA run ", "k8s.io/kubernetes/pkg/proxy TestA fail ", "  build-fail k8s.io/kubernetes/pkg/proxy/iptables"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRead_LineTooLong(t *testing.T) {
	if err := Read(strings.NewReader(strings.Repeat("a", 17<<20)), func(Event) {}); err == nil {
		t.Error("no error")
	}
}
