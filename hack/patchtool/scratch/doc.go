// Package scratch keeps a git repository in a temporary directory: releases as commits, and a series
// applied on top of them. It is where patches are tried, merged, written out and compared. It runs git
// without the user's configuration, so that the same series gives the same bytes everywhere.
package scratch
