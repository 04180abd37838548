// Package tell is how egress SNAT tells people what is wrong: Events, and lines of the log that nobody can fill.
//
//	a change of a plan ─► RefusalLog ─► log        a trouble of any part ─┐
//	                   └► EventRecorder.Update ────────────────────────────┴─► EventRecorder ─► API server
//
// A [Trouble] is what a part says is wrong, for as long as that is so. Package report collects those of all parts, by the Service or the
// Node that they are about, and gives them to the [EventRecorder], which few nodes of a cluster write for all. [Metrics] defines the
// metrics; each is where it is set.
//
// The package imports cluster, for the names of nodes and for what plans refuse. Nothing here blocks whoever has something to tell.
package tell
