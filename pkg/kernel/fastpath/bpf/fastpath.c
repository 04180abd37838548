// The programs of package fastpath, whose doc.go says what they are for. They decide nothing: conntrack knows the flow, and which
// address it has outside. A packet that they do not take goes on as if they were not there.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define AF_INET 2
#define AF_INET6 10
#define TCP 6
#define UDP 17

// Of linux/bpf.h of newer kernels.
#define TCX_NEXT (-1)
#define TCX_DROP 2
#define PACKET_HOST 0
#define DECAP_L3_IPV4 (1ULL << 7)
#define DECAP_L3_IPV6 (1ULL << 8)
#define FIB_LOOKUP_DIRECT (1U << 0)
#define FIB_LOOKUP_SKIP_NEIGH (1U << 2)

// What is read of the kernel's own structures; where their fields are is found out when a program is loaded.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
union nf_inet_addr { u32 all[4]; };
struct nf_conntrack_man { union nf_inet_addr u3; union { __be16 all; } u; u16 l3num; };
struct nf_conntrack_tuple { struct nf_conntrack_man src; struct { union nf_inet_addr u3; union { __be16 all; } u; } dst; };
struct nf_conntrack_tuple_hash { struct nf_conntrack_tuple tuple; };
struct ip_ct_tcp_state { u8 flags; };
struct ip_ct_tcp { struct ip_ct_tcp_state seen[2]; u8 state, retrans; };
union nf_conntrack_proto { struct ip_ct_tcp tcp; };
struct nf_conn { u32 timeout; struct nf_conntrack_tuple_hash tuplehash[2]; unsigned long status; union nf_conntrack_proto proto; };
struct sk_buff { u8 encapsulation : 1, ip_summed : 2; };
#pragma clang attribute pop

// Bits of nf_conn.status (enum ip_conntrack_status), a state of TCP (enum tcp_conntrack) and bits of what was seen of it
// (IP_CT_TCP_FLAG_…), and a value of sk_buff.ip_summed.
enum { SEEN_REPLY = 1 << 1, ASSURED = 1 << 2, CONFIRMED = 1 << 3, SRC_NAT = 1 << 4, DST_NAT = 1 << 5, SEQ_ADJUST = 1 << 6, DYING = 1 << 9, HELPER = 1 << 13 };
enum { TCP_ESTABLISHED = 3, BE_LIBERAL = 8, MAXACK_SET = 32 };
enum { CHECKSUM_PARTIAL = 3 };
enum { HOLDERS = 64, UNBOUND = 2 * HOLDERS };

struct ct_opts { s32 netns_id, error; u8 l4proto, dir, reserved[2]; };
extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *, struct bpf_sock_tuple *, u32, struct ct_opts *, u32) __ksym;
extern void bpf_ct_release(struct nf_conn *) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *, u32) __ksym;
extern void *bpf_cast_to_kern_ctx(void *) __ksym;

struct ethernet { u8 to[6], from[6]; __be16 type; } __attribute__((packed));
struct ipv4 { u8 version, tos; __be16 length, id, fragment; u8 ttl, protocol; u16 checksum; __be32 from, to; } __attribute__((packed));
struct ipv6 { __be32 flow; __be16 length; u8 protocol, ttl; u32 from[4], to[4]; } __attribute__((packed));
struct ports { __be16 from, to; } __attribute__((packed));
struct tcp { struct ports ports; __be32 seq, ack; u8 offset, flags; } __attribute__((packed));
struct udp { struct ports ports; __be16 length; u16 checksum; } __attribute__((packed));
struct vxlan { __be32 flags, vni; } __attribute__((packed));
// A tunnel's headers, behind that of IP.
struct tunnel { struct udp udp; struct vxlan vxlan; struct ethernet inner; } __attribute__((packed));
struct outer4 { struct ethernet ethernet; struct ipv4 ip; struct tunnel tunnel; } __attribute__((packed));
struct outer6 { struct ethernet ethernet; struct ipv6 ip; struct tunnel tunnel; } __attribute__((packed));

// IPv4 addresses are IPv4-mapped IPv6 addresses (RFC 4291, section 2.5.5.2) in all maps.
struct address { u32 words[4]; };

