package iptables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"iter"

	"github.com/openshift/origin-node/pkg/kernel"
	nftables "github.com/openshift/origin-node/pkg/kernel/nft"
)

// legacyTable is a table of iptables-legacy as the kernel has it: entries in a row. A chain of a hook
// begins where the table's information says, any other behind an entry that names it. Its last entry is
// its policy, or the return to whence it was called. (include/uapi/linux/netfilter_ipv4/ip_tables.h,
// netfilter_ipv6/ip6_tables.h and netfilter/x_tables.h.)
type legacyTable struct {
	entryLayout
	info legacyInfo
	// copied has the entries behind a header.
	copied, entries []byte
	// chains are where the rules are of those that anybody asks for.
	chains map[string]span
	// buffer has the content of the last rule.
	buffer []byte
}

// legacyInfo is struct ipt_getinfo, and struct ip6t_getinfo.
type legacyInfo struct {
	Name                 [32]byte
	ValidHooks           uint32
	HookEntry, Underflow [5]uint32
	Entries, Size        uint32
}

// hookChains are the chains of the hooks, by number.
var hookChains = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// span is a part of a table, in bytes.
type span struct{ from, to int }

// entryLayout is where an entry, which begins with what it says of packets, has what follows: the
// offsets of its target and its end, and then its counters, in front of its matches and the target.
type entryLayout struct{ offsets, counters int }

func entryLayoutOf(family kernel.Family) entryLayout {
	if family == kernel.IPv6 {
		return entryLayout{offsets: 140, counters: 152}
	}
	return entryLayout{offsets: 88, counters: 96}
}

const (
	countersLength = 16 // struct xt_counters
	// targetHeader is the length of struct xt_entry_target, which has its name behind its size. What
	// follows is the verdict of a target without a name, and the name of a chain if the target is ERROR.
	targetHeader     = 32
	targetNameOffset = 2
	errorTarget      = targetHeader + 32 // length of struct xt_error_target
)

var errNoEnd = errors.New("the kernel told an entry that has no end")

// all are the entries of a part of the table, with where they begin, up to the first that has no end.
func (t *legacyTable) all(part span) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := part.from; at+t.counters+countersLength+targetHeader <= part.to; {
			length := int(binary.NativeEndian.Uint16(t.entries[at+t.offsets+2:]))
			if length < t.counters+countersLength+targetHeader || at+length > part.to || !yield(at, t.entries[at:at+length]) {
				return
			}
			at += length
		}
	}
}

func (t *legacyTable) whole() span { return span{0, len(t.entries)} }

// hash returns one of all entries without their counters, which it clears.
func (t *legacyTable) hash() (uint64, error) {
	end := 0
	for at, entry := range t.all(t.whole()) {
		clear(entry[t.counters : t.counters+countersLength])
		end = at + len(entry)
	}
	if end != len(t.entries) {
		return 0, errNoEnd
	}
	return maphash.Bytes(hashSeed, t.entries), nil
}

// hooks returns the chains of the hooks, by where they begin.
func (t *legacyTable) hooks() map[int]string {
	hooks := map[int]string{}
	for hook, name := range hookChains {
		if t.info.ValidHooks&(1<<hook) != 0 {
			hooks[int(t.info.HookEntry[hook])] = name
		}
	}
	return hooks
}

// index finds the chains of the hooks, and those that are of interest.
func (t *legacyTable) index() error {
	hooks := t.hooks()
	t.chains = map[string]span{}
	chain, rules, end := "", span{}, 0
	for at, entry := range t.all(t.whole()) {
		hook, begins := hooks[at]
		name := t.chainName(entry)
		if begins || name != nil {
			if chain != "" {
				t.chains[chain] = rules // all but the last, which is the policy or the return
			}
			chain, rules.from = hook, at
			if name != nil {
				rules.from += len(entry)
			}
			if ofInterest(string(name)) {
				chain = string(name)
			}
		}
		rules.to, end = max(at, rules.from), at+len(entry)
	}
	if end != len(t.entries) {
		return errNoEnd
	}
	return nil
}

// target returns the target of an entry with its header; nil if it has none.
func (t *legacyTable) target(entry []byte) []byte {
	offset := int(binary.NativeEndian.Uint16(entry[t.offsets:]))
	if offset+targetHeader+4 > len(entry) {
		return nil
	}
	return entry[offset:]
}

// chainName returns the name of the chain that begins behind an entry; nil if none does.
func (t *legacyTable) chainName(entry []byte) []byte {
	target := t.target(entry)
	if len(target) < errorTarget || !bytes.HasPrefix(target[targetNameOffset:], []byte("ERROR\x00")) {
		return nil
	}
	name, _, _ := bytes.Cut(target[targetHeader:], []byte{0})
	return name
}

// leadsTo returns where the entry begins to which an entry leads: the first of a chain, or the next one. One with a target of its own
// leads nowhere, nor does one that accepts, drops or returns.
func (t *legacyTable) leadsTo(entry []byte) (to int, leads bool) {
	target := t.target(entry)
	if len(target) == 0 || target[targetNameOffset] != 0 {
		return 0, false
	}
	to = int(int32(binary.NativeEndian.Uint32(target[targetHeader:])))
	return to, to >= 0
}

// rule returns what an entry says that begins here, in bytes that do not depend on where it and other chains
// are in the table, and are good until the next call.
func (t *legacyTable) rule(at int, entry []byte) nftables.ListedRule {
	t.buffer = append(t.buffer[:0], entry...)
	rule := nftables.ListedRule{Content: t.buffer}
	clear(rule.Content[t.offsets+4 : t.counters+countersLength]) // hooks that lead there, and counters
	to, leads := t.leadsTo(rule.Content)
	if !leads {
		return rule
	}
	clear(t.target(rule.Content)[targetHeader : targetHeader+4])
	begin := to - t.counters - countersLength - errorTarget
	if to == at+len(entry) || begin < 0 {
		return rule // on to the next one
	}
	for _, header := range t.all(span{begin, to}) {
		rule.LeadsTo = string(t.chainName(header))
		break
	}
	return rule
}
