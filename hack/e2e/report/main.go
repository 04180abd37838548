// Command report runs `go test -json` with its own arguments behind, and prints what a person wants
// to read of it: of each test that ends its result, its time and what it logged, which are the
// figures; everything of those that failed. It ends with status 1 if go test fails.
//
//	go run ./hack/e2e/report -count=1 ./hack/e2e
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/testlog"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)                     // go test has it too, and what it says then is to be told
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...) //nolint:noctx // it ends by itself
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReport(w)
	if err := testlog.Read(out, r.take); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return r.err
}

// report is what has been told of tests so far.
type report struct {
	w io.Writer
	// running are the tests that have not ended, and packages, whose Test is empty.
	running map[name]*test
	builds  map[string]string // what compilers said, by import path
	err     error             // of writing
}

type name struct{ Package, Test string }

type test struct {
	began time.Time
	said  []string // lines
}

func newReport(w io.Writer) *report {
	return &report{w: w, running: map[name]*test{}, builds: map[string]string{}}
}

func (r *report) print(format string, args ...any) {
	_, err := fmt.Fprintf(r.w, format, args...)
	r.err = cmp.Or(r.err, err)
}

// take tells of an event.
func (r *report) take(e testlog.Event) {
	at, _ := time.Parse(time.RFC3339Nano, e.Time) // those of builds have none
	id := name{e.Package, e.Test}
	t := r.running[id]
	if t == nil {
		t = &test{began: at}
		r.running[id] = t
	}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] += e.Output
	case "build-fail":
		r.print("%s", r.builds[e.ImportPath])
	case "output":
		t.said = append(t.said, e.Output)
	case "pass", "skip", "fail":
		delete(r.running, id)
		if e.Test == "" {
			r.endPackage(e, t)
			return
		}
		r.end(e.Action, e.Test, at.Sub(t.began), t)
	}
}

// logged is a line that a test has logged, with the place in front.
var logged = regexp.MustCompile(`^\s*\S+\.go:\d+: (.*)\n`)

// end tells of a test that has ended.
func (r *report) end(action, test string, took time.Duration, t *test) {
	r.print("%s %7.1fs  %s\n", strings.ToUpper(action), took.Seconds(), test)
	for _, line := range t.said {
		if action == "fail" {
			r.print("  %s", line)
		} else if found := logged.FindStringSubmatch(line); found != nil {
			r.print("               %s\n", found[1])
		}
	}
}

// endPackage tells of a package, and, if it failed, of tests that never ended, as when time was up.
func (r *report) endPackage(e testlog.Event, t *test) {
	if e.Action == "fail" {
		for id, t := range r.running {
			if id.Package == e.Package {
				r.print("FAIL  no end  %s\n  %s", id.Test, strings.Join(t.said, "  "))
				delete(r.running, id)
			}
		}
		r.print("%s", strings.Join(t.said, ""))
		return
	}
	// Its last line has the result: ok, or no test files.
	if i := slices.IndexFunc(t.said, func(line string) bool { return strings.Contains(line, e.Package) }); i >= 0 {
		r.print("%s", t.said[i])
	}
}
