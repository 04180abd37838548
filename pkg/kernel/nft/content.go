package nft

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Set is one of a table's sets. The first field of its keys is an address, unless Hardware says otherwise.
type Set struct {
	Name string
	// Family is that of the addresses; the table's if empty.
	Family kernel.Family
	// Port: the keys are ports instead, and have no other fields.
	Port bool
	// Ranges: the elements are ranges of addresses, from Key.Pod to Key.Other, and have no other fields.
	Ranges bool
	// Hardware: the keys are hardware addresses, and have no other fields. From: a hardware address is behind the first field.
	Hardware, From bool
	// Protocol and Other are fields of the keys behind the first. Ports: two ports are behind these.
	Protocol, Other, Ports bool
	// Tuple: the keys are those of conntrack's flows instead, two addresses and the number of a protocol, and two ports with Ports. A [Key]
	// stands for none of them.
	Tuple bool
	// PortRange: ports in a row, Key.Ports, are the last field. The elements do not overlap.
	PortRange bool
	// Map tells that each element has an address as its value.
	Map bool
	// Chains, for a map: the value is a verdict, to go to the chain that [ChainOf] names so. For each rule, and each element of
	// such maps, that is added, the kernel follows all elements of all such maps of the table.
	Chains string
	// GivesPorts, for a map: ports in a row, Key.Ports, are behind the address in the value. Without PortRange they are no part of the
	// kernel's key, so there is one element for the rest of a key.
	GivesPorts bool
	// ClassIDs, for a map: the value is what [ClassID] returns.
	ClassIDs bool
	// Journal: no packet meets the set, and what it holds is no difference to tell.
	Journal bool
	// Timeout, if it is not 0: packets write the elements, at most Size of them, or the owner of the table, and the kernel forgets each so long
	// after it was written last. They are no content, and no difference to tell.
	Timeout time.Duration
	Size    uint32
	// Passing, with a Timeout: no packets write the elements. [State].Passing has them, unless the owner writes them himself.
	Passing bool
}

// learned tells whether the kernel forgets the elements by itself.
func (s Set) learned() bool { return s.Timeout > 0 }

// Content is what the sets of a table hold, by their names. An empty set may be missing. Nil stands
// for no table.
type Content map[string]Elements

// Elements are those of a set: the values, invalid but in maps, by their keys.
type Elements map[Key]netip.Addr

// Key is that of an element. Each set has a use for some of the fields.
type Key struct {
	// Pod is the first field, or the first address of a range.
	Pod netip.Addr
	// Protocol is that of a binding. [kernel.All] stands for none.
	Protocol kernel.Protocol
	// Hardware is the hardware address in the key of a set that has them.
	Hardware kernel.HardwareAddr
	// Other is another address, or the last of a range.
	Other netip.Addr
	// Port is that of a set of ports.
	Port uint16
	// Ports are those of a set of port ranges, or of a map that gives ports.
	Ports kernel.Ports
}

// Elements returns the number of elements in all sets.
func (c Content) Elements() int {
	n := 0
	for _, elements := range c {
		n += len(elements)
	}
	return n
}

// ChainOf returns the name of an address's chain. That of an IPv6 address has hyphens for colons,
// which nft takes in no name.
func ChainOf(prefix string, addr netip.Addr) string {
	return prefix + strings.ReplaceAll(addr.String(), ":", "-")
}

// readPorts reads ports as [kernel.Ports.String] writes them.
func readPorts(text string) (kernel.Ports, error) {
	first, last, _ := strings.Cut(text, "-")
	from, err := strconv.ParseUint(first, 10, 16)
	to, lastErr := strconv.ParseUint(last, 10, 16)
	if err != nil || lastErr != nil || from > to {
		return kernel.Ports{}, fmt.Errorf("%q are no ports: expected two numbers, 32000-32511 for example", text)
	}
	return kernel.Ports{First: uint16(from), Last: uint16(to)}, nil
}

// addressOf returns the address that a chain is named for.
func addressOf(prefix, chain string) (addr netip.Addr, ok bool) {
	text, ok := strings.CutPrefix(chain, prefix)
	addr, err := netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
	return addr, ok && err == nil
}

// ClassID stands for a number, which is not 0, in a map of class IDs: the address that has the same bits. They are the same in
// either byte order, for nft takes those of the library's maps for big-endian.
func ClassID(number uint8) netip.Addr { return netip.AddrFrom4([4]byte{0, number, number, 0}) }

// NumberOf is the reverse of ClassID; 0 for an address that stands for no number.
func NumberOf(classID netip.Addr) uint8 {
	if number := classID.Unmap().AsSlice(); len(number) == 4 && classID == ClassID(number[1]) {
		return number[1]
	}
	return 0
}

// Text is an element as nft prints it.
func (s Set) Text(key Key, value netip.Addr) string {
	switch {
	case s.Port:
		return strconv.Itoa(int(key.Port))
	case s.Ranges && key.Pod == key.Other: // nft 0.9.8 reads no range of one address
		return key.Pod.String()
	case s.Ranges:
		return key.Pod.String() + "-" + key.Other.String()
	case s.Hardware:
		return key.Hardware.String()
	}
	text := key.Pod.String()
	if s.Protocol {
		text += " . " + string(key.Protocol)
	}
	if s.Other {
		text += " . " + key.Other.String()
	}
	if s.From {
		text += " . " + key.Hardware.String()
	}
	if s.PortRange {
		text += " . " + key.Ports.String()
	}
	switch {
	case s.Chains != "":
		text += " : goto " + ChainOf(s.Chains, value)
	case s.ClassIDs:
		number := value.As4()[1]
		text += fmt.Sprintf(" : %x:%x00", number, number)
	case s.Map:
		text += " : " + value.String()
	}
	if s.GivesPorts {
		text += " . " + key.Ports.String()
	}
	return text
}

