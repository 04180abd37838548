// Command patchtool verifies the series in patches/ against every supported release branch, makes the patched
// tree of one, and runs go on our own packages against it. hack/rebase-patches.sh is for changes of the series.
//
// What patches/ must say is pure and lies in the packages branch and patch; what touches files, git and
// go lies in scratch, tree and typecheck.
package main
