package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Names in the kernel, as those of the barrier are.
const (
	listeningTable = "openshift-egress-heard"
	suspectsSet    = "suspects"
	heardMap       = "heard"
	listeningChain = "prerouting"
)

// listened is how long the sides of connections are listened to, and as long again if some have not been heard. Each side is nudged
// before, and answers one nudge in half a second (net.ipv4.tcp_invalid_ratelimit), that of the end as well.
const listened = 600 * time.Millisecond

// mostSuspects bounds how many connections are listened to at once, and elementsAtOnce what the kernel is told in one message: the
// elements are one netlink attribute, of at most 64 KiB, and those of IPv6 have up to 68 bytes each.
const mostSuspects, elementsAtOnce = 1 << 14, 900

// EndClashes ends those TCP connections under egress IPs that this kernel has picked up for the wrong far side (clash.go), and
// returns what has become of them. Both sides get a reset. It takes one or two seconds if there are any that may be; else it looks
// through the table once. It is to be called again: some sides do not answer at first, and some are close to each other by chance,
// which it notices seconds later.
//
// Where the kernel picks nothing up (net.netfilter.nf_conntrack_tcp_loose is 0), no connection goes on, and the far sides get a reset
// for what they send in the next seconds. The pods get theirs from their own nodes, see [Table.Delete].
func (t *Table) EndClashes(ctx context.Context, egressIPs map[netip.Addr]bool) (done Deleted, err error) {
	err = t.with(ctx, func(k *handle) error {
		if !picksUp() {
			return k.resetStrays(egressIPs)
		}
		suspects, err := k.suspects(ctx, egressIPs)
		if err != nil || len(suspects) == 0 {
			return err
		}
		heard, err := k.listenTo(ctx, suspects)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		now, clashing := time.Now(), pairs{}
		t.sides = suspects.sides(heard, t.sides, now)
		for original, sides := range t.sides {
			if sides.differ(now) {
				clashing[original] = suspects[original]
			}
		}
		done, err = k.reset(ctx, clashing)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("end %s connections that have got the ports of others: %w", t.family, err)
	}
	return done, nil
}

// reset ends those connections that still are what they were, and returns what has become of them.
func (k *handle) reset(ctx context.Context, clashing pairs) (done Deleted, err error) {
	if len(clashing) == 0 {
		return Deleted{}, nil
	}
	look := func(see func(*tracked)) error { return k.lookAt(ctx, everyone, see) }
	done, err = k.judge(ctx, look, func(t *tracked) Verdict {
		if clashing[t.original] != t.replying || !t.mayClash() {
			return Stays
		}
		klog.FromContext(ctx).V(4).Info("Ending a connection that has got the port of another one",
			"source", t.original.source, "destination", t.replying.source, "sourceAddress", t.replying.destination)
		return Ends
	})
	if err != nil {
		return done, err
	}
	wait(ctx) // a side that has answered the other's packets in the half second before has not answered the nudge
	return done, k.nudge(clashing)
}

// pairs are connections: what packets of each far side have, by what those of the source have.
type pairs map[tuple]tuple

// suspects returns those under egress IPs that may be for the wrong far side.
func (k *handle) suspects(ctx context.Context, egressIPs map[netip.Addr]bool) (pairs, error) {
	found := pairs{}
	err := k.lookAt(ctx, everyone, func(t *tracked) {
		if t.mayClash() && egressIPs[t.Wears] && len(found) < mostSuspects {
			found[t.original] = t.replying
		}
	})
	if len(found) == mostSuspects {
		klog.FromContext(ctx).Info("Not all connections are asked whether they have got the ports of others", "ipFamily", k.family, "asked", mostSuspects)
	}
	return found, err
}

// sides are those of the connections of which both were heard now, given what was heard before.
func (p pairs) sides(heard map[tuple]segment, before map[tuple]sides, now time.Time) map[tuple]sides {
	all := map[tuple]sides{}
	for original, replying := range p {
		near, asked := heard[original]
		far, answered := heard[replying]
		if asked && answered {
			all[original] = sides{near, far, now}.after(before[original])
		}
	}
	return all
}

// listenTo nudges both sides of connections, and returns where each was that has sent a packet, by what its packets have.
func (k *handle) listenTo(ctx context.Context, suspects pairs) (heard map[tuple]segment, err error) {
	l, err := k.listen(suspects)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err = k.nudge(suspects); err != nil {
			break
		}
		wait(ctx)
		if heard, err = l.heard(); err != nil || len(heard) == 2*len(suspects) || ctx.Err() != nil {
			break
		}
	}
	return heard, errors.Join(err, l.end())
}

// nudge nudges both sides of connections. One that is not reached may speak by itself.
func (k *handle) nudge(connections pairs) error {
	n, err := openNudger(k.family)
	if err != nil {
		return fmt.Errorf("%w; the node needs the capability CAP_NET_RAW", err)
	}
	defer n.close()
	for original, replying := range connections {
		_ = n.nudge(&ends{original: original, replying: replying}, true)
	}
	return nil
}

// wait waits until a side answers a nudge again.
func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(listened):
	}
}

