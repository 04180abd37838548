// Package source compares the Go sources of two releases: which declarations a changed line
// belongs to, what became of a declaration, and which declarations of a module others rely on. It
// parses and type-checks what it is given, reads files, and never writes or runs anything.
package source
