package steering

import (
	"encoding/binary"
	"math"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

func (l layout) icmp() byte {
	if l.config.Family == kernel.IPv6 {
		return unix.IPPROTO_ICMPV6
	}
	return unix.IPPROTO_ICMP
}

// protocol loads the packet's protocol behind an address, flowProtocol that of its flow: an ICMP error
// is about a flow of another protocol.
func (l layout) protocol() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: l.Second}}
}

func (l layout) flowProtocol() []expr.Any {
	return []expr.Any{&expr.Ct{Key: expr.CtKeyPROTOCOL, Register: l.Second}}
}

// Bits of a flow's status in the kernel (enum ip_conntrack_status), and flags of TCP.
const (
	statusConfirmed           = 1 << 3
	statusSNAT, statusDNAT    = 1 << 4, 1 << 5
	flagSYN, flagRST, flagACK = 0x02, 0x04, 0x10
)

func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// masked compares some bits of what load loads into the first register.
func masked(load expr.Any, mask uint32, op expr.CmpOp, value uint32) []expr.Any {
	return []expr.Any{
		load,
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: native(mask), Xor: native(0)},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: native(value)},
	}
}

func flow(key expr.CtKey) expr.Any { return &expr.Ct{Key: key, Register: unix.NFT_REG_1} }

func newFlow() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW, expr.CmpOpNeq, 0)
}

// unknown lets packets pass of which conntrack knows no flow yet, or never will.
func unknown() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW|expr.CtStateBitINVALID, expr.CmpOpNeq, 0)
}

// begins lets packets pass that are of no flow that has begun, or about one.
func begins() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW|expr.CtStateBitINVALID|expr.CtStateBitRELATED, expr.CmpOpNeq, 0)
}

func invalid() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitINVALID, expr.CmpOpNeq, 0)
}

func related() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitRELATED, expr.CmpOpNeq, 0)
}

// confirmed lets packets pass whose flow is in the table: packets of it have left before.
func confirmed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusConfirmed, expr.CmpOpNeq, 0)
}

func unconfirmed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusConfirmed, expr.CmpOpEq, 0)
}

func snatted() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusSNAT, expr.CmpOpNeq, 0)
}

func notSNATed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusSNAT, expr.CmpOpEq, 0)
}

func dnatted() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusDNAT, expr.CmpOpNeq, 0)
}

func notDNATed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusDNAT, expr.CmpOpEq, 0)
}

// reply lets packets pass that go against the direction in which their flow began.
func reply() []expr.Any {
	return []expr.Any{flow(expr.CtKeyDIRECTION), &expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{1}}}
}

// hardwareSource loads the hardware address of who has sent the packet. nft takes a packet for one of Ethernet where a
// rule asks for that.
func hardwareSource(register uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFTYPE, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint16(unix.ARPHRD_ETHER)},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseLLHeader, Offset: 6, Len: 6},
	}
}

func protocolIs(number byte) []expr.Any { return compareProtocol(expr.CmpOpEq, number) }

func compareProtocol(op expr.CmpOp, number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: []byte{number}},
	}
}

func tcpFlags(mask byte, op expr.CmpOp, flags byte) []expr.Any {
	return append(protocolIs(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 1, Mask: []byte{mask}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: []byte{flags}})
}

// beginsConnection lets the SYN of a TCP connection pass.
func beginsConnection() []expr.Any {
	return tcpFlags(flagSYN|flagRST|flagACK, expr.CmpOpEq, flagSYN)
}

// setMSS lowers the maximum segment size that a SYN announces.
func setMSS(mss uint16) []expr.Any {
	const kind, offset = 2, 2 // RFC 9293, section 3.2
	return []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, mss)},
		&expr.Exthdr{SourceRegister: unix.NFT_REG_1, Type: kind, Offset: offset, Len: 2, Op: expr.ExthdrOpTcpopt},
	}
}

// destinationIs compares the type of a packet's destination, as rtnetlink(7) has them.
func destinationIs(op expr.CmpOp, kind uint32) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: native(kind)},
	}
}

// cameWhereRouted lets packets pass that came in by the interface by which this node reaches their source; if not so, all others.
func cameWhereRouted(so bool) []expr.Any {
	there := map[bool]uint32{true: 1}[so]
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true, ResultOIF: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: native(there)},
	}
}

// ofProcess lets packets pass that a process has sent: their socket is open as a file, which has an owner. No user has the
// number -1. Others' and the kernel's own packets have no such socket.
func ofProcess() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKUID, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: native(math.MaxUint32)},
	}
}

// sourceIsElsewhere lets packets pass whose source is no address of this node.
func sourceIsElsewhere() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: native(unix.RTN_LOCAL)},
	}
}

func interfaceIs(key expr.MetaKey, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: unix.NFT_REG_1}, &expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: padded}}
}

func in(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set}}
}

func notIn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set, Invert: true}}
}

// goToChainIn goes to the chain that a map has for the key, if any; goToChain to this one.
func goToChainIn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set}}
}

func goToChain(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}}
}

func jump(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

// update adds the key to a set, or has the kernel remember it for longer.
func update(set string) []expr.Any {
	return []expr.Any{&expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set, Operation: unix.NFT_DYNSET_OP_UPDATE}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// drop counts a packet and drops it.
func drop(counter string) []expr.Any {
	return []expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: counter}, &expr.Verdict{Kind: expr.VerdictDrop}}
}
