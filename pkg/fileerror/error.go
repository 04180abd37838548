package fileerror

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReported bounds the text of a joined error: a folder full of wrong files should
// not fill the journal.
const MaxReported = 20

// Error is one thing wrong with a file.
type Error struct {
	// File is the file, or the folder itself, under the name that the user gave it.
	File string
	// Line counts from 1. It is 0 when no line is to blame: the file cannot
	// be read or is empty.
	Line int
	// Object is the object, for example "Service default/web", or empty.
	Object string
	// Path is the field, for example "spec.externalIPs[0]", or empty.
	Path string
	// Err says what is wrong, and what was expected instead.
	Err error
}

// Error returns "file:line: object: path: what is wrong", without the parts
// that are not known.
func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	parts = append(parts, Location(e.File, e.Line))
	for _, part := range []string{e.Object, e.Path} {
		if part != "" {
			parts = append(parts, printable(part))
		}
	}
	return strings.Join(append(parts, e.Err.Error()), ": ")
}

// Unwrap returns what is wrong, without file, line, object and path.
func (e *Error) Unwrap() error { return e.Err }

// Location returns "file:line", or the file alone if no line is known.
func Location(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// Join returns nil for no errors, the one if there is one, and otherwise all of them in the order of
// their files, lines, objects and fields, the text cut to MaxReported of them.
func Join(list []*Error) error {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path))
	})
	return joined(list)
}

// joined is the error of several Errors.
type joined []*Error

func (j joined) Error() string {
	var b strings.Builder
	for i, e := range j {
		if i == MaxReported {
			fmt.Fprintf(&b, "\nand %d more errors", len(j)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap makes every Error reachable by errors.As and errors.Is.
func (j joined) Unwrap() []error {
	list := make([]error, len(j))
	for i, e := range j {
		list[i] = e
	}
	return list
}

// Split returns the Errors that an error of Join consists of.
func Split(err error) []*Error {
	var list joined
	if errors.As(err, &list) {
		return list
	}
	var one *Error
	if errors.As(err, &one) {
		return []*Error{one}
	}
	return nil
}

// ValidPrefix returns text up to what is not UTF-8; all of it if it is.
func ValidPrefix(text []byte) []byte {
	for end := 0; end < len(text); {
		r, size := utf8.DecodeRune(text[end:])
		if r == utf8.RuneError && size == 1 {
			return text[:end]
		}
		end += size
	}
	return text
}

// yamlMessage matches how both YAML libraries word an error; they have no typed errors.
var yamlMessage = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// OfYAML returns what an error of a YAML library says is wrong, without what the library puts before it, and the line that it
// names: 0 for none. For some errors that line is another one than the wrong one.
func OfYAML(err error) (text string, line int) {
	match := yamlMessage.FindStringSubmatch(err.Error())
	if match == nil {
		return err.Error(), 0
	}
	line, _ = strconv.Atoi(match[1]) // 0 if there is none
	return strings.TrimSpace(match[2]), line
}

// printable returns s as it is, or quoted where it would garble a terminal.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
