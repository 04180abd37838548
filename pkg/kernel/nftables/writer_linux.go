package nftables

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// answerTime is how long the kernel may take to answer; large transactions take a second.
	answerTime = 30 * time.Second
	// sendBuffer bounds a transaction: a hundred bytes for an element, so some 600,000.
	sendBuffer = 64 << 20
	// receiveBuffer bounds the answers to one: one for every message.
	receiveBuffer = 8 << 20
	// elementsInMessage: an attribute takes 64 KiB.
	elementsInMessage = 400
)

// Writer keeps the table of one IP family. It must not be used by two goroutines at once, and
// not in two network namespaces.
type Writer struct {
	family kernel.Family
	layout *layout
	// conn is kept between transactions, for closing it costs milliseconds after one that
	// removed something. It is nil if there is none, or if it may hold answers to what failed.
	conn *conn
	// written is what the kernel holds; known tells that it is known.
	written Content
	known   bool
	// state is that of the plan which was written last, if the kernel is known to hold it.
	state *state
	// generation is that of the ruleset that written was seen in, or made; 0 if somebody
	// else may have changed the table since.
	generation uint32
}

// NewWriter returns a Writer for family, for the network namespace of the process.
func NewWriter(family kernel.Family) *Writer {
	return &Writer{family: family, layout: newLayout(family)}
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() {
	if w.conn != nil {
		w.conn.close()
		w.conn = nil
	}
}

// Read looks at what the kernel holds, so that the next Write repairs whatever differs.
// It returns that, and in words for a log how it differs from what was written last. A
// process that has written nothing yet gets no differences.
func (w *Writer) Read(ctx context.Context) (held Content, differences []string, err error) {
	err = w.connected(ctx, func(c *conn) error {
		held, differences, err = w.read(c)
		return err
	})
	return held, differences, err
}

func (w *Writer) read(c *conn) (held Content, differences []string, err error) {
	generation, err := c.generation()
	if err != nil {
		return nil, nil, err
	}
	if w.known && generation == w.generation {
		return w.written, nil, nil
	}
	held, fault, generation, err := w.look(c)
	if err != nil {
		return nil, nil, err
	}
	if w.known {
		differences = Differences(w.written, held)
		if fault != "" {
			differences = append([]string{fault}, differences...)
		}
	}
	w.written, w.known, w.generation = held, fault == "", generation
	if len(differences) > 0 || !w.known {
		w.state = nil
	} else if w.state != nil {
		w.written = w.state.content
	}
	return held, differences, nil
}

// Generation returns the number of the kernel's ruleset in the network namespace, which each
// transaction of anybody raises by one. It is 0 where the kernel has no nftables.
func (w *Writer) Generation(ctx context.Context) (generation uint32, err error) {
	err = w.connected(ctx, func(c *conn) error {
		generation, err = c.generation()
		return err
	})
	if errors.Is(err, ErrNone) {
		return 0, nil
	}
	return generation, err
}

// Write makes the kernel hold the content for p and the journal of removed bindings, and tells
// whether it had to change anything. It looks at the kernel first if it does not know
// it. After an error the kernel holds what it held before, and the next Write looks again.
func (w *Writer) Write(ctx context.Context, p kernel.Desired, removed []kernel.Binding) (changed bool, err error) {
	return w.write(ctx, func(c *conn) (change, error) {
		whole := !w.known || w.written == nil
		if !w.known {
			if w.written, _, _, err = w.look(c); err != nil {
				return change{}, err
			}
		}
		w.state = newState(p, removed)
		if whole {
			return change{whole: w.written != nil || len(w.state.content) > 0}, nil
		}
		ch := between(w.written, w.state.content)
		ch.rules = w.needsRules(marks(w.layout.rules(w.written)))
		return ch, nil
	})
}

// Update is Write for what differs by c from what was written last. It costs what c is about, and
// does not look at the kernel: an error may mean that somebody else has changed the table.
func (w *Writer) Update(ctx context.Context, c kernel.Change, removed []kernel.Binding) (changed bool, err error) {
	return w.write(ctx, func(*conn) (change, error) {
		if !w.known || w.state == nil {
			return change{}, errors.New("what it holds is not known")
		}
		before := marks(w.layout.rules(w.written))
		ch := w.follow(c, removed)
		ch.rules = w.needsRules(before)
		return ch, nil
	})
}

// needsRules tells whether the state's content needs other rules than those with these marks.
func (w *Writer) needsRules(before []string) bool {
	return !slices.Equal(before, marks(w.layout.rules(w.state.content)))
}

// follow brings the state to what c leads to, and returns how that differs from what is written.
func (w *Writer) follow(c kernel.Change, removed []kernel.Binding) change {
	left := w.state.bindings - len(c.Removed)
	if w.state.bindings > 0 && left+len(c.Added) > 0 {
		return w.state.follow(c, removed)
	}
	// There were no bindings before, or there are none now.
	w.state = newState(kernel.Desired{Networks: c.Networks, Bindings: c.Added}, removed)
	return between(w.written, w.state.content)
}

// write sends the change that next finds; next makes the state that it leads to.
func (w *Writer) write(ctx context.Context, next func(*conn) (change, error)) (changed bool, err error) {
	err = w.connected(ctx, func(c *conn) error {
		before, err := c.generation()
		if err != nil {
			return err
		}
		ch, err := next(c)
		if err == nil {
			changed, err = w.send(c, ch)
		}
		if err != nil {
			w.known, w.state, w.generation = false, nil, 0
			return fmt.Errorf("write the nftables table %s: %w", Table, err)
		}
		after, err := c.generation()
		if err != nil {
			return err
		}
		// A change on top of what somebody else did unseen would hide that; a whole table
		// does not. What others do during the transaction is seen by the number.
		alone := after == before && before == w.generation || after == before+1 && changed && (before == w.generation || ch.whole)
		w.written, w.known, w.generation = w.state.content, true, 0
		if alone {
			w.generation = after
		}
		return nil
	})
	return changed && err == nil, err
}

// connected calls f with a connection to the kernel.
func (w *Writer) connected(ctx context.Context, f func(*conn) error) (err error) {
	if w.conn == nil {
		if w.conn, err = open(ctx); err != nil {
			return err
		}
	}
	w.conn.ctx = ctx
	if err = w.conn.expect(ctx); err == nil {
		err = f(w.conn)
	}
	if err != nil {
		w.Close()
	}
	return err
}

// Available returns why egress SNAT cannot be done with this kernel's nftables; nil if it can. It
// has the kernel make a table with everything in it, and take it away in the same transaction.
func Available(ctx context.Context) error {
	w := NewWriter(kernel.IPv4)
	defer w.Close()
	w.layout.table.Name = Table + "-probe"
	return w.connected(ctx, func(c *conn) error {
		if _, err := c.generation(); err != nil {
			return err
		}
		pod, egressIP := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2") // RFC 5737
		p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{netip.PrefixFrom(pod, 24).Masked()}}}
		for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
			p.Bindings = append(p.Bindings, kernel.Binding{Pod: pod, Protocol: protocol, EgressIP: egressIP})
		}
		if err := w.fill(c, Render(p)); err != nil {
			return err
		}
		c.DelTable(w.layout.table)
		if err := c.Flush(); err != nil {
			return fmt.Errorf("the kernel refuses what egress SNAT needs of nftables: %w", err)
		}
		return nil
	})
}

