package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/wake"
)

// Names in the kernel, as those of the barrier are.
const (
	listeningTable = "openshift-egress-heard"
	suspectsSet    = "suspects"
	heardMap       = "heard"
	notesSet       = "notes"
	listeningChain = "prerouting"
)

// listened is how long the sides of connections are listened to, and as long again if some have not been heard. Each side is nudged
// before, and at the end, and answers again after that time.
const listened = answersAgain

// mostSuspects bounds how many connections are listened to at once, and elementsAtOnce what the kernel is told in one message: the
// elements are one netlink attribute, of at most 64 KiB, and those of IPv6 have up to 68 bytes each.
const mostSuspects, elementsAtOnce = 1 << 14, 900

// confirmations is how often at most the sides of doubtful connections are listened to again, mostDoubtful of how many connections at
// once, and mostNotes how many packets are noted then: 8 MiB for a second or two.
const confirmations, mostDoubtful, mostNotes = 4, 1 << 12, 1 << 16

// EndClashes ends those TCP connections under egress IPs that this kernel has picked up for the wrong far side (clash.go), and
// returns what has become of them. Both sides get a reset. It takes two or three seconds if there are any, and some
// more if strangers send packets under the addresses of far sides; else it looks through the table once. It is to be called again: some
// sides do not answer at first, and some are close to each other by chance, which it notices seconds later.
//
// Where the kernel picks nothing up (net.netfilter.nf_conntrack_tcp_loose is 0), no connection goes on, and the far sides get a reset
// for what they send in the seconds after the address has come: later, what belongs to no connection may be a late packet of one that goes
// on. The pods get theirs from their own nodes, see [Table.Delete]. egressIPs says when each has come;
// zero: nobody has seen it come.
//
// Nobody else has a port of a pod's block, so connections of the blocks' pods from there are not asked, unless source NAT has chosen the
// port.
func (t *Table) EndClashes(ctx context.Context, egressIPs map[netip.Addr]time.Time, blocks []kernel.Block) (done Deleted, err error) {
	owned := ownersOf(blocks)
	err = t.with(ctx, func(k *handle) error {
		if !picksUp() {
			return k.resetStrays(cameIn(egressIPs, time.Now().Add(-strayResets)))
		}
		suspects, err := k.suspects(ctx, func(t *tracked) bool {
			_, came := egressIPs[t.SeenAs]
			return came && !t.owned(owned)
		})
		if err != nil || len(suspects) == 0 {
			return err
		}
		heard, err := k.listenTo(ctx, suspects, firstPackets)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		now := time.Now()
		t.sides = suspects.sides(heard, t.sides, now)
		clashing, err := k.confirm(ctx, suspects, t.sides, now)
		if err != nil {
			return err
		}
		done, err = k.reset(ctx, clashing)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("end %s connections that have got the ports of others: %w", t.family, err)
	}
	return done, nil
}

// strayResets is how long after an address has come its far sides begin to get resets for what belongs to no connection.
const strayResets = 6 * time.Second

// cameIn returns the addresses that have come since then.
func cameIn(addresses map[netip.Addr]time.Time, since time.Time) (recent []netip.Addr) {
	for ip, came := range addresses {
		if came.After(since) {
			recent = append(recent, ip)
		}
	}
	return recent
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
	wake.Sleep(ctx.Done(), listened) // a side that has answered the other's packets in the half second before has not answered the nudge
	return done, k.nudge(clashing)
}

// pairs are connections: what packets of each far side have, by what those of the source have.
type pairs map[tuple]tuple

// suspects returns those of the connections in question that may be for the wrong far side.
func (k *handle) suspects(ctx context.Context, inQuestion func(*tracked) bool) (pairs, error) {
	found := pairs{}
	err := k.lookAt(ctx, everyone, func(t *tracked) {
		if t.mayClash() && inQuestion(t) && len(found) < mostSuspects {
			found[t.original] = t.replying
		}
	})
	if len(found) == mostSuspects {
		klog.FromContext(ctx).Info("Too many connections may have clashing ports; only some of them are checked", "ipFamily", k.family, "asked", mostSuspects)
	}
	return found, err
}

// sides are those of the connections of which both were heard now, given what was heard before.
func (p pairs) sides(heard hearing, before map[tuple]sides, now time.Time) map[tuple]sides {
	all := map[tuple]sides{}
	for original, replying := range p {
		if near, far := heard[original], heard[replying]; len(near) > 0 && len(far) > 0 {
			all[original] = sides{near[0], far[0], now}.after(before[original])
		}
	}
	return all
}

// hearing is where sides of connections were in a while, by what their packets have.
type hearing map[tuple][]segment

// confirm returns those of the suspects that clash, not by the first packet of each side alone.
func (k *handle) confirm(ctx context.Context, suspects pairs, first map[tuple]sides, now time.Time) (clashing pairs, err error) {
	var doubtful []tuple
	for original, sides := range first {
		if sides.differ(now) {
			doubtful = append(doubtful, original)
		}
	}
	clashing = pairs{}
	for originals := range slices.Chunk(doubtful, mostDoubtful) {
		h := hearings{first: first, left: pairs{}, clashing: clashing}
		for _, original := range originals {
			h.left[original] = suspects[original]
		}
		// More than one hearing may be needed: a side answers strangers' packets as well, and then not the nudge for half a second.
		for range confirmations {
			heard, err := k.listenTo(ctx, h.left, allPackets)
			if err != nil || ctx.Err() != nil {
				return nil, errors.Join(err, context.Cause(ctx))
			}
			if h.conclude(heard); len(h.left) == 0 {
				break
			}
		}
	}
	return clashing, nil
}

// hearings are what was heard of doubtful connections, one hearing after the other.
type hearings struct {
	// first is what was heard before.
	first map[tuple]sides
	heard []hearing
	// left are the connections that are undecided, clashing those that clash.
	left, clashing pairs
}

// conclude adds a hearing, and decides about connections.
func (h *hearings) conclude(heard hearing) {
	h.heard = append(h.heard, heard)
	maps.DeleteFunc(h.left, func(original, replying tuple) bool {
		first := h.first[original]
		found := conclude(h.of(original, first.near), h.of(replying, first.far))
		if found == twoConnections {
			h.clashing[original] = replying
		}
		return found != undecided
	})
}

// of returns what each hearing says of a side, the first one at the front.
func (h *hearings) of(side tuple, first segment) [][]segment {
	segments := [][]segment{{first}}
	for _, heard := range h.heard {
		segments = append(segments, heard[side])
	}
	return segments
}

// listenTo nudges both sides of connections, and returns where each was that has sent a packet. It returns nothing if
// there were more packets than it can note: what the sides have sent may be missing.
func (k *handle) listenTo(ctx context.Context, suspects pairs, what packets) (heard hearing, err error) {
	l, err := k.listen(suspects, what)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err = k.nudge(suspects); err != nil {
			break
		}
		wake.Sleep(ctx.Done(), listened)
		if heard, err = l.heard(); err != nil || len(heard) == 2*len(suspects) || ctx.Err() != nil {
			break
		}
	}
	if err == nil && heard == nil {
		klog.FromContext(ctx).Info("Cannot tell which connections have clashing ports: too many packets arrive from the addresses of their far sides. Will look again",
			"ipFamily", k.family, "connections", len(suspects))
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
		_ = n.nudge(original)
		_ = n.nudge(replying)
	}
	return nil
}

