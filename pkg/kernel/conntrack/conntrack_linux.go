package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

const (
	// patience bounds each wait for the kernel; it answers a dump piece by piece.
	patience = 10 * time.Second
	// fewPods is for how many pods it can be cheaper to have the kernel look for each than to look at all flows.
	fewPods = entryTold / entryPassed
)

// What a look costs, in nanoseconds (hack/bench): for each bucket of the kernel's hash table, of which there are
// many however few flows there are, and for each entry that the kernel passes over, or tells.
const bucketPassed, entryPassed, entryTold = 40, 270, 1900

// Table is the conntrack table of one IP family. It may be used by several goroutines, which wait for each other, but not in two network
// namespaces. It keeps its sockets open: each time that one which has spoken to netfilter is closed, the kernel makes all
// changes of nftables wait, of both IP families, until it has thrown away what earlier ones have removed
// (nft_rcv_nl_event), which takes tens of milliseconds.
type Table struct {
	family kernel.Family
	mu     sync.Mutex // protects what follows
	// handle is nil as long as nothing was asked for, and after an error.
	handle *handle
	// sides are what EndClashes has heard last, by what packets of the source have.
	sides map[tuple]sides
	// room is that of the barrier.
	room room
}

// NewTable returns that of family.
func NewTable(family kernel.Family) *Table { return &Table{family: family, room: allRoom} }

// Deleted is what has become of the flows that were wrong.
type Deleted struct {
	// Ended is how many have ended.
	Ended int
	// Unbarred is how many of those the far side may take up again under the same address, since the kernel's table of those that
	// must not be has no more room. Flows that are gone meanwhile may count.
	Unbarred int
}

// Close gives back what the Table has from the kernel. It may be used again.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.close()
}

func (t *Table) close() {
	if t.handle != nil {
		t.handle.close()
		t.handle = nil
	}
}

// with calls f with what the kernel has. If that fails, or ends early, answers may be on their way: the sockets are not
// used any more.
func (t *Table) with(ctx context.Context, f func(*handle) error) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handle == nil {
		if t.handle, err = open(t.family); err != nil {
			return err
		}
	}
	t.handle.size, t.handle.room = readSize(), t.room
	if err = f(t.handle); err != nil || ctx.Err() != nil {
		t.close()
	}
	return err
}

// Delete is [Table.Delete] for a caller who does not come again.
func Delete(ctx context.Context, family kernel.Family, after kernel.Desired, scope Scope) (Deleted, error) {
	t := NewTable(family)
	defer t.Close()
	return t.Delete(ctx, after, scope)
}

// Delete deletes the tracked flows that use a wrong source address after a change, as [Selector] says, and returns what has become
// of them. The plan must be in the kernel already, and so must
// the ways: a deleted flow's next packet meets the rules at once. The flows end on both sides, and none is taken
// up again, where the kernel can do that and has room for it; if not, the log says so. Those whose way alone has changed
// go on. [Cleanup] removes what that leaves behind. It goes through the table once, or again if
// the kernel says that the dump was interrupted, and not at all if nothing can be wrong. For
// the flows of a few pods it has the kernel look, once for each, where that is cheaper.
//
// After an error some flows may have been deleted, and calling it again is right. When
// ctx ends no more flows are judged.
func (t *Table) Delete(ctx context.Context, after kernel.Desired, scope Scope) (done Deleted, err error) {
	selector := NewSelector(after, scope, kernel.CIDRSet{})
	if selector.Empty() {
		return Deleted{}, nil
	}
	err = t.with(ctx, func(k *handle) (err error) {
		if selector.local, err = k.localAddresses(); err != nil {
			return err
		}
		selector.begun = !picksUp()
		look := func(see func(*tracked)) error { return k.look(ctx, selector, see) }
		done, err = k.judge(ctx, look, func(t *tracked) Verdict {
			verdict := selector.Judge(t.Flow)
			if verdict != Stays {
				klog.FromContext(ctx).V(4).Info(verdict.message(),
					"protocol", t.Protocol, "source", t.Source, "destination", t.Destination, "sourceAddress", t.SeenAs)
			}
			return verdict
		})
		return err
	})
	if err != nil {
		return done, fmt.Errorf("delete %s flows that use the wrong source address: %w", t.family, err)
	}
	return done, nil
}

