package nftables

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

const (
	// answerTime is how long the kernel may take to answer; large transactions take a second.
	answerTime = 30 * time.Second
	// sendBuffer bounds a transaction: a hundred bytes for an element, so some 600,000.
	sendBuffer = 64 << 20
	// receiveBuffer bounds the answers to one: one for every chunk.
	receiveBuffer = 8 << 20
	// chunk is how many elements a message has: an attribute takes 64 KiB.
	chunk = 400
)

// Writer keeps the table of one IP family. It must not be used by two goroutines at once.
type Writer struct {
	family Family
	layout *layout
	// written is what the kernel holds; known tells that it is known.
	written Content
	known   bool
	// state is that of the plan which was written last, if the kernel is known to hold it.
	state *state
	// generation is that of the ruleset that written was seen in; 0 if somebody else may have
	// changed it since.
	generation uint32
}

// NewWriter returns a Writer for family, for the network namespace of the process.
func NewWriter(family Family) *Writer {
	return &Writer{family: family, layout: newLayout(family)}
}

// Read looks at what the kernel holds, so that the next Write repairs whatever differs.
// It returns that, and in words for a log how it differs from what was written last. A
// process that has written nothing yet gets no differences.
func (w *Writer) Read(ctx context.Context) (held Content, differences []string, err error) {
	c, err := open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	generation, err := c.generation()
	if err != nil {
		return nil, nil, err
	}
	if w.known && generation == w.generation {
		return w.written, nil, nil
	}
	held, fault, err := w.look(c)
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

// Write makes the kernel hold the content for p and the journal of removed bindings, and tells
// whether it had to change anything. It looks at the kernel first if it does not know
// it. After an error the kernel holds what it held before, and the next Write looks again.
func (w *Writer) Write(ctx context.Context, p plan.Plan, removed []plan.Binding) (changed bool, err error) {
	c, err := open(ctx)
	if err != nil {
		return false, err
	}
	defer c.close()
	before, err := c.generation()
	if err != nil {
		return false, err
	}
	if changed, err = w.transact(c, p, removed); err != nil {
		w.known, w.state, w.generation = false, nil, 0
		return false, fmt.Errorf("write the nftables table %s: %w", Table, err)
	}
	after, err := c.generation()
	if err != nil {
		return changed, err
	}
	w.written, w.known = w.state.content, true
	if changed && after == before+1 || !changed && after == before && before == w.generation {
		w.generation = after // nobody else has written meanwhile
	} else {
		w.generation = 0
	}
	return changed, nil
}

// Available tells whether the kernel has nftables, in which NAT is possible.
func Available() bool {
	c, err := open(context.Background())
	if err != nil {
		return false
	}
	defer c.close()
	_, err = c.generation()
	return err == nil
}

// Elements returns the number of elements that were written last.
func (w *Writer) Elements() int { return w.written.Elements() }

// Compare says, for an operator and in a line each, how the kernel differs from what it
// should hold for p; nothing if it does not.
func Compare(ctx context.Context, family Family, p plan.Plan) ([]string, error) {
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	held, fault, err := NewWriter(family).look(c)
	if err != nil {
		return nil, err
	}
	want := Render(p)
	differences := Differences(want, held)
	switch {
	case fault != "":
		return append([]string{fault}, differences...), nil
	case len(want) == 0 && held != nil && len(held[removedSet]) == 0:
		return append(differences, fmt.Sprintf("table %s is too much", Table)), nil
	}
	return differences, nil
}

// MissingFromProxier returns what kube-proxy's nftables proxier has written and is not there any
// more, in words for a log; nothing if all is there. The proxier itself does not look.
func MissingFromProxier(ctx context.Context, family Family) ([]string, error) {
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	l := newLayout(family)
	chains, err := c.ListChainsOfTableFamily(l.table.Family)
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	there := map[string]bool{}
	for _, chain := range chains {
		if chain.Table.Name != proxierTable || !slices.Contains(proxierChains, chain.Name) {
			continue
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return nil, fmt.Errorf("list the rules of the nftables chain %s: %w", chain.Name, err)
		}
		there[chain.Name] = len(rules) > 0
	}
	var missing []string
	for _, name := range proxierChains {
		if !there[name] {
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

// transact makes the table hold what p and the journal want: by what differs, or anew if that
// cannot be told, or is refused because somebody has changed the table meanwhile.
func (w *Writer) transact(c *conn, p plan.Plan, removed []plan.Binding) (changed bool, err error) {
	if w.known {
		rules := marks(w.layout.rules(w.written))
		ch := w.next(p, removed)
		if slices.Equal(rules, marks(w.layout.rules(w.state.content))) && (len(w.written) == 0) == (len(w.state.content) == 0) {
			if err = w.update(c, ch); err == nil || c.ctx.Err() != nil {
				return !ch.empty(), err
			}
		}
	}
	if w.written, _, err = w.look(c); err != nil {
		return false, err
	}
	w.state = newState(p, removed)
	if len(w.state.content) == 0 && w.written == nil {
		return false, nil
	}
	return true, w.rewrite(c, w.state.content)
}

// next makes the state that for p and the journal, and returns how it differs from what is written.
func (w *Writer) next(p plan.Plan, removed []plan.Binding) change {
	if w.state != nil && len(w.state.plan.Bindings) > 0 && len(p.Bindings) > 0 {
		return w.state.follow(p, removed)
	}
	w.state = newState(p, removed)
	return between(w.written, w.state.content)
}

// update sends a change.
func (w *Writer) update(c *conn, ch change) error {
	if _, changed := ch.added[exclusionsSet]; changed || ch.removed[exclusionsSet] != nil {
		// Ranges that overlap others which go with the same transaction are refused.
		c.FlushSet(w.layout.sets[exclusionsSet])
		ch.removed[exclusionsSet], ch.added[exclusionsSet] = nil, w.state.content[exclusionsSet]
	}
	for _, set := range setNames {
		if err := c.remove(w.layout.sets[set], encode(set, ch.removed[set])); err != nil {
			return err
		}
		if err := c.add(w.layout.sets[set], encode(set, ch.added[set])); err != nil {
			return err
		}
	}
	return c.Flush()
}

// rewrite replaces the whole table, or removes it if there is nothing to hold.
func (w *Writer) rewrite(c *conn, want Content) error {
	l := w.layout
	c.AddTable(l.table) // so that it is there to be deleted
	c.DelTable(l.table)
	if len(want) == 0 {
		return c.Flush()
	}
	c.AddTable(l.table)
	for _, name := range setNames {
		l.sets[name].ID = 0 // another set than that of the table before
		if err := c.AddSet(l.sets[name], nil); err != nil {
			return err
		}
		if err := c.add(l.sets[name], encode(name, want[name])); err != nil {
			return err
		}
	}
	c.AddChain(l.chain)
	for _, r := range l.rules(want) {
		c.AddRule(&nftables.Rule{Table: l.table, Chain: l.chain, Exprs: r.exprs, UserData: []byte(r.mark)})
	}
	return c.Flush()
}

// look returns what the table holds, and what is wrong with it, if its rules or sets are not as this
// package writes them.
func (w *Writer) look(c *conn) (held Content, fault string, err error) {
	there, err := c.tableThere(w.layout)
	if err != nil {
		return nil, "", err
	}
	if !there {
		return nil, "", nil
	}
	held = Content{}
	sets, err := c.GetSets(w.layout.table)
	if err != nil {
		return nil, "", fmt.Errorf("list the sets of the nftables table %s: %w", Table, err)
	}
	for _, set := range sets {
		if w.layout.sets[set.Name] == nil {
			fault = fmt.Sprintf("table %s has a set that is too much: %s", Table, set.Name)
			continue
		}
		encoded, err := c.GetSetElements(w.layout.sets[set.Name])
		if err != nil {
			return nil, "", fmt.Errorf("list the set %s of the nftables table %s: %w", set.Name, Table, err)
		}
		elements, ok := w.layout.decode(set.Name, encoded)
		if !ok {
			fault = fmt.Sprintf("set %s of table %s has elements that do not belong there", set.Name, Table)
		}
		held[set.Name] = elements
	}
	if len(held) < len(setNames) {
		fault = fmt.Sprintf("table %s lacks sets", Table)
	}
	chain, err := c.chainFault(w.layout, held)
	return held, cmp.Or(fault, chain), err
}

// Cleanup removes the tables of both families, and returns the bindings that they stood for.
func Cleanup(ctx context.Context) (map[Family][]plan.Binding, error) {
	removed := map[Family][]plan.Binding{}
	var errs []error
	for _, family := range []Family{IPv4, IPv6} {
		w := NewWriter(family)
		held, _, err := w.Read(ctx)
		if errors.Is(err, ErrNone) {
			continue
		}
		if err == nil {
			w.known = false
			_, err = w.Write(ctx, plan.Plan{}, nil)
		}
		removed[family] = held.Bindings()
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// ErrNone is returned where the kernel has no nftables.
var ErrNone = errors.New("this kernel has no nftables (nf_tables)")

// conn is a connection to the kernel for one look or one transaction.
type conn struct {
	*nftables.Conn
	raw *netlink.Conn
	ctx context.Context
}

// open connects to the nftables of the thread's network namespace.
func open(ctx context.Context) (*conn, error) {
	c := &conn{ctx: ctx}
	option := func(raw *netlink.Conn) error {
		c.raw = raw
		deadline := time.Now().Add(answerTime)
		if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
			deadline = at
		}
		return errors.Join(raw.SetWriteBuffer(sendBuffer), raw.SetReadBuffer(receiveBuffer), raw.SetDeadline(deadline))
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

func (c *conn) tableThere(l *layout) (bool, error) {
	_, err := c.ListTableOfFamily(l.table.Name, l.table.Family)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the nftables table %s: %w", Table, err)
	}
	return true, nil
}

// chainFault returns what is wrong with the chain of a table that holds this.
func (c *conn) chainFault(l *layout, held Content) (string, error) {
	chains, err := c.ListChainsOfTableFamily(l.table.Family)
	if err != nil {
		return "", fmt.Errorf("list nftables chains: %w", err)
	}
	found := false
	for _, chain := range chains {
		switch {
		case chain.Table.Name != Table:
		case chain.Name != chainName:
			return fmt.Sprintf("table %s has a chain that is too much: %s", Table, chain.Name), nil
		case chain.Type != l.chain.Type || chain.Hooknum == nil || *chain.Hooknum != *l.chain.Hooknum || chain.Priority == nil || *chain.Priority != priority:
			return fmt.Sprintf("chain %s of table %s is not where it belongs", chainName, Table), nil
		default:
			found = true
		}
	}
	if !found {
		return fmt.Sprintf("table %s lacks its chain", Table), nil
	}
	rules, err := c.GetRules(l.table, l.chain)
	if err != nil {
		return "", fmt.Errorf("list the rules of the nftables table %s: %w", Table, err)
	}
	var have []string
	for _, r := range rules {
		have = append(have, string(r.UserData))
	}
	if !slices.Equal(have, marks(l.rules(held))) {
		return fmt.Sprintf("chain %s of table %s has other rules than were written", chainName, Table), nil
	}
	return "", nil
}

func (c *conn) add(set *nftables.Set, elements []nftables.SetElement) error {
	for part := range slices.Chunk(elements, chunk) {
		if err := c.SetAddElements(set, part); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) remove(set *nftables.Set, elements []nftables.SetElement) error {
	for part := range slices.Chunk(elements, chunk) {
		if err := c.SetDeleteElements(set, part); err != nil {
			return err
		}
	}
	return nil
}
