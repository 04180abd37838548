// Package clustertest has objects of the API, and an API server with one answer, for tests of pkg/egress/cluster and of packages above it.
package clustertest
