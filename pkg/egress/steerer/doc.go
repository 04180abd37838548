// Package steerer knows which ways the packets of this node's bound pods take, in both IP families, and has other nodes told which egress IPs
// are here.
//
//	interfaces, a load balancer ─► SetOnInterfaces, SetAnnounced ─┐             ┌─► RequestSync
//	Leases, other nodes' announcements, Nodes ─► Apply, SetNode ──┼─► node.Node ┼─► said.go: this node's Lease, announcements
//	the pool's member ─► Join: memberinbook.go ───────────────────┘             └─► Came, MemberWake
//
//	a sync ─► Sync: ways.go ─► kernel.Steering: where each egress IP is, and who may send here
//
// A [node.Node] decides who holds which egress IP, under the [Steerer]'s lock. This package decides where packets go then: which node can be
// the next hop, and that packets for a new egress IP are dropped, not refused, as long as it may still come. Under that lock nobody asks the kernel, takes another lock or
// tells anybody. Without a tunnel a node can only be the next hop if it is on the same network: nexthops.go asks the kernel for that
// before it takes the lock. hardware.go has the nodes' hardware addresses, by which their packets are recognised.
//
// Other software that puts egress IPs on nodes may leave one behind when it dies. So leftbehind.go asks the network for addresses of this
// node that another node has got later. [For] answers for a dry run, and addresses.go for people, Events and metrics. Those questions
// change no way. With the transport direct they may ask the kernel for next hops, and the log says if an answer is another one than before.
package steerer
