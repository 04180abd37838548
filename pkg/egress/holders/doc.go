// Package holders knows which node has which egress IP on one of its interfaces: its holder. Steering
// sends the packets of bound pods there (package kernel, type Steering). What happens when a holder fails, step by step, is in package node.
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
//	    network.openshift.io/egress-addresses-revision: "17"
//	    network.openshift.io/egress-choices: '{"shop/web": {"10.128.0.11": "203.0.113.10"}}'
//	    network.openshift.io/egress-configuration: '{"cluster-cidr": ["10.128.0.0/14"]}'
//	    network.openshift.io/egress-port-blocks-assigned: '[{"pod": {"name": "web-0", …}, "ports": {"first": 1024, "last": 1535}, …}]'
//
// The epoch of an address grows each time a node gets it, but when an address of the pool is back on the interface of a node that has
// not given it up: it is higher by one than all that other nodes announce, in
// either way, than that of a holder that is lost, and than what members of the pool have said. A process that starts keeps
// the epoch that its node's Lease
// has. The revision grows each time a node says something else, and goes on from the Lease's at a start: it tells which
// of two statements of a node is the later one. The choices are the egress IPs of the node's pods whose Services have several; they are in
// the Lease alone. A node with choices has a Lease also without an address, and writes it again when somebody deletes or changes it. What a node has
// chosen counts until it says something else, or its Node and its Lease are gone. It counts for endpoints that name this node alone, and only if it is one
// of their Service's egress IPs. The configuration has the proxyArguments that the cluster's plan
// depends on; 'kubectl egress' makes the plan with them. Which source ports the node's pods have (package portblocks) has a revision of its
// own, is written once in a second at most, and needs no address either. The Leases in which nodes claim blocks of ports are in the same
// namespace, and are no node's.
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
// Node, asks it. A member of the pool asks those that it finds alive again: addresses may have moved while it was cut off. Whoever misses a part of a statement, or an answer to a heartbeat, asks again after 50, 250 and 950
// ms. A node that never had an egress IP since its process started sends nothing else.
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
//   - A node says so (Announcer.Failing) if for a minute nothing that comes from some other nodes is authentic, and these are at least
//     as many as those that it believes: it has not their keys, or half of the nodes have others. Whoever forges the addresses of
//     nodes that say nothing can have it say that.
//   - A statement has 64 parts at most, which are some thousand addresses. A node that has more announces none of them directly,
//     because a part of them would say that it has not the rest, and says so.
//   - What no Service claims is kept in the statement alone, and counts for nothing until one does. It is not dropped when it comes: a
//     Service may claim it a moment later, and its node repeats the revision, not the addresses. And whoever gets the address
//     needs an epoch above those that others announce already. So of each Node there are two statements at most, of 12,000 addresses and a
//     megabyte each: the last direct one, and its Lease, whose annotations have 256 KiB at most in the API server.
//   - Epochs and revisions have an upper bound, far beyond what moves can lead to. Nothing above is read or said. Whoever
//     announces an epoch at the bound does not keep the address for good: the next holder gets the same one, and counts.
//   - Whoever may write the Leases can set any revision. From half of the bound on, that of a Lease says nothing of what is
//     later: its node does not go on from it, but from what its process has said, or starts again; and what the node says
//     directly counts for all others. Below that, its node goes on from it.
//
// Who has the key, as root on a node has, and can receive what is sent to a node's address, by forged ARP for example, can announce in
// the name of that node. It cannot announce an address of its own: packets are only ever steered to the address
// that the API server has for a Node, and they get the egress IP of their own binding whatever anybody announces. So
// a liar can lead packets to where nobody sends them on, as somebody who forges ARP replies can without it. Whoever may
// write the Leases can do the same.
//
// Versions before keys were shared send unsigned datagrams of the same protocol. Neither side believes the other, and both follow the
// Leases.
//
// It is no gossip (hashicorp/memberlist), which detects failures without a central authority: Nodes define membership here, and a dead
// process is no dead node. A statement has one author, and all nodes must have it as soon as possible. A datagram to each of 5,000 nodes
// costs one node a few tens of milliseconds, when an address moves.
//
// # Who holds an address
//
//   - local: this node has the address on an interface, whatever others say. If another host on the network answers for it, too
//     ([Elsewhere]), or it is on no interface, but a load balancer announces it from this node, other live nodes come first that have it
//     with a higher epoch, or with the same one and a name that sorts later;
//   - remote: other nodes announce it and are live. If there are several, the highest epoch counts, and
//     of equal ones the node whose name sorts last. Of several that have the largest epoch there is (MaxEpoch) those count first
//     that have given a sign of life within 40 s, also if their Nodes are Ready, and then the one that has announced it last;
//   - lost: the nodes that announce it are not live, or the last of them has ceased to announce it within
//     the last 5 s;
//   - unclaimed: nobody announces it.
//
// Several live nodes have an address (Conflicts) if others than the holder have said so since it is that: directly, or by their Leases more
// than once, some seconds apart. What came before may be the last word of a node that has failed, and so may the first change of a Lease
// that is heard of then.
//
// What a node announces counts as long as its Lease or its direct announcement lists the address and its Node object
// exists. If both are there the one with the higher revision counts, and the direct one if no honest Lease has such a
// revision. So an address that leaves a statement, a deleted
// Lease and a deleted Node are the same: 5 s later the address is unclaimed, if no other node has taken it. An address
// of a silent node stays lost until then.
//
// A direct announcement that was not repeated for 40 s does not count any more: the Lease alone does. As long as
// this node cannot watch the Leases it goes on to count: nothing else is known then.
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
// standard library and package kernel, and time is passed in.
package holders
