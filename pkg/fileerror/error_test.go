package fileerror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestJoin_OrderedAndCut: by file, line and field, each with what is known of it, and no more than people read.
func TestJoin_OrderedAndCut(t *testing.T) {
	bad := errors.New("bad")
	if err := Join(nil); err != nil {
		t.Errorf("got %v for no errors", err)
	}
	list := []*Error{{File: "b", Err: bad}, {File: "a", Line: 10, Path: "d", Err: bad}, {File: "a", Line: 10, Path: "c", Err: bad}, {File: "a", Line: 9, Object: "Service x", Path: "\x1b", Err: bad}}
	err := Join(list)
	if want := `a:9: Service x: "\x1b": bad` + "\na:10: c: bad\na:10: d: bad\nb: bad"; err.Error() != want || !errors.Is(err, bad) || len(Split(err)) != len(list) {
		t.Errorf("got %q, expected %q", err, want)
	}
	for i := range MaxReported + 1 {
		list = append(list, &Error{File: "c", Line: i, Err: bad})
	}
	lines := strings.Split(Join(list).Error(), "\n")
	if want := fmt.Sprintf("and %d more errors", len(list)-MaxReported); len(lines) != MaxReported+1 || lines[MaxReported] != want {
		t.Errorf("%d lines, the last is %q, expected %q", len(lines), lines[len(lines)-1], want)
	}
}

// TestOfYAML_BothLibraries: what is wrong and the line, as far as the message has them.
func TestOfYAML_BothLibraries(t *testing.T) {
	for message, want := range map[string]struct {
		text string
		line int
	}{
		"yaml: line 3: did not find expected key":                                                 {"did not find expected key", 3},
		"yaml: unknown anchor 'a' referenced":                                                     {"unknown anchor 'a' referenced", 0},
		"error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"a\" already set": {`key "a" already set`, 2},
		"the parser failed": {"the parser failed", 0},
	} {
		if text, line := OfYAML(errors.New(message)); text != want.text || line != want.line {
			t.Errorf("%q: got %q, line %d", message, text, line)
		}
	}
}

func TestValidPrefix(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\u00e9": "a\u00e9", "a\ufffdb": "a\ufffdb", "ab\xffc": "ab", "\xc3": ""} {
		if got := ValidPrefix([]byte(text)); string(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
