package nft

import (
	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Family is what differs between the IP families.
type Family struct {
	Table nftables.TableFamily

	address nftables.SetDatatype
	length  uint32 // of an address, in bytes
}

// FamilyOf returns what is of an IP family.
func FamilyOf(family kernel.Family) Family {
	if family == kernel.IPv6 {
		return Family{Table: nftables.TableFamilyIPv6, address: nftables.TypeIP6Addr, length: 16}
	}
	return Family{Table: nftables.TableFamilyIPv4, address: nftables.TypeIPAddr, length: 4}
}
