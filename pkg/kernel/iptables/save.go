package iptables

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Kernel is what the tables hold, as far as this package cares.
type Kernel struct {
	// owner is whose chains these are; [Egress] if it is zero.
	owner Owner
	// Chains are the owned chains with their rules, but for marks.
	Chains Ruleset
	// marks are the empty chains that writes have left: one at most, but for those that a rule of
	// somebody else leads to.
	marks []string
	// restored: there are marks, and not the one that the reader has left.
	restored bool
	// hooks are the chains of the hooks that have rules that lead to an owned chain.
	hooks map[string]hook
	// proxierJump: a rule of POSTROUTING is the proxier's.
	proxierJump bool
	// held are owned chains that a rule of somebody else leads to, other than from a chain
	// with a jump. They cannot be deleted.
	held map[string]bool
}

// hook is what concerns an owner in a chain that it has a jump in.
type hook struct {
	// jumps are the rules that lead to an owned chain, as printed.
	jumps []string
	// inFront: the first rule is the owner's jump.
	inFront bool
}

func (k Kernel) ownedBy() Owner {
	if k.owner.Prefix == "" {
		return Egress
	}
	return k.owner
}

// Empty tells whether there is nothing of this package's.
func (k Kernel) Empty() bool { return len(k.Chains)+len(k.marks)+len(k.hooks) == 0 }

// Restored tells whether somebody has restored what the table held before the last write of
// the [Writer] that has read it. It is told once.
func (k Kernel) Restored() bool { return k.restored }

// HasProxierJump tells whether POSTROUTING has the proxier's jump as it writes it. If it has, it
// does not write another in front.
func (k Kernel) HasProxierJump() bool { return k.proxierJump }

// Bindings returns the bindings that the owned SNAT rules stand for, those in RemovedChain
// included: whose packets may be leaving, or may have left until lately, from an egress IP.
// They are sorted and free of duplicates, and have no Service. Rules that this package does
// not write are passed over.
func (k Kernel) Bindings() []kernel.Binding {
	var bindings []kernel.Binding
	for _, rules := range k.Chains {
		for _, text := range rules {
			if r, known := parseRule(text); known {
				if b, ok := r.binding(); ok {
					bindings = append(bindings, b)
				}
			}
		}
	}
	return kernel.Sorted(bindings)
}

// clone returns a copy that shares nothing with k.
func (k Kernel) clone() Kernel {
	chains := make(Ruleset, len(k.Chains))
	for name, rules := range k.Chains {
		chains[name] = slices.Clone(rules)
	}
	hooks := make(map[string]hook, len(k.hooks))
	for chain, h := range k.hooks {
		hooks[chain] = hook{slices.Clone(h.jumps), h.inFront}
	}
	k.Chains, k.marks, k.hooks, k.held = chains, slices.Clone(k.marks), hooks, maps.Clone(k.held)
	return k
}

// ErrIncompatible is what reading returns when a table was changed with nft in a way
// that iptables cannot show. Writing then would be guessing.
var ErrIncompatible = errors.New("it holds what iptables cannot show; list it with 'nft list ruleset' and remove what was added there by hand")

// ParseSave reads the output of iptables-save. It returns an error if the output is cut
// short or says that it does not show all. What it returns keeps nothing of data, most of
// which is the proxier's.
func ParseSave(data string) (Kernel, error) {
	p := newKernelParser(Egress)
	if err := parse(strings.Lines(data), p); err != nil {
		return Kernel{}, err
	}
	return p.kernel, p.err
}

// parser takes what iptables-save prints: the lines of tables, without comments, or that a table
// holds what iptables cannot show.
type parser interface {
	line(table, text string)
	incompatible(table string)
}

// parse gives lines of iptables-save's output to parsers.
func parse(lines iter.Seq[string], parsers ...parser) error {
	table := ""
	for line := range lines {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
			if name, ok := cutIncompatible(line); ok {
				for _, p := range parsers {
					p.incompatible(name)
				}
			}
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case line == "COMMIT":
			table = ""
		case table != "":
			for _, p := range parsers {
				p.line(table, line)
			}
		}
	}
	if table != "" {
		return errors.New("the output of iptables-save ends in the middle of a table")
	}
	return nil
}

// cutIncompatible returns the table that a comment says cannot be shown.
func cutIncompatible(comment string) (table string, ok bool) {
	before, _, ok := strings.Cut(comment, "' is incompatible")
	return before[strings.LastIndex(before, "`")+1:], ok
}

// kernelParser makes a Kernel.
type kernelParser struct {
	kernel Kernel
	err    error
	// later are the chains of which the first rule has been.
	later map[string]bool
}

func newKernelParser(owner Owner) *kernelParser {
	return &kernelParser{kernel: Kernel{owner: owner, Chains: Ruleset{}, hooks: map[string]hook{}, held: map[string]bool{}}, later: map[string]bool{}}
}

func (p *kernelParser) incompatible(name string) {
	if name == table {
		p.err = fmt.Errorf("table %s: %w", table, ErrIncompatible)
	}
}

func (p *kernelParser) line(name, text string) {
	if name != table {
		return
	}
	k := &p.kernel
	if chain, ok := strings.CutPrefix(text, ":"); ok {
		switch chain, _, _ = strings.Cut(chain, " "); {
		case k.owner.isMark(chain):
			k.marks = append(k.marks, strings.Clone(chain))
		case k.owner.owns(chain):
			k.Chains[strings.Clone(chain)] = nil
		}
		return
	}
	chain, rule, ok := cutRule(text)
	jump, hooked := k.owner.jumpIn(chain)
	switch {
	case !ok:
	case k.owner.owns(chain):
		k.marks = slices.DeleteFunc(k.marks, func(mark string) bool { return mark == chain }) // it is none with a rule
		k.Chains[chain] = append(k.Chains[chain], strings.Clone(rule))
	case hooked:
		p.ruleOfHook(strings.Clone(chain), rule, jump)
	case strings.Contains(rule, k.owner.Prefix) && k.owner.owns(target(rule)):
		k.held[strings.Clone(target(rule))] = true
	}
}

// ruleOfHook takes a rule of a chain that the owner has a jump in.
func (p *kernelParser) ruleOfHook(chain, rule, jump string) {
	k := &p.kernel
	if k.owner.owns(target(rule)) {
		h := k.hooks[chain]
		h.jumps = append(h.jumps, strings.Clone(rule))
		h.inFront = h.inFront || !p.later[chain] && rule == jump
		k.hooks[chain] = h
	}
	k.proxierJump = k.proxierJump || chain == postrouting && rule == proxierJump
	p.later[chain] = true
}

// cutRule splits "-A CHAIN rule".
func cutRule(line string) (chain, rule string, ok bool) {
	line, ok = strings.CutPrefix(line, "-A ")
	if !ok {
		return "", "", false
	}
	chain, rule, _ = strings.Cut(line, " ")
	return chain, rule, true
}

// target returns the chain or target that rule leads to, or "" if it leads nowhere. What
// stands in quotes, a comment for example, is no option.
func target(rule string) string {
	quoted, previous := false, ""
	for len(rule) > 0 {
		var word string
		word, rule, _ = strings.Cut(rule, " ")
		if !quoted {
			if previous == "-j" || previous == "-g" {
				return word
			}
			previous = word
		}
		// iptables-save escapes quotes inside of quotes with a backslash.
		plain := strings.ReplaceAll(strings.ReplaceAll(word, `\\`, ""), `\"`, "")
		if strings.Count(plain, `"`)%2 == 1 {
			quoted = !quoted
		}
	}
	return ""
}
