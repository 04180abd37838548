package iptables

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Transaction returns the input of iptables-restore --noflush that turns have into want,
// or nil if they are the same. comments, by rule, are written above the rules.
func Transaction(want Ruleset, have Kernel, comments map[string]string) []byte {
	return edit(want, have, "").payload(want, have, comments)
}

// transaction is what turns one ruleset into another.
type transaction struct {
	// rewrite are the chains to make, or to fill anew, remove those to empty and to delete, and unmark the
	// marks to delete. It fails where one of these is not in the kernel: somebody has restored another state
	// of the table since.
	rewrite, remove, unmark []string
	// mark to leave, if any.
	mark string
	// moveJumps are the owner's that are not as they should be.
	moveJumps []Jump
}

// edit returns the transaction that turns have into want, and leaves a mark if one is given: also where
// nothing else is to be done, if there is none.
func edit(want Ruleset, have Kernel, mark string) transaction {
	t := transaction{mark: mark, moveJumps: wrongJumps(want, have)}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		rules, exists := have.Chains[name]
		if !exists || !slices.Equal(rules, want[name]) {
			t.rewrite = append(t.rewrite, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.Chains)) {
		if tooMuch(name, want, have) {
			t.remove = append(t.remove, name)
		}
	}
	t.unmark = slices.DeleteFunc(slices.Clone(have.marks), func(name string) bool { return have.held[name] })
	unmarked, stale := mark != "" && len(have.marks) == 0, len(want) == 0 && len(t.unmark) > 0
	if len(t.rewrite)+len(t.remove)+len(t.moveJumps) == 0 && !unmarked && !stale {
		return transaction{}
	}
	return t
}

// payload returns the transaction as input of iptables-restore --noflush; nil if it does nothing.
func (t transaction) payload(want Ruleset, have Kernel, comments map[string]string) []byte {
	if len(t.touched()) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("*" + table + "\n")
	if t.mark != "" {
		b.WriteString(":" + t.mark + " - [0:0]\n")
	}
	for _, name := range slices.Concat(t.rewrite, t.remove) {
		// Declaring a chain makes it, or empties it when it is there.
		b.WriteString(":" + name + " - [0:0]\n")
	}
	for _, jump := range t.moveJumps {
		writeJump(&b, jump, want, have)
	}
	for _, name := range t.rewrite {
		for _, rule := range want[name] {
			if text, ok := comments[rule]; ok {
				b.WriteString("# " + comment(text) + "\n")
			}
			b.WriteString("-A " + name + " " + rule + "\n")
		}
	}
	for _, name := range slices.Concat(t.remove, t.unmark) {
		if !have.held[name] {
			b.WriteString("-X " + name + "\n")
		}
	}
	b.WriteString("COMMIT\n")
	return b.Bytes()
}

// touched returns the chains that the transaction is about.
func (t transaction) touched() []string {
	chains := slices.Concat(t.rewrite, t.remove, t.unmark)
	if t.mark != "" {
		chains = append(chains, t.mark)
	}
	for _, jump := range t.moveJumps {
		chains = append(chains, jump.Chain)
	}
	return chains
}

// tooMuch tells whether a chain in the kernel has to go. One that others lead to can only
// be emptied.
func tooMuch(name string, want Ruleset, have Kernel) bool {
	_, wanted := want[name]
	return !wanted && (!have.held[name] || len(have.Chains[name]) > 0)
}

// needs tells whether the chain that a jump leads to is wanted: a journal alone needs no jump.
func (r Ruleset) needs(jump Jump) bool {
	_, wanted := r[target(jump.Rule)]
	return wanted
}

// wrongJumps returns the owner's jumps but for those that are right: there is exactly one in the chain, in
// front, or none when there is nothing to jump to.
func wrongJumps(want Ruleset, have Kernel) []Jump {
	return slices.DeleteFunc(slices.Clone(have.ownedBy().Jumps), func(jump Jump) bool {
		h := have.hooks[jump.Chain]
		if !want.needs(jump) {
			return len(h.jumps) == 0
		}
		return h.inFront && len(h.jumps) == 1
	})
}

// writeJump deletes the jumps that are there, each by its text, so that a rule that moved
// in the meantime is still the one meant and a rule that vanished fails the transaction.
// Then it puts one in front.
func writeJump(b *bytes.Buffer, jump Jump, want Ruleset, have Kernel) {
	for _, rule := range have.hooks[jump.Chain].jumps {
		b.WriteString("-D " + jump.Chain + " " + rule + "\n")
	}
	if want.needs(jump) {
		b.WriteString("-I " + jump.Chain + " 1 " + jump.Rule + "\n")
	}
}

// comment returns text as what can only be a comment: it has names of objects. iptables-restore
// reads lines of some ten thousand bytes at most, and takes the rest of a longer one for the
// next line.
func comment(text string) string {
	const most = 512
	text = kernel.Printable(text)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// Payload returns the input of iptables-restore --noflush that writes rules into a kernel that holds nothing of the
// owner's; nil if there are none.
func (o Owner) Payload(rules Ruleset) []byte { return Transaction(rules, Kernel{owner: o}, nil) }

// Payload returns the input of iptables-restore --noflush that writes all of p into a
// kernel that holds nothing of it, with a comment above the rule of each binding that has one; nil
// if p binds nothing.
func Payload(p kernel.Desired, comments map[kernel.Binding]string) []byte {
	byRule := make(map[string]string, len(comments))
	for b, text := range comments {
		byRule[snatRule(b)] = text
	}
	return Transaction(Render(p), Kernel{}, byRule)
}