// DeleteMisdirected deletes the tracked TCP connections that do not go where r sends them, as [Redirection] says, and
// returns what has become of them. The rules must be in the kernel already. The
// connections end as those of [Table.Delete] do, and it may be called again after an error.
func (t *Table) DeleteMisdirected(ctx context.Context, r Redirection) (done Deleted, err error) {
	if r.empty() {
		return Deleted{}, nil
	}
	err = t.with(ctx, func(k *handle) (err error) {
		if r.local, err = k.localAddresses(); err != nil {
			return err
		}
		look := func(see func(*tracked)) error { return k.lookAt(ctx, everyone, see) }
		done, err = k.judge(ctx, look, func(t *tracked) Verdict {
			if !r.misdirected(t) {
				return Stays
			}
			klog.FromContext(ctx).V(4).Info("Deleting a connection that does not go where it should",
				"source", t.original.source, "destination", t.original.destination, "goesTo", t.replying.source)
			return Ends
		})
		return err
	})
	if err != nil {
		return done, fmt.Errorf("delete %s connections that do not go where they should: %w", t.family, err)
	}
	return done, nil
}

// judge does with each flow that look shows what a verdict says, until ctx ends, and returns what has become of them.
func (k *handle) judge(ctx context.Context, look func(see func(*tracked)) error, verdictOn func(*tracked) Verdict) (Deleted, error) {
	d, err := k.newDeleter()
	if err != nil {
		return Deleted{}, err
	}
	defer d.close()
	err = look(func(t *tracked) {
		if ctx.Err() != nil {
			return
		}
		if verdict := verdictOn(t); verdict != Stays {
			d.do(t, verdict)
		}
	})
	err = errors.Join(err, d.finish())
	d.complain(klog.FromContext(ctx))
	return d.done, err
}

// Count returns what uses each egress IP of the bindings that the kernel holds. It goes through the table once,
// or again as Delete does, and not at all without bindings.
func (t *Table) Count(ctx context.Context, written kernel.Desired) (map[netip.Addr]Usage, error) {
	usage, _, err := t.countWith(ctx, written, nil, func(c *counter, t *tracked) { c.addTracked(t) })
	return usage, err
}

// CountNew is Count, and tells which flows are new since an earlier CountNew, which is nil for the first one.
func (t *Table) CountNew(ctx context.Context, written kernel.Desired, before Seen) (map[netip.Addr]Usage, Seen, error) {
	return t.countWith(ctx, written, before, func(c *counter, t *tracked) {
		if uses := c.addTracked(t); uses != nil && len(t.id) >= attrHeader+4 {
			c.see(uses, binary.NativeEndian.Uint32(t.id[attrHeader:]))
		}
	})
}

