// Package clustertest has objects of the API, and an API server with one answer, for tests of package cluster and of those above it.
package clustertest
