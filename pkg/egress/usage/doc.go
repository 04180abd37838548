// Package usage counts the flows of the egress IPs: for the metrics, and for 'openshift egress top', which also wants to know which are
// new. Either way costs a dump of the conntrack table, so a count is good for some time, and whoever asks during a dump gets its result. No lock
// is held meanwhile. 'openshift egress who' asks it who uses a port, for another dump.
package usage