// packets are those that a listener notes.
type packets bool

const (
	// firstPackets: the first one of each side, however many connections there are, and however fast.
	firstPackets packets = false
	// allPackets: all whose numbers differ in more than the last 16 bits.
	allPackets packets = true
)

// listener is an nftables table that notes packets of each side of some connections, the first ones for instance:
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
// To note all packets, it has numbers for the sides, and notes these:
//
//	map suspects { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service : mark; }
//	set notes    { type mark . mark . mark; size 65536; }
//	        add @notes { ip saddr . ip daddr . meta l4proto . th sport . th dport map @suspects . @th,32,16 . @th,64,16 }
//
// It is there while somebody listens. A process that is killed meanwhile leaves it, and the next one removes it: see [EndListening].
type listener struct {
	*barrier
	what           packets
	suspects, told *nftables.Set
	// sides are those that are listened to.
	sides []tuple
}

// listen begins to listen.
func (k *handle) listen(suspects pairs, what packets) (*listener, error) {
	if k.listening == nil {
		b, err := connect(nft.Spec{
			Name: listeningTable, Family: k.family, Sets: []nft.Set{{Name: suspectsSet, Tuple: true, Ports: true}},
			Chains: []nft.Chain{{Name: listeningChain, Type: nftables.ChainTypeFilter, Hook: nftables.ChainHookPrerouting, Priority: *nftables.ChainPriorityRaw}},
		})
		if err != nil {
			return nil, err
		}
		k.listening = b
	}
	b := k.listening
	l := &listener{barrier: b, what: what, suspects: b.spec.Set(suspectsSet)}
	l.told = &nftables.Set{
		Table: b.table, Name: heardMap, KeyType: l.suspects.KeyType, Concatenation: true, IsMap: true, Dynamic: true, Size: 2 * mostSuspects,
		DataType: nftables.MustConcatSetType(nftables.TypeInteger, nftables.TypeInteger),
	}
	if what == allPackets {
		l.suspects.IsMap, l.suspects.DataType = true, nftables.TypeMark
		l.told = &nftables.Set{
			Table: b.table, Name: notesSet, KeyType: nftables.MustConcatSetType(nftables.TypeMark, nftables.TypeMark, nftables.TypeMark),
			Concatenation: true, Dynamic: true, Size: mostNotes,
		}
	}
	for original, replying := range suspects {
		l.sides = append(l.sides, original, replying)
	}
	elements := make([]nftables.SetElement, 0, len(l.sides))
	for i, side := range l.sides {
		e := elementOf(side, true)
		if what == allPackets {
			e.Val = binary.BigEndian.AppendUint32(nil, uint32(i))
		}
		elements = append(elements, e)
	}
	if err := l.make(elements); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// make has the kernel make the table, and listen when it is whole.
func (l *listener) make(elements []nftables.SetElement) error {
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
	spec := l.spec
	spec.Sets = nil // they are there
	if err := spec.Make(l.Conn, nft.State{Chains: map[string][]nft.Rule{listeningChain: {l.rule()}}}); err != nil {
		return err
	}
	return l.commit()
}

// rule is the one that listens.
func (l *listener) rule() nft.Rule {
	note := hostsPorts + " @" + suspectsSet + " add @" + heardMap + " { " + hostsPorts + " : tcp sequence . tcp ackseq }"
	if l.what == allPackets { // which suspect, and the first half of each of the packet's numbers
		note = "add @" + notesSet + " { " + hostsPorts + " map @" + suspectsSet + " . @th,32,16 . @th,64,16 }"
	}
	return l.spec.Commented("of a suspect", inTheMiddle+note)
}

// heard returns what was heard; nil if there was more.
func (l *listener) heard() (hearing, error) {
	elements, err := l.elements()
	if err != nil {
		return nil, fmt.Errorf("read %s of the nftables table %s: %w", l.told.Name, listeningTable, err)
	}
	if l.what == allPackets && len(elements) >= mostNotes {
		return nil, nil
	}
	heard := make(hearing, len(l.sides))
	for _, e := range elements {
		if side, numbers, ok := l.decode(e); ok {
			heard[side] = append(heard[side], segment{sends: binary.BigEndian.Uint32(numbers), expects: binary.BigEndian.Uint32(numbers[4:])})
		}
	}
	return heard, nil
}

// elements returns what was noted.
func (l *listener) elements() ([]nftables.SetElement, error) {
	if err := l.Within(patience); err != nil {
		return nil, err
	}
	return l.GetSetElements(l.told)
}

// decode returns which side has sent a packet that was noted, and its two numbers.
func (l *listener) decode(e nftables.SetElement) (side tuple, numbers []byte, ok bool) {
	if l.what == firstPackets {
		side, ok = tupleOf(e.Key)
		return side, e.Val, ok && len(e.Val) >= 8
	}
	if len(e.Key) < 12 {
		return tuple{}, nil, false
	}
	i := int(binary.BigEndian.Uint32(e.Key))
	if i >= len(l.sides) {
		return tuple{}, nil, false
	}
	return l.sides[i], e.Key[4:], true
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
