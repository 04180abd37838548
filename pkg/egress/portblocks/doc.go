// Package portblocks gives pods blocks of source ports of their egress IPs. A pod's source ports inside are those that it has outside,
// so an address and a port name the pod, two pods never have one port, and a node that takes an egress IP knows from the port whose
// packet it is (RFC 7422, RFC 6888).
package portblocks
