package testlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Packages are the folders whose tests count, with all below them: the patched ones, and the one through
// which they write.
var Packages = []string{"cmd/kube-proxy", "pkg/proxy", "pkg/util/iptables"}

// Patterns are Packages as go wants them.
func Patterns() []string {
	var patterns []string
	for _, folder := range Packages {
		patterns = append(patterns, "./"+folder+"/...")
	}
	return patterns
}

// Event is a line of `go test -json`.
type Event struct{ Time, Action, Package, Test, ImportPath, Output string }

// Folder is where the package lies in Kubernetes' repository.
func (e Event) Folder() string { return strings.TrimPrefix(e.Package, "k8s.io/kubernetes/") }

// Ended tells whether a test ended, or a package if it names no test: Action says how.
func (e Event) Ended() bool { return e.Action == "pass" || e.Action == "skip" || e.Action == "fail" }

// Read hands over what `go test -json` printed, line by line. What is no event it passes over: go mixes what
// a compiler says into it.
func Read(r io.Reader, take func(Event)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20) // a line is as long as what a test prints in one
	for scanner.Scan() {
		var e Event
		if json.Unmarshal(scanner.Bytes(), &e) == nil {
			take(e)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read the results of tests: %w", err)
	}
	return nil
}
