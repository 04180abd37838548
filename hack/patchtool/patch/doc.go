// Package patch knows what a file of the series in patches/ says: its header, its diffstat, its
// files and their hunks, and what makes it well-formed. It reads bytes and judges them; it
// never applies a patch and never looks at a file system.
package patch