// Elements returns the number of elements that were written last.
func (w *Writer) Elements() int { return w.written.Elements() }

// Compare says, for an operator and in a line each, how the kernel differs from what it
// should hold for p; nothing if it does not.
func Compare(ctx context.Context, family kernel.Family, p kernel.Desired) ([]string, error) {
	w := NewWriter(family)
	defer w.Close()
	var held Content
	var fault string
	err := w.connected(ctx, func(c *conn) (err error) {
		held, fault, _, err = w.look(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	want := Render(p)
	differences := Differences(want, held)
	switch {
	case fault != "":
		return append([]string{fault}, differences...), nil
	case len(want) == 0 && held != nil && len(held[removedSet]) == 0:
		return append(differences, fmt.Sprintf("table %s is unexpected", Table)), nil
	}
	return differences, nil
}

// MissingFromProxier returns what kube-proxy's nftables proxier has written and is not there any
// more, in words for a log; nothing if all is there. The proxier itself does not look.
func MissingFromProxier(ctx context.Context, family kernel.Family) ([]string, error) {
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	table := &nftables.Table{Name: proxierTable, Family: newLayout(family).table.Family}
	var missing []string
	for _, name := range proxierChains {
		// A chain that is not there has no rules. There may be a hundred thousand others.
		rules, err := c.GetRules(table, &nftables.Chain{Name: name, Table: table})
		if err != nil {
			return nil, fmt.Errorf("list the rules of the nftables chain %s: %w", name, err)
		}
		if len(rules) == 0 {
			missing = append(missing, "table "+proxierTable+": rules of "+name)
		}
	}
	return missing, nil
}

// What the vendored nftables proxier always has (kubeProxyTable and nftablesBaseChains in
// pkg/proxy/nftables/proxier.go).
const proxierTable = "kube-proxy"

var proxierChains = []string{"nat-prerouting", "nat-output", "nat-postrouting", "filter-forward", "filter-output", "services"}

func marks(rules []rule) []string {
	var all []string
	for _, r := range rules {
		all = append(all, r.mark)
	}
	return all
}

// send sends a change, if it is one.
func (w *Writer) send(c *conn, ch change) (changed bool, err error) {
	want := w.state.content
	switch {
	case ch.whole || (len(w.written) == 0) != (len(want) == 0):
		return true, w.rewrite(c, want)
	case ch.empty():
		return false, nil
	}
	if _, changed := ch.added[exclusionsSet]; changed || ch.removed[exclusionsSet] != nil {
		// Ranges that overlap others which go with the same transaction are refused.
		c.FlushSet(w.layout.sets[exclusionsSet])
		ch.removed[exclusionsSet], ch.added[exclusionsSet] = nil, want[exclusionsSet]
	}
	for _, set := range setNames {
		if err := c.remove(w.layout.sets[set], ch.removed[set]); err != nil {
			return false, err
		}
		if err := c.add(w.layout.sets[set], ch.added[set]); err != nil {
			return false, err
		}
	}
	if ch.rules {
		c.FlushChain(w.layout.chain)
		w.addRules(c, want)
	}
	return true, c.Flush()
}

// rewrite replaces the whole table, or removes it if there is nothing to hold.
func (w *Writer) rewrite(c *conn, want Content) error {
	c.AddTable(w.layout.table) // so that it is there to be deleted
	c.DelTable(w.layout.table)
	if len(want) > 0 {
		if err := w.fill(c, want); err != nil {
			return err
		}
	}
	return c.Flush()
}

// fill makes the table, which is not there.
func (w *Writer) fill(c *conn, want Content) error {
	l := w.layout
	c.AddTable(l.table)
	for _, name := range setNames {
		l.sets[name].ID = 0 // another set than that of the table before
		if err := c.AddSet(l.sets[name], nil); err != nil {
			return err
		}
		if err := c.add(l.sets[name], want[name]); err != nil {
			return err
		}
	}
	c.AddChain(l.chain)
	w.addRules(c, want)
	return nil
}

func (w *Writer) addRules(c *conn, want Content) {
	for _, r := range w.layout.rules(want) {
		c.AddRule(&nftables.Rule{Table: w.layout.table, Chain: w.layout.chain, Exprs: r.exprs, UserData: []byte(r.mark)})
	}
}

// look returns what the table holds, and what is wrong with it, if its rules or sets are not as this
// package writes them, with the generation in which that was so.
func (w *Writer) look(c *conn) (held Content, fault string, generation uint32, err error) {
	const looks = 50 // while others write, or the kernel resizes a set
	for range looks {
		if generation, err = c.generation(); err != nil {
			return nil, "", 0, err
		}
		held, fault, err = w.lookOnce(c)
		after, generationErr := c.generation()
		switch {
		case generationErr != nil:
			return nil, "", 0, generationErr
		case after != generation, errors.Is(err, errRehashed):
			continue // some of it is of before, some of after
		}
		return held, fault, generation, err
	}
	return nil, "", 0, fmt.Errorf("look at the nftables table %s: the ruleset has changed each of %d times meanwhile", Table, looks)
}

// errRehashed is returned for a set whose hash table the kernel was resizing, as it does a while after
// many elements were added or removed. The kernel tells the elements in several messages, and goes on
// in each where the last one ended, by number: in another order, elements are told twice and as many
// are not told.
var errRehashed = errors.New("a set was resized while it was read")

func (w *Writer) lookOnce(c *conn) (held Content, fault string, err error) {
	table, err := c.ListTableOfFamily(w.layout.table.Name, w.layout.table.Family)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOENT) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("look for the nftables table %s: %w", Table, err)
	}
	held = Content{}
	for _, name := range setNames {
		encoded, err := c.GetSetElements(w.layout.sets[name])
		if err != nil {
			fault = fmt.Sprintf("set %s of table %s cannot be listed: %v", name, Table, err)
			continue
		}
		elements, ok := w.layout.decode(name, encoded)
		if !ok {
			fault = fmt.Sprintf("set %s of table %s has elements that do not belong there", name, Table)
		}
		if name != exclusionsSet && ok && len(elements) < len(encoded) {
			return nil, "", fmt.Errorf("set %s of table %s: %w", name, Table, errRehashed)
		}
		held[name] = elements
	}
	return held, cmp.Or(fault, c.chainFault(w.layout, held), tableFault(table)), nil
}

// tableFault returns what is wrong with a table beside its sets and its chain; nothing if nothing is.
func tableFault(table *nftables.Table) string {
	// The library takes the kernel's big-endian numbers for the machine's.
	number := func(n uint32) uint32 { return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n)) }
	if flags := number(table.Flags); flags != 0 {
		return fmt.Sprintf("table %s has flags that were not written, 'dormant' perhaps: %#x", Table, flags)
	}
	if objects := len(setNames) + 1; number(table.Use) != uint32(objects) {
		return fmt.Sprintf("table %s has %d sets and chains; %d were written", Table, number(table.Use), objects)
	}
	return ""
}

