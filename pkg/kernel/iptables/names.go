package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// Names in the kernel, of at most 28 characters. Changing one orphans what earlier versions
// have written: add the old one to what owns knows.
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

	// markInfix follows an owner's prefix in the name of the empty chain that each write leaves, with
	// another name each time. Nothing leads to it.
	markInfix = "AT-"
	// destinationInfix follows an owner's prefix in the names of the destination tree's chains.
	destinationInfix = "D-"
	// destinationPrefix begins the names of those of egress SNAT.
	destinationPrefix = ChainPrefix + destinationInfix

	table       = "nat"
	postrouting = "POSTROUTING"

	// jumpRule is the one rule of egress SNAT outside of the owned chains, as iptables-save prints it:
	// it would escape an apostrophe.
	jumpRule = `-m comment --comment "OpenShift egress SNAT" -j ` + RootChain
)

// SourceNATPriority is that of iptables' chain POSTROUTING in the table nat, in which the jump is the first rule.
const SourceNATPriority = 100

// Owner is whose chains a [Writer] keeps.
type Owner struct {
	// Prefix begins the name of each of its chains, and of nobody else's.
	Prefix string
	// Jumps lead to its chains. Each is kept at the very front of the chain that it is in, as long as the
	// chain that it leads to is wanted.
	Jumps []Jump
	// Journal is the chain in which a write records what it has taken away.
	Journal string
}

// Jump is a rule in a chain of the nat table's hooks, as iptables-save prints it behind "-A CHAIN ". An owner has
// one in each chain at most.
type Jump struct{ Chain, Rule string }

// Egress owns the chains of egress SNAT.
var Egress = Owner{Prefix: ChainPrefix, Jumps: []Jump{{postrouting, jumpRule}}, Journal: RemovedChain}

func (o Owner) owns(chain string) bool { return strings.HasPrefix(chain, o.Prefix) }

func (o Owner) isMark(chain string) bool { return strings.HasPrefix(chain, o.Prefix+markInfix) }

// newMark returns a name for the mark of a write.
func (o Owner) newMark() string { return fmt.Sprintf("%s%s%08X", o.Prefix, markInfix, rand.Uint32()) }

// jumpIn returns the rule that the owner has in a chain of the hooks, if it has one there.
func (o Owner) jumpIn(chain string) (rule string, has bool) {
	i := slices.IndexFunc(o.Jumps, func(j Jump) bool { return j.Chain == chain })
	if i < 0 {
		return "", false
	}
	return o.Jumps[i].Rule, true
}

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
func (o Owner) destinationName(prefix netip.Prefix) string {
	if prefix.Addr().Is4() {
		return o.Prefix + destinationInfix + fmt.Sprintf("%X", prefix.Addr().AsSlice())[:prefix.Bits()/4]
	}
	return o.Prefix + destinationInfix + hash(prefix)[:9]
}

func hash(prefix netip.Prefix) string {
	sum := sha256.Sum256([]byte(prefix.String()))
	return base32.StdEncoding.EncodeToString(sum[:])
}
