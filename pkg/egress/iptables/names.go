package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"
)

// Names in the kernel. Changing one orphans what earlier versions have written: add the
// old one to what isOwned knows.
const (
	// ChainPrefix begins the name of every chain that this package owns.
	ChainPrefix = "OPENSHIFT-EGRESS-"
	// RootChain is the chain that POSTROUTING jumps to.
	RootChain = ChainPrefix + "SNAT"

	table       = "nat"
	postrouting = "POSTROUTING"

	// jumpRule is the one rule outside of the owned chains, as iptables-save prints it:
	// it would escape an apostrophe.
	jumpRule = `-m comment --comment "OpenShift egress SNAT" -j ` + RootChain
)

func isOwned(chain string) bool { return strings.HasPrefix(chain, ChainPrefix) }

// chainName returns the name of the chain for the bindings inside prefix. Netfilter allows
// 28 characters: an IPv4 prefix fits in readable form, an IPv6 prefix as a hash of 55 bits.
func chainName(prefix netip.Prefix) string {
	if prefix.Addr().Is4() {
		return fmt.Sprintf("%s%X-%d", ChainPrefix, prefix.Addr().AsSlice(), prefix.Bits())
	}
	sum := sha256.Sum256([]byte(prefix.String()))
	return ChainPrefix + base32.StdEncoding.EncodeToString(sum[:])[:11]
}