// Differences says, for an operator and in a line each, how the sets of a table differ from want; nothing if
// they hold what they should.
func Differences(table string, sets []Set, want, have Content) []string {
	var differences []string
	for _, set := range sets {
		if set.Journal || set.learned() {
			continue
		}
		for key, value := range lacking(have[set.Name], want[set.Name]) {
			differences = append(differences, fmt.Sprintf("set %s of table %s lacks the element %s", set.Name, table, set.Text(key, value)))
		}
		for key, value := range lacking(want[set.Name], have[set.Name]) {
			differences = append(differences, fmt.Sprintf("set %s of table %s has an unexpected element: %s", set.Name, table, set.Text(key, value)))
		}
	}
	slices.Sort(differences)
	return differences
}

// lacking returns the elements of another set that a set does not have, or has with another value.
func lacking(set, other Elements) Elements {
	missing := Elements{}
	for key, value := range other {
		if has, there := set[key]; !there || has != value {
			missing[key] = value
		}
	}
	return missing
}

// Change is what differs between two contents, by set: elements that are to be removed first,
// and those that are to be added then.
type Change struct{ Removed, Added map[string]Elements }

// Empty tells whether nothing differs.
func (c Change) Empty() bool { return len(c.Removed) == 0 && len(c.Added) == 0 }

// Between returns the change from one content to another.
func Between(from, to Content) Change {
	c := Change{Removed: map[string]Elements{}, Added: map[string]Elements{}}
	for set := range from {
		if removed := lacking(to[set], from[set]); len(removed) > 0 {
			c.Removed[set] = removed
		}
	}
	for set := range to {
		if added := lacking(from[set], to[set]); len(added) > 0 {
			c.Added[set] = added
		}
	}
	return c
}

// Edit changes a content in place, and knows what some of its elements were before.
type Edit struct {
	content Content
	before  map[string]map[Key]former
}

// former is what an element was.
type former struct {
	value netip.Addr
	there bool
}

// NewEdit begins to change a content, which has all of its sets.
func NewEdit(content Content) Edit { return Edit{content, map[string]map[Key]former{}} }

// NewFill is NewEdit where nobody asks for the Change, which costs as much again as the content.
func NewFill(content Content) Edit { return Edit{content: content} }

func (e Edit) touch(set string, key Key) {
	if e.before == nil {
		return
	}
	if _, known := e.before[set][key]; !known {
		value, there := e.content[set][key]
		kernel.Put(e.before, set, key, former{value, there})
	}
}

// Set adds an element, or gives it another value.
func (e Edit) Set(set string, key Key, value netip.Addr) {
	e.touch(set, key)
	e.content[set][key] = value
}

// Remove removes an element, if it is there.
func (e Edit) Remove(set string, key Key) {
	e.touch(set, key)
	delete(e.content[set], key)
}

// Replace makes a set hold these elements and no others.
func (e Edit) Replace(set string, elements Elements) {
	for key := range e.content[set] {
		if _, stays := elements[key]; !stays {
			e.Remove(set, key)
		}
	}
	if e.content[set] == nil {
		e.content[set] = Elements{}
	}
	for key, value := range elements {
		if is, there := e.content[set][key]; !there || is != value {
			e.Set(set, key, value)
		}
	}
}

// Change returns how the content differs from what it was.
func (e Edit) Change() Change {
	c := Change{Removed: map[string]Elements{}, Added: map[string]Elements{}}
	for set, keys := range e.before {
		for key, was := range keys {
			value, there := e.content[set][key]
			if was.there && (!there || value != was.value) {
				kernel.Put(c.Removed, set, key, was.value)
			}
			if there && (!was.there || value != was.value) {
				kernel.Put(c.Added, set, key, value)
			}
		}
	}
	return c
}

// Ranges returns the elements of a set of ranges that these networks cover, merged where they overlap or
// touch: the kernel wants them apart.
func Ranges(prefixes []netip.Prefix) Elements {
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int { return a.Masked().Addr().Compare(b.Masked().Addr()) })
	var merged []Key
	for _, prefix := range sorted {
		r := Key{Pod: prefix.Masked().Addr(), Other: lastOf(prefix)}
		if n := len(merged); n > 0 && !merged[n-1].Other.Next().Less(r.Pod) && merged[n-1].Other.Next().IsValid() {
			if merged[n-1].Other.Less(r.Other) {
				merged[n-1].Other = r.Other
			}
			continue
		} else if n > 0 && !merged[n-1].Other.Next().IsValid() {
			continue // the one before goes up to the last address that there is
		}
		merged = append(merged, r)
	}
	elements := make(Elements, len(merged))
	for _, key := range merged {
		elements[key] = netip.Addr{}
	}
	return elements
}

// Prefixes returns the networks that make up the elements of a set of ranges, sorted: the reverse of [Ranges].
func Prefixes(ranges Elements) (prefixes []netip.Prefix) {
	for r := range ranges {
		for first := r.Pod; first.IsValid() && !r.Other.Less(first); {
			prefix := largest(first, r.Other)
			prefixes = append(prefixes, prefix)
			first = lastOf(prefix).Next()
		}
	}
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return prefixes
}

// largest returns the largest network that begins with an address and does not go beyond another.
func largest(first, last netip.Addr) netip.Prefix {
	prefix := netip.PrefixFrom(first, first.BitLen())
	for prefix.Bits() > 0 {
		wider := netip.PrefixFrom(first, prefix.Bits()-1)
		if wider.Masked().Addr() != first || last.Less(lastOf(wider)) {
			break
		}
		prefix = wider
	}
	return prefix
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes) // as long as an address is
	return last
}
