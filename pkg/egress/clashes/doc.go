// Package clashes ends connections that have got the ports of others at a failover.
//
// A node that an egress IP comes to picks up the connections under it with the pods' next packets. Of two pods with the same port and the
// same destination one had another port outside, and the former holder was the only one to know which. Where it has died, the port goes to
// the pod that is heard first. If that is the wrong one, [conntrack.Table.EndClashes] ends what is left of both connections.
package clashes