// What follows is what the process writes; its Go types are made from these. port and vni are in the host's byte order.
struct settings {
	u32 uplink;          // the interface that has this node's address
	u32 mtu;             // of what is sent to other nodes, before it is wrapped
	struct address self; // this node's address; 0 if nothing is wrapped
	u32 vni;
	u32 port;            // the tunnel's
	u32 hz;              // of conntrack's timeouts
	u32 tcp_established; // conntrack's timeout, in seconds
	u32 udp_stream;      // the same
	u32 all;             // what bound pods send that leaves from their own node is taken, too
};
struct pod { u32 interface; u32 protocol; struct address address; };
struct holder {
	struct address node;
	u32 direct;  // it is the next hop
	u32 on_link; // it is the next hop of what is wrapped
	u8 hardware[6], own[6]; // of what is wrapped
};
struct network { u32 bits, v6; struct address address; }; // bits count from v6 on
struct sender { u32 words[4]; };       // its address, or its hardware address
struct hardware { u8 address[6], pad[2]; }; // by which it is known behind the tunnel
struct counter { u64 packets, bytes; };
struct datagrams { struct address from, to; __be16 from_port, to_port; };

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct settings); } current SEC(".maps");
// The pods behind their interfaces, and the place among holders of the node that has their egress IP: a place of nobody if that is this
// node, and unbound if they have none. Each is there for any interface, too, which is 0: answers go by the routes.
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 65536); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct pod); __type(value, u32); } pods SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2 * HOLDERS); __type(key, u32); __type(value, struct holder); } holders SEC(".maps");
// Where packets do not leave from an egress IP: single addresses, and networks.
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 65536); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct address); __type(value, u32); } excluded SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 65536); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct network); __type(value, u32); } exclusions SEC(".maps");
// The addresses that flows get here: egress IPs, with 0, and those that unbound pods share with this node, with the interface that has them.
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 65536); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct address); __type(value, u32); } outsides SEC(".maps");
// The nodes that may send steered packets here.
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16384); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct sender); __type(value, struct hardware); } senders SEC(".maps");
// When a flow of UDP was last left to the slow path, by jiffies. It decides nothing: what is forgotten goes there sooner.
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 65536); __type(key, struct datagrams); __type(value, u64); } renewed SEC(".maps");
enum { SENT, LEFT, OWN, ANSWERS, COUNTERS };
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2 * COUNTERS); __type(key, u32); __type(value, struct counter); } counters SEC(".maps");

// packet is what is known of one.
struct packet {
	u32 at;          // where its IP header is
	u32 l4;          // where that of TCP or UDP is
	u32 length;      // of the largest IP packet that leaves for it, with what is behind it: one of its segments
	u32 protocol;    // TCP or UDP
	u32 v6;
	u32 tos;
	struct address from, to;
	__be16 from_port, to_port;
	u32 summed;      // it has a checksum of TCP or UDP, which covers the packet to its end
};

// flow is what conntrack knows of one: what packets of a direction get in place of their source, or answers in place of their destination.
struct flow { struct address address; __be16 port; u32 snatted; };
// Directions of a flow (enum ip_conntrack_dir).
enum { ORIGINAL, ANSWER };

static __always_inline int is_mapped(struct address *a)
{
	return !a->words[0] && !a->words[1] && a->words[2] == bpf_htonl(0xffff);
}

static __always_inline int is_same(u32 *words, struct address *a)
{
	return words[0] == a->words[0] && words[1] == a->words[1] && words[2] == a->words[2] && words[3] == a->words[3];
}

static __always_inline void map_ipv4(struct address *a, __be32 ip)
{
	a->words[0] = a->words[1] = 0;
	a->words[2] = bpf_htonl(0xffff);
	a->words[3] = ip;
}

// ready returns the settings; 0 as long as there are none, and nothing is to be taken.
static __always_inline struct settings *ready(void)
{
	u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&current, &zero);
	return s && s->uplink ? s : 0;
}

