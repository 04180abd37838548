// Package plan decides which pod address leaves from which egress IP.
//
// It owns the rules of that decision and nothing else: [Build] is a pure function of
// plain input, the same for the same input in any order, and a [Plan] can be compared
// with another. A [Planner] comes to the same plans by following changes: it judges anew the
// addresses, claims and pods that a change is about, and says what came of it. What a plan means for the kernel is the writers' business; how Kubernetes
// objects become an [Input] is package egress's.
//
// The package imports the standard library only.
package plan
