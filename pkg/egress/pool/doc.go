// Package pool puts egress IPs on the nodes of a pool, and moves them when a node fails or is drained. What happens in a failover, step by
// step and on all nodes, is in package node.
//
//	events ──► Member.Next ──► actions
//
//	Wanted, Pool       the API          Probe, LookAround   ARP and neighbour solicitations
//	Networks, Found    the kernel       Take, Release       addresses by netlink, announced to the network
//	Alive, Heard       the members      Renew, Announce     the kernel keeps addresses for another 30 s; the network is told
//	                                    Publish             this member's state, to all others
//
// A member keeps no list of its addresses, nor of epochs: it asks its node's book, a [holders.Directory], and writes there what it takes and
// releases. Package node joins the two. What decides for a [Runner] is steerer.memberInBook, which holds the book's lock.
//
// # Who gets an address
//
// Each member knows the state of each other one: its addresses with their epochs, what it is about to take,
// and its subnets. From that all of them conclude the same ([Assign]): an address that no node has goes to
// a live member in whose zone, and on which, there are the fewest other addresses of the same Services; of several, to one with the fewest
// addresses, and then to the winner of rendezvous hashing. Members that cannot hold it, or are not to, are passed over: each [Objection]
// says why.
// Nothing moves away from a member that can hold it: one that returns, or is new, gets addresses that are
// new, or of members that fail later.
//
// # How an address is taken
//
//   - Only a member that reaches a majority of the pool takes addresses, itself included. In a pool of an
//     even number the default gateway has a vote if exactly half of the members is there. A pool of one node
//     has its majority always; a pool of two needs the gateway when one node fails: else the other one finds itself cut off, and
//     releases what it has.
//   - First it asks whether any host has the address (RFC 5227, 2 probes in 80 ms). As long as one answers, it
//     asks again every 100 ms and takes nothing. So a node whose process is dead, or whose messages are lost,
//     keeps its addresses; they are in its kernel, which answers. And so an address that a foreign host has
//     is never taken. If nobody answers on that network at all, neither a node nor the gateway, nothing is taken
//     either: this node is cut off. And nothing is taken if those nodes that answer are no majority: the others
//     may be as dead as the one that had the address, and not found so yet.
//   - It does not ask if the member that has the address is live and gives it away: it is drained, or not in
//     the pool any more, or it cannot hold it any more. A node that never was in the pool, while this process ran, gives away nothing that
//     a member has, also if that one's process is dead.
//   - The epoch of the address is higher by one than any that was seen. There is a highest one (holders.MaxEpoch), which no
//     node can reach honestly: what is said with a higher epoch does not count, and of several nodes with the highest one, the
//     address is for one that can hold it, and then for the one whose name sorts last. So an address still moves, and a drain still ends.
//
// # How an address is released
//
//   - Another member has it with a higher epoch, which is how a drain ends: first the new node has the address, and
//     passes on what belongs to connections of the old one (pkg/kernel/handover), then the old one removes it and, if packets
//     are passed on to it, goes on sending for its own pods for a second. Each member tells its addresses to those that it does
//     not find alive every 50 ms, so a node that comes back to the network hears at once what others have taken over. It gives way
//     as well to a higher epoch in another node's Lease, unless it is the one that gives the address away: hosts may reach both
//     sides of a partition.
//   - No majority is there, and neither any other node of the pool nor the gateway answers: this node is cut
//     off. Without a majority, but with answers, it keeps its addresses, and asks for them as well: when a
//     partition heals, another host may have them. What is answered for is released at once.
//   - Another host answers for it that is no former holder: each member asks every 10 s.
//   - No granted Service has it any more.
//   - Nobody has renewed it for 30 s ([Lifetime]): the kernel withdraws it, then another member takes it. That is
//     the end of a dead process, or a stopped one. One that starts renews what it has, also without its API server.
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
//   - A datagram counts once, and only of the process that has said on a stream, last, that it runs there. Without that, replays
//     would harm: an old state of an earlier process in which its node is drained has others take its addresses, and an old
//     answer keeps a dead node from being found so. Whoever records and forges datagrams now makes nodes call each other
//     more often at most.
//   - Whose a state is, follows from the address that it came from: the node that the API server has there. Of several
//     nodes that say that they have one address, the caller chooses one: that which had it when this process began, or the oldest.
//   - What of a message memberlist may read is checked (guard.go): flat and complete, of the versions that members speak, and
//     from whom it says that it is. Else a small message would cost any amount of memory.
//   - A state has a size, and numbers of addresses and subnets, that are checked before it counts. Epochs are kept of addresses
//     that Services claim, and of no others. The addresses of a node's last state are kept, 2,048 at most: a Service may claim one
//     a moment later, and of the same state nothing is taken a second time.
//   - Of what a node says the newest alone waits to be dealt with, and a node that says that it has an address of another one has that
//     one tell the network otherwise every 50 ms at most.
//
// A node that lies, with the key, can still say that it has any address of the pool, and be given it, as it can by ARP; refuse to
// take any; claim addresses that it does not take; and answer for a dead node when it is asked about that. It can have others
// suspect a node, over and over: that one has 180 ms to contradict, and if it does not, it loses its vote, and no address as long as
// its kernel answers. Enough of that, and there is no majority: nothing is taken. All of it ends with the lies: incarnations,
// by which nodes contradict, count only as far as a node has said them itself, or nearly, and epochs have an end that addresses move
// beyond. When its Node is deleted, nobody hears it any more.
//
// # Limits
//
// A network in which a router answers for all addresses (proxy ARP) cannot be used: every address is in use
// there. A node has 2,048 addresses at most, all of which it can announce. Where a majority of the pool fails at once, what the
// rest has stays, and what the others had is served when enough of them are back. Where each half of an even pool has a gateway,
// each takes the addresses of the other half, and gives way to the newest Lease. It leaves them to that node as long as it sees its Lease
// renewed every 30 s, and for 10 minutes at most: the other half may have lost its gateway since, and nobody here can know. So all of them move
// every ten minutes, as long as that lasts. A node that restarts meanwhile may take them at once, one that is drained hands nothing to the
// other half before, and if the API server is away for half a minute, each half has all addresses until it is back. Members of versions
// that seal differently do not hear each other: while a cluster is updated from one, they are two groups. The one that is a majority of the pool hands addresses over
// within itself, and takes those of nodes that do not answer for them any more, whichever version these had. The other one keeps what it
// has, and can neither be drained nor take anything.
//
// The files assign.go, claims.go, event.go, guard.go, member.go, peers.go, seal.go, state.go and view.go are pure: they import the standard
// library, the book and package rendezvous, and time is passed in. A [Member] is in member.go with what it has and tells; peers.go has the
// others, their votes and their states; claims.go how addresses are taken; view.go what is seen on the network.
package pool
