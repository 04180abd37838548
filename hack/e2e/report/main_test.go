package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/testlog"
)

func TestReport_OfEveryResult(t *testing.T) {
	const printed = `# a compiler's words
{"Time":"2026-05-04T03:02:00Z","Action":"start","Package":"p"}
{"Time":"2026-05-04T03:02:01Z","Action":"run","Package":"p","Test":"TestA"}
{"Time":"2026-05-04T03:02:01Z","Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Time":"2026-05-04T03:02:01Z","Action":"output","Package":"p","Test":"TestA","Output":"I0101 somebody else's log\n"}
{"Time":"2026-05-04T03:02:01Z","Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:12: 100 answers, wrong 0\n"}
{"Time":"2026-05-04T03:02:02.5Z","Action":"pass","Package":"p","Test":"TestA"}
{"Time":"2026-05-04T03:02:03Z","Action":"run","Package":"p","Test":"TestB"}
{"Time":"2026-05-04T03:02:03Z","Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: needs root\n"}
{"Time":"2026-05-04T03:02:03Z","Action":"skip","Package":"p","Test":"TestB"}
{"Time":"2026-05-04T03:02:03Z","Action":"run","Package":"p","Test":"TestC/sub"}
{"Time":"2026-05-04T03:02:03Z","Action":"output","Package":"p","Test":"TestC/sub","Output":"I0101 the log\n"}
{"Time":"2026-05-04T03:02:04Z","Action":"output","Package":"p","Test":"TestC/sub","Output":"    c_test.go:7: want 1\n"}
{"Time":"2026-05-04T03:02:04Z","Action":"fail","Package":"p","Test":"TestC/sub"}
{"Time":"2026-05-04T03:02:05Z","Action":"run","Package":"p","Test":"TestD"}
{"Time":"2026-05-04T03:02:05Z","Action":"output","Package":"p","Test":"TestD","Output":"panic: test timed out\n"}
{"Time":"2026-05-04T03:02:06Z","Action":"output","Package":"p","Output":"FAIL\tp\t6.0s\n"}
{"Time":"2026-05-04T03:02:06Z","Action":"fail","Package":"p"}
{"Time":"2026-05-04T03:02:06Z","Action":"output","Package":"q","Output":"PASS\n"}
{"Time":"2026-05-04T03:02:06Z","Action":"output","Package":"q","Output":"ok  \tq\t1.0s\n"}
{"Time":"2026-05-04T03:02:06Z","Action":"pass","Package":"q"}
{"ImportPath":"r","Action":"build-output","Output":"r.go:1: undefined: x\n"}
{"ImportPath":"r","Action":"build-fail"}
`
	const want = `PASS     1.5s  TestA
               100 answers, wrong 0
SKIP     0.0s  TestB
               needs root
FAIL     1.0s  TestC/sub
  I0101 the log
      c_test.go:7: want 1
FAIL  no end  TestD
  panic: test timed out
FAIL	p	6.0s
ok  	q	1.0s
r.go:1: undefined: x
`
	var out bytes.Buffer
	if err := testlog.Read(strings.NewReader(printed), newReport(&out).take); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRun_FailsWithItsTests: of a real go test.
func TestRun_FailsWithItsTests(t *testing.T) {
	for verb, fails := range map[string]bool{"t.Error": true, "t.Log": false} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":    "module example.com/x\n",
			"x_test.go": "package x\nimport \"testing\"\nfunc TestX(t *testing.T) { " + verb + "(\"a figure\") }\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(dir)
		t.Setenv("GOFLAGS", "-mod=mod")
		var out bytes.Buffer
		if err := run(&out, []string{"./..."}); (err != nil) != fails || !strings.Contains(out.String(), "a figure") {
			t.Errorf("%s: %v, and it prints:\n%s", verb, err, &out)
		}
	}
}
