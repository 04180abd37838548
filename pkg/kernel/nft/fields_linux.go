package nft

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// field is something of a packet that rules compare, or look up.
type field struct {
	// load loads it into a register.
	load func(register uint32) expr.Any
	// bytes is how long it is.
	bytes int
	// needs is the match without which the field means nothing. A rule that has not asked for it does so first.
	needs string
	// value returns what a word means there.
	value func(word string) ([]byte, error)
	// bits are names of single bits, of a field that is a set of these.
	bits map[string]uint32
}

func meta(key expr.MetaKey) func(uint32) expr.Any {
	return func(register uint32) expr.Any { return &expr.Meta{Key: key, Register: register} }
}

func ct(key expr.CtKey) func(uint32) expr.Any {
	return func(register uint32) expr.Any { return &expr.Ct{Key: key, Register: register} }
}

func payload(base expr.PayloadBase, offset, length uint32) func(uint32) expr.Any {
	return func(register uint32) expr.Any {
		return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: length}
	}
}

func network(offset, length uint32) func(uint32) expr.Any {
	return payload(expr.PayloadBaseNetworkHeader, offset, length)
}

func transport(offset, length uint32) func(uint32) expr.Any {
	return payload(expr.PayloadBaseTransportHeader, offset, length)
}

var (
	states = map[string]uint32{
		"invalid": expr.CtStateBitINVALID, "new": expr.CtStateBitNEW, "related": expr.CtStateBitRELATED, "untracked": expr.CtStateBitUNTRACKED,
	}
	statuses = map[string]uint32{"confirmed": 1 << 3, "snat": 1 << 4, "dnat": 1 << 5} // enum ip_conntrack_status
	tcpFlags = map[string]uint32{"syn": 0x02, "rst": 0x04, "ack": 0x10}
)

