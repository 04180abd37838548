// Package holders knows which node has which egress IP on one of its interfaces: its holder. Steering
// sends the packets of bound pods there (package kernel, type Steering). What happens when a holder fails, step by step, is in pkg/egress/node.
//
//	this node's interfaces ─► WatchAddresses ─► OwnAddresses ──┐
//	                                                           │        ┌─► Holder, Ways, Conflicts
//	Leases of all nodes ────► Leases.Watch ───► Announced, … ──┼─► Directory
//	other nodes, directly ──► Announcer ──────► Announced ─────┤        └─► Announces ─┬─► Publisher ─► this node's Lease
//	Nodes ──────────────────► the caller ─────► NodeSeen, … ───┘                       └─► Announcer ─► other nodes
//
// The Directory is the book: of this node's addresses, too, which the pool's member takes and releases there (own.go, package pool), and of
// the epochs that were seen.
//
// A node announces its egress IPs in two ways, and either works alone: in its Lease, which also a node that starts
// finds, and by UDP directly to all other nodes, which needs no API server.
//
// # The Leases
//
// Each node that has an egress IP says so in a Lease of its name, in a namespace for these Leases:
//
//	metadata:
//	  annotations:
//	    network.openshift.io/egress-addresses: '{"203.0.113.10": {"epoch": 3}}'
//	    network.openshift.io/egress-addresses-revision: "28857600017"
//	    network.openshift.io/egress-choices: '{"shop/web": {"10.128.0.11": "203.0.113.10"}}'
//	    network.openshift.io/egress-configuration: '{"cluster-cidr": ["10.128.0.0/14"]}'
//	    network.openshift.io/egress-port-blocks-assigned: '[{"pod": {"name": "web-0", …}, "ports": {"first": 1024, "last": 1535}, …}]'
//
// The epoch of an address grows each time a node gets the address. The new epoch is higher by one than all that other nodes announce in
// either way, than that of a lost holder, and than those that members of the pool have told. The epoch stays if an address of the pool is
// back on the interface of a node that has not given it up, and a process that starts keeps the epoch in its node's Lease.
//
// The revision grows each time the node says something else: it is the time in milliseconds since 2026, or one more than the larger of
// the last one and the Lease's if the clock is behind that. Of two statements of a node, the one with the higher revision is the later
// one. That is so even if a process was killed before its Lease had what it announced directly, unless the clock was set back since, or
// the node has no Lease and nothing to say: then the direct statement counts until it was not repeated for 40 seconds.
//
// The choices are the egress IPs that the node has chosen for those of its pods whose Services have several. They are in the Lease alone.
// A node with choices has a Lease even without an address, and writes it again when somebody deletes or changes it. Choices count until
// the node states others, or until both its Node and its Lease are gone. A choice counts only for endpoints that name this node, and only
// if it is one of their Service's egress IPs.
//
// The configuration has the proxyArguments that the cluster's plan depends on; 'kubectl egress' makes the plan with them. The list of the
// pods' source ports (package portblocks) has a revision of its own, is written once a second at most, and needs no address either. The
// Leases in which nodes claim blocks of ports are in the same namespace, and belong to no node.
//
// # Direct announcements
//
// UDP from node to node, from and to one port. All datagrams have the name of the sender and a random number that its
// process keeps for its life (the session). There are three kinds (type datagram has the bytes):
//
//	statement   the node's addresses with their epochs, and the revision; in parts, if they are many
//	heartbeat   the revision still holds
//	question    please answer with your statement, and with this random number (the nonce)
//
// The same three are sent about the source ports of the node's pods, as another topic with kinds, questions and sequences of its own: an
// older version does not read these, and understands all else as before. Where no pod has any, nothing is sent about them, and a node that
// gives none asks nobody.
//
// A node sends its statement to all others when it has changed. After 20, 100, 500 and 2000 ms, and then every 9 s,
// it sends a heartbeat. Whoever does not have the revision of a heartbeat asks. A node that starts, or finds a new
// Node, asks it; one that had no key or no address asks all. A member of the pool asks those that it finds alive
// again: addresses may have moved while it was cut off. Whoever misses a part of a statement, or an answer to a
// heartbeat, asks again after 50, 250 and 950 ms. A node that never had an egress IP since its process started sends
// nothing else.
//
//   - A session that is not known counts for nothing: its node is asked, and the answer with the nonce of the question
//     counts. So neither a replay of another day counts, nor the word of somebody who forges the address of a
//     node but does not receive what is sent there. No clocks are compared.
//   - Within a session sequence numbers grow, and revisions: what was replayed or overtaken counts for nothing, not
//     even as a sign of life.
//   - Questions can be replayed, and an answer may be long: each node is answered once in 10 ms at most. Whoever asks does not repeat
//     the same question sooner.
//   - A datagram must come from the address of the Node that it names, and from the port of announcements, which the
//     process there has opened. Package steering drops what pods and other hosts send to that port, also where it
//     would be masqueraded to a node's address.
//   - Everything is signed by HMAC-SHA256 with a key that the nodes share, and nothing else is read (packages keys and Keyring: they
//     change while the program runs). A node without a key says nothing and believes nobody. Otherwise whoever has a node's
//     port and address, such as a hostNetwork process while the node's own is away, would be the node.
//   - A node reports it (Announcer.Failing) if for a minute no datagram from certain other nodes was authentic, and these are at least as
//     many as those that it believes: either it lacks their keys, or half of the nodes have others. Whoever forges the addresses of nodes
//     that send nothing can cause this report.
//   - A statement has 64 parts at most, enough for some thousand addresses. A node with more announces none of them directly, because an
//     incomplete statement would mean that it does not have the rest. It reports that.
//   - An address that no Service claims stays in the statement, and does not count until a Service claims it. There are two reasons not
//     to drop it when it arrives: a Service may claim it a moment later, and its node then repeats the revision only, not the addresses;
//     and the next node that gets it needs an epoch above those that others announce already. So two statements at most are kept of each
//     Node, of 12,000 addresses and a megabyte each: the last direct one, and its Lease, whose annotations the API server limits to 256
//     KiB.
//   - Epochs and revisions have an upper bound, far beyond what moves can reach. Higher ones are neither read nor sent. A node that
//     announces an epoch at the bound does not keep the address for good: the next holder gets the same epoch, and then counts.
//   - Whoever may write the Leases can set any revision. From half of the bound on, a Lease's revision does not show which statement is
//     later: its node does not continue from it, but from the time, or from what its process has said, and all others follow what the node
//     says directly. Below that, the node continues from it.
//
// Whoever has the key, as root on a node does, and can receive what is sent to a node's address, by forged ARP for example, can announce
// in the name of that node. He cannot direct packets to an address of his own choice: packets are only ever steered to the address that
// the API server has for a Node, and they get the egress IP of their own binding whatever anybody announces. So a liar can lead packets
// to where nobody forwards them, which forged ARP replies can do without the key. Whoever may write the Leases can do the same.
//
// Versions before keys were shared send unsigned datagrams of the same protocol. Neither side believes the other, and both follow the
// Leases.
//
// The protocol is no gossip (hashicorp/memberlist). Gossip detects failures without a central authority; here Nodes define membership,
// and a dead process does not mean a dead node. A statement has one author, and all nodes must have it as soon as possible. When an
// address moves, a datagram to each of 5,000 nodes costs one node a few tens of milliseconds.
//
// # Who holds an address
//
//   - local: this node has the address on an interface, whatever others say. There are two exceptions: another host on the network
//     answers for it, too ([Elsewhere]), or it is on no interface, but a load balancer announces it from this node. Then another live
//     node comes first if it has the address with a higher epoch, or with the same one and a name that sorts later;
//   - remote: live nodes announce it. If there are several, the highest epoch counts, and of equal ones the node whose name sorts last.
//     At the largest possible epoch (MaxEpoch), nodes that have given a sign of life within 40 s come first, whether or not the Nodes of
//     others are Ready, and then the one that has announced it last;
//   - lost: the nodes that announce it are not live, or the last of them has ceased to announce it within
//     the last 5 s;
//   - unclaimed: nobody announces it.
//
// Several live nodes have an address (Conflicts) if nodes other than the holder have announced it since the holder has it: directly, or
// in their Leases at least twice, some seconds apart. An earlier announcement may be the last word of a node that has failed, and so may
// the first change of its Lease that is seen afterwards.
//
// What a node announces counts as long as its Lease or its direct announcement lists the address and its Node object exists. If there are
// both, the one with the higher revision counts, but the direct one if the Lease's revision is higher than any honest one. It makes no
// difference whether an address leaves a statement, the Lease is deleted or the Node is deleted: 5 s later the address is unclaimed,
// unless another node has taken it. An address of a silent node stays lost until one of these happens.
//
// A direct announcement that was not repeated for 40 s no longer counts: then the Lease alone does. But as long as this node cannot watch
// the Leases, the direct announcement goes on to count, because nothing else is known then.
//
// A node is live if it is not silent, and its Node has an InternalIP of the family that the nodes reach
// each other by. It is silent when there are two witnesses against it: its Lease was not seen to change and nothing was
// heard of it directly for 40 s, by this node's clock, and its Node is not Ready. A process that is dead is no dead
// node, and neither is a node whose kubelet is stopped. Times when this node could not watch the Leases do not count.
//
// # What the package never does
//
// It changes no address and no rule, and the Directory waits for nobody. Without the API server, the right to its
// Leases or their namespace, others' addresses are known from direct announcements alone, which is logged; and a
// process that starts then announces nothing, because it does not know the epochs of its addresses.
//
// The files directory.go, candidates.go, event.go, holding.go, own.go, datagram.go, exchange.go and refused.go are pure: they import the
// standard library and packages kernel and portblocks, and time is passed in.
package holders
