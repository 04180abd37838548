package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Rule is a rule with the user data by which it is known again. A rule that is changed needs another mark.
type Rule struct {
	Mark string
	// Text is what nft reads, Comment what it prints behind it.
	Text, Comment string
	Exprs         []expr.Any
	// unsaid: the rule does something that nft has no words for.
	unsaid bool
	// err says why there are no expressions.
	err error
}

// In returns the rule for the library, in a chain.
func (r Rule) In(chain *nftables.Chain) (*nftables.Rule, error) {
	return &nftables.Rule{Table: chain.Table, Chain: chain, Exprs: r.Exprs, UserData: []byte(r.Mark)}, r.err
}

// language is nft's, as far as rules need it, for the tables of a family.
type language struct {
	table nftables.TableFamily
	ip    kernel.Family
}

// languageOf returns that of a table.
func languageOf(s Spec) language {
	if s.Ingress {
		return language{nftables.TableFamilyNetdev, s.Family}
	}
	return language{FamilyOf(s.Family).Table, s.Family}
}

// unsaidType is that of the user data which tells a rule that nft has no words for from what nft makes of its listing: nft keeps the comment alone.
const unsaidType userdata.Type = 64

// Commented returns a rule with this text for the table. nft prints what the rule is for as its comment. The hash of its expressions is part
// of that, so that a rule that was changed is another one. In the text IP stands for ip or ip6, and ICMP for icmp or icmpv6, by the
// family of the table.
func (s Spec) Commented(purpose, text string) Rule {
	r := s.Rule("", text)
	hash := fnv.New32a()
	for _, e := range r.Exprs {
		bytes, err := expr.Marshal(byte(languageOf(s).table), e)
		r.err = errors.Join(r.err, err)
		_, _ = hash.Write(bytes) // it never fails
	}
	r.Comment = fmt.Sprintf("%s (%08x)", purpose, hash.Sum32())
	mark := userdata.AppendString(nil, userdata.TypeComment, r.Comment)
	if r.unsaid {
		mark = userdata.AppendString(mark, unsaidType, "unsaid")
	}
	r.Mark = string(mark)
	return r
}

// Rule is [Spec.Commented] for a rule with a mark of its own.
func (s Spec) Rule(mark, text string) (r Rule) {
	l := languageOf(s)
	r = Rule{Mark: mark, Text: ofFamily(text, s.Family)}
	defer func() {
		if reason := recover(); reason != nil {
			unread, is := reason.(errUnread)
			if !is {
				panic(reason)
			}
			r.Exprs, r.err = nil, fmt.Errorf("the nftables rule %q: %w", r.Text, unread.error)
		}
	}()
	w := &words{language: l, left: split(r.Text), changes: -1, asked: map[string]bool{"meta protocol " + FamilyNames[l.table]: true}}
	for len(w.left) > 0 {
		w.statement()
	}
	r.Exprs, r.unsaid = w.exprs, w.unsaid
	return r
}

// verdicts are those that need no chain, leads those that name one.
var (
	verdicts = map[string]expr.VerdictKind{"accept": expr.VerdictAccept, "drop": expr.VerdictDrop, "return": expr.VerdictReturn}
	leads    = map[string]expr.VerdictKind{"jump": expr.VerdictJump, "goto": expr.VerdictGoto}
)

// statement reads a match, or what the rule does with the packet.
func (w *words) statement() {
	from := w.left
	first := w.next()
	kind, ends := verdicts[first]
	to, lead := leads[first]
	switch {
	case ends:
		w.add(&expr.Verdict{Kind: kind})
	case lead:
		w.add(&expr.Verdict{Kind: to, Chain: w.next()})
	case first == "notrack":
		w.add(&expr.Notrack{})
	case first == "counter":
		w.expect("name")
		w.add(&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: w.next()})
	case first == "snat" && w.take(ipWords["IP"][w.ip], "to"):
		w.snatByMap()
	case first == "snat":
		w.nat(expr.NATTypeSourceNAT)
	case first == "dnat":
		w.nat(expr.NATTypeDestNAT)
	case first == "dup":
		w.expect("to")
		w.value(address(w.addressBytes()))
		w.add(&expr.Dup{RegAddr: unix.NFT_REG_1})
	case first == "reject":
		w.reject()
	case first == "add":
		w.remember(unix.NFT_DYNSET_OP_ADD)
	case first == "update":
		w.remember(unix.NFT_DYNSET_OP_UPDATE)
	case first == "tcp" && w.take("option", "maxseg", "size", "set"):
		const mss, offset = 2, 2 // RFC 9293, section 3.2
		w.literal(named(nil, 2), unix.NFT_REG_1)
		w.add(&expr.Exthdr{SourceRegister: unix.NFT_REG_1, Type: mss, Offset: offset, Len: 2, Op: expr.ExthdrOpTcpopt})
	default:
		w.left = from
		w.ofField()
	}
}

