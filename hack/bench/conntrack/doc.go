// Package conntrack measures what it costs to find tracked flows that use a wrong source address, and to delete
// them: package kernel/conntrack on a node that tracks 100,000 flows of 1,000 pods.
//
// CPU time is the whole process's, garbage collection included. The reference is the conntrack tool, called once
// per changed pod, in wall time.
package conntrack
