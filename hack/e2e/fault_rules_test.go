package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// TestRepair_WhateverSomebodyElseDoes: on one node somebody breaks the rules. New flows of
// its pods may then leave from any address until the node repairs the rules; the test logs how many did,
// and the node resets them. Earlier flows and other nodes are not affected.
func TestRepair_WhateverSomebodyElseDoes(t *testing.T) {
	ways := map[string]struct {
		settings
		damages func(v otherWriter) []damage
		share   share
	}{
		"iptables-legacy": {settings{backend: lab.Legacy}, otherWriter.brokenIptables, long},
		"iptables-nft":    {settings{backend: lab.NFT}, otherWriter.brokenIptables, inCI},
		"nftables":        {settings{nftables: true}, otherWriter.brokenNftables, usual},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			belongsTo(t, way.share)
			rulesComeBack(t, way.settings, way.damages)
		})
	}
}

// damage is what somebody does to the rules.
type damage struct {
	name string
	do   func()
	left string // a foreign rule that only this damage makes, and that the repair must keep in each IP family
	// unhooked: no chain of NAT is left for a moment, so the kernel translates nothing, the
	// flows of before neither.
	unhooked bool
}

func rulesComeBack(t *testing.T, s settings, damages func(otherWriter) []damage) {
	w := newWatchedWorld(t, s)
	victim, model := w.members[1], w.members[0]
	v := otherWriter{w, victim}
	broken := damages(v) // as long as things are as they were
	broken = broken[:by(t, 1, len(broken), len(broken))]
	w.publish()
	w.published()
	hit := w.apart(victim)
	ended := 0
	for _, d := range broken {
		if d.unhooked {
			// Of each pod, in each family: what it had, what it opened instead before the network plugin
			// was back, and after that.
			ended += 3 * 2 * len(hit.pods)
		}
		hit.excuse(d.unhooked)
		began := time.Now()
		d.do()
		v.masquerade() // the network plugin is back first
		w.settled(victim)
		w.leftovers(victim, model)
		repaired := since(began)
		w.atRest()
		strange := hit.judge()
		w.round(hit, w.residents, w.blog)
		w.must(w.strays(hit, w.residents, w.blog))
		for _, family := range families {
			if tables := v.natTables(family); !strings.Contains(tables, d.left) {
				t.Errorf("%s: %q is gone (%s):\n%s", d.name, d.left, family, tables)
			}
		}
		t.Logf("%s: repaired after %s; %s", d.name, repaired, strange)
	}
	sum := hit.Stop()
	// A repair ends what began wrongly, at most one question of each kind and pod at a time.
	if most := 8 * len(broken) * len(hit.pods); sum.Wrong > 0 || sum.Broken > ended || sum.Unanswered > most {
		t.Errorf("the pods of the node: %s", sum)
	}
	w.report("the node's pods", sum)
	w.calm("rules broken by somebody else")
}

// brokenIptables is what somebody with iptables does.
func (v otherWriter) brokenIptables() []damage {
	old := [2]string{v.at.Save(families[0]), v.at.Save(families[1])}
	return []damage{
		{name: "nat flushed", do: func() { v.iptables("-t nat -F") }},
		{name: "filter flushed", do: func() { v.iptables("-t filter -F") }},
		{name: "our chain deleted", do: func() {
			v.iptables("-t nat -D POSTROUTING 1", "-t nat -F "+iptables.RootChain, "-t nat -X "+iptables.RootChain)
		}},
		{name: "our jump moved to the end", do: func() {
			v.iptables("-t nat -D POSTROUTING 1", "-t nat -A POSTROUTING -j "+iptables.RootChain)
		}},
		{name: "a foreign rule in front", do: func() {
			v.iptables("-t nat -I POSTROUTING 1 -o eth0 -m comment --comment foreign-in-front -j MASQUERADE")
		},
			left: "-A POSTROUTING -o eth0 -m comment --comment foreign-in-front -j MASQUERADE"},
		{name: "all reloaded, as firewalld does", do: func() { v.restore(firewall, firewall) },
			left: "-A POST_public -o eth0 -m comment --comment foreign-by-reload -j MASQUERADE"},
		{name: "an old snapshot restored", do: func() { v.restore(old[0], old[1]) }, left: `masquerade" -j MASQUERADE`},
	}
}

