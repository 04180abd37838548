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
	table                                   *nftables.Table
	language                                nft.Spec
	flows, unanswered, unseen, hosts, fresh *nftables.Set
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
		if k.barrier, err = connect(k.family, barrierTable, k.room); err != nil {
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
	var kept map[*nftables.Set][]nftables.SetElement
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
	b.AddTable(b.table)
	if anew {
		b.DelTable(b.table)
		b.AddTable(b.table)
	}
	if err := b.addSets(kept); err != nil {
		return fmt.Errorf("encode the sets of the nftables table %s: %w", barrierTable, err)
	}
	if err := b.addRules(); err != nil {
		return err
	}
	if !picksUp() {
		if err := b.AddSet(b.fresh, nil); err != nil {
			return fmt.Errorf("encode the sets of the nftables table %s: %w", barrierTable, err)
		}
		if err := b.addRulesForInvalid(); err != nil {
			return err
		}
	}
	return b.commit()
}

// sets are those that remember flows.
func (b *barrier) sets() []*nftables.Set {
	return []*nftables.Set{b.flows, b.unanswered, b.unseen, b.hosts}
}

// addSets adds them, with elements.
func (b *barrier) addSets(elements map[*nftables.Set][]nftables.SetElement) error {
	var errs []error
	for _, set := range b.sets() {
		errs = append(errs, b.AddSet(set, nil))
		for some := range slices.Chunk(elements[set], elementsAtOnce) {
			errs = append(errs, b.SetAddElements(set, some))
		}
	}
	return errors.Join(errs...)
}

