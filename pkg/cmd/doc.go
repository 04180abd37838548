// Package cmd is the command line of openshift: it wires the other packages together, ends the
// context on a signal, prints errors and returns the exit status. It watches the node's
// configuration and ends the node when that has changed. It makes no other decision.
//
// Under the name kubectl-egress the program is a plugin of kubectl: some of the egress commands,
// which ask the API server and not a node. Both ways give the same snapshot of package status, and
// one set of listings prints it.
package cmd
