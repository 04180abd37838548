package handover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Names in the kernel.
const (
	tableName  = "openshift-egress-handover"
	formerMap  = "former"
	passedSet  = "passed"
	leftSet    = "left"
	hookChain  = "prerouting"
	keepChain  = "keep"
	straysName = "strays"
)

const (
	// netlinkTime bounds each wait for the kernel.
	netlinkTime = 5 * time.Second
	// elementsInMessage: an attribute takes 64 KiB.
	elementsInMessage = 400
)

// keepPriority is behind kube-proxy's DNAT, and in front of that of source ports (package steering): the kernel translates a destination
// once.
var keepPriority = *nftables.ChainPriorityNATDest + 1

// content is what the table has.
type content struct {
	former map[netip.Addr]holder
	left   map[netip.Addr]time.Time
}

func (c content) empty() bool { return len(c.former)+len(c.left) == 0 }

// pause is how long all of it counts.
func (c content) pause() time.Duration {
	least := time.Hour
	for _, h := range c.former {
		least = min(least, time.Until(h.until))
	}
	for _, until := range c.left {
		least = min(least, time.Until(until))
	}
	return max(least, 0)
}

// connection is to the nftables of the kernel. It is opened by its first use, and stays open, since closing one makes other
// changes of nftables wait.
type connection struct {
	family kernel.Family
	*nft.Conn
}

func (c *connection) close() {
	if c.Conn != nil {
		c.Close()
		c.Conn = nil
	}
}

// write makes the kernel have the table; none if the content is empty.
func (c *connection) write(what content) error {
	if !what.empty() {
		return c.replace(what)
	}
	return c.change(func(*nftables.Table) error { return nil })
}

// replace makes the kernel have the table, also if the content is empty.
func (c *connection) replace(what content) error {
	return c.change(func(t *nftables.Table) error { return c.add(t, what) })
}

// cleanup removes the table if there is one.
func (c *connection) cleanup() error {
	if err := c.open(); err != nil {
		return err
	}
	tables, err := c.ListTablesOfFamily(c.table().Family)
	if err != nil {
		return fmt.Errorf("list nftables tables: %w", err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == tableName }) {
		return nil
	}
	return c.write(content{})
}

// open opens the connection unless it is, and gives the kernel its time to answer, from now on.
func (c *connection) open() (err error) {
	if c.Conn == nil {
		if c.Conn, err = nft.Open(context.Background()); err != nil {
			return err
		}
	}
	return c.Within(netlinkTime)
}

func (c *connection) table() *nftables.Table {
	if c.family == kernel.IPv6 {
		return &nftables.Table{Name: tableName, Family: nftables.TableFamilyIPv6}
	}
	return &nftables.Table{Name: tableName, Family: nftables.TableFamilyIPv4}
}

// change removes the table and does what add asks for, in one transaction.
func (c *connection) change(add func(*nftables.Table) error) (err error) {
	defer func() {
		if err != nil {
			c.close()
			err = fmt.Errorf("write the nftables table %s: %w", tableName, err)
		}
	}()
	if err := c.open(); err != nil {
		return err
	}
	t := c.table()
	c.AddTable(t) // so that it is there
	c.DelTable(t)
	if err := add(t); err != nil {
		return err
	}
	return c.Flush()
}

// headers are what differs between the IP families. mayGoOn matches a packet that a router would forward.
var headers = map[kernel.Family]struct {
	address nftables.SetDatatype
	mayGoOn string
}{
	kernel.IPv4: {nftables.TypeIPAddr, "ip ttl > 1"},
	kernel.IPv6: {nftables.TypeIP6Addr, "ip6 hoplimit > 1"},
}

// add adds the table as doc.go shows it.
func (c *connection) add(t *nftables.Table, what content) error {
	c.AddTable(t)
	h := headers[c.family]
	former := &nftables.Set{Table: t, Name: formerMap, IsMap: true, KeyType: h.address, DataType: h.address, HasTimeout: true, Timeout: Time}
	left := &nftables.Set{Table: t, Name: leftSet, KeyType: h.address, HasTimeout: true, Timeout: remembered}
	passed := &nftables.Set{Table: t, Name: passedSet, KeyType: h.address, HasTimeout: true, Timeout: Time}
	var nodes, keys, addresses []nftables.SetElement
	for ip, holder := range what.former {
		if _, has := what.left[ip]; !has {
			keys = append(keys, nftables.SetElement{Key: ip.AsSlice(), Timeout: timeout(holder.until)})
		}
		nodes = append(nodes, nftables.SetElement{Key: ip.AsSlice(), Val: holder.node.AsSlice(), Timeout: timeout(holder.until)})
	}
	for ip, until := range what.left {
		addresses = append(addresses, nftables.SetElement{Key: ip.AsSlice(), Timeout: timeout(until)})
	}
	if err := errors.Join(c.addSet(former, nodes), c.addSet(passed, keys), c.addSet(left, addresses)); err != nil {
		return err
	}
	strays := c.AddChain(&nftables.Chain{Name: straysName, Table: t})
	policy, behindDNAT := nftables.ChainPolicyAccept, *nftables.ChainPriorityNATDest+2
	hook := c.AddChain(&nftables.Chain{
		Name: hookChain, Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: &behindDNAT, Policy: &policy,
	})
	keep := c.AddChain(&nftables.Chain{
		Name: keepChain, Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: &keepPriority, Policy: &policy,
	})
	for _, r := range []struct {
		chain      *nftables.Chain
		mark, text string
	}{
		{keep, "begins a connection", "tcp flags & (syn | rst | ack) == syn accept"},
		{keep, "to be passed on, and to nobody else", "meta l4proto tcp IP daddr @" + passedSet + " dnat to IP daddr"},
		{hook, "TCP in the middle of a connection", "ct state invalid,new tcp flags & (syn | rst | ack) != syn goto " + straysName},
		{hook, "UDP, which may be an answer", "ct state invalid,new meta l4proto udp goto " + straysName},
		{strays, "another node has passed it on, or should have had it", "IP daddr @" + leftSet + " drop"},
		{strays, "the former holder may track it", h.mayGoOn + " dup to IP daddr map @" + formerMap + " drop"},
	} {
		rule, err := nft.Spec{Name: tableName, Family: c.family}.Rule(r.mark, r.text).In(r.chain)
		if err != nil {
			return err
		}
		c.AddRule(rule)
	}
	return nil
}

func (c *connection) addSet(s *nftables.Set, elements []nftables.SetElement) error {
	errs := []error{c.AddSet(s, nil)}
	for some := range slices.Chunk(elements, elementsInMessage) {
		errs = append(errs, c.SetAddElements(s, some))
	}
	return errors.Join(errs...)
}

// timeout is how long the kernel is to keep an element; it forgets none that has no time left.
func timeout(until time.Time) time.Duration {
	return max(time.Until(until).Round(time.Millisecond), time.Millisecond)
}
