// Command patchtool keeps the series in patches/: it verifies it against every supported release
// branch, rebases it onto another release, reports to a reviewer what a change of releases
// means for it, and makes patched trees for whoever builds or tests one. It is the only writer of
// patches/*.patch besides a person with git format-patch.
//
// What is judged is pure and lies in the packages patch, branch and source; what touches files, git and
// go lies in scratch and tree.
package main
