// Package plan says which connections of a node go to the tunnel server: to which nodes, and to
// which of their ports. It is pure: the same input gives the same [Plan], and it reads and writes nothing.
//
// # Rules
//
//  1. A node with one of the configured labels has the tunnel's agent: connections to it go to the
//     tunnel server. So do those to a node that is not Ready. All other nodes are reached directly. This
//     node is always reached directly.
//  2. The addresses of a node are its InternalIPs and ExternalIPs. One that a directly reached node has
//     as well is never redirected, whoever else claims it: a kubelet writes its own addresses.
//  3. The tunnel server's own addresses are never redirected to it.
//  4. Port 10250 goes to the secure address, 10255 to the insecure one. The ConfigMap adds ports. A
//     port that is given twice goes where the first of these says: the two above, dnat-ports-pair,
//     http-proxy-ports, https-proxy-ports.
//  5. What cannot be done is a [Problem]. It never stops the rest.
//
// The keys of the ConfigMap are those of OpenYurt's tunnel server:
//
//	dnat-ports-pair     9100=10264,9200=10264    left the port, right that of the insecure address
//	http-proxy-ports    9445,9446                to the insecure address
//	https-proxy-ports   9443                     to the secure address
package plan