// ofField reads what begins with a field: it is set, or asked for.
func (w *words) ofField() {
	from := w.left
	keys := w.readKey()
	if len(keys) == 1 && w.take("set") {
		w.set(keys[0])
		return
	}
	w.match(keys)
	w.asked[strings.Join(from[:len(from)-len(w.left)], " ")] = true
}

func (w *words) addressBytes() int { return int(FamilyOf(w.ip).length) }

// register is the one for a value behind so many bytes: each takes whole words of four.
func register(bytes int) uint32 {
	if bytes == 0 {
		return unix.NFT_REG_1
	}
	return unix.NFT_REG32_00 + uint32(bytes)/4
}

func aligned(bytes int) int { return (bytes + 3) &^ 3 }

// readKey takes fields with points between them.
func (w *words) readKey() (fields []field) {
	for {
		f, is := w.readField()
		if !is {
			w.fail("%q is no statement that is known", strings.Join(w.left, " "))
		}
		fields = append(fields, f)
		if !w.take(".") {
			return fields
		}
	}
}

// load loads a key's fields, one behind the other from the first register, behind so many bytes of another one. It returns how many bytes there
// are then.
func (w *words) load(fields []field, behind int) (bytes int) {
	for _, f := range fields {
		w.need(f.needs)
	}
	for _, f := range fields {
		w.add(f.load(register(behind)))
		behind += aligned(f.bytes)
	}
	return behind
}

// loadBehind loads a key behind so many bytes of another one, which a match would overwrite: the rule has asked before for all that the
// fields need.
func (w *words) loadBehind(bytes int) int {
	fields := w.readKey()
	for _, f := range fields {
		if f.needs != "" && !w.asked[f.needs] {
			w.fail("%q is needed in front", f.needs)
		}
	}
	return w.load(fields, bytes)
}

// need asks for a match, unless the rule has done so or there is none.
func (w *words) need(match string) {
	if match == "" || w.asked[match] {
		return
	}
	left := w.left
	w.left = split(match)
	w.statement()
	w.left = left
}

// literal takes a word and has the register hold what it means.
func (w *words) literal(value func(string) ([]byte, error), register uint32) {
	w.add(&expr.Immediate{Register: register, Data: w.read(value)})
}

func (w *words) read(value func(string) ([]byte, error)) []byte {
	if value == nil {
		w.fail("nothing is compared with this field: %q", strings.Join(w.left, " "))
	}
	data, err := value(w.next())
	if err != nil {
		w.fail("%w", err)
	}
	return data
}

// value takes what the first register is to hold: a literal, a field, some bits of one, or what a map has for a key.
func (w *words) value(literal func(string) ([]byte, error)) {
	f, is := w.readField()
	if !is {
		w.literal(literal, unix.NFT_REG_1)
		return
	}
	fields := []field{f}
	if w.take(".") {
		fields = append(fields, w.readKey()...)
	}
	w.load(fields, 0)
	switch {
	case w.take("map"):
		w.add(&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, IsDestRegSet: true, SetName: w.setName()})
	case w.take("&"):
		mask, xor := w.read(f.value), make([]byte, f.bytes)
		if w.take("|") {
			xor = w.read(f.value)
		}
		w.add(bitwise(f, mask, xor))
	}
}

func bitwise(f field, mask, xor []byte) expr.Any {
	return &expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: uint32(f.bytes), Mask: mask, Xor: xor}
}

func (w *words) setName() string {
	name, is := strings.CutPrefix(w.next(), "@")
	if !is {
		w.fail("a set's name begins with @, not so %q", name)
	}
	return name
}

