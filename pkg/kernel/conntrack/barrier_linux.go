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
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Names in the kernel. The table is "ip openshift-egress-ended" and "ip6 openshift-egress-ended".
const (
	barrierTable  = "openshift-egress-ended"
	flowsSet      = "flows"
	unansweredSet = "unanswered"
	unseenSet     = "unseen"
	hostsSet      = "hosts"
	freshSet      = "fresh"
	barrierChain  = "prerouting"
	invalidChain  = "invalid"
	endedChain    = "ended"
	anewChain     = "anew"
)

// remembered is how long a TCP connection that was deleted cannot be taken up again: longer than TCP
// repeats what nobody acknowledges, 15 minutes (net.ipv4.tcp_retries2). Other protocols have no
// connections, and the far side may well begin a flow of its own between the same ports. What was never answered is remembered
// as long as the kernel waits for a UDP answer (net.netfilter.nf_conntrack_udp_timeout): a later one begins a flow anyway.
const remembered, rememberedOther, rememberedUnanswered = 20 * time.Minute, 3 * time.Minute, 30 * time.Second

// strays is how long far sides get a reset of connections that this node does not pick up. It is short, for what conntrack calls
// invalid may be of a connection that it knows.
const strays = 15 * time.Second

// room is for how many elements the sets have room. An element takes 146 bytes of the kernel's memory in IPv4 and 180 in IPv6,
// its share of the hash table included.
type room struct{ flows, unanswered, hosts, fresh uint32 }

// allRoom is for 32,768 TCP connections that end within 20 minutes, which take two elements each, or twice as many other flows that
// were answered; and for fewer of what was never answered or has no ports, for a shorter time. All sets of both families together take 56 MiB if they are full. Whoever toggles a Service, or has a pod send to
// everywhere, gets no more.
var allRoom = room{flows: 1 << 16, unanswered: 1 << 14, hosts: 1 << 13, fresh: 1 << 13}

// unseen is the size of the set unseen: any flow may be in it.
func (r room) unseen() uint32 { return r.flows + r.unanswered }

// errNoBarrier is returned where the kernel has no nftables, or, before Linux 5.9, cannot reject in prerouting.
var errNoBarrier = errors.New("this kernel's nftables cannot reject packets in prerouting")

// barrier is the nftables table that keeps deleted flows of one IP family from being taken up
// again; doc.go shows it. A [listener] has one of another name, and none of its sets.
type barrier struct {
	*nft.Conn
	spec  nft.Spec
	table *nftables.Table
	// looked: what an earlier process has left is known.
	looked bool
}

// makeBarrier makes the table of the barrier, or makes it again as it should be; what it holds stays. The error is
// [errNoBarrier] if the kernel does not have what that takes.
func (k *handle) makeBarrier() error {
	err := k.tryBarrier(false)
	if errors.Is(err, unix.EEXIST) {
		// Somebody has restored the table with nft, whose sets are not quite the same.
		err = k.tryBarrier(true)
	}
	return err
}

// tryBarrier makes the table, in the place of one that is there, or of what differs there. It connects to the kernel if there
// is no connection, or if that failed.
func (k *handle) tryBarrier(anew bool) (err error) {
	if k.barrier == nil {
		if k.barrier, err = connect(specOf(k.family, k.room)); err != nil {
			return err
		}
	}
	if err = k.barrier.make(anew); err != nil {
		k.barrier.Close()
		k.barrier = nil
	}
	return err
}

// make has the kernel make the table. One that has sets of another size, as those of earlier versions do, is replaced.
func (b *barrier) make(anew bool) error {
	var kept map[string][]nftables.SetElement
	if anew || !b.looked {
		there, err := b.there()
		if err != nil {
			return err
		}
		if anew = anew || b.differ(there); anew {
			if kept, err = b.elements(there); err != nil {
				return err
			}
		}
	}
	b.looked = true
	if anew {
		b.AddTable(b.table)
		b.DelTable(b.table)
	}
	spec, picksUp := b.spec, picksUp()
	if picksUp {
		spec.Sets = b.remembering()
	}
	if err := errors.Join(spec.Make(b.Conn, nft.State{Chains: b.rules(picksUp)}), b.addElements(kept)); err != nil {
		return fmt.Errorf("encode the nftables table %s: %w", barrierTable, err)
	}
	return b.commit()
}

// remembering are the sets that remember flows.
func (b *barrier) remembering() []nft.Set {
	return slices.DeleteFunc(slices.Clone(b.spec.Sets), func(s nft.Set) bool { return s.Name == freshSet })
}

// addElements adds elements of sets.
func (b *barrier) addElements(elements map[string][]nftables.SetElement) error {
	var errs []error
	for set, all := range elements {
		for some := range slices.Chunk(all, elementsAtOnce) {
			errs = append(errs, b.SetAddElements(b.spec.Set(set), some))
		}
	}
	return errors.Join(errs...)
}

