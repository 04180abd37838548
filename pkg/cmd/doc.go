// Package cmd is the command line of openshift: it wires the other packages together, ends the
// context on a signal, prints errors and returns the exit status. It watches the node's
// configuration and ends the node when that has changed. It makes no other decision.
package cmd