// countWith counts by adding each flow to a counter.
func (t *Table) countWith(ctx context.Context, written kernel.Desired, before Seen, add func(*counter, *tracked)) (usage map[netip.Addr]Usage, seen Seen, err error) {
	seen = Seen{}
	if len(written.Bindings) == 0 {
		return nil, seen, nil
	}
	err = t.with(ctx, func(k *handle) error {
		local, err := k.localAddresses()
		if err != nil {
			return err
		}
		counts := newCounter(written, local)
		counts.before, counts.seen = before, seen
		err = dump(func() error {
			counts.reset() // an interrupted dump counts for nothing
			return k.table.dump(ctx, inet(k.family), everyone, func(t *tracked) { add(counts, t) })
		})
		usage = counts.usage()
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("count %s flows: %w", t.family, err)
	}
	return usage, seen, nil
}

// handle is the kernel's view of one IP family in the network namespace of the thread that
// opened it.
type handle struct {
	family kernel.Family
	routes *netlink.Handle
	table  *socket
	// deletions, barrier and listening are opened when they are first needed.
	deletions *socket
	barrier   *barrier
	listening *barrier
	size      tableSize
	room      room
}

// tableSize is that of the conntrack table.
type tableSize struct{ buckets, flows int }

// readSize returns that of the table in the network namespace of the thread. What cannot be read counts as a table
// that is full of flows.
func readSize() tableSize {
	return tableSize{buckets: setting("netfilter/nf_conntrack_buckets", 1), flows: setting("netfilter/nf_conntrack_count", 1<<20)}
}

// picksUp tells whether the kernel tracks TCP connections of which it sees no beginning. What cannot be read counts as its default.
func picksUp() bool { return setting("netfilter/nf_conntrack_tcp_loose", 1) != 0 }

// setting returns a number of /proc/sys/net in the network namespace of the thread, or otherwise what cannot be read counts as.
func setting(name string, otherwise int) int {
	text, err := os.ReadFile("/proc/sys/net/" + name)
	if err != nil {
		return otherwise
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return otherwise
	}
	return number
}

// cheaperAlone tells whether it is cheaper to have the kernel look for the flows of each of so many sources than to
// look at all flows.
func (s tableSize) cheaperAlone(sources int) bool {
	return sources*(s.buckets*bucketPassed+s.flows*entryPassed) < s.buckets*bucketPassed+s.flows*entryTold
}

func open(family kernel.Family) (*handle, error) {
	if family != kernel.IPv4 && family != kernel.IPv6 {
		return nil, fmt.Errorf("IP family %q is neither %s nor %s", family, kernel.IPv4, kernel.IPv6)
	}
	routes, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	k := &handle{family: family, routes: routes, size: readSize(), room: allRoom}
	if err := routes.SetSocketTimeout(patience); err != nil {
		k.close()
		return nil, fmt.Errorf("set the timeout of netlink: %w", err)
	}
	if k.table, err = openSocket(); err != nil {
		k.close()
		return nil, explain(err)
	}
	return k, nil
}

func (k *handle) close() {
	k.routes.Close()
	for _, s := range []*socket{k.table, k.deletions} {
		if s != nil {
			s.close()
		}
	}
	for _, b := range []*barrier{k.barrier, k.listening} {
		if b != nil {
			b.Close()
		}
	}
}

func inet(family kernel.Family) uint8 {
	if family == kernel.IPv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// localAddresses returns what the node takes for itself instead of forwarding it: its
// addresses, loopback, the broadcast and anycast addresses of its networks.
func (k *handle) localAddresses() (kernel.CIDRSet, error) {
	routes, err := changes.Outlast(func() ([]netlink.Route, error) {
		table := &netlink.Route{Table: unix.RT_TABLE_LOCAL}
		return k.routes.RouteListFiltered(int(inet(k.family)), table, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return kernel.CIDRSet{}, fmt.Errorf("read the node's %s addresses: %w", k.family, err)
	}
	var local []netip.Prefix
	for _, route := range routes {
		switch route.Type {
		case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST:
			if prefix, ok := prefixOf(route.Dst); ok {
				local = append(local, prefix)
			}
		}
	}
	return kernel.NewCIDRSet(local), nil
}

// look calls see for each flow that selector may select, and for others; for one that
// changes meanwhile perhaps twice. What see is given is valid during the call only.
func (k *handle) look(ctx context.Context, selector *Selector, see func(*tracked)) error {
	pods, few := selector.pods(k.family, fewPods)
	sources := k.sources(pods)
	if !few || len(selector.inward) > 0 || !k.size.cheaperAlone(len(sources)) {
		return k.lookAt(ctx, everyone, see)
	}
	for _, source := range sources {
		others := false
		err := k.lookAt(ctx, source, func(t *tracked) {
			others = others || t.Source != source
			see(t)
		})
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
			// It may be the selection that the kernel does not want.
			return k.lookAt(ctx, everyone, see)
		case err != nil:
			return err
		case others:
			// The kernel does not select, so it told everyone's flows.
			return nil
		}
	}
	return nil
}

// sources returns whose flows to ask for, one after the other. When asked for those of an
// IPv6 source, kernels tell everybody else's (ctnetlink_filter_match_tuple compares the
// wrong way round, at least up to Linux 6.18). Such a kernel tells everyone's when
// asked for an address that nobody has.
func (k *handle) sources(pods []netip.Addr) []netip.Addr {
	if k.family == kernel.IPv6 && len(pods) > 0 {
		return append([]netip.Addr{netip.IPv6Unspecified()}, pods...)
	}
	return pods
}

// lookAt calls see for the flows of source.
func (k *handle) lookAt(ctx context.Context, source netip.Addr, see func(*tracked)) error {
	return dump(func() error { return k.table.dump(ctx, inet(k.family), source, see) })
}

// dump calls read, which dumps the conntrack table, as often as it takes.
func dump(read func() error) error {
	_, err := changes.Outlast(func() (struct{}, error) { return struct{}{}, read() })
	return explain(err)
}

// explain adds to what the kernel says about a table that it does not offer.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("the kernel does not offer its conntrack table over netlink; load the module nf_conntrack_netlink: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("reading the conntrack table needs the capability NET_ADMIN: %w", err)
	}
	return err
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr := kernel.AddrOf(n.IP)
	ones, bits := n.Mask.Size()
	return netip.PrefixFrom(addr, ones), addr.IsValid() && bits == addr.BitLen()
}
