// Command patchtool keeps the series in patches/: it verifies it against every supported release
// branch, rebases it onto another release, reports what a change of releases means for it, and runs go
// on our own packages against another branch.
//
// What patches/ must say is pure and lies in the packages branch and patch; what touches files, git and
// go lies in scratch, tree and typecheck.
package main