// Withdraw takes all bindings of both families out of the kernel, but leaves them in the journal.
// It returns them; [Cleanup] removes the journal when nothing depends on it any more.
func Withdraw(ctx context.Context) (map[kernel.Family][]kernel.Binding, error) {
	withdrawn := map[kernel.Family][]kernel.Binding{}
	err := everywhere(func(w *Writer) error {
		held, _, err := w.Read(ctx)
		if err == nil && len(held.Bindings()) > 0 {
			_, err = w.Write(ctx, kernel.Desired{}, held.Bindings())
		}
		withdrawn[w.family] = held.Bindings()
		return err
	})
	return withdrawn, err
}

// Cleanup removes the tables of both families, whatever they hold.
func Cleanup(ctx context.Context) error {
	return everywhere(func(w *Writer) error {
		_, err := w.Write(ctx, kernel.Desired{}, nil)
		return err
	})
}

// everywhere calls do for both families. A kernel without nftables holds nothing.
func everywhere(do func(*Writer) error) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		w := NewWriter(family)
		err := do(w)
		w.Close()
		if !errors.Is(err, ErrNone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ErrNone is returned where the kernel has no nftables.
var ErrNone = errors.New("this kernel has no nftables (nf_tables)")

// conn is a connection to the kernel.
type conn struct {
	*nftables.Conn
	raw *netlink.Conn
	ctx context.Context // of the look or transaction that is under way
}

// open connects to the nftables of the thread's network namespace.
func open(ctx context.Context) (*conn, error) {
	c := &conn{ctx: ctx}
	option := func(raw *netlink.Conn) error {
		c.raw = raw
		return errors.Join(raw.SetWriteBuffer(sendBuffer), raw.SetReadBuffer(receiveBuffer), c.expect(ctx))
	}
	var err error
	if c.Conn, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(option)); err != nil {
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return nil, ErrNone
		}
		return nil, fmt.Errorf("connect to nftables: %w", err)
	}
	return c, nil
}

