// Package e2e proves the product where it lives: several nodes that run the built binary with
// a kubeconfig of the least rights that work, a real control plane, pods, somebody outside
// that sees addresses, and faults in between. `make test-e2e` runs it; see README.md beside it.
//
// Each test has a [world] of its own, whose parts are those of packages lab (network), cluster
// (control plane) and node (process). Package oracle says as what a pod should leave.
package e2e
