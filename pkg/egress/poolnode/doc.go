// Package poolnode is a node's part in the pool of egress IPs, between the objects and package pool.
//
//	Nodes with a label, what plans grant, keys ─► Sync, follow ─► pool.Runner ─► moved: moves.go, handover.go ─► steerer.Steerer
//
// A [Part] has a Runner once it has what it needs: the API's objects, a key, and an address at which the nodes reach each other. Until then it
// keeps what an earlier process has left here (Keep). What the Runner has done is told to the Steerer, in
// the order that keeps connections: what belongs to those of another node is passed on before packets are sent here.
//
// drain.go has a node give its addresses away; report.go, troubles.go, warnings.go, label.go and metrics.go are for people. Under the lock mu
// nobody logs, and no other one is taken.
package poolnode