// listener is an nftables table that notes the first packet of each side of some connections:
//
//	table ip openshift-egress-heard {
//	    set suspects { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; }
//	    map heard    { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service : integer . integer; }
//	    chain prerouting {
//	        type filter hook prerouting priority raw; policy accept;
//	        tcp flags & (syn | rst | ack) == ack  ip saddr . ip daddr . meta l4proto . th sport . th dport @suspects
//	            add @heard { ip saddr . ip daddr . meta l4proto . th sport . th dport : tcp sequence . tcp ackseq }
//	    }
//	}
//
// It is there while somebody listens. A process that is killed meanwhile leaves it, and it is made anew the next time.
type listener struct {
	*barrier
	suspects, told *nftables.Set
}

// listen begins to listen.
func (k *handle) listen(suspects pairs) (*listener, error) {
	if k.listening == nil {
		b, err := connect(k.family, listeningTable, k.room)
		if err != nil {
			return nil, err
		}
		k.listening = b
	}
	b := k.listening
	l := &listener{
		barrier:  b,
		suspects: &nftables.Set{Table: b.table, Name: suspectsSet, KeyType: b.flows.KeyType, Concatenation: true},
		told: &nftables.Set{
			Table: b.table, Name: heardMap, KeyType: b.flows.KeyType, Concatenation: true, IsMap: true, Dynamic: true, Size: 2 * mostSuspects,
			DataType: nftables.MustConcatSetType(nftables.TypeInteger, nftables.TypeInteger),
		},
	}
	elements := make([]nftables.SetElement, 0, 2*len(suspects))
	for original, replying := range suspects {
		elements = append(elements, elementOf(original, true), elementOf(replying, true))
	}
	if err := l.make(k.family, elements); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// make has the kernel make the table, and listen when it is whole.
func (l *listener) make(family kernel.Family, elements []nftables.SetElement) error {
	l.AddTable(l.table)
	l.DelTable(l.table)
	l.AddTable(l.table)
	err := errors.Join(l.AddSet(l.suspects, nil), l.AddSet(l.told, nil))
	for chunk := range slices.Chunk(elements, elementsAtOnce) {
		if err = errors.Join(err, l.SetAddElements(l.suspects, chunk)); err != nil {
			return fmt.Errorf("encode the nftables table %s: %w", listeningTable, err)
		}
		if err := l.commit(); err != nil {
			return err
		}
	}
	l.addRule(family)
	return l.commit()
}

// addRule adds the rule that listens.
func (l *listener) addRule(family kernel.Family) {
	policy := nftables.ChainPolicyAccept
	chain := l.AddChain(&nftables.Chain{
		Name: listeningChain, Table: l.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw, Policy: &policy,
	})
	hosts, ports := keys(family)
	const position = unix.NFT_REG_4 // behind the 44 bytes of a key
	l.AddRule(&nftables.Rule{Table: l.table, Chain: chain, Exprs: slices.Concat(
		compareProtocol(expr.CmpOpEq, unix.IPPROTO_TCP), inTheMiddle(), hosts, ports, in(l.suspects),
		[]expr.Any{
			&expr.Payload{DestRegister: position, Base: expr.PayloadBaseTransportHeader, Offset: 4, Len: 8},
			&expr.Dynset{SrcRegKey: unix.NFT_REG32_00, SrcRegData: position, SetName: l.told.Name, SetID: l.told.ID, Operation: unix.NFT_DYNSET_OP_ADD},
		},
	)})
}

// inTheMiddle lets TCP packets pass that neither begin nor break off a connection.
func inTheMiddle() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 1, Mask: []byte{flagSYN | flagRST | flagACK}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{flagACK}},
	}
}

// heard returns what was heard.
func (l *listener) heard() (map[tuple]segment, error) {
	elements, err := l.GetSetElements(l.told)
	if err != nil {
		return nil, fmt.Errorf("read the map %s of the nftables table %s: %w", heardMap, listeningTable, err)
	}
	heard := make(map[tuple]segment, len(elements))
	for _, e := range elements {
		if t, ok := tupleOf(e.Key); ok && len(e.Val) >= 8 {
			heard[t] = segment{sends: binary.BigEndian.Uint32(e.Val), expects: binary.BigEndian.Uint32(e.Val[4:])}
		}
	}
	return heard, nil
}

// tupleOf is the contrary of elementOf.
func tupleOf(key []byte) (t tuple, ok bool) {
	length := 4
	if len(key) > 2*4+12 {
		length = 16
	}
	if len(key) < 2*length+12 {
		return tuple{}, false
	}
	source, _ := netip.AddrFromSlice(key[:length])
	destination, _ := netip.AddrFromSlice(key[length : 2*length])
	ports := key[2*length+4:]
	return tuple{
		protocol:    key[2*length],
		source:      netip.AddrPortFrom(source, port(ports)),
		destination: netip.AddrPortFrom(destination, port(ports[4:])),
	}, true
}

// end removes the table, if it is there.
func (l *listener) end() error {
	l.AddTable(l.table)
	l.DelTable(l.table)
	return l.commit()
}