// expect gives the kernel its time to answer, from now on.
func (c *conn) expect(ctx context.Context) error {
	deadline := time.Now().Add(answerTime)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		deadline = at
	}
	if err := c.raw.SetDeadline(deadline); err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	return nil
}

func (c *conn) close() { _ = c.CloseLasting() } // nothing is under way

// generation returns the number of the kernel's ruleset, which each transaction of anybody raises by one.
func (c *conn) generation() (uint32, error) {
	answers, err := c.raw.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN), Flags: netlink.Request},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
	})
	switch {
	case errors.Is(err, unix.EINVAL):
		return 0, ErrNone // nobody serves this part of netfilter
	case err != nil:
		return 0, fmt.Errorf("ask nftables for its generation: %w", err)
	case len(answers) == 0 || len(answers[0].Data) < 4:
		return 0, errors.New("ask nftables for its generation: no answer")
	}
	attributes, err := netlink.NewAttributeDecoder(answers[0].Data[4:])
	if err != nil {
		return 0, fmt.Errorf("ask nftables for its generation: %w", err)
	}
	attributes.ByteOrder = binary.BigEndian
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_GEN_ID {
			return attributes.Uint32(), nil
		}
	}
	return 0, errors.New("ask nftables for its generation: the answer has none")
}

// chainFault returns what is wrong with the chain of a table that holds this; nothing if nothing is.
func (c *conn) chainFault(l *layout, held Content) string {
	chain, err := c.ListChain(l.table, chainName)
	if err != nil {
		return fmt.Sprintf("table %s lacks its chain: %v", Table, err)
	}
	if chain.Type != l.chain.Type || chain.Hooknum == nil || *chain.Hooknum != *l.chain.Hooknum ||
		chain.Priority == nil || *chain.Priority != priority || chain.Policy == nil || *chain.Policy != *l.chain.Policy {
		return fmt.Sprintf("chain %s of table %s is not where it belongs, or has another policy", chainName, Table)
	}
	rules, err := c.GetRules(l.table, l.chain)
	if err != nil {
		return fmt.Sprintf("the rules of table %s cannot be listed: %v", Table, err)
	}
	var have []string
	for _, r := range rules {
		have = append(have, string(r.UserData))
	}
	if !slices.Equal(have, marks(l.rules(held))) {
		return fmt.Sprintf("chain %s of table %s has other rules than were written", chainName, Table)
	}
	return ""
}

func (c *conn) add(set *nftables.Set, elements Elements) error {
	for part := range messages(set.Name, elements) {
		if err := c.SetAddElements(set, part); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) remove(set *nftables.Set, elements Elements) error {
	for part := range messages(set.Name, elements) {
		if err := c.SetDeleteElements(set, part); err != nil {
			return err
		}
	}
	return nil
}
