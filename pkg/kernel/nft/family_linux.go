package nft

import (
	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Family is what differs between the IP families.
type Family struct {
	Table nftables.TableFamily
	// NAT is the family as source NAT names it.
	NAT uint32

	address nftables.SetDatatype
	length  uint32 // of an address, in bytes
}

// FamilyOf returns what is of an IP family.
func FamilyOf(family kernel.Family) Family {
	if family == kernel.IPv6 {
		return Family{Table: nftables.TableFamilyIPv6, NAT: unix.NFPROTO_IPV6, address: nftables.TypeIP6Addr, length: 16}
	}
	return Family{Table: nftables.TableFamilyIPv4, NAT: unix.NFPROTO_IPV4, address: nftables.TypeIPAddr, length: 4}
}
