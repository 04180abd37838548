// Package node runs the built binary as a user would, as the node component of a host of
// package lab: a configuration file, a real process, its log, the commands of its command
// line, and what it has written into the host's kernel.
//
// The environment variable OPENSHIFT names the binary; the make targets set it. The
// methods of a [Node] are for the test's goroutine: whatever cannot be done fails the test. [Node.Manage] stands in for the service manager.
package node