// set gives a field of the packet a value.
func (w *words) set(f field) {
	to, is := f.load(unix.NFT_REG_1).(*expr.Meta)
	if !is {
		w.fail("this field cannot be set")
	}
	if w.changes < 0 {
		w.changes = len(w.exprs)
	}
	w.value(f.value)
	to.SourceRegister = true
	w.add(to)
}

// match asks for a key: whether a set has it, where a map leads, or how it compares.
func (w *words) match(fields []field) {
	w.load(fields, 0)
	f := fields[0]
	switch {
	case w.take("vmap"):
		w.add(&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: w.setName()})
		return
	case w.take("&"):
		w.masked(f)
		return
	case f.bits != nil:
		some := &expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: make([]byte, f.bytes)}
		w.add(bitwise(f, w.bits(f), make([]byte, f.bytes)), some)
		return
	}
	op := w.operator()
	switch {
	case strings.HasPrefix(w.peek(), "@"):
		w.add(&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: w.setName(), Invert: op == expr.CmpOpNeq})
	case strings.Contains(w.peek(), "/"):
		w.network(f, op)
	case len(fields) > 1:
		w.fail("several fields are found in a set alone, not so before %q", strings.Join(w.left, " "))
	default:
		w.add(&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: w.read(f.value)})
	}
}

// operator takes how a field is compared.
func (w *words) operator() expr.CmpOp {
	op, is := operators[w.peek()]
	if is {
		w.next()
	}
	return op
}

var operators = map[string]expr.CmpOp{"==": expr.CmpOpEq, "!=": expr.CmpOpNeq, ">": expr.CmpOpGt, "<": expr.CmpOpLt}

// masked compares some bits of a field.
func (w *words) masked(f field) {
	mask := w.bits(f)
	op := w.operator()
	w.add(bitwise(f, mask, make([]byte, f.bytes)), &expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: w.bits(f)})
}

// network compares an address with one.
func (w *words) network(f field, op expr.CmpOp) {
	text := w.next()
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix != prefix.Masked() {
		w.fail("%q is no network", text)
	}
	w.left = append([]string{prefix.Addr().String()}, w.left...)
	some := &expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: w.read(f.value)}
	w.add(bitwise(f, net.CIDRMask(prefix.Bits(), 8*f.bytes), make([]byte, f.bytes)), some)
}

// bits takes names of bits, in parentheses or with commas between them; 0 for none; or, of another field, a number.
func (w *words) bits(f field) []byte {
	if f.bits == nil {
		return w.read(f.value)
	}
	names := strings.Split(w.next(), ",")
	if names[0] == "(" {
		for names = nil; !w.take(")"); w.take("|") {
			names = append(names, w.next())
		}
	}
	var all uint32
	for _, name := range names {
		bit, known := f.bits[name]
		if !known && name != "0" {
			w.fail("%w", unless(false, name))
		}
		all |= bit
	}
	if f.bytes == 1 {
		return []byte{byte(all)}
	}
	return binaryutil.NativeEndian.PutUint32(all)
}

// nat gives the packet another address, and with it another port if there is one, or one of some in a row: behind a colon between spaces.
func (w *words) nat(kind expr.NATType) {
	w.expect("to")
	to := &expr.NAT{Type: kind, Family: uint32(FamilyOf(w.ip).Table), RegAddrMin: unix.NFT_REG_1}
	if at, err := netip.ParseAddrPort(w.peek()); err == nil {
		w.next()
		w.add(&expr.Immediate{Register: unix.NFT_REG_1, Data: at.Addr().AsSlice()},
			&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint16(nil, at.Port())})
		to.RegProtoMin, to.Specified = unix.NFT_REG_2, true
	} else {
		to.RegAddrMin = w.natAddress()
	}
	if w.take(":") {
		w.natPorts(to)
	}
	to.FullyRandom = w.take("fully-random")
	w.add(to)
}

// natAddress takes the address for source or destination NAT, and returns the register that holds it. A map is asked in front of the rule's
// matches, unless the rule has changed the packet before: whom it does not know is through with one lookup, and the rest is decided as
// the text says, without loading a field again (share_linux.go). No match uses the fourth register: the longest key, two addresses and a
// protocol of IPv6, ends in the third.
func (w *words) natAddress() uint32 {
	matches := len(w.exprs)
	w.value(address(w.addressBytes()))
	ask, byMap := w.exprs[len(w.exprs)-1].(*expr.Lookup)
	if !byMap || matches == 0 || w.changes >= 0 {
		return unix.NFT_REG_1
	}
	ask.DestRegister = unix.NFT_REG_4
	w.exprs = shareLoads(slices.Concat(w.exprs[matches:], w.exprs[:matches]))
	return unix.NFT_REG_4
}

