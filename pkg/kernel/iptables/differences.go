package iptables

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Differences says, for an operator and in a line each, how have differs from want; nothing
// if the kernel holds what it should. The journal in RemovedChain is no difference.
func Differences(want Ruleset, have Kernel) []string {
	return append(jumpDifferences(want, have), ruleDifferences(want, have)...)
}

// Altered tells whether the rules of have are others than those of want. Where the jump to
// them is does not matter, nor does the journal in RemovedChain.
func Altered(want Ruleset, have Kernel) bool { return len(ruleDifferences(want, have)) > 0 }

func ruleDifferences(want Ruleset, have Kernel) []string {
	var differences []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name != RemovedChain {
			differences = append(differences, chainDifferences(name, want[name], have)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.Chains)) {
		if name != RemovedChain && tooMuch(name, want, have) {
			differences = append(differences, fmt.Sprintf("chain %s, with %d rules, is unexpected", name, len(have.Chains[name])))
		}
	}
	return differences
}

func jumpDifferences(want Ruleset, have Kernel) []string {
	var differences []string
	for _, jump := range have.ownedBy().Jumps {
		differences = append(differences, differencesOf(jump, want.needs(jump), have.hooks[jump.Chain])...)
	}
	return differences
}

func differencesOf(jump Jump, wanted bool, have hook) []string {
	var differences []string
	jumps := 0
	for _, rule := range have.jumps {
		if rule == jump.Rule && wanted {
			jumps++
			continue
		}
		differences = append(differences, fmt.Sprintf("chain %s has an unexpected rule: %s", jump.Chain, rule))
	}
	switch {
	case !wanted:
	case jumps == 0:
		differences = append(differences, fmt.Sprintf("chain %s lacks the rule %s", jump.Chain, jump.Rule))
	case jumps > 1:
		differences = append(differences, fmt.Sprintf("chain %s has the rule %s %d times", jump.Chain, jump.Rule, jumps))
	}
	if jumps > 0 && !have.inFront {
		differences = append(differences, fmt.Sprintf("chain %s does not begin with the rule %s", jump.Chain, jump.Rule))
	}
	return differences
}

func chainDifferences(name string, want []string, k Kernel) []string {
	have, exists := k.Chains[name]
	if !exists {
		return []string{fmt.Sprintf("chain %s, with %d rules, is missing", name, len(want))}
	}
	if slices.Equal(want, have) {
		return nil
	}
	var differences []string
	for _, rule := range kernel.Left(want, have) {
		differences = append(differences, fmt.Sprintf("chain %s lacks the rule %s", name, rule))
	}
	for _, rule := range kernel.Left(have, want) {
		differences = append(differences, fmt.Sprintf("chain %s has an unexpected rule: %s", name, rule))
	}
	if len(differences) == 0 {
		differences = append(differences, fmt.Sprintf("chain %s has its rules in the wrong order", name))
	}
	return differences
}