// fields by the two words that nft has for each. Others are made as they are read: see readField.
var fields = map[string]field{
	"meta l4proto":       {load: meta(expr.MetaKeyL4PROTO), bytes: 1, value: named(protocols, 1)},
	"meta protocol":      {load: meta(expr.MetaKeyPROTOCOL), bytes: 2, value: named(etherTypes, 2)},
	"meta mark":          {load: meta(expr.MetaKeyMARK), bytes: 4, value: native},
	"meta priority":      {load: meta(expr.MetaKeyPRIORITY), bytes: 4, value: classID},
	"meta skuid":         {load: meta(expr.MetaKeySKUID), bytes: 4, value: native},
	"meta iiftype":       {load: meta(expr.MetaKeyIIFTYPE), bytes: 2, value: linkType},
	"meta iifname":       {load: meta(expr.MetaKeyIIFNAME), bytes: unix.IFNAMSIZ, value: interfaceName},
	"meta oifname":       {load: meta(expr.MetaKeyOIFNAME), bytes: unix.IFNAMSIZ, value: interfaceName},
	"ct state":           {load: ct(expr.CtKeySTATE), bytes: 4, bits: states},
	"ct status":          {load: ct(expr.CtKeySTATUS), bytes: 4, bits: statuses},
	"ct protocol":        {load: ct(expr.CtKeyPROTOCOL), bytes: 1, value: named(protocols, 1)},
	"ct direction":       {load: ct(expr.CtKeyDIRECTION), bytes: 1, value: named(map[string]uint16{"original": 0, "reply": 1}, 1)},
	"ip saddr":           {load: network(12, 4), bytes: 4, value: address(4), needs: "meta protocol ip"},
	"ip daddr":           {load: network(16, 4), bytes: 4, value: address(4), needs: "meta protocol ip"},
	"ip ttl":             {load: network(8, 1), bytes: 1, value: named(nil, 1), needs: "meta protocol ip"},
	"ip6 saddr":          {load: network(8, 16), bytes: 16, value: address(16), needs: "meta protocol ip6"},
	"ip6 daddr":          {load: network(24, 16), bytes: 16, value: address(16), needs: "meta protocol ip6"},
	"ip6 hoplimit":       {load: network(7, 1), bytes: 1, value: named(nil, 1), needs: "meta protocol ip6"},
	"ether saddr":        {load: payload(expr.PayloadBaseLLHeader, 6, 6), bytes: 6, value: hardwareAddr, needs: "meta iiftype ether"},
	"th sport":           {load: transport(0, 2), bytes: 2, value: named(nil, 2)},
	"th dport":           {load: transport(2, 2), bytes: 2, value: named(nil, 2)},
	"udp dport":          {load: transport(2, 2), bytes: 2, value: named(nil, 2), needs: "meta l4proto udp"},
	"tcp dport":          {load: transport(2, 2), bytes: 2, value: named(nil, 2), needs: "meta l4proto tcp"},
	"tcp sequence":       {load: transport(4, 4), bytes: 4, needs: "meta l4proto tcp"},
	"tcp ackseq":         {load: transport(8, 4), bytes: 4, needs: "meta l4proto tcp"},
	"tcp flags":          {load: transport(13, 1), bytes: 1, bits: tcpFlags, needs: "meta l4proto tcp"},
	"socket transparent": {load: socket(expr.SocketKeyTransparent), bytes: 1, value: named(nil, 1)},
	"socket wildcard":    {load: socket(expr.SocketKeyWildcard), bytes: 1, value: named(nil, 1)},
	"fib daddr type":     {load: fib(expr.Fib{FlagDADDR: true, ResultADDRTYPE: true}), bytes: 4, value: routeType},
	"fib saddr type":     {load: fib(expr.Fib{FlagSADDR: true, ResultADDRTYPE: true}), bytes: 4, value: routeType},
	"rt ip nexthop":      {load: nextHop(expr.RtNexthop4), bytes: 4, value: address(4)},
	"rt ip6 nexthop":     {load: nextHop(expr.RtNexthop6), bytes: 16, value: address(16)},
	// Whether the route to the source leads to the interface that the packet has come in by.
	"fib saddr . iif oif": {
		load: fib(expr.Fib{FlagSADDR: true, FlagIIF: true, FlagPRESENT: true, ResultOIF: true}), bytes: 4,
		value: func(word string) ([]byte, error) {
			there, known := map[string]uint32{"exists": 1, "missing": 0}[word]
			return binaryutil.NativeEndian.PutUint32(there), unless(known, word)
		},
	},
}

// fieldWords are the numbers of words that fields may have whose first word is this one.
var fieldWords = map[string][]int{
	"meta": {2}, "ct": {2}, "ip": {2}, "ip6": {2}, "ether": {2}, "th": {2}, "udp": {2}, "tcp": {2}, "socket": {2}, "rt": {3}, "fib": {3, 5},
}

func socket(key expr.SocketKey) func(uint32) expr.Any {
	return func(register uint32) expr.Any { return &expr.Socket{Key: key, Register: register} }
}

func fib(what expr.Fib) func(uint32) expr.Any {
	return func(register uint32) expr.Any {
		load := what
		load.Register = register
		return &load
	}
}

func nextHop(key expr.RtKey) func(uint32) expr.Any {
	return func(register uint32) expr.Any { return &expr.Rt{Key: key, Register: register} }
}

// readField takes the words of a field, if they are next. Bytes of a packet that have no name are "@nh,OFFSET,LENGTH", of its network
// header, or "@th,…", in bits.
func (w *words) readField() (f field, is bool) {
	if strings.HasPrefix(w.peek(), "@nh,") || strings.HasPrefix(w.peek(), "@th,") {
		return w.rawField(w.next()), true
	}
	for _, n := range fieldWords[w.peek()] {
		if len(w.left) < n {
			continue
		}
		if f, is = fields[strings.Join(w.left[:n], " ")]; is {
			w.left = w.left[n:]
			return f, true
		}
	}
	return field{}, false
}

