package testlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Event is a line of `go test -json`.
type Event struct{ Time, Action, Package, Test, ImportPath, Output string }

// Ended tells whether a test ended, or a package if it names no test: Action says how.
func (e Event) Ended() bool { return e.Action == "pass" || e.Action == "skip" || e.Action == "fail" }

// Read hands over what `go test -json` printed, line by line. It skips what is not an event: go mixes the
// compiler's messages into it.
func Read(r io.Reader, take func(Event)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20) // a test may print long lines
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
