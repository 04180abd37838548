// Package netns tests the built binary as a user meets it: a real process on a node made
// of network namespaces (package lab), with a configuration file, manifests or a
// kubeconfig, real iptables of both back ends, and real packets whose source address the
// other side reports.
//
// The environment variable OPENSHIFT names the binary; 'make test' sets it. The tests need
// root and are skipped with a reason where it is missing, except when CI is true.
package netns
