// Package fileerror is what is wrong with files that people write: each error names the file, the line and the field. It reads nothing.
package fileerror
