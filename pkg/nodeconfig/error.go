package nodeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Error is one thing wrong with a config file.
type Error struct {
	// File is the file's name as it was given to Load or Parse.
	File string
	// Line counts from 1. It is 0 if the file cannot be read or is empty.
	Line int
	// Path is the field, for example "proxyArguments.cluster-cidr[0]". It is
	// empty when the error is about the file as a whole.
	Path string
	// Err is the problem, and what was expected instead.
	Err error
}

// Error returns "file:line: path: problem", without unknown parts.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(printable(e.Path) + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the problem without file, line and path.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an *Error about the field at path, which is written as in
// Error.Path. Its line is the field's, or that of the nearest ancestor that is
// in the file when the field itself is not.
func (c *Config) Errorf(path, format string, args ...any) *Error {
	return &Error{File: c.File, Line: c.line(path), Path: path, Err: fmt.Errorf(format, args...)}
}

func (c *Config) line(path string) int {
	for {
		if line, ok := c.lines[path]; ok || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// join returns nil for no errors, the error itself for one, and otherwise all
// of them in the order of their lines.
func join(list []*Error) error {
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	joined := make([]error, len(list))
	for i, e := range list {
		joined[i] = e
	}
	return errors.Join(joined...)
}

// printable returns s as it is, or quoted where it would garble a terminal.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// shorten cuts a long value of the file for a message.
func shorten(s string) string {
	const limit = 64
	runes := 0
	for i := range s {
		if runes == limit {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