// specOf returns what never changes of the table. A chain of the type nat sees the first packets of flows alone, and none that conntrack
// calls invalid.
func specOf(family kernel.Family, room room) nft.Spec {
	set := func(name string, ports bool, size uint32) nft.Set {
		return nft.Set{Name: name, Tuple: true, Ports: ports, Timeout: remembered, Passing: true, Size: size}
	}
	chain := func(name string, kind nftables.ChainType) nft.Chain {
		return nft.Chain{Name: name, Type: kind, Hook: nftables.ChainHookPrerouting, Priority: *nftables.ChainPriorityNATDest - 1}
	}
	return nft.Spec{
		Name: barrierTable, Family: family,
		Sets: []nft.Set{
			set(flowsSet, true, room.flows), set(unansweredSet, true, room.unanswered), set(unseenSet, true, room.unseen()), set(hostsSet, false, room.hosts),
			{Name: freshSet, Timeout: strays, Passing: true, Size: room.fresh},
		},
		Chains: []nft.Chain{chain(barrierChain, nftables.ChainTypeNAT), chain(invalidChain, nftables.ChainTypeFilter)},
	}
}

// connect connects to the kernel, for a table.
func connect(spec nft.Spec) (*barrier, error) {
	b := &barrier{spec: spec, table: &nftables.Table{Name: spec.Name, Family: nft.FamilyOf(spec.Family).Table}}
	var err error
	if b.Conn, err = nft.Open(context.Background()); err != nil {
		return nil, barrierError(spec.Name, err)
	}
	return b, nil
}

// commit has the kernel do what was asked for, all of it or nothing.
func (b *barrier) commit() error {
	if err := b.Within(patience); err != nil {
		return barrierError(b.table.Name, err)
	}
	return barrierError(b.table.Name, b.Flush())
}

// barrierError returns what the kernel has said about a table.
func barrierError(table string, err error) error {
	if err == nil {
		return nil
	}
	if table != barrierTable {
		return fmt.Errorf("write the nftables table %s: %w", table, err)
	}
	for _, lacks := range []error{nft.ErrNone, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.ENOENT, unix.EINVAL, unix.EBUSY} {
		if errors.Is(err, lacks) {
			err = errors.Join(errNoBarrier, err)
			break
		}
	}
	return fmt.Errorf("write the nftables table %s: %w", table, err)
}

// The words of keys of the sets. invalid lets packets pass that conntrack calls so and that came in from outside, not from the node itself:
// a nudge to one of its own sockets has no flow either. inTheMiddle lets TCP packets pass that neither begin nor break off a connection.
const (
	hosts       = "IP saddr . IP daddr . meta l4proto"
	hostsPorts  = hosts + " . th sport . th dport"
	invalid     = "ct state invalid meta iiftype != loopback "
	inTheMiddle = "tcp flags & (syn | rst | ack) == ack "
)

// rules are those of the chains. Connections that the kernel does not pick up are reset: it calls their packets invalid, and no chain of NAT
// sees them.
func (b *barrier) rules(picksUp bool) map[string][]nft.Rule {
	forget := func(set string) string {
		return hostsPorts + " @" + set + " update @" + set + " { " + hostsPorts + " timeout 1s }"
	}
	rules := map[string][]nft.Rule{}
	add := func(chain, purpose, text string) {
		rules[chain] = append(rules[chain], b.spec.Commented(purpose, text))
	}
	const ended, begun = "of an ended flow", "of an ended flow, unanswered or over"
	add(barrierChain, ended, hostsPorts+" @"+flowsSet+" goto "+endedChain)
	add(barrierChain, begun, hostsPorts+" @"+unansweredSet+" goto "+endedChain)
	// The far side perhaps knows another address.
	add(barrierChain, "of an ended flow without ports", "meta l4proto != tcp meta l4proto != udp "+hosts+" @"+hostsSet+" drop")
	add(endedChain, "a new connection from the same ports", "tcp flags syn goto "+anewChain)
	add(endedChain, "the far side saw another address", hostsPorts+" @"+unseenSet+" drop")
	add(endedChain, "of an ended connection", "meta l4proto tcp reject with tcp reset")
	add(endedChain, "of another ended flow", "reject with ICMP type port-unreachable")
	// A rule can have the kernel delete an element, but before Linux 6.5 that may race with whoever writes the set.
	add(anewChain, "its ports are in use again", forget(flowsSet))
	add(anewChain, "its ports are in use again", forget(unansweredSet))
	add(anewChain, "a new connection", "accept")
	if !picksUp {
		add(invalidChain, "to an address that has come here", invalid+inTheMiddle+"IP daddr @"+freshSet+" reject with tcp reset")
		add(invalidChain, "of an ended connection", invalid+inTheMiddle+hostsPorts+" @"+flowsSet+" goto "+endedChain)
	}
	add(invalidChain, ended, invalid+hostsPorts+" @"+flowsSet+" drop")
	add(invalidChain, begun, invalid+hostsPorts+" @"+unansweredSet+" drop")
	return rules
}

