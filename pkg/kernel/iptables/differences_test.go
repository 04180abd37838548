package iptables

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/kernel"
)

func TestDifferences_InWords(t *testing.T) {
	want := Ruleset{RootChain: {"-j RETURN", "-g X"}, SourceChain: {"-g Y", "-g Y"}}
	const stale = ChainPrefix + "STALE"
	for name, test := range map[string]struct {
		want   Ruleset
		damage func(k *Kernel)
		lines  []string
	}{
		"none":          {want, func(*Kernel) {}, nil},
		"journal":       {want, func(k *Kernel) { k.Chains[RemovedChain] = []string{"-j RETURN"} }, nil},
		"lost journal":  {Ruleset{RemovedChain: {"-j RETURN"}}, func(k *Kernel) { *k = Kernel{} }, nil},
		"chain missing": {want, func(k *Kernel) { delete(k.Chains, SourceChain) }, []string{"chain " + SourceChain + ", with 2 rules, is missing"}},
		"rule missing":  {want, func(k *Kernel) { k.Chains[SourceChain] = []string{"-g Y"} }, []string{"chain " + SourceChain + " lacks the rule -g Y"}},
		"rule too much": {want, func(k *Kernel) { k.Chains[RootChain] = []string{"-g Z", "-j RETURN", "-g X"} },
			[]string{"chain " + RootChain + " has an unexpected rule: -g Z"}},
		"rule changed": {want, func(k *Kernel) { k.Chains[RootChain] = []string{"-g Z", "-g X"} },
			[]string{"chain " + RootChain + " lacks the rule -j RETURN", "chain " + RootChain + " has an unexpected rule: -g Z"}},
		"order":        {want, func(k *Kernel) { slices.Reverse(k.Chains[RootChain]) }, []string{"chain " + RootChain + " has its rules in the wrong order"}},
		"jump missing": {want, func(k *Kernel) { k.hooks = nil }, []string{"chain POSTROUTING lacks the rule " + jumpRule}},
		"jump behind":  {want, func(k *Kernel) { k.hooks = hookWith(false, jumpRule) }, []string{"chain POSTROUTING does not begin with the rule " + jumpRule}},
		"jump twice":   {want, func(k *Kernel) { k.hooks = hookWith(true, jumpRule, jumpRule) }, []string{"chain POSTROUTING has the rule " + jumpRule + " 2 times"}},
		"jump by hand": {want, func(k *Kernel) { k.hooks = hookWith(true, jumpRule, "-j "+RootChain) },
			[]string{"chain POSTROUTING has an unexpected rule: -j " + RootChain}},
		"chain too much": {want, func(k *Kernel) { k.Chains[stale] = []string{"-j RETURN"} }, []string{"chain " + stale + ", with 1 rules, is unexpected"}},
		"chain of ours that others hold": {want, func(k *Kernel) {
			k.Chains[stale] = nil
			k.held = map[string]bool{stale: true}
		}, nil},
		"all too much": {Ruleset{}, func(*Kernel) {}, []string{
			"chain POSTROUTING has an unexpected rule: " + jumpRule,
			"chain " + RootChain + ", with 2 rules, is unexpected",
			"chain " + SourceChain + ", with 2 rules, is unexpected",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			have := Kernel{Chains: want, hooks: hookWith(true, jumpRule)}.clone()
			test.damage(&have)
			if diff := cmp.Diff(test.lines, Differences(test.want, have)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			rules := slices.ContainsFunc(test.lines, func(line string) bool { return !strings.HasPrefix(line, "chain POSTROUTING") })
			if got := Altered(test.want, have); got != rules {
				t.Errorf("altered: got %v, want %v", got, rules)
			}
		})
	}
}

// TestDifferences_AreWhatAWriteChanges: nothing differs exactly if a write has nothing to do.
func TestDifferences_AreWhatAWriteChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	p := withNodes(r, randomPlan(r, clusterV4, 200), 100)
	differ := 0
	for range 300 {
		want := Render(p)
		have := Kernel{Chains: want, hooks: hookWith(true, jumpRule)}.clone()
		damage(r, &have)
		differences, payload := Differences(want, have), Transaction(want, have, nil)
		if (len(differences) == 0) != (payload == nil) {
			t.Fatalf("the differences are %q, and the write is:\n%s", differences, payload)
		}
		differ += min(len(differences), 1)
		have.become(want, slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(have.Chains))), Egress.newMark())
		if diff := cmp.Diff([]string(nil), Differences(want, have), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after the write:\n%s", diff)
		}
	}
	if differ < 100 || differ == 300 {
		t.Errorf("%d of 300 kernels differ, which is no test", differ)
	}
}

// damage changes at most one thing in k, at random.
func damage(r *rand.Rand, k *Kernel) {
	names := make([]string, 0, len(k.Chains))
	for name := range k.Chains {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	rules := k.Chains[name]
	i, j := r.IntN(len(rules)), r.IntN(len(rules))
	switch r.IntN(9) {
	case 0:
		delete(k.Chains, name)
	case 1:
		k.Chains[name] = slices.Delete(rules, i, i+1)
	case 2:
		k.Chains[name] = slices.Insert(rules, i, rules[j])
	case 3:
		rules[i], rules[j] = rules[j], rules[i]
	case 4:
		k.hooks = nil
	case 5:
		k.hooks = hookWith(true, jumpRule, jumpRule)
	case 6:
		k.hooks = hookWith(false, jumpRule)
	case 7:
		k.Chains[ChainPrefix+"STALE"] = nil
	}
}

// hookWith returns what POSTROUTING has if these rules of it lead to owned chains.
func hookWith(inFront bool, jumps ...string) map[string]hook {
	return map[string]hook{postrouting: {jumps, inFront}}
}

func TestKernel_BindingsOfTheJournal(t *testing.T) {
	p := podPlan(clusterV4, "10.128.0.5")
	want := Ruleset{}
	want.Record(p.Bindings)
	k, err := ParseSave("*nat\n" + "-A " + RemovedChain + " " + want[RemovedChain][0] + "\nCOMMIT\n")
	if err != nil {
		t.Fatal(err)
	}
	if !recorded(k) || recorded(Kernel{}) {
		t.Errorf("recorded: %v, want true; of an empty kernel: %v, want false", recorded(k), recorded(Kernel{}))
	}
	if payload := Transaction(want, k, nil); payload != nil {
		t.Errorf("it is there, got:\n%s", payload)
	}
	if got := kernel.Sorted(p.Bindings); !slices.Equal(got, k.Bindings()) {
		t.Errorf("got %v, want %v", k.Bindings(), got)
	}
}

// recorded tells whether the kernel has the journal.
func recorded(k Kernel) bool {
	_, ok := k.Chains[RemovedChain]
	return ok
}