// snatByMap gives the packet the address that a map has for a key, and one of the ports that the map has: the one that is as far from the first
// as the packet's own is from 0, modulo their number, or the next that is free. So every node that has the same map gives a flow the same port,
// and where the first port is a multiple of their number the packet keeps one of them. But where the kernel has translated the packet's source
// before, to whatever destination, it does so again.
//
// Where the map has nothing for the key the rule does nothing: the map is asked before the rule changes anything, whatever stands in front.
//
// What nft makes of the text, or of its own listing, is another rule. In IPv4 it gives any port of the range, and changes what stands in front
// also where the map has nothing. In IPv6 it takes the wrong registers (1.0.6 to 1.1.3), and the kernel refuses the rule.
func (w *words) snatByMap() {
	at := len(w.exprs)
	if w.changes >= 0 {
		at = w.changes
	}
	changes := slices.Clone(w.exprs[at:])
	w.exprs = w.exprs[:at]
	w.load(w.readKey(), 0)
	w.expect("map")
	const behind = 4 // bytes of registers that the changes use. Before Linux 6.1 the kernel wants 16 bytes of room for each port
	w.add(&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: register(behind), IsDestRegSet: true, SetName: w.setName()})
	w.add(changes...)
	w.unsaid = true
	first, last := behind, behind+w.addressBytes()+4
	w.add(&expr.NAT{
		Type: expr.NATTypeSourceNAT, Family: uint32(FamilyOf(w.ip).Table), Specified: true, Offset: true,
		RegAddrMin: register(first), RegProtoMin: register(first + w.addressBytes()),
		RegAddrMax: register(last), RegProtoMax: register(last + w.addressBytes()),
	})
}

// natPorts takes the ports for source or destination NAT: that of a field, or some in a row.
func (w *words) natPorts(to *expr.NAT) {
	to.RegProtoMin, to.Specified = unix.NFT_REG_2, true
	if f, is := w.readField(); is {
		w.add(f.load(unix.NFT_REG_2))
		return
	}
	ports, err := readPorts(w.next())
	if err != nil {
		w.fail("%w", err)
	}
	w.add(&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint16(nil, ports.First)},
		&expr.Immediate{Register: unix.NFT_REG_3, Data: binary.BigEndian.AppendUint16(nil, ports.Last)})
	to.RegProtoMax = unix.NFT_REG_3
}

// reject refuses a packet and tells who has sent it.
func (w *words) reject() {
	w.expect("with")
	if w.take("tcp", "reset") {
		w.need("meta l4proto tcp")
		w.add(&expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
		return
	}
	family := w.next()
	w.expect("type")
	// RFC 792 and RFC 1812, section 5.2.7.1; RFC 4443, section 3.1.
	code, known := map[string]byte{"icmp port-unreachable": 3, "icmp admin-prohibited": 13, "icmpv6 port-unreachable": 4, "icmpv6 admin-prohibited": 1}[family+" "+w.next()]
	if !known {
		w.fail("an unknown way to reject")
	}
	w.add(&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code})
}

// remember has the kernel add an element to a set, or keep it for another while: a key, which may begin with what a map has for another key, in
// a map a value, and perhaps for how long. A map's value takes four bytes there.
func (w *words) remember(operation uint32) {
	to := &expr.Dynset{SrcRegKey: unix.NFT_REG_1, Operation: operation, SetName: w.setName()}
	w.expect("{")
	bytes := w.load(w.readKey(), 0)
	if w.take("map") {
		w.add(&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, IsDestRegSet: true, SetName: w.setName()})
		w.expect(".")
		bytes = w.loadBehind(4)
	}
	if w.take(":") {
		to.SrcRegData = register(bytes)
		w.loadBehind(bytes)
	}
	if w.take("timeout") {
		var err error
		if to.Timeout, err = time.ParseDuration(w.next()); err != nil {
			w.fail("%w", err)
		}
	}
	w.expect("}")
	w.add(to)
}