// parse reads the packet that begins at an offset with an Ethernet header. It returns whether it may be taken: it is of TCP or UDP, goes
// on (an ACK without SYN, FIN or RST), has neither options nor extensions, is no fragment, and may be forwarded twice.
//
// No more than headers is pulled to the front of the packet: the kernel joins those of a stream when nothing else is there.
static __always_inline int parse(struct __sk_buff *skb, u32 at, __be16 type, struct packet *p)
{
	const u64 headers = at + sizeof(struct ethernet) + (type == bpf_htons(ETH_P_IP) ? sizeof(struct ipv4) : sizeof(struct ipv6)) + 20;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + headers > end) {
		bpf_skb_pull_data(skb, headers < skb->len ? headers : skb->len);
		data = (void *)(long)skb->data, end = (void *)(long)skb->data_end;
	}
	p->at = at + sizeof(struct ethernet);
	struct ipv4 *v4 = data + p->at;
	if ((void *)(v4 + 1) > end)
		return 0;
	u32 segment = skb->gso_size;
	if (type == bpf_htons(ETH_P_IP)) {
		if (v4->version != 0x45 || v4->fragment & bpf_htons(0x3fff))
			return 0;
		p->v6 = 0;
		p->protocol = v4->protocol;
		p->tos = v4->tos;
		if (v4->ttl < 3)
			return 0;
		p->length = bpf_ntohs(v4->length);
		if (!p->length || p->at + p->length > skb->len)
			return 0;
		map_ipv4(&p->from, v4->from);
		map_ipv4(&p->to, v4->to);
		p->l4 = p->at + sizeof(*v4);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6 *v6 = data + p->at;
		if ((void *)(v6 + 1) > end)
			return 0;
		p->v6 = 1;
		p->protocol = v6->protocol;
		p->tos = (bpf_ntohl(v6->flow) >> 20) & 0xff;
		if (v6->ttl < 3)
			return 0;
		p->length = bpf_ntohs(v6->length) + sizeof(*v6);
		if (!v6->length || p->at + p->length > skb->len)
			return 0; // a jumbogram, for one
		__builtin_memcpy(&p->from, v6->from, sizeof(p->from));
		__builtin_memcpy(&p->to, v6->to, sizeof(p->to));
		if (is_mapped(&p->from) || is_mapped(&p->to))
			return 0; // it would pass for one of IPv4
		p->l4 = p->at + sizeof(*v6);
	} else {
		return 0;
	}
	u32 header = sizeof(struct udp);
	if (p->protocol == TCP) {
		struct tcp *tcp = data + p->l4;
		if ((void *)(tcp + 1) > end || (tcp->flags & 0x17) != 0x10)
			return 0;
		header = (tcp->offset >> 4) * 4;
		if (header < 20 || p->l4 + header > p->at + p->length)
			return 0;
	} else if (p->protocol != UDP) {
		return 0;
	}
	struct udp *udp = data + p->l4; // or the beginning of TCP's
	if ((void *)(udp + 1) > end)
		return 0;
	p->from_port = udp->ports.from;
	p->to_port = udp->ports.to;
	p->summed = p->at + p->length == skb->len && (p->protocol == TCP || (udp->checksum && udp->length == bpf_htons(skb->len - p->l4)));
	p->length = segment ? p->l4 - p->at + header + segment : skb->len - p->at;
	return 1;
}

// A connection of which conntrack remembers less than this, in seconds, has been reset, or is to be forgotten for another reason.
#define TCP_ENDS 120
// So often a segment is repeated until conntrack remembers its connection for minutes alone: the default of nf_conntrack_tcp_max_retrans.
#define TCP_RETRANS 3

// lookup asks conntrack for the flow of a packet, and returns whether the packet may be taken: the flow is established, and the packet is
// of this direction. A flow of UDP needs a packet that takes the slow path before conntrack forgets it: that renews all that is
// remembered of it. Of one of TCP the timeout is renewed here, for there may be five days to it. A connection that was taken up in its middle is for
// package conntrack to judge, until conntrack has seen what the far side acknowledges: it may have another one's port.
static __always_inline int lookup(struct __sk_buff *skb, struct settings *s, struct packet *p, u32 direction, struct flow *f)
{
	struct bpf_sock_tuple tuple = {};
	struct ct_opts opts = { .netns_id = -1, .l4proto = p->protocol };
	struct nf_conn *ct;
	if (p->v6) {
		__builtin_memcpy(tuple.ipv6.saddr, &p->from, sizeof(p->from));
		__builtin_memcpy(tuple.ipv6.daddr, &p->to, sizeof(p->to));
		tuple.ipv6.sport = p->from_port;
		tuple.ipv6.dport = p->to_port;
		ct = bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv6), &opts, sizeof(opts));
	} else {
		tuple.ipv4.saddr = p->from.words[3];
		tuple.ipv4.daddr = p->to.words[3];
		tuple.ipv4.sport = p->from_port;
		tuple.ipv4.dport = p->to_port;
		ct = bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
	}
	if (!ct)
		return 0;
	u32 status = ct->status;
	s32 left = ct->timeout - (u32)bpf_jiffies64();
	int taken = opts.dir == direction && (status & (SEEN_REPLY | ASSURED | CONFIRMED | DST_NAT | SEQ_ADJUST | DYING | HELPER)) == (SEEN_REPLY | ASSURED | CONFIRMED);
	if (p->protocol == TCP) {
		const u8 flags = ct->proto.tcp.seen[0].flags, answered = ct->proto.tcp.seen[1].flags;
		taken = taken && ct->proto.tcp.state == TCP_ESTABLISHED && ct->proto.tcp.retrans < TCP_RETRANS && left > (s32)(TCP_ENDS * s->hz) &&
			(!(flags & BE_LIBERAL) || answered & MAXACK_SET);
		if (taken && left < (s32)((s->tcp_established - 1) * s->hz))
			bpf_ct_change_timeout(ct, s->tcp_established * 1000);
	} else {
		taken = taken && left > (s32)(s->udp_stream * s->hz / 2);
	}
	f->snatted = status & SRC_NAT;
	union nf_inet_addr *other;
	if (direction == ORIGINAL) {
		other = &ct->tuplehash[1].tuple.dst.u3;
		f->port = ct->tuplehash[1].tuple.dst.u.all;
	} else {
		other = &ct->tuplehash[0].tuple.src.u3;
		f->port = ct->tuplehash[0].tuple.src.u.all;
	}
	if (p->v6) {
#pragma unroll
		for (int i = 0; i < 4; i++)
			f->address.words[i] = other->all[i];
	} else {
		map_ipv4(&f->address, other->all[0]);
	}
	bpf_ct_release(ct);
	return taken;
}