// resetStrays has far sides get a reset for a while that send to addresses what belongs to no connection.
func (k *handle) resetStrays(addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return nil
	}
	if err := k.makeBarrier(); err != nil {
		return err
	}
	var elements []nftables.SetElement
	for _, ip := range addresses {
		elements = append(elements, nftables.SetElement{Key: ip.AsSlice()})
	}
	for some := range slices.Chunk(elements, elementsAtOnce) {
		if err := k.barrier.SetAddElements(k.barrier.spec.Set(freshSet), some); err != nil {
			return fmt.Errorf("encode elements of the nftables table %s: %w", barrierTable, err)
		}
		if err := k.barrier.commit(); err != nil {
			return err
		}
	}
	return nil
}

// barOf returns the set that keeps a flow which was deleted from being taken up again; "" if nothing has to.
func barOf(e *doomed) (set string) {
	asItself := e.replying.destination.Addr() == e.original.source.Addr()
	switch protocol := e.original.protocol; {
	case protocol == unix.IPPROTO_ICMP, protocol == unix.IPPROTO_ICMPV6: // an echo reply begins no flow
		return ""
	case !hasPorts(protocol) && asItself:
		return hostsSet
	case !hasPorts(protocol): // under the node's address they may be the node's own as well
		return ""
	case e.replied && !e.over():
		return flowsSet
	case e.connected(), asItself: // it costs nothing to make, or is over, as very many are: it takes no room from others
		return unansweredSet
	}
	return "" // the answer meets nobody: it is for an address of the node, which knows of no flow
}

// hasPorts tells whether the kernel tells the ports of a protocol's flows, of which one may be 0.
func hasPorts(protocol uint8) bool {
	switch protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP:
		return true
	}
	return false
}

// fill adds entries of one set, as add does, until there is no more room: the error is ENFILE then. It notes which are barred.
func (b *barrier) fill(set string, entries []*doomed) error {
	err := b.add(set, entries)
	switch {
	case err == nil:
		for _, e := range entries {
			e.barred = true
		}
		return nil
	case !errors.Is(err, unix.ENFILE), len(entries) == 1:
		return err
	}
	half := len(entries) / 2
	if err := b.fill(set, entries[:half]); err != nil {
		return err
	}
	return b.fill(set, entries[half:])
}

// add keeps entries of one set from being taken up again once they are deleted, by packets of either side, or none of them.
// Of protocols other than TCP, and of connections that have not begun, it stops only the far side's: the source's next packet
// begins a flow that the rules decide about.
func (b *barrier) add(set string, entries []*doomed) error {
	var elements, unseen []nftables.SetElement
	for _, e := range entries {
		farSide := elementOf(e.replying, set != hostsSet)
		switch begun := (e.replied || e.connected()) && !e.over(); {
		case begun && e.original.protocol == unix.IPPROTO_TCP:
			elements = append(elements, elementOf(e.original, true))
		case begun:
			farSide.Timeout = rememberedOther
		default:
			farSide.Timeout = rememberedUnanswered
		}
		elements = append(elements, farSide)
		if set != hostsSet && e.verdict == EndsAtPod {
			unseen = append(unseen, farSide)
		}
	}
	if err := errors.Join(b.SetAddElements(b.spec.Set(set), elements), b.SetAddElements(b.spec.Set(unseenSet), unseen)); err != nil {
		return fmt.Errorf("encode elements of the nftables table %s: %w", barrierTable, err)
	}
	return b.commit()
}

// elementOf has the fields of a key one behind the other, each at a multiple of four bytes.
func elementOf(t tuple, ports bool) nftables.SetElement {
	key := slices.Concat(t.source.Addr().AsSlice(), t.destination.Addr().AsSlice(), []byte{t.protocol, 0, 0, 0})
	if ports {
		for _, end := range []netip.AddrPort{t.source, t.destination} {
			key = append(binary.BigEndian.AppendUint16(key, end.Port()), 0, 0)
		}
	}
	return nftables.SetElement{Key: key}
}

// Cleanup removes what [Table.Delete] and [Table.EndClashes] have left in the kernel, of both families. Where the kernel has no
// nftables there is nothing.
func Cleanup(ctx context.Context) error {
	return errors.Join(remove(ctx, barrierTable), EndListening(ctx))
}

// EndListening removes what a process that was killed in [Table.EndClashes] has left in the kernel, of both families. No EndClashes may run
// meanwhile. Where the kernel has no nftables there is nothing.
func EndListening(ctx context.Context) error { return remove(ctx, listeningTable) }

func remove(ctx context.Context, table string) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		errs = append(errs, nft.Spec{Name: table, Family: family}.Remove(ctx))
	}
	return errors.Join(errs...)
}
