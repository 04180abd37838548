// Package objects makes the Services and EndpointSlices of a cluster of some size, as a
// controller would, for benchmarks that tell programs of them. The same size gives the same objects. It
// talks to nobody.
package objects