static __always_inline void count(struct __sk_buff *skb, struct packet *p, u32 what)
{
	u32 key = 2 * what + p->v6;
	struct counter *c = bpf_map_lookup_elem(&counters, &key);
	if (!c)
		return;
	c->packets += skb->gso_segs ? skb->gso_segs : 1;
	c->bytes += skb->len;
}

// add is one's complement addition (RFC 1071).
static __always_inline u16 add(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

// hop takes one from the TTL of the packet at an offset, and writes into its header another source address, or of an answer another
// destination, if it is given one. It returns 0 if the packet is not there.
static __always_inline int hop(struct __sk_buff *skb, struct packet *p, u32 at, u32 direction, struct address *other)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (p->v6) {
		struct ipv6 *v6 = data + at;
		if ((void *)(v6 + 1) > end)
			return 0;
		const u16 before = *(u16 *)&v6->protocol;
		v6->ttl--;
		const u16 now = *(u16 *)&v6->protocol;
		if (other)
			__builtin_memcpy(direction == ORIGINAL ? v6->from : v6->to, other, sizeof(*other));
		bpf_csum_update(skb, (u16)~before + now); // IPv4's header has a checksum, which makes up for that
		return 1;
	}
	struct ipv4 *v4 = data + at;
	if ((void *)(v4 + 1) > end)
		return 0;
	u32 sum = (u16)~v4->checksum + (u16)~*(u16 *)&v4->ttl;
	v4->ttl--;
	sum += *(u16 *)&v4->ttl;
	if (other) {
		const u32 before = ~(direction == ORIGINAL ? v4->from : v4->to), now = other->words[3];
		sum += (before & 0xffff) + (before >> 16) + (now & 0xffff) + (now >> 16);
		if (direction == ORIGINAL)
			v4->from = now;
		else
			v4->to = now;
	}
	v4->checksum = ~add(sum);
	return 1;
}

// redirect sends a packet by the interface and to the next hop that were looked up.
static __always_inline int redirect(struct bpf_fib_lookup *to)
{
	struct bpf_redir_neigh next = { .nh_family = to->family };
	__builtin_memcpy(next.ipv6_nh, to->ipv6_dst, sizeof(next.ipv6_nh));
	return bpf_redirect_neigh(to->ifindex, &next, sizeof(next), 0);
}

// sum_of adds up so many bytes, an even number, as words of 16 bits.
static __always_inline u32 sum_of(void *from, u32 bytes)
{
	u16 *words = from;
	u32 sum = 0;
#pragma unroll
	for (u32 i = 0; i < bytes / 2; i++)
		sum += words[i];
	return sum;
}

#define ENCAP (BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | BPF_F_ADJ_ROOM_ENCAP_L2(sizeof(struct ethernet)) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH)

// tunnel_ecn is what a tunnel's IP header says of congestion.
static __always_inline u8 tunnel_ecn(struct packet *p) { return (p->tos & 3) == 3 ? 2 : p->tos & 3; }

// tunnel_of returns the headers of a tunnel, behind that of IP, around a packet of so many bytes.
static __always_inline struct tunnel tunnel_of(struct settings *s, struct packet *p, struct holder *h, u32 length)
{
	const u32 hash = (u32)p->from_port ^ p->to_port ^ p->to.words[3] ^ p->to.words[3] >> 16 ^ p->from.words[3] >> 16;
	struct tunnel t = {
		.udp = { .ports = { bpf_htons(0xc000 | (hash & 0x3fff)), bpf_htons(s->port) }, .length = bpf_htons(sizeof(t) + length) },
		.vxlan = { bpf_htonl(0x08000000), bpf_htonl(s->vni << 8) },
		.inner = { .type = p->v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP) },
	};
	__builtin_memcpy(t.inner.to, h->hardware, sizeof(t.inner.to));
	__builtin_memcpy(t.inner.from, h->own, sizeof(t.inner.from));
	return t;
}

