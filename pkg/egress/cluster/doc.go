// Package cluster turns the API's objects into what plans are made from, and keeps a planner of each IP family up to date.
//
//	Services, EndpointSlices of the proxier ─┐
//	headless Services, other EndpointSlices, │
//	ServiceCIDRs, Network ─► Watcher ────────┼─► State ─► placement ─► plan.Planner ─► Planned
//	Nodes, what nodes choose, attachments ───┘
//
// A [State] takes one object after the other and says whether plans may change; [State.Update] then brings a plan up to date, at a cost
// that follows from the change. Services become plain values in claims.go, other objects in objects.go, and nowhere else. [PlanFor] and [StateFor]
// are the same for a list of objects at once: for dry runs, and for those who have no node.
//
// Package egress has one State, and feeds it. The package imports holders for what Leases say, and plan, placement and extension; it
// never asks the kernel. One lock guards a State, under which nobody logs, or calls anything outside of this package but planners.
package cluster
