// Package conntrack measures what it costs to find the flows that wear a wrong identity, and
// to delete them: package egress/conntrack on a node whose table has 100,000 entries of 1,000
// pods.
//
// The CPU time is the whole process's, Go's garbage collection included. The tool conntrack, called
// once for each changed pod, is the reference of former times: there, wall time.
package conntrack
