// Package poolnode is a node's part in the pool of egress IPs, between the objects and package pool.
//
//	Nodes with a label, what plans grant, keys ─► Sync, follow ─► pool.Runner ─► moved: moves.go, handover.go ─► steerer.Steerer
//
// A [Part] has a Runner once it has what it needs: the API's objects, a key, and an address at which the nodes reach each other. Until
// then it keeps the addresses that an earlier process has left here (Keep). It reports to the Steerer what the Runner has done, in the
// order that keeps connections: first packets of another node's connections are passed on to that node, and only then are packets sent
// here.
//
// drain.go makes a node give its addresses away; report.go, troubles.go, warnings.go, label.go and metrics.go are for people. Under the
// lock mu nobody logs, and no other lock is taken.
package poolnode