// brokenNftables is what somebody with nft does.
func (v otherWriter) brokenNftables() []damage {
	var old, deleted, flushed string
	for _, family := range []string{"ip", "ip6"} {
		for _, table := range []string{steering.Table, "kube-proxy"} { // nft cannot restore those of iptables
			text, err := v.at.Host.Run(v.Context(), "nft", "list", "table", family, table)
			v.must(err)
			old += text
		}
		table := family + " " + steering.Table
		deleted += "delete table " + table + "\n"
		flushed += "flush chain " + table + " postrouting\n"
	}
	return []damage{
		{name: "the ruleset flushed", do: func() { v.nft("flush ruleset") }, unhooked: true},
		{name: "our table deleted", do: func() { v.nft(deleted) }},
		{name: "our chain flushed", do: func() { v.nft(flushed) }},
		{name: "a foreign chain", do: func() { v.nft(foreignTable("foreign-chain")) }, left: `masquerade comment "foreign-chain"`},
		{name: "all reloaded, as nftables.service does", do: func() { v.nft("flush ruleset\n" + foreignTable("foreign-by-reload")) },
			left: `masquerade comment "foreign-by-reload"`},
		{name: "an old ruleset restored", do: func() { v.nft("flush ruleset\n" + old) }},
	}
}

// apart takes the pods of a node out of the crowds into one of their own, without those that
// have no Service: their address while rules are broken is up to the network plugin.
func (w *watchedWorld) apart(m *member) *crowd {
	w.Helper()
	hit := &crowd{changingIdentities: changingIdentities{of: map[*lab.Host]*podIdentities{}}}
	for _, c := range []*crowd{w.residents, w.blog} {
		pods := w.podsOn(c, m)
		c.Remove(pods...)
		c.pods = slices.DeleteFunc(c.pods, func(pod *lab.Host) bool { return pod.Node == m.Host })
		c.mu.Lock()
		for _, pod := range pods {
			if c.of[pod].v4[0] != m.Host.V4 {
				hit.of[pod] = c.of[pod]
				hit.pods = append(hit.pods, pod)
			}
			delete(c.of, pod)
		}
		c.mu.Unlock()
	}
	hit.start(w.world, 100)
	w.round(hit)
	return hit
}

// otherWriter is somebody else on a node.
type otherWriter struct {
	*watchedWorld
	at *member
}

// iptables runs commands for both IP families.
func (v otherWriter) iptables(commands ...string) {
	v.Helper()
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, command := range commands {
			v.at.AsSomebodyElse("", tool, append([]string{"-w"}, strings.Fields(command)...)...)
		}
	}
}

// nft runs commands of nft in one transaction.
func (v otherWriter) nft(commands string) {
	v.Helper()
	v.at.AsSomebodyElse(commands, "nft", "-f", "-")
}

// masquerade does what the lab's network plugin did, for whatever leaves the node.
func (v otherWriter) masquerade() {
	v.Helper()
	v.iptables("-t nat -A POSTROUTING -o eth0 -j MASQUERADE")
}

// natTables is what the node's nat table of a family holds, or all of its tables in the nftables mode.
func (v otherWriter) natTables(family v1.IPFamily) string {
	v.Helper()
	if v.at.Backend != reconcile.NFTables {
		return v.at.Save(family, "-t", "nat")
	}
	text, err := v.at.Host.Run(v.Context(), "nft", "list", "ruleset")
	v.must(err)
	return text
}

// restore replaces all tables that the texts name.
func (v otherWriter) restore(v4, v6 string) {
	v.Helper()
	v.at.AsSomebodyElse(v4, "iptables-restore", "-w")
	v.at.AsSomebodyElse(v6, "ip6tables-restore", "-w")
}

// firewall is all that is left of the tables after somebody's reload.
const firewall = `*raw
:PREROUTING ACCEPT
:OUTPUT ACCEPT
COMMIT
*mangle
:PREROUTING ACCEPT
:POSTROUTING ACCEPT
:PRE_public -
-A PREROUTING -j PRE_public
COMMIT
*nat
:PREROUTING ACCEPT
:POSTROUTING ACCEPT
:POST_public -
-A POSTROUTING -j POST_public
-A POST_public -o eth0 -m comment --comment foreign-by-reload -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT
:FORWARD ACCEPT
:OUTPUT ACCEPT
:FWD_public -
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -j FWD_public
-A FWD_public -j ACCEPT
COMMIT
`

// foreignTable masquerades in both IP families, right after us.
func foreignTable(comment string) string {
	return `table inet firewall
delete table inet firewall
table inet firewall {
	chain post {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "eth0" masquerade comment "` + comment + `"
	}
}
`
}