// wrap4 puts the headers of a tunnel between IPv4 addresses around a packet of so many bytes. It returns whether it could, or TCX_DROP.
static __always_inline int wrap4(struct __sk_buff *skb, struct settings *s, struct packet *p, struct holder *h, u32 length)
{
	if (bpf_skb_adjust_room(skb, sizeof(struct outer4) - sizeof(struct ethernet), BPF_ADJ_ROOM_MAC, ENCAP | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4))
		return 0;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct outer4 *o = data;
	if ((void *)(o + 1) > end)
		return TCX_DROP;
	o->ethernet.type = bpf_htons(ETH_P_IP);
	o->ip = (struct ipv4){ .version = 0x45, .tos = tunnel_ecn(p), .length = bpf_htons(sizeof(o->ip) + sizeof(o->tunnel) + length), .id = bpf_get_prandom_u32(), .ttl = 64,
		.protocol = UDP, .from = s->self.words[3], .to = h->node.words[3] };
	o->ip.checksum = ~add(sum_of(&o->ip, sizeof(o->ip)));
	o->tunnel = tunnel_of(s, p, h, length);
	return hop(skb, p, sizeof(*o), ORIGINAL, 0) ? 1 : TCX_DROP;
}

// wrap6 is wrap4 between IPv6 addresses, where the tunnel's UDP has a checksum (RFC 8200, section 8.1). The packet's own checksum makes all behind
// its IP header add up to the complement of its pseudo header, so that nothing behind it need be read (the kernel calls that local
// checksum offload).
static __always_inline int wrap6(struct __sk_buff *skb, struct settings *s, struct packet *p, struct holder *h, u32 length)
{
	if (bpf_skb_adjust_room(skb, sizeof(struct outer6) - sizeof(struct ethernet), BPF_ADJ_ROOM_MAC, ENCAP | BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return 0;
	if (!hop(skb, p, sizeof(struct outer6), ORIGINAL, 0))
		return TCX_DROP;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct outer6 *o = data;
	struct ipv4 *v4 = (void *)(o + 1);
	struct ipv6 *v6 = (void *)(o + 1);
	if ((void *)(o + 1) > end)
		return TCX_DROP;
	o->ethernet.type = bpf_htons(ETH_P_IPV6);
	o->ip = (struct ipv6){ .flow = bpf_htonl(6 << 28 | (u32)tunnel_ecn(p) << 20), .length = bpf_htons(sizeof(o->tunnel) + length), .protocol = UDP, .ttl = 64 };
	__builtin_memcpy(o->ip.from, &s->self, sizeof(o->ip.from));
	__builtin_memcpy(o->ip.to, &h->node, sizeof(o->ip.to));
	o->tunnel = tunnel_of(s, p, h, length);
	u32 sum = sum_of(o->ip.from, 2 * sizeof(o->ip.from)) + o->ip.length + bpf_htons(UDP) + sum_of(&o->tunnel, sizeof(o->tunnel));
	if (p->v6) {
		if ((void *)(v6 + 1) > end)
			return TCX_DROP;
		sum += sum_of(v6, sizeof(*v6)) + (u16)~add(sum_of(v6->from, 2 * sizeof(v6->from)) + bpf_htons(p->protocol) + bpf_htons(length - sizeof(*v6)));
	} else {
		if ((void *)(v4 + 1) > end)
			return TCX_DROP;
		sum += sum_of(v4, sizeof(*v4)) + (u16)~add(sum_of(&v4->from, 2 * sizeof(v4->from)) + bpf_htons(p->protocol) + bpf_htons(length - sizeof(*v4)));
	}
	const u16 checksum = ~add(sum);
	o->tunnel.udp.checksum = checksum ? checksum : 0xffff;
	return 1;
}

// wrap sends a packet to its holder in a tunnel, as the kernel's VXLAN does (RFC 7348; RFC 6040 for ECN).
static __always_inline int wrap(struct __sk_buff *skb, struct settings *s, struct packet *p, struct holder *h)
{
	const u32 length = skb->len - sizeof(struct ethernet), over_ipv4 = is_mapped(&s->self);
	struct bpf_fib_lookup to = { .family = over_ipv4 ? AF_INET : AF_INET6, .l4_protocol = UDP, .ifindex = skb->ifindex };
	if (over_ipv4) {
		to.ipv4_src = s->self.words[3];
		to.ipv4_dst = h->node.words[3];
	} else {
		__builtin_memcpy(to.ipv6_src, &s->self, sizeof(s->self));
		__builtin_memcpy(to.ipv6_dst, &h->node, sizeof(h->node));
	}
	if (!(s->self.words[0] | s->self.words[3]) || p->length > s->mtu || (!over_ipv4 && (skb->gso_size || !p->summed)))
		return TCX_NEXT;
	if (h->on_link)
		to.ifindex = s->uplink;
	else if (bpf_fib_lookup(skb, &to, sizeof(to), FIB_LOOKUP_DIRECT | FIB_LOOKUP_SKIP_NEIGH) || to.ifindex != s->uplink)
		return TCX_NEXT;
	const int wrapped = over_ipv4 ? wrap4(skb, s, p, h, length) : wrap6(skb, s, p, h, length);
	if (wrapped != 1)
		return wrapped ? wrapped : TCX_NEXT;
	count(skb, p, SENT);
	return redirect(&to);
}

// go_by has what the routes say: where a packet goes that comes by the same interface.
static __always_inline int go_by(struct __sk_buff *skb, struct packet *p, struct address *from, __be16 from_port, struct address *to, __be16 to_port, struct bpf_fib_lookup *by)
{
	*by = (struct bpf_fib_lookup){ .family = p->v6 ? AF_INET6 : AF_INET, .l4_protocol = p->protocol, .ifindex = skb->ifindex, .tot_len = p->length,
		.sport = from_port, .dport = to_port };
	if (p->v6) {
		__builtin_memcpy(by->ipv6_src, from, sizeof(*from));
		__builtin_memcpy(by->ipv6_dst, to, sizeof(*to));
	} else {
		by->ipv4_src = from->words[3];
		by->ipv4_dst = to->words[3];
	}
	return !bpf_fib_lookup(skb, by, sizeof(*by), FIB_LOOKUP_SKIP_NEIGH);
}

// forward gives a packet the source that its flow has, or an answer the destination, and sends it on by the routes. strip is what is in front
// of it, and only the interface that it has to leave by, if it is not 0.
static __always_inline int forward(struct __sk_buff *skb, struct packet *p, struct flow *f, u32 direction, u32 only, u32 strip, u32 what)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	const u32 partial = (strip || p->v6) && BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL;
	if (strip && (skb->gso_size || (partial && BPF_CORE_READ_BITFIELD(kernel, encapsulation))))
		return TCX_NEXT; // the kernel alone can tell an interface that what is to be summed, or cut, is not wrapped any more
	struct bpf_fib_lookup to;
	struct address *destination = direction == ORIGINAL ? &p->to : &f->address, *before = direction == ORIGINAL ? &p->from : &p->to;
	const __be16 port = direction == ORIGINAL ? p->from_port : p->to_port;
	if (!go_by(skb, p, &p->from, p->from_port, destination, p->to_port, &to) || (only && to.ifindex != only))
		return TCX_NEXT;
	if (strip && bpf_skb_adjust_room(skb, -(s32)strip, BPF_ADJ_ROOM_MAC, p->v6 ? DECAP_L3_IPV6 : DECAP_L3_IPV4))
		return TCX_NEXT;
	const u32 l4 = sizeof(struct ethernet) + (p->v6 ? sizeof(struct ipv6) : sizeof(struct ipv4)), sum = l4 + (p->protocol == TCP ? 16 : 6);
	// In IPv6 the addresses are summed with nothing else: only if the sum is that of the addresses alone does the kernel have to know.
	const u32 flags = (p->v6 && !partial ? 0 : BPF_F_PSEUDO_HDR) | (p->protocol == UDP ? BPF_F_MARK_MANGLED_0 : 0);
	if (p->v6) {
#pragma unroll
		for (int i = 0; i < 3; i++)
			bpf_l4_csum_replace(skb, sum, before->words[i], f->address.words[i], flags | 4);
	}
	bpf_l4_csum_replace(skb, sum, before->words[3], f->address.words[3], flags | 4);
	if (f->port != port)
		bpf_l4_csum_replace(skb, sum, port, f->port, (flags & BPF_F_MARK_MANGLED_0) | 2);
	if (!hop(skb, p, sizeof(struct ethernet), direction, &f->address))
		return TCX_DROP;
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ports *ports = data + l4;
	if ((void *)(ports + 1) > end)
		return TCX_DROP;
	if (direction == ORIGINAL)
		ports->from = f->port;
	else
		ports->to = f->port;
	count(skb, p, what);
	return redirect(&to);
}

// leave sends out a packet of a pod, here or on another node, from the address that its flow has. That of an unbound pod is one of the interface
// by which it leaves: the kernel ends masqueraded flows that would go by another one, too.
static __always_inline int leave(struct __sk_buff *skb, struct settings *s, struct packet *p, u32 unbound, u32 strip, u32 what)
{
	struct flow f;
	if (!lookup(skb, s, p, ORIGINAL, &f) || !f.snatted)
		return TCX_NEXT;
	u32 *shared = bpf_map_lookup_elem(&outsides, &f.address);
	if (!shared || !*shared != !unbound)
		return TCX_NEXT;
	return forward(skb, p, &f, ORIGINAL, *shared, strip, what);
}

// is_excluded tells whether what is for an address leaves from no egress IP.
static __always_inline int is_excluded(struct packet *p, struct address *address)
{
	struct network network = { .bits = 32 + 128, .v6 = p->v6, .address = *address };
	return bpf_map_lookup_elem(&exclusions, &network) || bpf_map_lookup_elem(&excluded, address);
}

// holder_of returns the node that a place among holders is of; 0 if it is of none.
static __always_inline struct holder *holder_of(u32 place)
{
	struct holder *h = place & (HOLDERS - 1) ? bpf_map_lookup_elem(&holders, &place) : 0;
	return h && (h->node.words[0] | h->node.words[3]) ? h : 0;
}

// answer sends on an answer to a pod's flow. One to an address that flows get here goes to the pod, wherever that is; one to an egress IP only
// to another node unless all is taken; and it has to come by the interface that leads to the far side, as with a strict rp_filter. One to a pod of this node has
// been through the node that its flow leaves from.
static __always_inline int answer(struct __sk_buff *skb, struct settings *s, struct packet *p)
{
	struct flow f;
	struct pod pod = { .protocol = p->protocol, .address = p->to };
	u32 *shared = bpf_map_lookup_elem(&outsides, &p->to), *number;
	if (!shared) {
		number = bpf_map_lookup_elem(&pods, &pod);
		struct holder *h = number ? holder_of(*number) : 0;
		if (!h || skb->ifindex != s->uplink || is_excluded(p, &p->from) || !lookup(skb, s, p, ANSWER, &f) || f.snatted)
			return TCX_NEXT;
		return forward(skb, p, &f, ANSWER, 0, 0, ANSWERS);
	}
	if (*shared && is_excluded(p, &p->from)) // of what is for this node itself most is
		return TCX_NEXT;
	struct bpf_fib_lookup back;
	if (!lookup(skb, s, p, ANSWER, &f) || !f.snatted || !go_by(skb, p, &f.address, f.port, &p->from, p->from_port, &back) || back.ifindex != skb->ifindex)
		return TCX_NEXT;
	if (*shared) {
		pod.address = f.address;
		number = bpf_map_lookup_elem(&pods, &pod);
		if (!number || *number != UNBOUND)
			return TCX_NEXT;
	}
	return forward(skb, p, &f, ANSWER, *shared || s->all ? 0 : s->uplink, 0, ANSWERS);
}

// renews returns whether a datagram has to take the slow path, so that package steering does not forget its flow.
static __always_inline int renews(struct settings *s, struct packet *p)
{
	struct datagrams key = { .from = p->from, .to = p->to, .from_port = p->from_port, .to_port = p->to_port };
	const u64 now = bpf_jiffies64();
	u64 *last = bpf_map_lookup_elem(&renewed, &key);
	if (last && now - *last < 60 * s->hz)
		return 0;
	bpf_map_update_elem(&renewed, &key, &now, BPF_ANY);
	return 1;
}

// from_pod is at the interface of a pod. It sends what goes on to the node that holds the pod's egress IP, or out.
SEC("tcx/ingress")
int from_pod(struct __sk_buff *skb)
{
	struct packet p;
	struct flow f;
	struct settings *s = ready();
	if (!s || skb->vlan_present || !parse(skb, 0, skb->protocol, &p))
		return TCX_NEXT;
	struct pod pod = { .interface = skb->ifindex, .protocol = p.protocol, .address = p.from };
	u32 *number = bpf_map_lookup_elem(&pods, &pod);
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	if (!number || (skb->gso_size && BPF_CORE_READ_BITFIELD(kernel, encapsulation))) // a tunnel of the pod's own
		return TCX_NEXT;
	const u32 away = *number & (HOLDERS - 1), unbound = *number & UNBOUND;
	if ((away || unbound) && is_excluded(&p, &p.to)) // what pods send to each other's addresses, for one, costs no look at conntrack
		return TCX_NEXT;
	if (!away)
		return leave(skb, s, &p, unbound, 0, OWN);
	struct holder *h = holder_of(*number);
	if (!h || !lookup(skb, s, &p, ORIGINAL, &f) || f.snatted ||
	    (p.protocol == UDP && renews(s, &p)))
		return TCX_NEXT;
	if (!h->direct)
		return wrap(skb, s, &p, h);
	struct bpf_fib_lookup next = { .family = p.v6 ? AF_INET6 : AF_INET, .ifindex = s->uplink };
	if (p.v6)
		__builtin_memcpy(next.ipv6_dst, &h->node, sizeof(h->node));
	else
		next.ipv4_dst = h->node.words[3];
	if (p.length > s->mtu || !hop(skb, &p, sizeof(struct ethernet), ORIGINAL, 0))
		return TCX_NEXT;
	count(skb, &p, SENT);
	return redirect(&next);
}

// from_outside is where answers come that other nodes do not send.
SEC("tcx/ingress")
int from_outside(struct __sk_buff *skb)
{
	struct settings *s = ready();
	struct packet p;
	if (!s || skb->pkt_type != PACKET_HOST || skb->vlan_present || !parse(skb, 0, skb->protocol, &p))
		return TCX_NEXT;
	return answer(skb, s, &p);
}

// wrapped is what a packet of a tunnel says of where it is from.
struct wrapped { struct address node; u8 hardware[6]; __be16 type; };

// unwrap reads that, and returns whether it is of this node's tunnel. What the tunnel says of congestion, the kernel tells the packet inside.
static __always_inline int unwrap(struct settings *s, struct tunnel *t, u32 ecn, struct wrapped *w)
{
	__builtin_memcpy(w->hardware, t->inner.from, sizeof(w->hardware));
	w->type = t->inner.type;
	return ecn != 3 && t->vxlan.flags == bpf_htonl(0x08000000) && t->vxlan.vni == bpf_htonl(s->vni << 8);
}

// is_known tells whether it is from one of the nodes.
static __always_inline int is_known(struct wrapped *w)
{
	struct hardware *h = bpf_map_lookup_elem(&senders, &w->node);
	return h && *(u32 *)h->address == *(u32 *)w->hardware && *(u16 *)&h->address[4] == *(u16 *)&w->hardware[4];
}

// from_node is at the uplink of a node with a tunnel. It takes what another node has wrapped for this one, and answers.
SEC("tcx/ingress")
int from_node(struct __sk_buff *skb)
{
	struct settings *s = ready();
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct outer4 *o4 = data;
	struct outer6 *o6 = data;
	struct packet p;
	struct wrapped w = { .type = skb->protocol };
	u32 wrapping = 0;
	if (!s || skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return TCX_NEXT;
	const u32 over_ipv4 = is_mapped(&s->self);
	if (over_ipv4 && skb->protocol == bpf_htons(ETH_P_IP) && (void *)(o4 + 1) <= end && o4->ip.version == 0x45 && o4->ip.protocol == UDP &&
	    o4->tunnel.udp.ports.to == bpf_htons(s->port) && o4->ip.to == s->self.words[3]) {
		wrapping = sizeof(*o4) - sizeof(struct ethernet);
		map_ipv4(&w.node, o4->ip.from);
		if (o4->ip.fragment & bpf_htons(0x3fff) || o4->tunnel.udp.checksum || !unwrap(s, &o4->tunnel, o4->ip.tos & 3, &w))
			return TCX_NEXT;
	} else if (!over_ipv4 && skb->protocol == bpf_htons(ETH_P_IPV6) && (void *)(o6 + 1) <= end && bpf_ntohl(o6->ip.flow) >> 28 == 6 && o6->ip.protocol == UDP &&
		   o6->tunnel.udp.ports.to == bpf_htons(s->port) && is_same(o6->ip.to, &s->self)) {
		wrapping = sizeof(*o6) - sizeof(struct ethernet);
		__builtin_memcpy(&w.node, o6->ip.from, sizeof(w.node));
		if (!o6->tunnel.udp.checksum || !unwrap(s, &o6->tunnel, bpf_ntohl(o6->ip.flow) >> 20 & 3, &w))
			return TCX_NEXT;
	}
	if (!parse(skb, wrapping, w.type, &p))
		return TCX_NEXT;
	if (!wrapping)
		return answer(skb, s, &p);
	return is_known(&w) ? leave(skb, s, &p, 0, wrapping, LEFT) : TCX_NEXT;
}

// from_tunnel is behind the kernel's tunnel, and takes what from_node leaves to that. Whatever comes here is from another node.
SEC("tcx/ingress")
int from_tunnel(struct __sk_buff *skb)
{
	struct settings *s = ready();
	struct packet p;
	if (!s || skb->vlan_present || !parse(skb, 0, skb->protocol, &p))
		return TCX_NEXT;
	return leave(skb, s, &p, 0, 0, LEFT);
}

// from_neighbour is at the uplink of a node without a tunnel. It takes what another node has sent here, and answers.
SEC("tcx/ingress")
int from_neighbour(struct __sk_buff *skb)
{
	struct settings *s = ready();
	struct packet p;
	if (!s || skb->pkt_type != PACKET_HOST || skb->vlan_present || !parse(skb, 0, skb->protocol, &p))
		return TCX_NEXT;
	const int answered = answer(skb, s, &p);
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethernet *e = data;
	if (answered != TCX_NEXT || (void *)(e + 1) > end)
		return answered;
	struct sender from = {};
	__builtin_memcpy(&from, e->from, sizeof(e->from));
	return bpf_map_lookup_elem(&senders, &from) ? leave(skb, s, &p, 0, 0, LEFT) : TCX_NEXT;
}

char _license[] SEC("license") = "GPL";
