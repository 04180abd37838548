// Package steering carries the packets of bound pods to the node that holds their egress IP, and makes sure that none of them leaves from
// another address. For one IP family it writes an nftables table of its own, and the device, routes and ip rules that marked packets
// take. It does not decide which pods are bound, nor which way the packets of an egress IP take: [kernel.Desired] says so.
//
// The table gives flows their egress IPs itself, so that it knows who gave a flow its address. In the nftables back end nothing else
// does; a node that steers nothing has a smaller table. In the iptables back end the table comes before the rules of pkg/kernel/iptables,
// which stay as they are and give the same addresses.
//
// # Path
//
//	pod ─► PREROUTING  -100  DNAT: kube-proxy
//	                    -95  prerouting: marks the packet with the number of the node that holds its egress IP
//	        route            the mark's ip rule ─► table 7700+number ─► steer0 (or blackhole)
//	        POSTROUTING
//	                   -199  postrouting: gives the flow its egress IP; a steered packet keeps its source
//	                   100   the rules of iptables, kube-proxy and the network plugin
//	                    101  guard: everything else is dropped
//	        steer0           VXLAN to the other node
//
//	other node: steer0 ─► PREROUTING  -95  prerouting: marks it as arrived
//	                      route            to the outside, as if the pod were here
//	                      POSTROUTING -199 postrouting: gives it its egress IP
//	                                  101  guard
//
// Answers come back to the node that holds the egress IP, which undoes the source NAT and sends them to
// the pod by the pod network. They are not steered.
//
// # Table
//
//	table ip openshift-egress-steering {
//	    set cluster    { type ipv4_addr; flags interval; }                  cluster CIDRs
//	    set exclusions { type ipv4_addr; flags interval; }                  cluster CIDRs and exclusions
//	    set nodes      { type ipv4_addr; }                                  the other nodes
//	    map speakers   { type ipv4_addr : verdict; }                        node : goto node-<address>, with a tunnel
//	    set homes      { type ipv4_addr . ether_addr; }                     pod . hardware address of its node, unless pods roam
//	    set homed      { type ipv4_addr; }                                  pod whose node is known
//	    set away       { type ipv4_addr; }                                  of these, those of other nodes
//	    set senders    { type ether_addr; }                                 their hardware addresses, without a tunnel
//	    set egress-ips { type ipv4_addr; }                                  those of bindings
//	    set claimed    { type ipv4_addr; }                                  those that Services claim and may have, on any node
//	    set held       { type ipv4_addr; }                                  those that this node holds
//	    set own        { type ipv4_addr . inet_proto . ipv4_addr; }         pod . protocol . its egress IP
//	    set bound      { type ipv4_addr . inet_proto; }                     pod . protocol
//	    map ways       { type ipv4_addr . inet_proto : classid; }           pod . protocol : a number's, 2:200 for 2
//	    map sources    { type ipv4_addr . inet_proto : verdict; }           pod . protocol : goto from-<IP>
//	    own-pods, bound-pods, pod-ways, pod-sources: the same without the protocol, for bindings of all protocols
//	    set flows      { type ipv4_addr . inet_proto . ipv4_addr . inet_service . inet_service;
//	                     size 262144; flags dynamic,timeout; timeout 5m; }  answers to what was steered, but TCP
//	    set hosts      { type ipv4_addr . inet_proto . ipv4_addr; the same }   of protocols without ports
//	    set removed    { type ipv4_addr . inet_proto . ipv4_addr; }         the journal
//
//	    chain from-203.0.113.10 {
//	        ip daddr 203.0.113.10                                           accept
//	        not marked, ip daddr @exclusions                                accept
//	        arrived                                                         mark := 0, snat to 203.0.113.10
//	                                                                        mark := 0, snat to 203.0.113.10 fully-random,
//	                                                                        without fully-random if it is held here
//	    }
//	    chain tunnel-input {
//	        type filter hook prerouting priority raw;
//	        udp dport 4799 ip daddr 192.0.2.2 (this node)                   goto port-udp-4799
//	    }
//	    chain port-udp-4799 {
//	        fib saddr . iif oif exists                                      ip saddr vmap @speakers
//	        ip saddr @nodes                                                 counter foreign drop
//	    }
//	    chain ports-input {
//	        type filter hook input priority raw;
//	        udp dport 4799                                                  goto deliver-udp-4799
//	    }
//	    chain deliver-udp-4799 {
//	        ip saddr != @nodes                                              counter foreign drop
//	        ip daddr != 192.0.2.2                                           counter foreign drop
//	        ct state ! untracked                                            counter foreign drop
//	    }
//	    chain node-192.0.2.3 {
//	        @th,176,48 == 02:57:c0:00:02:03 (the inner source)              notrack accept
//	                                                                        counter forged drop
//	    }
//	    chain tunnel-output {
//	        type filter hook output priority raw;
//	        udp dport 4799                                                  goto speak-udp-4799
//	    }
//	    chain speak-udp-4799 {
//	        meta skuid != -1 fib daddr type != unicast                      counter forged drop
//	        ip daddr != @nodes                                              accept
//	        ip saddr != 192.0.2.2                                           counter forged drop
//	        meta skuid != -1                                                counter forged drop
//	                                                                        notrack
//	    }
//	    chain output {
//	        type filter hook output priority -95;
//	        meta skuid != -1                                                goto by-process
//	    }
//	    chain by-process {
//	        udp dport 4799 ip daddr @nodes ct state ! untracked             counter forged drop
//	        ct state invalid                                                accept, this and what follows in IPv6 alone
//	        ip6 daddr @exclusions                                           accept
//	        ip6 saddr @claimed fib saddr type != local                      counter forged drop
//	        ip6 saddr . meta l4proto @bound                                 counter forged drop
//	    }                                                                   all again for the port of announcements, and for
//	                                                                        the pool's, udp and tcp, but what asks for skuid;
//	                                                                        for the pool's without notrack, and with
//	                                                                        "ct status dnat" for untracked
//	    chain prerouting {
//	        type filter hook prerouting priority -95;
//	        udp dport 4799 ip daddr @nodes                                  counter forged drop
//	        iifname steer0                                                  goto arrivals
//	        ct direction reply                                              goto answers
//	        ct state new,invalid,related                                    jump begins
//	        ip saddr . meta l4proto @bound                                  goto bound-pod
//	    }
//	    chain arrivals {
//	        ct state new
//	            ip saddr . ether saddr != @homes ip saddr @homed            counter forged drop
//	        ct status dnat ip daddr @exclusions                             accept
//	                                                                        mark := arrived, accept
//	    }
//	    chain answers {
//	        tcp flags syn,ack / syn,ack ct status ! snat
//	            ip daddr . meta l4proto @bound ip saddr != @exclusions      tcp option maxseg size set (MTU - 40)
//	    }
//	    chain begins {
//	        ct state new ip saddr . meta l4proto @bound                     jump astray, where no way leads away
//	        tcp flags syn / syn,rst,ack                                     return
//	        meta l4proto ah ip6 saddr . ct protocol @bound
//	            ip6 daddr != @exclusions                                    counter unsnatted drop, in IPv6 alone
//	        meta l4proto ah ct state invalid ip6 saddr @cluster
//	            ip6 daddr != @exclusions                                    counter unsnatted drop, in IPv6 alone
//	        ct state new ct status ! dnat tcp flags != syn / syn,rst,ack
//	            ip daddr . meta l4proto @bound ip saddr != @exclusions      counter flipped drop
//	        ct state new ct status ! dnat meta l4proto != tcp
//	            ip daddr . meta l4proto @bound                              jump late
//	        ct state new,invalid tcp flags != syn / syn,rst,ack
//	            ip daddr @held                                              jump nostate
//	        ct state related ct status ! snat
//	            ip daddr != @exclusions
//	            meta priority set ip saddr . ct protocol map @ways          goto way
//	    }
//	    chain bound-pod {
//	        ct status snat                                                  accept
//	        ip daddr @exclusions                                            accept
//	        ip saddr . meta l4proto . ip daddr @own                         accept
//	        ct state new                                                    jump astray
//	        meta priority set ip saddr . meta l4proto map @ways             goto way
//	    }
//	    chain astray {
//	        fib saddr . iif oif missing
//	            ip daddr != @exclusions fib daddr type != local             counter forged drop
//	        ip saddr @away ip daddr != @exclusions fib daddr type != local  counter forged drop
//	    }
//	    chain way {                                                         each sets the priority to 0 again
//	        meta priority 2:200                                             mark := 2, accept
//	        meta priority 3e:3e00 fib daddr type != local                   drop
//	        tcp flags syn / syn,rst,ack
//	            meta priority 3f:3f00 fib daddr type != local               reject with tcp reset
//	        meta priority 3f:3f00 fib daddr type != local                   reject
//	        fib daddr type local                                            accept
//	                                                                        counter unsnatted drop
//	    }
//	    chain late {
//	        meta l4proto udp, or sctp
//	            ip saddr . meta l4proto . ip daddr . th sport . th dport @flows   counter flipped drop
//	        ip saddr . meta l4proto . ip daddr @hosts                       counter flipped drop
//	    }
//	    chain nostate {
//	        socket transparent 0, or 1                                      return
//	                                                                        counter nostate drop
//	    }
//	    chain input {
//	        type filter hook input priority 101;
//	        ct state new meta l4proto udp ip daddr @held                    jump nostate
//	    }
//	    chain forward {                                                     an egress IP may be on no interface
//	        type filter hook forward priority 101;
//	        ct state new meta l4proto udp ip daddr @held
//	            ip saddr != @exclusions                                     counter nostate drop
//	    }
//	    chain postrouting {
//	        type nat hook postrouting priority -199;
//	        any mark                                                        goto onward
//	        ip saddr . meta l4proto @bound                                  goto leaves
//	    }
//	    chain leaves {
//	        ip saddr . meta l4proto                                         vmap @sources
//	        arrived                                                         snat to ip saddr
//	        ip saddr . meta l4proto @bound
//	            ip saddr . meta l4proto . ip daddr != @own ip daddr != @exclusions   mark := dropped
//	    }
//	    chain onward {
//	        arrived                                                         goto leaves
//	                                                                        snat to ip saddr
//	    }
//	    chain guard {
//	        type filter hook postrouting priority 101;
//	        any mark                                                        jump marked
//	        ct direction reply                                              accept
//	        ip saddr . meta l4proto @bound
//	            ip saddr . meta l4proto . ip daddr != @own ip daddr != @exclusions   counter unsnatted drop
//	        ip saddr @bound-pods ip saddr . ip daddr != @own-pods ip daddr != @exclusions   jump unsnatted
//	        meta l4proto ah ip6 saddr . ct protocol @bound
//	            ip6 daddr != @exclusions                                    counter unsnatted drop, in IPv6 alone
//	        meta l4proto icmp ct state related, the same with ct protocol   counter unsnatted drop
//	    }
//	    chain unsnatted {                                                   of pods that are bound for all protocols
//	        ip saddr . meta l4proto . ip daddr @own                         accept
//	                                                                        counter unsnatted drop
//	    }
//	    chain marked {
//	        arrived, ct status confirmed, snat, ip saddr @egress-ips        mark := 0, accept
//	        the mark of a node, oifname steer0                              goto steered
//	        fib daddr type multicast                                        return
//	        arrived                                                         counter stale drop
//	                                                                        counter unsnatted drop
//	    }
//	    chain steered {
//	        ct status snat                                                  counter unsnatted drop
//	        meta l4proto != tcp                                             jump remember
//	                                                                        mark := 0, accept
//	    }
//	    chain before {                                                      no packet comes here
//	        return comment "net/ipv4/conf/eth1/rp_filter was 1 is 2"        a setting that was changed
//	    }
//	    chain remember {
//	        meta l4proto udp, or sctp
//	            update @flows { ip daddr . meta l4proto . ip saddr . th dport . th sport }   return
//	        meta l4proto != udp, sctp, icmp   update @hosts { ip daddr . meta l4proto . ip saddr }
//	    }
//	}
//
// The rules for bindings of all protocols are there only if there is one, and those that lead to ways, and fit answers, only
// if one leads away from this node. The chains of the tunnel, and the rule of what is forged, are in the table of the family of
// the nodes' addresses. What they do for the tunnel they do for the port by which nodes tell each other what they hold (package
// holders), too. Of these the table of the other family has ports-input alone, which drops all that is for one of these ports.
//
// # Port blocks
//
// Where pods may have source ports of an egress IP for themselves ([Config].PortBlocks, [kernel.Steering].Blocks), the table has besides:
//
//	map blocks      { type ipv4_addr . inet_proto : interval ipv4_addr . inet_service; }   pod . protocol : its egress IP . its ports
//	map full-blocks { type ipv4_addr . inet_proto . inet_service : the same; flags interval; }   pod . protocol . its first ports : the same,
//	                                                                    of pods with two blocks. These have the second one in blocks
//	pod-blocks, pod-full-blocks: the same without the protocol, for bindings of all protocols
//	map inward     { type ipv4_addr . inet_service : ipv4_addr; flags interval; }   egress IP . ports : pod that is bound to it
//	set own-ports  { type ipv4_addr . inet_service; flags interval; }   pod . its ports, of those that may run here
//	set fresh      { type ipv4_addr; timeout 2m; }                      egress IPs that have come here
//
//	chain inward {
//	    type nat hook prerouting priority -98;
//	    tcp flags syn / syn,rst,ack                                     accept
//	    ip daddr @held                                                  goto block
//	}
//	chain block {
//	    ip saddr @exclusions                                            return
//	    socket wildcard 0                                               return
//	    tcp                                                             mark := inward, dnat to ip daddr . th dport map @inward
//	    udp ip daddr @fresh                                             the same
//	                                                                    mark := 0
//	}
//	chain late {
//	    ...
//	    udp ip saddr != @exclusions ip daddr . th dport @own-ports      counter flipped drop
//	}
//	chain onward {
//	    ...
//	    inward, tcp or udp                                              snat to ip saddr : th sport
//	                                                                    snat to ip saddr
//	}
//	chain from-203.0.113.10 {
//	    ...
//	                                                                    jump pod-ports
//	    of an egress IP that has shared ports:
//	        tcp, udp, sctp, or icmp                                     mark := 0, snat to 203.0.113.10 : 61440-65535
//	                                                                    mark := 0, snat to 203.0.113.10
//	}
//	chain pod-ports {
//	    tcp, udp, or sctp:
//	        mark := 0, snat to ip saddr . meta l4proto . th sport       map @full-blocks, if there is one
//	        mark := 0, snat to ip saddr . meta l4proto                  map @blocks
//	    ip saddr . meta l4proto @bound                                  return
//	    the same, and icmp, for bindings of all protocols
//	                                                                    return
//	}
//	chain marked {
//	    inward                                                          mark := 0, accept
//	    arrived, ct direction reply, dnat, ip saddr @egress-ips         mark := 0, accept
//	    ...
//	}
//
// The rules with blocks and full-blocks look the packet up before they change its mark (package nft). The kernel keeps a source port that
// lies in the block and translates all others into it, including ports that a pod has chosen explicitly. In a block of n ports, port 5000
// becomes the block's first port plus 5000 modulo n, or the next free one, so it is mostly the same on every node. The first port must be
// a multiple of n, so that ports of the block are kept. If somebody restores a listing of the table with nft, the rules differ: they give
// any port of the block, and always change the mark. They lack this package's mark in their user data, so they are found and replaced. An
// ICMP echo identifier is translated like a port, so an answer to a ping identifies the pod, too. Protocols without ports get only the
// address, from @sources.
//
// A pod has two blocks of an egress IP if its first one was nearly full towards some destination. A source port in the first block is
// kept; everything else gets a port of the second, which is not full. Nobody gives more than two; of more, the lowest would count.
// Packets to any of its blocks reach the pod.
//
// A packet to a port of a block that belongs to no flow of this node and begins no connection is of a flow that another node knew. It is
// sent to the pod. From then on this node tracks the flow as one that the far side has begun, and the pod's packets are its answers. So
// no node needs to know the flows of others. The chain inward runs after kube-proxy's DNAT (-100), because a Service's port belongs to
// the Service, and after that of package handover (-99), which passes packets on to a former holder that is alive. A socket of this node
// that is bound to the egress IP itself keeps its packets; one that listens on all addresses does not.
//
// On the pod's own node, such a packet must be the answer to a flow that the pod has begun. Otherwise it is dropped: TCP as flipped
// anyway, and UDP because the pod's answer would leave from the pod's own address. So datagrams to random ports reach no pod on a node
// other than the holder. For pods on the holder itself, nobody knows whom they have spoken to: their flows were steered, and are ended
// when the address comes. There, datagrams from anywhere reach a socket that listens on a port of the pod's block, but only for two
// minutes, as long as conntrack remembers a flow in which one side is silent. A UDP server on a port of its pod's block cannot be reached
// from outside at the pod's own address.
//
// If the pod's node itself takes the address while it still tracks the steered flow, the kernel would give the far side another port,
// because two entries must not have the same reply tuple. The pod knows no such connection and would reset it. So the source keeps its
// port; the kernel then drops the packet, and the far side sends it again.
//
// Exceptions: a FIN or RST that belongs to no flow is invalid for conntrack, so it is dropped as nostate until the pod is heard. SCTP
// works as without blocks. A connection whose pod has chosen a port outside of its block goes on if the pod is heard here before the far
// side: it gets the same port as from the former holder. If the far side is heard first, its packet goes to that port of the pod, where
// the pod has no connection and resets it; so the pods' nodes make sure that their pods are heard at once (package conntrack). Such a
// connection may also get another port, and be reset by the far side: if the port is not free, or the kernel goes on with its former
// choice, because the pod has another connection from the same port, or one to the same destination with the port that this one would
// get; or if the pod has got a second block since. If the new port is that of another connection of the pod, package conntrack finds out,
// and both are reset. A receiving UDP flow goes on unless the pod's node is the former holder: there the entry is ended, and the pod has
// to send.
//
// Pods with blocks begin new flows at 0.93 of the rate without blocks (make bench RUN='^steering/port-blocks$'). The difference is the
// chain inward, which each new flow passes before routing, and the lookup in blocks after the one in sources.
//
// The fast path takes flows that pods have begun. Flows that the far side has made known here have a translated destination, so on the
// holder they take the slow path.
//
// # A node that steers nothing
//
// In the nftables back end, on such a node or as long as its address is not known, a [LocalWriter] writes a table that has the sets of
// bindings alone, and one chain, for pods that leave where they run:
//
//	table ip openshift-egress {
//	    set exclusions, own, own-pods, removed                              as above
//	    map sources     { type ipv4_addr . inet_proto : ipv4_addr; }        pod . protocol : egress IP
//	    map pod-sources { type ipv4_addr : ipv4_addr; }                     pod : egress IP
//	    chain postrouting {
//	        type nat hook postrouting priority -197;
//	        ip daddr 203.0.113.0/24                                         goto near
//	        ip daddr != @exclusions
//	            snat to ip saddr . meta l4proto map @sources fully-random   in IPv6 with ct protocol for meta l4proto
//	        the same for bindings of all protocols, if there are any
//	    }
//	    chain near {
//	        ip daddr != @exclusions
//	            ip saddr . meta l4proto . ip daddr != @own                  not to its own egress IP
//	            snat to ip saddr . meta l4proto map @sources fully-random
//	        the same for bindings of all protocols
//	    }
//	}
//
// All egress IPs of the table's bindings are in the network of the first rule, so what goes elsewhere is not for an egress IP. It is a /24, in
// IPv6 a /64, or the smallest larger one. Where it would be that of all addresses, the rules of near are in postrouting.
//
// In IPv6 the flow tells the protocol, because an Authentication Header hides that of a packet, and a pod could leave under its own address.
// The cost of a packet does not depend on the number of bindings. The kernel evaluates a rule's map first, so a packet of an unbound pod is
// done after one lookup, or after two where there are bindings of all protocols. With verdicts in the maps, as above, a pod's own egress IP
// would never take a lookup, but each change would follow all elements. The chain is behind that of the steering, so that an earlier process's
// table decides until this node's address is known. Where nothing is bound, and nothing on record, there is no table.
//
// # Who gets into the tunnel
//
// The kernel's tunnel socket is bound to no address, so it receives every packet that is delivered to this node with its port, also
// packets for other addresses of the node, for a broadcast, multicast or anycast address, and packets that a Service leads here. So
// tunnel-input accepts only packets that another node sends to the one address that nodes use, and exempts them from tracking;
// ports-input drops all others. A node with several addresses is reached by that one only. Neither chain affects packets that this node
// forwards.
//
// For packets of processes in the node's own network, a node's address proves nothing, because they may send from it without any
// privilege. But the kernel's own tunnel packets have no socket with an owner: the pod's socket stays behind in the pod's network. So
// packets that have one are dropped, even those that a process sends through steer0 itself (SO_BINDTODEVICE), because a packet keeps its
// socket when it is wrapped. A packet that a Service leads to another node's port still has another address or port in tunnel-output, and
// is tracked, so by-process drops it. This program itself sends nothing to these ports: nudges of connections go to pods here and to the
// outside, and the kernel sends the barrier's resets.
//
// In IPv6 a process may send from any address (IPV6_FREEBIND). So packets to these ports must leave from this node's own address, and
// by-process drops packets that a process sends as a bound pod, or from an egress IP that is on another node. A NAT chain could not do
// that: it sees nothing of a flow that the pod itself has begun. Invalid packets pass, because sending them takes a privilege, no source
// NAT gives them an egress IP, and nudges of connections are invalid, too. Any process may send from an egress IP that is on this node:
// it is the node's address. A process with CAP_NET_RAW or CAP_NET_ADMIN in a node's network counts as the node.
//
// # Without a tunnel
//
// With the transport [Direct] the other node is the next hop. There is no MTU to fit, "oifname steer0" is "rt ip nexthop
// @nodes", and a packet has arrived that comes in by the uplink from a pod and is to the outside:
//
//	chain prerouting {
//	    ...
//	    iifname eth0 ip saddr @cluster
//	        ip daddr != @exclusions fib daddr type != local             goto arrivals
//	}
//	chain arrivals {
//	    ct direction reply ct status dnat                               accept
//	    ct direction reply, or ct status dnat
//	        ip saddr . meta l4proto != @bound                           accept
//	    ct state new ip saddr . ether saddr != @homes ip saddr @homed   counter forged drop
//	    ether saddr @senders                                            mark := arrived, accept
//	    ip saddr . meta l4proto @bound                                  counter foreign drop
//	}
//
// The first rule of arrivals is for answers to clients that this node has let in by a Service, for example by a node port: they get that
// Service's address again. The second is for other answers to clients that this node has let in, and for packets to a Service of this
// node that leads out of the cluster; both are of pods that are not bound. A node that routes for other nodes' pods cannot be told from a
// holder, so it drops what these pods send to the outside as stale.
//
// Packets that another host on the nodes' network sends from a bound pod's address are dropped: as forged if the pod's node is known, as
// foreign if not. The hardware addresses are those that the kernel has learned of the nodes, and follow it. Whoever can forge one of them
// on the nodes' network, together with a pod's address, is taken for a node, like somebody who can forge a node's address where there is
// a tunnel.
//
// # Whose pods a node sends
//
// The first packet of a flow must come from the node on which its pod runs, if EndpointSlices name that node. After the tunnel the
// packet's outer address is gone, but the hardware address of its sender remains. A node's hardware address follows from its IP address,
// and tunnel-input makes sure that the two belong together. A pod of which nothing is known here is not bound here, either. Later packets
// of the flow are not checked: a node that forges one gets no answer. If pods roam, any node may send any pod's packets.
//
// Flows of another node's pods to the outside come here through the chain arrivals only. The route back to a pod is no proof of where a
// packet came from: it leads into the network plugin's tunnel, into which anybody who reaches a node can send, or onto the nodes'
// network. So astray drops packets that come another way, if the pod's node is known. In one case these are honest: a pod uses the node
// port of the node that has its egress IP, for a Service whose endpoints are outside of the cluster. Other addresses of Services are
// translated on the pod's own node. If pods may leave through any node by the network plugin's own devices ([kernel.Steering].Roaming),
// such packets are normal: then no pod is in the set away, and only packets from where no route leads back are dropped.
//
// # Why each hook
//
//   - The map puts a node's number into the packet's priority, where way reads it: a mark can only be set as a whole, and has bits of
//     others. Packets of pods come without a priority, and routing gives IPv4 packets one of their own afterwards. When a node gets its
//     first egress IP, a packet may carry that node's number before the node's rule exists; it is dropped.
//   - prerouting runs after DNAT (-100), because a Service may lead out of the cluster, and before routing. It marks each packet, so it
//     touches nobody else's mark of the flow.
//   - late and remember are for flows that this node's conntrack has forgotten: because they expired, by conntrack -F, or because their
//     egress IP comes here. An answer from outside would then begin a flow from the far side to the pod, in which the pod's packets are
//     answers, and answers are not steered. For TCP the flags tell an answer. For other protocols each steered packet refreshes what
//     remember knows of its flow, because nobody knows when conntrack forgets it; that costs a lookup. Late answers are dropped until the
//     pod itself sends. When a set is full, further flows are not remembered.
//   - tunnel-input runs before conntrack (-200), so packets of the tunnel are not tracked. ports-input runs after it, because an answer
//     to a masqueraded pod may have such a port, too; other packets never reach the device. Packets that a node would masquerade, and so
//     make look like its own, are dropped in prerouting.
//   - output runs after kube-proxy's DNAT of what processes send (-100), where it is visible to whom a Service leads. Forwarded packets
//     never come there.
//   - postrouting runs before our rules of source NAT and everybody else's: its priority is the lowest that the kernel allows, and the
//     first chain that gives a flow a source decides. Another chain of the same priority may come first; package natorder reports it.
//     "snat to ip saddr" keeps the source of the flow. Ports are kept where the egress IP is held, so that TCP connections survive when
//     another node takes it. That node drops what the far side still sends (nostate), until the pod's next packet makes the connection
//     known there. postrouting is the last chain that can see which pod a packet is of: after source NAT only the flow shows it, and nft
//     1.0.6 cannot list the library's expression that would load that. So the first packet of a bound pod that gets no egress IP here is
//     marked, and guard drops it, whatever address others give it. Once the first packet of a flow has passed, the kernel confirms the
//     flow, and its source never changes.
//   - input and forward run after the proxier's filters (0), which reject what is for a Service without endpoints, and before conntrack
//     confirms a flow: the far side's datagram must not make one that has the pod's port.
//   - guard runs after all source NAT, whose hook is at 100. A packet without a flow (INVALID) matches no rule that asks for its flow. So
//     the rules that let packets pass ask for it.
//
// Marks end in marked: the packet that wraps a steered one has the same mark, and would be routed
// into the tunnel again. All rules keep the bits of the mark that are not ours.
//
// # Cost
//
// What a packet of a pod that is not bound costs more than without steering, in nanoseconds, on the machine of
// hack/bench/RESULTS.md. There a node takes 3,050 to forward one, and 4,260 for the first one of a flow:
//
//	                                            first   others
//	tunnel-input                                   40       65
//	prerouting                                    270      135
//	postrouting, by its rules                     120        0
//	guard                                         155      185
//	prerouting, if an egress IP leads away         80       75
//	ip rules, if a node holds such an egress IP   500      490
//
// By the rule, measured with a hundred of each: an empty chain costs 30 to 40, a lookup in a set 65 to 80, the name of an interface 35, and
// any other comparison 11 to 16. A packet of an established flow passes three chains, takes one lookup of its source, and is compared by
// ports, by flow and by marks; none of this can be left to first packets. So rules that see each packet before its route and after its source
// NAT, with one such lookup, cost at least 5% of a bare packet. Between sockets a packet takes three times as long. Of ip rules the first
// one costs all that, for the kernel asks two tables instead of one then, and once more for the source address; where rp_filter is on it
// does the latter anyway.
//
// # What others have
//
// Our ip rules and routes are recognised by their protocol, 77, and the device by its name, VNI and hardware address. Before a node begins
// to steer, [Available] checks that nothing of others is in the way: ip rules or nftables rules with bits of the mark, routes in the
// tables, a device of that name, another VXLAN device with the UDP port. If an ip rule, a route or a device appears later, it is left
// alone, and [Writer.Write] returns an error that says what to do; the table is written all the same. Another VXLAN device with the port is
// such an error when ours has to be made. Package neighbours tells of rules of nftables and iptables that use the mark and appear later. Of
// others' configuration, only settings are changed (type setting): those of interfaces that would drop steered packets, or lead pods past
// their holder, and with a fast path two of conntrack (package fastpath). Their former values are on record in the table, and [Cleanup]
// restores them. Firewalls of others are not changed: an accept in this table would not override a drop in another, so [Warnings] says
// where forwarded packets are dropped by default. kube-proxy's chain KUBE-FORWARD accepts what is established or marked to be masqueraded,
// but no new flow from another node.
//
// # Writing
//
// When the way of an egress IP changes, one element changes for each of its pods here. No rule changes, unless a node becomes a holder or
// ceases to be one. Whenever a rule is added, or an element that leads to a chain, the kernel follows all elements that lead to chains, to
// rule out loops: with verdicts for ways, a move of one address took 3 ms with 10,000 pods. So of the pods' maps only sources has verdicts:
// an egress IP that comes here, or goes, changes its chain. The route and rule of a node's number are made before packets are marked with
// it, and removed when none are. A binding is removed in two steps: first from the sources and the ways, so that the guard drops what its
// pod sends, and from the rest when its flows have been ended. Otherwise nobody would end a flow that began in between, and it would go on
// under the pod's own address. If anything in the table is not as it was written, [Writer.Read] says so and [Writer.Write] repairs it.
//
// The transaction that removes bindings records them ([Writer.Record], [LocalWriter.Write]) in the set removed, which no rule uses. If the
// process dies before it has ended their flows, the next one finds them there ([Stands], [LocalWriter.Standing]). When these flows have
// been ended, this table's record is removed: flows that an unbound pod begins later need not be ended. The record of the smaller table
// stays until its next write: where nothing is steered, no flow under a pod's own address is taken for one of a former binding.
//
// A node that begins to steer makes the table before the device, and enables IPv6 on the device only when the IPv6 table is there: packets
// that arrive without a guard would be masqueraded as this node. A clean-up goes the other way: first nothing is steered any more ([Halt]),
// then the steered connections are ended, and the device is removed before the table. Without a tunnel the table stays until other nodes
// have sent nothing here for two seconds, but for 15 s at most, because they learn of it through the API server.
package steering
