package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/iptables"
)

// TestRulesComeBackWhateverSomebodyElseDoes: on one node somebody breaks the rules. The new flows
// of its pods may then leave as anybody, which is told, until the node repairs the rules; those
// that did are ended. Flows that were there before do not notice, nor do other nodes.
func TestRulesComeBackWhateverSomebodyElseDoes(t *testing.T) {
	backends := []lab.Backend{lab.NFT}
	if all() {
		backends = lab.Backends()
	}
	for _, backend := range backends {
		t.Run(string(backend), func(t *testing.T) { rulesComeBack(t, backend) })
	}
}

func rulesComeBack(t *testing.T, backend lab.Backend) {
	to := newTown(t, settings{backend: backend})
	victim, model := to.members[1], to.members[0]
	v := vandal{to, victim}
	old := v.snapshot()
	to.publish()
	to.published()
	hit := to.apart(victim)
	for _, damage := range []struct {
		name string
		do   func()
		left string // what is somebody else's, in the nat table, and must still be there
	}{
		{"nat flushed", func() { v.iptables("-t nat -F") }, ""},
		{"filter flushed", func() { v.iptables("-t filter -F") }, ""},
		{"our chain deleted", func() {
			v.iptables("-t nat -D POSTROUTING 1", "-t nat -F "+iptables.RootChain, "-t nat -X "+iptables.RootChain)
		}, ""},
		{"our jump moved to the end", func() {
			v.iptables("-t nat -D POSTROUTING 1", "-t nat -A POSTROUTING -j "+iptables.RootChain)
		}, ""},
		{"a foreign rule in front", func() { v.iptables("-t nat -I POSTROUTING 1 -o eth0 -j MASQUERADE") },
			"-A POSTROUTING -o eth0 -j MASQUERADE"},
		{"all reloaded, as firewalld does", func() { v.restore(firewall, firewall) }, "-A POST_public -o eth0 -j MASQUERADE"},
		{"an old snapshot restored", func() { v.restore(old[0], old[1]) }, `masquerade" -j MASQUERADE`},
	} {
		hit.excuse()
		began := time.Now()
		damage.do()
		v.iptables("-t nat -A POSTROUTING -o eth0 -j MASQUERADE") // the network plugin is back first
		to.settled(victim)
		to.leftovers(victim, model)
		repaired := since(began)
		to.atRest()
		strange := hit.judge()
		to.round(hit, to.residents, to.blog)
		to.must(to.strays(hit, to.residents, to.blog))
		for _, family := range families {
			if save := victim.Save(family, "-t", "nat"); !strings.Contains(save, damage.left) {
				t.Errorf("%s, %s: %q is gone:\n%s", damage.name, family, damage.left, save)
			}
		}
		t.Logf("%s: repaired after %s; %s", damage.name, repaired, strange)
	}
	sum := hit.Stop()
	// A repair ends what began wrongly, at most one question of each kind and pod at a time.
	if most := 7 * 8 * len(hit.pods); sum.Wrong > 0 || sum.Broken > 0 || sum.Unanswered > most {
		t.Errorf("the pods of the node: %s", sum)
	}
	to.report("the node's pods", sum)
	to.calm("rules broken by somebody else")
}

// apart takes the pods of a node out of the crowds into one of their own, but for those that
// have no Service: who they are seen as when rules are broken is the network plugin's affair.
func (to *town) apart(m *member) *crowd {
	to.Helper()
	hit := &crowd{guises: guises{of: map[*lab.Host]*guise{}}}
	for _, c := range []*crowd{to.residents, to.blog} {
		pods := to.podsOn(c, m)
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
	hit.start(to.world, 100)
	to.round(hit)
	return hit
}

// vandal is somebody else on a node.
type vandal struct {
	*town
	at *member
}

// iptables runs commands for both IP families.
func (v vandal) iptables(commands ...string) {
	v.Helper()
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, command := range commands {
			v.at.AsSomebodyElse("", tool, append([]string{"-w"}, strings.Fields(command)...)...)
		}
	}
}

// snapshot returns the tables of both IP families.
func (v vandal) snapshot() [2]string {
	v.Helper()
	return [2]string{v.at.Save(families[0]), v.at.Save(families[1])}
}

// restore replaces all tables that the texts name.
func (v vandal) restore(v4, v6 string) {
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
-A POST_public -o eth0 -j MASQUERADE
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

// TestNobodyNoticesThatTheIptablesLockIsHeld: for 20 s, in which objects change and the node's
// process is killed. The change arrives when the lock is free.
func TestNobodyNoticesThatTheIptablesLockIsHeld(t *testing.T) {
	to := newTown(t, settings{backend: lab.Legacy}) // iptables-nft knows no lock
	victim := to.members[1]
	lock, err := os.OpenFile(victim.Lock(), os.O_CREATE|os.O_RDONLY, 0o600)
	to.must(err)
	defer lock.Close()
	to.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	began := time.Now()
	victim.Printed.Reset()
	to.publish()
	to.published(to.members[0], to.members[2])
	victim.Says("the rules in the kernel stay as they are")
	time.Sleep(time.Until(began.Add(10 * time.Second)))
	victim.Kill()
	victim.Printed.Reset()
	victim.Start()
	time.Sleep(time.Until(began.Add(20 * time.Second))) // the fault is its length
	objects, err := to.objects()
	to.must(err)
	if err := victim.CheckPlan(to.config, objects, families...); err == nil {
		t.Error("the node has written while somebody else held the lock")
	}
	if strings.Contains(victim.Printed.String(), inPlace) {
		t.Error("the node says that its rules are in place while it could write none")
	}
	victim.Says("Somebody else holds the lock of iptables")
	held := since(began)
	to.must(lock.Close())
	free := time.Now()
	to.published()
	to.calm(fmt.Sprintf("the lock was held for %s, and the change in the kernel %s later", held, since(free)))
}
