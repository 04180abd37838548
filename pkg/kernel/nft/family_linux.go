package nft

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Family is what differs between the IP families: where a packet has its addresses, and the
// registers in which the fields of a key follow each other.
type Family struct {
	Table nftables.TableFamily
	// NAT is the family as source NAT names it.
	NAT uint32
	// First holds an address, Second what follows one, Third what follows an address and a protocol. Behind another address
	// there, Fourth and Fifth hold ports.
	First, Second, Third, Fourth, Fifth uint32

	address                     nftables.SetDatatype
	source, destination, length uint32
}

// FamilyOf returns what is of an IP family.
func FamilyOf(family kernel.Family) Family {
	if family == kernel.IPv6 {
		return Family{
			Table: nftables.TableFamilyIPv6, NAT: unix.NFPROTO_IPV6,
			First: unix.NFT_REG_1, Second: unix.NFT_REG32_04, Third: unix.NFT_REG32_05,
			Fourth: unix.NFT_REG32_09, Fifth: unix.NFT_REG32_10,
			address: nftables.TypeIP6Addr, source: 8, destination: 24, length: 16,
		}
	}
	return Family{
		Table: nftables.TableFamilyIPv4, NAT: unix.NFPROTO_IPV4,
		First: unix.NFT_REG_1, Second: unix.NFT_REG32_01, Third: unix.NFT_REG32_02,
		Fourth: unix.NFT_REG32_03, Fifth: unix.NFT_REG32_04,
		address: nftables.TypeIPAddr, source: 12, destination: 16, length: 4,
	}
}

// Source loads the packet's source address into a register, Destination the other one.
func (f Family) Source(register uint32) []expr.Any { return f.load(f.source, register) }

// Destination loads the packet's destination address into a register.
func (f Family) Destination(register uint32) []expr.Any { return f.load(f.destination, register) }

func (f Family) load(offset, register uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.length}}
}
