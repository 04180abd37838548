// Command upstreamtest records what the proxiers of the patched and of the unpatched Kubernetes write to
// the kernel, for upstream's own test inputs and for random clusters: it must be the same bytes, also with
// an extension attached. hack/test-upstream.sh compares the results of upstream's tests.
//
// It changes neither tree: what it adds for a run is laid over it (go test -overlay).
package main