func (w *words) rawField(word string) field {
	var offset, length uint32
	base := map[byte]expr.PayloadBase{'n': expr.PayloadBaseNetworkHeader, 't': expr.PayloadBaseTransportHeader}[word[1]]
	if _, err := fmt.Sscanf(word[len("@nh,"):], "%d,%d", &offset, &length); err != nil || offset%8 != 0 || length%8 != 0 || length == 0 {
		w.fail("%s are no whole bytes of a packet", word)
	}
	return field{load: payload(base, offset/8, length/8), bytes: int(length / 8), value: hexadecimal(int(length / 8))}
}

var (
	protocols = map[string]uint16{
		"icmp": unix.IPPROTO_ICMP, "icmpv6": unix.IPPROTO_ICMPV6, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP,
		"ah": unix.IPPROTO_AH,
	}
	etherTypes = map[string]uint16{"ip": unix.ETH_P_IP, "ip6": unix.ETH_P_IPV6, "8021q": unix.ETH_P_8021Q, "8021ad": unix.ETH_P_8021AD}
	routeTypes = map[string]uint32{"local": unix.RTN_LOCAL, "unicast": unix.RTN_UNICAST, "multicast": unix.RTN_MULTICAST} // rtnetlink(7)
)

func unless(known bool, word string) error {
	if known {
		return nil
	}
	return fmt.Errorf("%q is no value here", word)
}

// named reads a name, or a number, as so many bytes, the highest first.
func named(names map[string]uint16, bytes int) func(string) ([]byte, error) {
	return func(word string) ([]byte, error) {
		value, known := names[word]
		if !known {
			number, err := strconv.ParseUint(word, 0, 8*bytes)
			if err != nil {
				return nil, unless(false, word)
			}
			value = uint16(number)
		}
		return binary.BigEndian.AppendUint16(nil, value)[2-bytes:], nil
	}
}

func native(word string) ([]byte, error) {
	number, err := strconv.ParseUint(word, 0, 32)
	return binaryutil.NativeEndian.PutUint32(uint32(number)), unless(err == nil, word)
}

func classID(word string) ([]byte, error) {
	major, minor, _ := strings.Cut(word, ":")
	high, err := strconv.ParseUint(major, 16, 16)
	low, lowErr := strconv.ParseUint(minor, 16, 16)
	return binaryutil.NativeEndian.PutUint32(uint32(high<<16 | low)), unless(err == nil && lowErr == nil, word)
}

func linkType(word string) ([]byte, error) {
	kind, known := map[string]uint16{"ether": unix.ARPHRD_ETHER, "loopback": unix.ARPHRD_LOOPBACK}[word]
	return binaryutil.NativeEndian.PutUint16(kind), unless(known, word)
}

func routeType(word string) ([]byte, error) {
	kind, known := routeTypes[word]
	return binaryutil.NativeEndian.PutUint32(kind), unless(known, word)
}

func interfaceName(word string) ([]byte, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(word, `"`), `"`)
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return padded, unless(name != "" && len(name) < unix.IFNAMSIZ, word)
}

func address(bytes int) func(string) ([]byte, error) {
	return func(word string) ([]byte, error) {
		addr, err := netip.ParseAddr(word)
		return addr.AsSlice(), unless(err == nil && addr.BitLen() == 8*bytes, word)
	}
}

func hardwareAddr(word string) ([]byte, error) {
	addr, err := net.ParseMAC(word)
	return addr, unless(err == nil && len(addr) == 6, word)
}

func hexadecimal(bytes int) func(string) ([]byte, error) {
	return func(word string) ([]byte, error) {
		number, err := strconv.ParseUint(word, 0, min(8*bytes, 64))
		return binary.BigEndian.AppendUint64(nil, number)[8-min(bytes, 8):], unless(err == nil && bytes <= 8, word)
	}
}

// FamilyNames are nft's.
var FamilyNames = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	nftables.TableFamilyBridge: "bridge", nftables.TableFamilyNetdev: "netdev", nftables.TableFamilyARP: "arp",
}
