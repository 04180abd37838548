package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
)

// Names in the kernel, of at most 28 characters. Changing one orphans what earlier versions
// have written: add the old one to what isOwned knows.
const (
	// ChainPrefix begins the name of every chain that this package owns.
	ChainPrefix = "OPENSHIFT-EGRESS-"
	// RootChain is the chain that POSTROUTING jumps to.
	RootChain = ChainPrefix + "SNAT"
	// SourceChain holds the top of the source tree where a destination tree stands in
	// front of it.
	SourceChain = ChainPrefix + "SOURCE"
	// RemovedChain is the journal of [Ruleset.Record]. Nothing leads to it.
	RemovedChain = ChainPrefix + "REMOVED"

	// markPrefix begins the name of the empty chain that each write leaves, with another name each
	// time. Nothing leads to it.
	markPrefix = ChainPrefix + "AT-"
	// destinationPrefix begins the names of the destination tree's chains.
	destinationPrefix = ChainPrefix + "D-"

	table       = "nat"
	postrouting = "POSTROUTING"

	// jumpRule is the one rule outside of the owned chains, as iptables-save prints it:
	// it would escape an apostrophe.
	jumpRule = `-m comment --comment "OpenShift egress SNAT" -j ` + RootChain
)

// newMark returns a name for the mark of a write.
func newMark() string { return fmt.Sprintf("%s%08X", markPrefix, rand.Uint32()) }

func isOwned(chain string) bool { return strings.HasPrefix(chain, ChainPrefix) }

// sourceName returns the name of the source tree's chain for prefix: an IPv4 prefix fits in
// readable form, an IPv6 prefix as a hash of 55 bits.
func sourceName(prefix netip.Prefix) string {
	if prefix.Addr().Is4() {
		return fmt.Sprintf("%s%X-%d", ChainPrefix, prefix.Addr().AsSlice(), prefix.Bits())
	}
	return ChainPrefix + hash(prefix)[:11]
}

// destinationName returns the name of the destination tree's chain for prefix, which no
// chain of the source tree has: the hexadecimal digits that an IPv4 prefix decides, or a
// hash of 45 bits.
func destinationName(prefix netip.Prefix) string {
	if prefix.Addr().Is4() {
		return destinationPrefix + fmt.Sprintf("%X", prefix.Addr().AsSlice())[:prefix.Bits()/4]
	}
	return destinationPrefix + hash(prefix)[:9]
}

func hash(prefix netip.Prefix) string {
	sum := sha256.Sum256([]byte(prefix.String()))
	return base32.StdEncoding.EncodeToString(sum[:])
}
