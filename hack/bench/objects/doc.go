// Package objects makes the Services and EndpointSlices of a cluster of some size, as a
// controller would, for benchmarks that tell programs of them, or create them in an API server. The same size
// gives the same objects.
package objects
