// Package status shows whoever is root on a node how egress SNAT stands there: a server of JSON over HTTP on a local socket, and its
// client.
//
//	GET /v1/snapshot             the Snapshot
//	GET /v1/snapshot?watch=true  one Snapshot a line: the first at once, then after changes
//	GET /v1/verify               the differences between plan and kernel
//	GET /v1/pool                 the Pool that egress IPs are put on
//	GET /v1/usage                the Usage: which flows use the egress IPs
//	GET /v1/portusers?port=…     the tracked flows that leave from an egress IP and a port
//	POST /v1/drain, /v1/undrain  this node gives its addresses of the pool to others, or not any more
//
// The package owns the form of what is said on the socket, which is package socket's. It decides nothing, and keeps no state: that is behind a [Source].
package status
