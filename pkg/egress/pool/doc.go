// Package pool puts egress IPs on the nodes of a pool, and moves them when a node fails or is drained. What happens in a failover, step by
// step and on all nodes, is in pkg/egress/node.
//
//	events ──► Member.Next ──► actions
//
//	Wanted, Pool       the API          Probe, LookAround   ARP and neighbour solicitations
//	Networks, Found    the kernel       Take, Release       addresses by netlink, advertised on the network
//	Liveness, Heard    the members      Renew, Advertise    the kernel keeps addresses for another 30 s; the network is told
//	                                    Publish             this member's state, to all others
//
// A member keeps no list of its own addresses, nor of their epochs: it asks its node's book, a [holders.Directory], and writes there what
// it takes and releases. Of other members it keeps what they said last. Package node joins the two. What decides for a [Runner] is
// steerer.memberInBook, which holds the book's lock.
//
// # Who gets an address
//
// Each member knows the state of every other one: its addresses with their epochs, what it is about to take, and its subnets. From that
// all of them draw the same conclusion ([Assign]). An address that no node has goes to the live member in whose zone there are the fewest
// other addresses of the same Services; of several, to one that has the fewest of these itself, then to one with the fewest addresses,
// and then to the winner of rendezvous hashing. Members that cannot or must not hold it are passed over: each [Objection] says why. An
// address never moves away from a member that can hold it: a member that returns, or is new, gets only new addresses, and those of
// members that fail later.
//
// # How an address is taken
//
//   - Only a member that reaches a majority of the pool, itself included, takes addresses. In a pool of an even number the default
//     gateway has a vote if exactly half of the members are there. A pool of one node always has its majority. A pool of two needs the
//     gateway when one node fails: without it the other node considers itself cut off, and releases what it has.
//   - First it asks whether any host has the address (RFC 5227, 2 probes in 80 ms). As long as one answers, it asks again every 100 ms
//     and takes nothing. So a node whose process is dead, or whose messages are lost, keeps its addresses: its kernel has them, and
//     answers. And an address of a foreign host is never taken. On the same interface it asks for the nodes' InternalIPs and default
//     gateways that are on that network. If there are some, and nobody answers at all, this node is cut off: it takes nothing, and leaves the
//     address for 6 s to another one that can hold it. If there are none, silence means that the address is free. Nor is anything
//     taken if the nodes that answer are no majority: the others may be as dead as the former holder, and not yet found so.
//   - It does not ask if the member that has the address is live and gives it away, because it is drained, has left the pool, or cannot
//     hold the address any more. If its Node was deleted, or is no longer selected, and it is not drained, it waits 0.5 s first, in pools of a
//     thousand 0.9 s: the process may have ended with its Node, and is then found dead, and its kernel is asked. A node that was never in the pool, while
//     this process ran, cannot give away an address that a member has, even if that member's process is dead.
//   - The epoch of the address is higher by one than any that was seen. The highest possible one is holders.MaxEpoch, which no node can
//     reach honestly: a higher one does not count. Of several nodes with MaxEpoch, one that can hold the address comes first, and then
//     the one whose name sorts last. So an address can still move, and a drain still ends.
//
// # How an address is released
//
//   - Another member has it with a higher epoch. This is how a drain ends: first the new node gets the address, and passes packets of the
//     old node's connections on to that one (pkg/kernel/handover). Then the old node removes the address and, if packets are passed on to
//     it, goes on sending for its own pods for a second. Every 50 ms each member tells its addresses to those that it does not find
//     alive, so a node that comes back to the network hears at once what others have taken over. A member also gives way to a higher
//     epoch in another node's Lease, unless it is the one that gives the address away, because hosts may reach both sides of a partition.
//     Of two that took an address at the same time, with no word of each other, the one gives way whose name sorts first, and then takes
//     the address with the next epoch if nobody answers for it on its network.
//   - No majority is there, and neither another node of the pool nor the gateway answers: this node is cut off. If there are answers but
//     no majority, it keeps its addresses, but asks for them every 400 ms, because another host may have them when a partition heals. It
//     releases at once any address that another host answers for.
//   - Another host that is no former holder answers for it. Each member asks every 10 s.
//   - No granted Service has it any more.
//   - There is no Node object of this node, or one without an InternalIP that counts, when its process starts: the others do not hear it. An
//     InternalIP does not count if it is of another IP family than that in which the nodes reach each other, or in a network of pods, of
//     Services or of egress IPs. If there is one, but no node of the pool has one that counts, an argument is wrong, cluster-cidr for
//     example: no node could take the addresses, so they stay, and packets from outside still arrive.
//     Members speak with a node for 10 s after its Node was deleted, so one that lives hears who has its addresses now.
//   - Nobody has renewed it for 30 s ([Lifetime]): the kernel withdraws it, then another member takes it. This happens when a process is
//     dead or stopped. A process that starts renews what it has, also without its API server, for as long as that lasts.
//
// A member that starts waits up to 3 s for the others before it takes anything. It keeps what its kernel has.
//
// # What members tell each other
//
// memberlist (hashicorp) finds out who is alive. A [State] is a message of our own beside it, whole and by a connection, or in datagrams.
// Both are sealed by AES-256-GCM in a transport of our own (seal.go, transport.go, stream.go), before memberlist sees anything: its
// own decryption panics for whoever has the key, and never runs.
//
//   - The first key seals, all of them open, so keys can change while processes run. Without a key, a node neither says nor
//     believes anything: it keeps what it has, which its kernel answers for, takes nothing that needs others' votes, and says so
//     ([Runner.Absence]).
//   - What is sealed is for the addresses that it is sent from and to: it is nothing to anybody else, and cannot be sent back.
//   - A stream begins with a random number of each side, so nothing that was said on another one counts. Each side says one
//     message; the first sealed part of it, 16 KiB, is open before more is kept.
//   - A datagram counts once, and only if it is of the process that last said on a stream that it runs there. Otherwise replays would do
//     harm: an old state in which its node is drained would make others take its addresses, and an old answer would keep a dead node from
//     being found so. Now, recording and forging datagrams can at most make nodes call each other more often.
//   - The address that a state comes from shows whose it is: that of the node that the API server has there. If several nodes claim to
//     have one address, the caller chooses one: this node, else the node that has had it since this process took part, else the oldest.
//   - The part of a message that memberlist may read is checked first (guard.go): it must be flat and complete, of the versions that
//     members speak, and from the member that it names. Otherwise a small message could cost any amount of memory.
//   - The size of a state, and its numbers of addresses and subnets, are checked before it counts. Epochs are kept only of addresses that
//     Services claim. The addresses of a node's last state are kept, 2,048 at most: a Service may claim one a moment later, and the same
//     state is not taken a second time.
//   - Only the newest message of a node waits to be dealt with. A node that claims to have another node's address makes that node
//     contradict it to the network every 50 ms at most.
//
// A lying node with the key can still say that it has any address of the pool, and be given it, as it can by ARP; refuse to take any;
// claim addresses that it does not take; and answer for a dead node when it is asked about that one. It can also make others suspect a
// node, over and over. That node has 180 ms to contradict. If it does not, it loses its vote, but no address as long as its kernel
// answers. If enough nodes lose their votes there is no majority, and nothing is taken. All of this ends when the lies end: incarnations,
// by which nodes contradict, count only about as far as the node has said them itself, and an address still moves at the highest epoch.
// 10 s after the liar's Node was deleted, nobody hears it any more.
//
// # A new reason
//
// A [Reason] is a constant and a line in reasons (event.go). If a node takes an address for it: whyToTake, where goesOn
// (claims.go) tells those reasons apart for which a live node gives the address away; and [Member.Status], which names the reasons for which
// an address counts as unheld or lost. If a node releases an address for it: that place. Then this file, a test in member_test.go, and its
// meaning in the metric's row in images/node/README.md. The log, commands and the metric's series follow from reasons, and so do Events,
// which are of takes alone. If a reason's text changes, look for the old one in hack/e2e and in the tests of package poolnode. The
// dashboard needs nothing: it shows all reasons.
//
// # Limits
//
// A network in which a router answers for all addresses (proxy ARP) cannot be used: every address is in use there. A node has 2,048
// addresses at most, all of which it can announce. If a majority of the pool fails at once, the rest keeps its addresses, and those of
// the failed nodes are served again when enough nodes are back.
//
// If the nodes reach each other by another network than that of the addresses, a node whose link to the latter has a carrier, but carries
// nothing, keeps its addresses: it sees a majority, and the others find it alive. It may get further ones: there is nobody on the dead network
// whose silence would tell, unless a default gateway is there, and those that a live member gives away are not asked for at all. A drain
// moves all of them away.
//
// If an even pool is split into halves and each has a gateway, each half takes the addresses of the other half, and gives way to the
// newest Lease. It leaves an address to the node with that Lease as long as it sees the Lease renewed every 30 s, and for 10 minutes at
// most: the other half may have lost its gateway since, and nobody here can know. So all of them move every ten minutes, as long as the
// split lasts. Meanwhile a node that restarts may take them at once, and a drained one hands nothing to the other half before the ten
// minutes are over. If the API server is away for half a minute, each half has all addresses until it is back.
//
// A member without its API server counts votes in the pool that it knew last. If the network is split at that time, and nodes are added to the
// pool on one side, both sides may reach a majority until the partition heals.
//
// Versions that seal messages differently do not hear each other: during an update from one to the other, their members are two groups.
// The group that is a majority of the pool hands addresses over within itself, and takes those of nodes that do not answer for them any
// more, whichever version these ran. The other group keeps what it has; it cannot be drained and takes nothing.
//
// The files assign.go, claims.go, event.go, guard.go, member.go, peers.go, seal.go, state.go and view.go are pure: they import the standard
// library, the book, package rendezvous and plain values of package kernel, and time is passed in. A [Member] is in member.go with what it
// has and tells; peers.go has the others, their votes and their states; claims.go how addresses are taken; view.go what is seen on the
// network.
package pool
