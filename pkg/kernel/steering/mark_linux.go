package steering

import (
	"math/bits"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// setMark puts a number into our bits of the mark, and leaves the others.
func (l layout) setMark(number int) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: native(^l.config.MarkMask), Xor: native(l.mark(number))},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1, SourceRegister: true},
	}
}

// prioritized lets packets pass that takeWayIn has given a number, and takes it away again: they came with none.
func prioritized(number int) []expr.Any {
	return append([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: nft.ClassID(uint8(number)).AsSlice()},
	}, setPriority(0)...)
}

func setPriority(priority uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: native(priority)},
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: unix.NFT_REG_1, SourceRegister: true},
	}
}

func (l layout) mark(number int) uint32 {
	return uint32(number) << bits.TrailingZeros32(l.config.MarkMask)
}

func (l layout) markedWith(number int) []expr.Any    { return l.compareMark(expr.CmpOpEq, number) }
func (l layout) notMarkedWith(number int) []expr.Any { return l.compareMark(expr.CmpOpNeq, number) }

// markedForHolder lets packets pass that have the number of a holder: the others are the four that have these bits.
func (l layout) markedForHolder() []expr.Any {
	others := l.mark(numberLocal)
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, others, expr.CmpOpNeq, others)
}

// markedToLeave lets packets pass that leave from this node: pods' and arrivals, whose numbers differ in the lowest bit.
func (l layout) markedToLeave() []expr.Any {
	mask := l.config.MarkMask &^ (l.config.MarkMask & -l.config.MarkMask)
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, mask, expr.CmpOpEq, l.mark(numberLocal&numberArrived))
}

func (l layout) isMarked() []expr.Any { return l.compareMark(expr.CmpOpNeq, 0) }
func (l layout) unmarked() []expr.Any { return l.compareMark(expr.CmpOpEq, 0) }

func (l layout) compareMark(op expr.CmpOp, number int) []expr.Any {
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, l.config.MarkMask, op, l.mark(number))
}
