package nft

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Spec is what never changes of a table.
type Spec struct {
	// Name is that of the table, which has the same in either family.
	Name   string
	Family kernel.Family
	// Ingress: the table is of the family netdev, and its base chains are those that the [State] has at devices. Family is that of
	// sets that have none of their own.
	Ingress  bool
	Sets     []Set
	Counters []string
	// Chains are the base chains. Others come and go with the [State].
	Chains []Chain
}

// Chain is a base chain. Its policy is to accept.
type Chain struct {
	Name     string
	Type     nftables.ChainType
	Hook     *nftables.ChainHook
	Priority nftables.ChainPriority
}

// State is what a table should hold.
type State struct {
	// Sets is nil if there should be no table.
	Sets Content
	// Chains are the rules of each chain. One that is not a base chain has at least one rule.
	Chains map[string][]Rule
	// Passing has the elements of the sets that are so. Once written they are not looked at again.
	Passing map[string]map[Key]Passing
	// Devices are the names of the network devices at whose ingress chains are base chains, by the names of these. A chain
	// keeps its device as long as it is there. The kernel may remove the chain with the device.
	Devices map[string]string
}

// Passing is an element that counts for a while. Value is invalid but in maps.
type Passing struct {
	Value netip.Addr
	Until time.Time
}

// ingressPriority is in front of everybody's usual priority at a device's ingress, which is 0.
const ingressPriority = -500

// Held is what the kernel holds: the elements of sets, and the marks of the rules by chain. Sets is
// nil if there is no table.
type Held struct {
	Sets   Content
	Chains map[string][]string
}

// err says which rules cannot be written.
func (s State) err() (err error) {
	for _, rules := range s.Chains {
		for _, r := range rules {
			err = errors.Join(err, r.err)
		}
	}
	return err
}

// held is s, once it is written.
func (s State) held() Held {
	h := Held{Sets: s.Sets, Chains: make(map[string][]string, len(s.Chains))}
	for chain, rules := range s.Chains {
		for _, r := range rules {
			h.Chains[chain] = append(h.Chains[chain], r.Mark)
		}
	}
	return h
}

// Differences says, for an operator and in a line each, how have differs from want; nothing if it does not. have and fault are those of
// [Writer.Inspect].
func (s Spec) Differences(want State, have Held, fault string) []string {
	differences := s.differences(want.held(), have)
	if err := want.err(); err != nil {
		differences = append(differences, fmt.Sprintf("table %s cannot be written: %v", s.Name, err))
	}
	switch {
	case fault != "":
		return slices.Insert(differences, 0, fault)
	case want.Sets == nil && have.Sets != nil:
		return append(differences, fmt.Sprintf("table %s is unexpected", s.Name))
	}
	return differences
}

func (s Spec) differences(want, have Held) []string {
	differences := Differences(s.Name, s.Sets, want.Sets, have.Sets)
	for _, chain := range differing(want, have) {
		switch {
		case want.Chains[chain] == nil && !s.isBase(chain):
			differences = append(differences, fmt.Sprintf("table %s has an unexpected chain: %s", s.Name, chain))
		case have.Chains[chain] == nil && !s.isBase(chain):
			differences = append(differences, fmt.Sprintf("chain %s of table %s is missing or empty", chain, s.Name))
		default:
			differences = append(differences, fmt.Sprintf("chain %s of table %s has other rules than were written", chain, s.Name))
		}
	}
	return differences
}

func (s Spec) isBase(chain string) bool {
	return slices.ContainsFunc(s.Chains, func(c Chain) bool { return c.Name == chain })
}

