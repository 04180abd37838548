package nodeconfig

import (
	"fmt"
	"strings"

	"github.com/openshift/origin-node/pkg/fileerror"
)

// Error is one thing wrong with a config file. Its Path is the field, for example
// "proxyArguments.cluster-cidr[0]"; it is empty when the error is about the file as a whole.
type Error = fileerror.Error

// Errorf returns an *Error about the field at path, which is written as in
// Error.Path, or with hyphens in the place of an argument's underscores. Its line is the field's, or that of the nearest ancestor that is
// in the file when the field itself is not.
func (c *Config) Errorf(path, format string, args ...any) *Error {
	return &Error{File: c.File, Line: c.line(path), Path: path, Err: fmt.Errorf(format, args...)}
}

func (c *Config) line(path string) int {
	for {
		if line, ok := c.lines[path]; ok || path == "" {
			return line
		}
		for written, line := range c.lines { // an argument with underscores
			if hyphened(written) == path {
				return line
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
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