// connect connects to the kernel, for a table with sets of tuples.
func connect(family kernel.Family, table string, room room) (*barrier, error) {
	b := &barrier{table: &nftables.Table{Name: table, Family: nftables.TableFamilyIPv4}, language: nft.Spec{Name: table, Family: family}}
	address := nftables.TypeIPAddr
	if family == kernel.IPv6 {
		b.table.Family, address = nftables.TableFamilyIPv6, nftables.TypeIP6Addr
	}
	set := func(name string, size uint32, key ...nftables.SetDatatype) *nftables.Set {
		return &nftables.Set{
			Table: b.table, Name: name, KeyType: nftables.MustConcatSetType(key...), Concatenation: true,
			HasTimeout: true, Timeout: remembered, Size: size,
		}
	}
	ports := []nftables.SetDatatype{address, address, nftables.TypeInetProto, nftables.TypeInetService, nftables.TypeInetService}
	b.flows, b.unanswered = set(flowsSet, room.flows, ports...), set(unansweredSet, room.unanswered, ports...)
	b.unseen = set(unseenSet, room.unseen(), ports...)
	b.hosts = set(hostsSet, room.hosts, address, address, nftables.TypeInetProto)
	b.fresh = &nftables.Set{Table: b.table, Name: freshSet, KeyType: address, HasTimeout: true, Timeout: strays, Size: room.fresh}
	var err error
	b.Conn, err = nft.Open(context.Background())
	if err != nil {
		return nil, barrierError(b.table.Name, err)
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

// addRules replaces the chains' rules. A chain of the type nat sees the first packets of flows alone, and none
// that conntrack calls invalid.
func (b *barrier) addRules() error {
	first, policy := *nftables.ChainPriorityNATDest-1, nftables.ChainPolicyAccept
	ended := b.AddChain(&nftables.Chain{Name: endedChain, Table: b.table})
	base := func(name string, kind nftables.ChainType) *nftables.Chain {
		return b.AddChain(&nftables.Chain{
			Name: name, Table: b.table, Type: kind,
			Hooknum: nftables.ChainHookPrerouting, Priority: &first, Policy: &policy,
		})
	}
	for _, of := range []struct {
		chain *nftables.Chain
		rules []string
	}{
		{base(barrierChain, nftables.ChainTypeNAT), []string{
			hostsPorts + " @" + flowsSet + " goto " + endedChain,
			hostsPorts + " @" + unansweredSet + " goto " + endedChain,
			"meta l4proto != tcp meta l4proto != udp " + hosts + " @" + hostsSet + " goto " + endedChain,
		}},
		{base(invalidChain, nftables.ChainTypeFilter), []string{
			invalid + hostsPorts + " @" + flowsSet + " drop",
			invalid + hostsPorts + " @" + unansweredSet + " drop",
		}},
		{ended, []string{
			"tcp flags syn accept",
			hostsPorts + " @" + unseenSet + " drop",
			"meta l4proto tcp reject with tcp reset",
			"reject with ICMP type port-unreachable",
		}},
	} {
		b.FlushChain(of.chain)
		for _, text := range of.rules {
			rule, err := b.language.Rule("", text).In(of.chain)
			if err != nil {
				return err
			}
			b.AddRule(rule)
		}
	}
	return nil
}

// addRulesForInvalid adds, in front of the others, what resets connections that conntrack does not pick up: it calls their packets
// invalid, and no chain of NAT sees them.
func (b *barrier) addRulesForInvalid() error {
	for _, text := range []string{
		invalid + inTheMiddle + hostsPorts + " @" + flowsSet + " goto " + endedChain,
		invalid + inTheMiddle + "IP daddr @" + freshSet + " reject with tcp reset",
	} {
		rule, err := b.language.Rule("", text).In(&nftables.Chain{Name: invalidChain, Table: b.table})
		if err != nil {
			return err
		}
		b.InsertRule(rule)
	}
	return nil
}

// resetStrays has far sides get a reset for a while that send to addresses what belongs to no connection.
func (k *handle) resetStrays(addresses map[netip.Addr]bool) error {
	if err := k.makeBarrier(); err != nil {
		return err
	}
	var elements []nftables.SetElement
	for ip := range addresses {
		elements = append(elements, nftables.SetElement{Key: ip.AsSlice()})
	}
	for some := range slices.Chunk(elements, elementsAtOnce) {
		if err := k.barrier.SetAddElements(k.barrier.fresh, some); err != nil {
			return fmt.Errorf("encode elements of the nftables table %s: %w", barrierTable, err)
		}
		if err := k.barrier.commit(); err != nil {
			return err
		}
	}
	return nil
}

// bar is what keeps a flow that was deleted from being taken up again: elements of one set, and of unseen.
type bar int

const (
	// unbarred: nothing has to.
	unbarred bar = iota
	// barAnswered is of those that the far side has answered: they are in flows.
	barAnswered
	// barUnanswered is of the others, which cost nothing to make: they are in unanswered, and take no room from anybody else's.
	barUnanswered
	// barHosts is of protocols without ports: they are in hosts.
	barHosts
)

// barOf returns that of a flow.
func barOf(e *doomed) bar {
	asItself := e.replying.destination.Addr() == e.original.source.Addr()
	switch protocol := e.original.protocol; {
	case protocol == unix.IPPROTO_ICMP, protocol == unix.IPPROTO_ICMPV6: // an echo reply begins no flow
		return unbarred
	case e.replying.source.Port() == 0 && asItself:
		return barHosts
	case e.replying.source.Port() == 0: // under the node's address they may be the node's own as well
		return unbarred
	case e.replied:
		return barAnswered
	case e.connected(), asItself:
		return barUnanswered
	}
	return unbarred // the answer meets nobody: it is for an address of the node, which knows of no flow
}

// fill adds entries of one bar, as add does, until there is no more room: the error is ENFILE then. It notes which are barred.
func (b *barrier) fill(kind bar, entries []*doomed) error {
	err := b.add(kind, entries)
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
	if err := b.fill(kind, entries[:half]); err != nil {
		return err
	}
	return b.fill(kind, entries[half:])
}

// add keeps entries of one bar from being taken up again once they are deleted, by packets of either side, or none of them.
// Of protocols other than TCP, and of connections that have not begun, it stops only the far side's: the source's next packet
// begins a flow that the rules decide about.
func (b *barrier) add(kind bar, entries []*doomed) error {
	set := map[bar]*nftables.Set{barAnswered: b.flows, barUnanswered: b.unanswered, barHosts: b.hosts}[kind]
	var elements, unseen []nftables.SetElement
	for _, e := range entries {
		farSide := elementOf(e.replying, kind != barHosts)
		switch begun := e.replied || e.connected(); {
		case begun && e.original.protocol == unix.IPPROTO_TCP:
			elements = append(elements, elementOf(e.original, true))
		case begun:
			farSide.Timeout = rememberedOther
		default:
			farSide.Timeout = rememberedUnanswered
		}
		elements = append(elements, farSide)
		if kind != barHosts && e.verdict == EndsAtPod {
			unseen = append(unseen, farSide)
		}
	}
	if err := errors.Join(b.SetAddElements(set, elements), b.SetAddElements(b.unseen, unseen)); err != nil {
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
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		for _, table := range []string{barrierTable, listeningTable} {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := remove(family, table)
			if errors.Is(err, errNoBarrier) {
				break
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// remove removes a table, if it is there.
func remove(family kernel.Family, table string) error {
	b, err := connect(family, table, allRoom)
	if err != nil {
		return err
	}
	defer b.Close()
	b.AddTable(b.table) // so that it is there
	b.DelTable(b.table)
	return b.commit()
}
