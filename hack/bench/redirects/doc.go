// Package redirects measures what a change costs of which connections go to a tunnel server (pkg/kernel/redirect),
// beside OpenYurt's iptables manager, which does the same job.
//
// That is its version 0.4.1, driven from its description. In each period it goes through all ports and all nodes that are
// reached directly. For each pair it has iptables check that its rule is there, or prepend it; the same for the DNAT
// rule of each port, and for the jump to the port's chain. Then it runs conntrack -D for the changed node and each port.
// The thousand nodes are reached directly, as they have to be for it to have rules for them; ours are behind the
// tunnel. A period takes minutes, so one port's share is timed, with the rules of all ports there, and taken times their
// number.
package redirects
