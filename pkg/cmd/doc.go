// Package cmd is the command line of openshift: it wires the other packages together,
// turns signals into the end of a context, and errors into messages and exit statuses. It
// decides nothing else.
package cmd