// differing returns the names of the chains that have other rules in the one than in the other, sorted.
func differing(one, other Held) []string {
	var names []string
	for name, marks := range one.Chains {
		if !slices.Equal(marks, other.Chains[name]) {
			names = append(names, name)
		}
	}
	for name, marks := range other.Chains {
		if one.Chains[name] == nil && marks != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Writer keeps a table. It must not be used by two goroutines at once, and not in two network
// namespaces.
type Writer struct {
	spec   Spec
	table  *nftables.Table
	sets   map[string]*nftables.Set
	chains map[string]*nftables.Chain // the base chains
	// devices are those of the State that is written, or was last.
	devices map[string]string
	// passing is that of the State that is written.
	passing map[string]map[Key]Passing
	// conn is kept between transactions, for closing it costs milliseconds after one that
	// removed something. It is nil if there is none, or if it may hold answers to what failed.
	conn *Conn
	// held is what the kernel holds; known tells that it is known.
	held  Held
	known bool
	// failed: the last write failed, so there may be what no look finds, a set of other types for example.
	failed bool
	// generation is that of the ruleset that held was seen in, or made; 0 if somebody
	// else may have changed the table since.
	generation uint32
}

// NewWriter returns a Writer for the network namespace of the process.
func NewWriter(spec Spec) *Writer {
	w := &Writer{spec: spec, sets: map[string]*nftables.Set{}, chains: map[string]*nftables.Chain{}}
	w.table = &nftables.Table{Name: spec.Name, Family: languageOf(spec).table}
	for _, set := range spec.Sets {
		w.sets[set.Name] = set.definition(w.table, FamilyOf(spec.familyOf(set)))
	}
	policy := nftables.ChainPolicyAccept
	for _, chain := range spec.Chains {
		w.chains[chain.Name] = &nftables.Chain{
			Name: chain.Name, Table: w.table, Type: chain.Type, Hooknum: chain.Hook, Priority: &chain.Priority, Policy: &policy,
		}
	}
	return w
}

// familyOf returns the family of a set's addresses.
func (s Spec) familyOf(set Set) kernel.Family { return cmp.Or(set.Family, s.Family) }

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// Known tells whether the Writer knows what the kernel holds, but for what others did since.
func (w *Writer) Known() bool { return w.known }

// Held is what was written or seen last.
func (w *Writer) Held() Held { return w.held }

// Read looks at what the kernel holds, so that the next Write repairs whatever differs.
// It returns that, and in words for a log how it differs from what was written last. A
// process that has written nothing yet gets no differences.
func (w *Writer) Read(ctx context.Context) (held Held, differences []string, err error) {
	err = w.connected(ctx, func(c *Conn) error {
		held, differences, err = w.read(c)
		return err
	})
	return held, differences, err
}

func (w *Writer) read(c *Conn) (held Held, differences []string, err error) {
	same, err := w.untouched(c)
	if same || err != nil {
		return w.held, nil, err
	}
	held, fault, generation, err := w.inspect(c)
	if err != nil {
		return Held{}, nil, err
	}
	if w.known {
		differences = w.spec.differences(w.held, held)
		if fault != "" {
			differences = append([]string{fault}, differences...)
		}
	}
	if !w.known || len(differences) > 0 {
		w.held = held
	}
	w.known, w.generation = fault == "", generation
	return held, differences, nil
}

// Untouched tells whether the kernel holds what was written or seen last. It makes no copy of it, and costs one
// message if nobody has changed the ruleset. It is false where that cannot be told: then Read can.
func (w *Writer) Untouched(ctx context.Context) (same bool, err error) {
	err = w.connected(ctx, func(c *Conn) error {
		same, err = w.untouched(c)
		return err
	})
	return same, err
}

func (w *Writer) untouched(c *Conn) (bool, error) {
	generation, err := c.Generation()
	if err != nil || !w.known {
		return false, err
	}
	if generation != w.generation && !w.holds(c) {
		return false, nil
	}
	w.generation = generation // of before, so that what has changed meanwhile shows at the next look
	return true, nil
}

// Inspect returns what the kernel holds, and what is wrong with it beside sets and rules; nothing if nothing is.
func (w *Writer) Inspect(ctx context.Context) (held Held, fault string, err error) {
	err = w.connected(ctx, func(c *Conn) error {
		held, fault, _, err = w.inspect(c)
		return err
	})
	return held, fault, err
}

// Generation returns the number of the kernel's ruleset in the network namespace, which each
// transaction of anybody raises by one. It is 0 where the kernel has no nftables.
func (w *Writer) Generation(ctx context.Context) (generation uint32, err error) {
	err = w.connected(ctx, func(c *Conn) error {
		generation, err = c.Generation()
		return err
	})
	return generation, UnlessNone(err)
}

// Write makes the kernel hold want, and tells whether it had to change anything. It looks at the kernel
// first if it does not know it. After an error the kernel holds what it held before, and the
// next Write looks again or, if it was about the transaction, replaces the table.
func (w *Writer) Write(ctx context.Context, want State) (changed bool, err error) {
	return w.write(ctx, want, func(c *Conn) (ch Change, whole bool, err error) {
		whole = w.failed
		if !w.known {
			var fault string
			if w.held, fault, _, err = w.inspect(c); err != nil {
				return Change{}, false, err
			}
			whole = whole || fault != ""
		}
		return Between(w.held.Sets, want.Sets), whole, nil
	})
}

// Change is Write for what differs in its sets by ch from what was written last. It costs what differs, and
// does not look at the kernel: an error may mean that somebody else has changed the table.
func (w *Writer) Change(ctx context.Context, want State, ch Change) (changed bool, err error) {
	return w.write(ctx, want, func(*Conn) (Change, bool, error) {
		if !w.known {
			return Change{}, false, errors.New("what it holds is not known")
		}
		return ch, false, nil
	})
}

// write sends the change that next finds, or all of want.
func (w *Writer) write(ctx context.Context, want State, next func(*Conn) (ch Change, whole bool, err error)) (changed bool, err error) {
	err = w.connected(ctx, func(c *Conn) error {
		before, err := c.Generation()
		if err != nil {
			return err
		}
		w.devices = want.Devices
		ch, whole, err := next(c)
		after := want.held()
		if err == nil {
			changed, err = w.send(c, want, after, ch, whole)
		}
		if err != nil {
			w.failed = true
			return fmt.Errorf("write the nftables table %s: %w", w.spec.Name, firstRefusal(err))
		}
		generation, err := c.Generation()
		if err != nil {
			return err
		}
		// A change on top of what somebody else did unseen would hide that; a whole table
		// does not. What others do during the transaction is seen by the number.
		alone := generation == before && before == w.generation || generation == before+1 && changed && (before == w.generation || whole)
		w.held, w.passing, w.known, w.failed, w.generation = after, want.Passing, true, false, 0
		if alone {
			w.generation = generation
		}
		return nil
	})
	if err != nil { // also before anything was sent: the caller may have changed the content that was written last
		w.known, w.generation = false, 0
	}
	return changed && err == nil, err
}

// Empty removes all elements of some of the table's sets, if there is a table, whatever else it holds.
func (w *Writer) Empty(ctx context.Context, sets ...string) error {
	return w.connected(ctx, func(c *Conn) error {
		table, err := w.find(c)
		if table == nil || err != nil {
			return err
		}
		w.known, w.generation = false, 0
		for _, set := range sets {
			if _, err := c.GetSetByName(w.table, set); err == nil { // a version before may not have had it
				c.FlushSet(w.sets[set])
			}
		}
		if err := c.Flush(); err != nil {
			return fmt.Errorf("empty sets of the nftables table %s: %w", w.spec.Name, err)
		}
		return nil
	})
}

// connected calls f with a connection to the kernel.
func (w *Writer) connected(ctx context.Context, f func(*Conn) error) (err error) {
	if w.conn == nil {
		if w.conn, err = Open(ctx); err != nil {
			return err
		}
	}
	if err = w.conn.expect(ctx); err == nil {
		err = f(w.conn)
	}
	if err != nil {
		w.Close()
	}
	return err
}

// Try has the kernel make the table, and take it away in the same transaction. An error says what it
// refuses.
func (w *Writer) Try(ctx context.Context, want State) error {
	return w.connected(ctx, func(c *Conn) error {
		if err := w.fill(c, want, nil); err != nil {
			return err
		}
		c.DelTable(w.table)
		return firstRefusal(c.Flush())
	})
}

// firstRefusal returns the first of the errors by which the kernel refuses a transaction: what it says of later parts follows from it.
func firstRefusal(err error) error {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		return firstRefusal(all.Unwrap()[0]) // each one more is joined to all before
	}
	return err
}

// Counters returns the packets that the table's counters have counted, by their names. There are none if there
// is no table.
func (w *Writer) Counters(ctx context.Context) (packets map[string]uint64, err error) {
	packets = map[string]uint64{}
	err = w.connected(ctx, func(c *Conn) error {
		counters, err := w.counters(c)
		for name, counter := range counters {
			packets[name] = counter.Packets
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return packets, nil
}

func (w *Writer) counters(c *Conn) (map[string]*nftables.CounterObj, error) {
	objects, err := c.GetObjects(w.table)
	if err != nil {
		return nil, fmt.Errorf("read the counters of the nftables table %s: %w", w.spec.Name, err)
	}
	counters := map[string]*nftables.CounterObj{}
	for _, object := range objects {
		if counter, ok := object.(*nftables.CounterObj); ok && slices.Contains(w.spec.Counters, counter.Name) {
			counters[counter.Name] = counter
		}
	}
	return counters, nil
}

// send sends a change, if it is one. The kernel then holds want, which is after.
func (w *Writer) send(c *Conn, want State, after Held, ch Change, whole bool) (changed bool, err error) {
	have := w.held
	switch {
	case have.Sets == nil && want.Sets == nil:
		return false, nil
	case whole || have.Sets == nil || want.Sets == nil:
		return true, w.rewrite(c, want)
	}
	chains := differing(have, after)
	passing := w.passes(want)
	if ch.Empty() && len(chains) == 0 && len(passing) == 0 {
		return false, nil
	}
	// Elements and rules go to chains, so these are there before and go after them.
	for _, chain := range chains {
		if have.Chains[chain] == nil && !w.spec.isBase(chain) {
			c.AddChain(w.chainAt(chain, want.Devices[chain]))
		}
	}
	if err := errors.Join(w.sendElements(c, want.Sets, ch), w.sendPassing(c, want, passing)); err != nil {
		return false, err
	}
	for _, chain := range chains {
		if after.Chains[chain] == nil && !w.spec.isBase(chain) {
			c.AddChain(w.chain(chain)) // so that it is there to be deleted: the kernel may have done so, with its device
		}
		if err := w.setRules(c, chain, want.Chains[chain]); err != nil {
			return false, err
		}
	}
	for _, chain := range chains {
		if after.Chains[chain] == nil && !w.spec.isBase(chain) {
			c.DelChain(w.chain(chain))
		}
	}
	return true, c.Flush()
}

func (w *Writer) sendElements(c *Conn, want Content, ch Change) error {
	for _, set := range w.spec.Sets {
		removed, added := ch.Removed[set.Name], ch.Added[set.Name]
		if set.Ranges && len(removed)+len(added) > 0 {
			// Ranges that overlap others which go with the same transaction are refused.
			c.FlushSet(w.sets[set.Name])
			removed, added = nil, want[set.Name]
		}
		for part := range set.messages(removed) {
			if err := c.SetDeleteElements(w.sets[set.Name], part); err != nil {
				return err
			}
		}
		if err := w.addElements(c, set, added); err != nil {
			return err
		}
	}
	return nil
}

// passes returns the sets whose passing elements are others than those that are written.
func (w *Writer) passes(want State) (sets []string) {
	for name, elements := range want.Passing {
		if !maps.Equal(elements, w.passing[name]) {
			sets = append(sets, name)
		}
	}
	return sets
}

// sendPassing replaces what is left of the passing elements of sets. If some only come, to a set that is no map, the others stay, also those
// that an earlier process has written.
func (w *Writer) sendPassing(c *Conn, want State, sets []string) (err error) {
	for _, name := range sets {
		before, elements := w.passing[name], maps.Clone(want.Passing[name])
		maps.DeleteFunc(elements, func(key Key, element Passing) bool { return element == before[key] })
		if w.specSet(name).Map || len(want.Passing[name])-len(elements) < len(before) { // some go or change
			c.FlushSet(w.sets[name])
			elements = want.Passing[name]
		}
		err = errors.Join(err, w.addPassing(c, name, elements))
	}
	return err
}

// addPassing adds those elements that still count. The kernel takes no timeout of less than a millisecond.
func (w *Writer) addPassing(c *Conn, set string, elements map[Key]Passing) error {
	var encoded []nftables.SetElement
	for key, element := range elements {
		if left := time.Until(element.Until); left >= time.Millisecond {
			encoded = w.specSet(set).encode(encoded, key, element.Value)
			encoded[len(encoded)-1].Timeout = left
		}
	}
	for part := range slices.Chunk(encoded, elementsInMessage) {
		if err := c.SetAddElements(w.sets[set], part); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) specSet(name string) Set {
	return w.spec.Sets[slices.IndexFunc(w.spec.Sets, func(s Set) bool { return s.Name == name })]
}

func (w *Writer) addElements(c *Conn, set Set, elements Elements) error {
	for part := range set.messages(elements) {
		if err := c.SetAddElements(w.sets[set.Name], part); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the whole table, or removes it if there should be none.
func (w *Writer) rewrite(c *Conn, want State) error {
	counters, err := w.counters(c)
	if err != nil {
		return err
	}
	c.AddTable(w.table) // so that it is there to be deleted
	c.DelTable(w.table)
	if want.Sets != nil {
		if err := w.fill(c, want, counters); err != nil {
			return err
		}
	}
	return c.Flush()
}

// Make asks for the table: the next Flush makes it. What is there of it stays, but for the rules of want's chains, and nothing is read. It is for
// those who keep what its sets hold by themselves.
func (s Spec) Make(c *Conn, want State) error { return NewWriter(s).fill(c, want, nil) }

// Remove removes the table, if there is one. Where the kernel has no nftables there is none.
func (s Spec) Remove(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := NewWriter(s)
	defer w.Close()
	_, err := w.Write(ctx, State{})
	return UnlessNone(err)
}

// Set returns a set of the table as the library has it.
func (s Spec) Set(name string) *nftables.Set { return NewWriter(s).sets[name] }

// fill makes the table with counters that go on from these.
func (w *Writer) fill(c *Conn, want State, counters map[string]*nftables.CounterObj) error {
	c.AddTable(w.table)
	for _, name := range w.spec.Counters {
		counter := &nftables.CounterObj{Table: w.table, Name: name}
		if before := counters[name]; before != nil {
			counter.Packets, counter.Bytes = before.Packets, before.Bytes
		}
		c.AddObj(counter)
	}
	chains := slices.Sorted(maps.Keys(want.Chains))
	for _, chain := range chains {
		if !w.spec.isBase(chain) {
			c.AddChain(w.chainAt(chain, want.Devices[chain]))
		}
	}
	for _, set := range w.spec.Sets {
		w.sets[set.Name].ID = 0 // another set than that of the table before
		if err := c.AddSet(w.sets[set.Name], nil); err != nil {
			return err
		}
		if err := errors.Join(w.addElements(c, set, want.Sets[set.Name]), w.addPassing(c, set.Name, want.Passing[set.Name])); err != nil {
			return err
		}
	}
	for _, chain := range w.spec.Chains {
		c.AddChain(w.chain(chain.Name))
	}
	for _, chain := range chains {
		if err := w.setRules(c, chain, want.Chains[chain]); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) chain(name string) *nftables.Chain {
	if base := w.chains[name]; base != nil {
		return base
	}
	return &nftables.Chain{Name: name, Table: w.table}
}

// chainAt returns a chain at the ingress of a device; one that others lead to if there is none.
func (w *Writer) chainAt(name, device string) *nftables.Chain {
	chain := w.chain(name)
	if device != "" {
		policy := nftables.ChainPolicyAccept
		chain.Type, chain.Hooknum, chain.Device = nftables.ChainTypeFilter, nftables.ChainHookIngress, device
		chain.Priority, chain.Policy = nftables.ChainPriorityRef(ingressPriority), &policy
	}
	return chain
}

// setRules replaces the rules of a chain.
func (w *Writer) setRules(c *Conn, chain string, rules []Rule) error {
	c.FlushChain(w.chain(chain))
	for _, r := range rules {
		rule, err := r.In(w.chain(chain))
		if err != nil {
			return err
		}
		c.AddRule(rule)
	}
	return nil
}

// holds tells whether the table is as it was written last, but for what others do meanwhile. It makes no copy of
// what the sets hold. It is false if that cannot be told: a look says why.
func (w *Writer) holds(c *Conn) bool {
	table, err := w.find(c)
	if table == nil || w.held.Sets == nil || err != nil {
		return false
	}
	for _, set := range w.spec.Sets {
		if set.learned() {
			continue
		}
		var want, have digest
		for key, value := range w.held.Sets[set.Name] {
			want.add(key, value)
		}
		if ok, err := w.elements(c, set, have.add); !ok || err != nil || have != want {
			return false
		}
	}
	marks, err := c.marks(w.table)
	return err == nil && len(differing(w.held, Held{Chains: marks})) == 0 && w.chainFault(c) == "" && w.tableFault(table, w.held) == ""
}

// digest is the same for the same elements in any order. Elements that are told twice, in the place of others,
// make another one.
type digest struct {
	elements int
	sum      uint64
}

// digestSeed is another one in each process, so nobody can choose elements with the digest of others.
var digestSeed = maphash.MakeSeed()

func (d *digest) add(key Key, value netip.Addr) {
	type element struct {
		key   Key
		value netip.Addr
	}
	d.elements++
	d.sum += maphash.Comparable(digestSeed, element{key, value})
}

// inspect returns what the table holds, and what else is wrong with it, with the generation in which that was so.
func (w *Writer) inspect(c *Conn) (held Held, fault string, generation uint32, err error) {
	const looks = 50 // while others write, or the kernel resizes a set
	for range looks {
		if generation, err = c.Generation(); err != nil {
			return Held{}, "", 0, err
		}
		held, fault, err = w.inspectOnce(c)
		after, generationErr := c.Generation()
		switch {
		case generationErr != nil:
			return Held{}, "", 0, generationErr
		case after != generation, errors.Is(err, errRehashed):
			continue // some of it is of before, some of after
		}
		return held, fault, generation, err
	}
	return Held{}, "", 0, fmt.Errorf("look at the nftables table %s: the ruleset has changed each of %d times meanwhile", w.spec.Name, looks)
}

// errRehashed is returned for a set whose hash table the kernel was resizing, as it does a while after
// many elements were added or removed. The kernel tells the elements in several messages, and goes on
// in each where the last one ended, by number: in another order, elements are told twice and as many
// are not told.
var errRehashed = errors.New("a set was resized while it was read")

func (w *Writer) inspectOnce(c *Conn) (held Held, fault string, err error) {
	table, err := w.find(c)
	if table == nil || err != nil {
		return Held{}, "", err
	}
	held.Sets = Content{}
	for _, set := range w.spec.Sets {
		if set.learned() {
			continue
		}
		elements, told := Elements{}, 0
		ok, err := w.elements(c, set, func(key Key, value netip.Addr) {
			elements[key] = value
			told++
		})
		if err != nil {
			fault = fmt.Sprintf("set %s of table %s cannot be listed: %v", set.Name, w.spec.Name, err)
			continue
		}
		if !ok {
			fault = fmt.Sprintf("set %s of table %s has elements that do not belong there", set.Name, w.spec.Name)
		}
		if ok && len(elements) < told {
			return Held{}, "", fmt.Errorf("set %s of table %s: %w", set.Name, w.spec.Name, errRehashed)
		}
		held.Sets[set.Name] = elements
	}
	if held.Chains, err = c.marks(w.table); err != nil {
		return Held{}, "", err
	}
	return held, cmp.Or(fault, w.chainFault(c), w.tableFault(table, held)), nil
}

// find returns the table as the kernel has it; nil if there is none.
func (w *Writer) find(c *Conn) (*nftables.Table, error) {
	table, err := c.ListTableOfFamily(w.table.Name, w.table.Family)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the nftables table %s: %w", w.spec.Name, err)
	}
	return table, nil
}

// elements calls visit with each element that the kernel has in a set; ok is false if there is one that this
// package does not write.
func (w *Writer) elements(c *Conn, set Set, visit func(Key, netip.Addr)) (ok bool, err error) {
	ok = true
	family := FamilyOf(w.spec.familyOf(set))
	var edges []edge
	names := map[uint16]string{unix.NFTA_SET_ELEM_LIST_TABLE: w.table.Name, unix.NFTA_SET_ELEM_LIST_SET: set.Name}
	for encoded, err := range c.list(w.table.Family, unix.NFT_MSG_GETSETELEM, names) {
		if err != nil {
			return false, err
		}
		for _, element := range attributes(attribute(encoded, unix.NFTA_SET_ELEM_LIST_ELEMENTS)) {
			if set.Ranges {
				e, valid := decodeEdge(family, element)
				edges, ok = append(edges, e), ok && valid
				continue
			}
			key, value, valid := set.decode(family, element)
			if ok = ok && valid; valid {
				visit(key, value)
			}
		}
	}
	return ok && rangesOf(family, edges, visit), nil
}

// chainFault returns what is wrong with the base chains; nothing if nothing is.
func (w *Writer) chainFault(c *Conn) string {
	for _, want := range w.spec.Chains {
		chain, err := c.ListChain(w.table, want.Name)
		if err != nil {
			return fmt.Sprintf("table %s lacks its chain %s: %v", w.spec.Name, want.Name, err)
		}
		if chain.Type != want.Type || chain.Hooknum == nil || *chain.Hooknum != *want.Hook ||
			chain.Priority == nil || *chain.Priority != want.Priority || chain.Policy == nil || *chain.Policy != nftables.ChainPolicyAccept {
			return fmt.Sprintf("chain %s of table %s is not where it belongs, or has another policy", want.Name, w.spec.Name)
		}
	}
	if !w.spec.Ingress {
		return ""
	}
	devices, err := c.devices(w.table)
	if err != nil {
		return err.Error()
	}
	for chain, device := range devices {
		if want := w.devices[chain]; want != "" && device != want {
			return fmt.Sprintf("chain %s of table %s is not at the ingress of %s", chain, w.spec.Name, want)
		}
	}
	return ""
}

// tableFault returns what is wrong with a table beside its sets and its chains; nothing if nothing is.
func (w *Writer) tableFault(table *nftables.Table, held Held) string {
	// The library takes the kernel's big-endian numbers for the machine's.
	number := func(n uint32) uint32 { return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n)) }
	if flags := number(table.Flags); flags != 0 {
		return fmt.Sprintf("table %s has flags that were not written, 'dormant' perhaps: %#x", w.spec.Name, flags)
	}
	objects := len(w.spec.Sets) + len(w.spec.Counters) + len(w.spec.Chains)
	for chain := range held.Chains {
		if !w.spec.isBase(chain) {
			objects++
		}
	}
	if number(table.Use) != uint32(objects) {
		return fmt.Sprintf("table %s has %d sets, chains and counters instead of %d: one was added or removed, or a chain has lost its rules",
			w.spec.Name, number(table.Use), objects)
	}
	return ""
}
