// Package bugreport writes an archive for a bug report: a tar.gz with a file for each part, without secrets.
//
// Secrets are removed three times. Files with a structure lose the values of keys that name secrets, and a kubeconfig
// everything about its users ([Blanker.YAML]). Every part loses the secrets that were found in files before
// ([Blanker.Learn]), wherever they are, and what looks like one: private keys, tokens, passwords ([Blanker.Text]).
//
// A part that fails does not keep others from being written: the archive's file errors.txt names it. The package changes
// nothing but the archive's file.
package bugreport
