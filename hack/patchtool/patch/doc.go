// Package patch knows what the header of a file in patches/ must say. It judges text; it never applies
// a patch. The rest of the file is what git format-patch writes, which only git can judge.
package patch
