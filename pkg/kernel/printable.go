package kernel

import (
	"strings"
	"unicode"
)

// Printable returns text with whatever is not printable replaced by question marks. Parts of
// messages and comments come from objects that many may write, and the reader may be a terminal or
// a program that goes by lines.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
