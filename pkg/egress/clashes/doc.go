// Package clashes ends connections that have got the ports of others at a failover.
//
// When an egress IP comes to a node, the node picks up its connections with the pods' next packets. If two pods had the same port and the
// same destination, one of them had another port outside, and only the former holder knew which. If that node has died, the port goes to
// the pod that is heard first. If this is the wrong pod, [conntrack.Table.EndClashes] ends what is left of both connections.
package clashes
