// Package steerer knows which ways the packets of this node's bound pods take, in both IP families, and has other nodes told which egress IPs
// are here.
//
//	interfaces, a load balancer ─► SetOnInterfaces, SetAnnounced ─┐             ┌─► Changed: a sync is to come
//	Leases, other nodes' announcements, Nodes ─► Apply, SetNode ──┼─► node.Node ┼─► said.go: this node's Lease, announcements
//	the pool's member ─► Join: memberinbook.go ───────────────────┘             └─► Came, MemberWake
//
//	a sync ─► Sync: ways.go ─► kernel.Steering: where each egress IP is, and who may send here
//
// What is decided is decided by a [node.Node], under the [Steerer]'s lock; nobody asks the kernel, takes another lock or tells anybody under
// it. Without a tunnel a node must be on the same network to be the next hop: nexthops.go asks the kernel for that before it takes the lock,
// and hardware.go has the nodes' hardware addresses, by which packets of theirs are known.
//
// Other software that puts egress IPs on nodes may leave one behind when it dies, so addresses that another node has got later are asked for
// (leftbehind.go). [For] answers for a dry run, and addresses.go for people, Events and metrics. Those questions change no way.
package steerer
