// Command upstreamtest compares the patched Kubernetes with the unpatched one, by upstream's own
// tests. `tests` runs upstream's unit tests of what the series is about on both trees: the same tests
// must give the same results. `identity` records what the proxiers of both write to the kernel, for
// upstream's own test inputs and for random clusters: it must be the same bytes, also with an
// extension attached.
//
// It changes neither tree: what it adds for a run is laid over it (go test -overlay).
package main
