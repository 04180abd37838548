// Package desk knows how egress SNAT stands in a cluster by its API alone, for people who have a kubeconfig and no access to
// a node.
//
//	Services, EndpointSlices, Nodes, ServiceCIDRs, Network ─┐
//	Leases: which node has which egress IP ─────────────────┼─► FromAPI ────────► status.Snapshot
//	Leases: the configuration of the nodes ─────────────────┘
//
// The plan is made by the same code as on nodes. What it depends on in the nodes' configuration, nodes publish in their
// Leases, or the user gives; it is never guessed. Where the user may not list a kind of objects in all namespaces, those of
// one namespace are read, or none, and the snapshot says what is left out. [Add] reads the same kinds for a node, which may list them all.
//
// The package only reads.
package desk
