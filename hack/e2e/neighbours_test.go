package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

// Other software on the nodes.

// TestNeighbours_SourceNAT: other software masquerades pods in front of iptables' chains, as kindnet does, and was there first or comes
// later. Bound pods leave from their egress IP all the same. Where a chain decides before ours, the node names it until it goes.
func TestNeighbours_SourceNAT(t *testing.T) {
	for name, way := range map[string]struct {
		settings
		share share
		// behind is a priority at which others change nothing, before one at which they decide.
		behind, before int
	}{
		"iptables":                   {settings{nodes: 2}, inCI, 90, -199},
		"nftables":                   {settings{nodes: 2, nftables: true}, usual, 90, -199},
		"nftables, without steering": {settings{nodes: 2, nftables: true, arguments: `egress-snat-steering: ["off"]`}, inCI, 90, -198},
		"iptables, without steering": {settings{nodes: 2, backend: lab.Legacy, arguments: `egress-snat-steering: ["off"]`}, usual, 101, 90},
	} {
		t.Run(name, func(t *testing.T) {
			belongsTo(t, way.share)
			w := newIdleWorld(t, way.settings)
			w.masqueradeAt("first", way.behind)
			w.start()
			pods := w.shop(w.ips(10)...)
			w.masqueradeAt("later", way.behind)
			for _, pod := range pods {
				w.leaves("tcp", pod, w.ips(10)...)
				w.leaves("udp", pod, w.ips(10)...)
			}
			w.tellEarlierNAT("later", 0)
			w.masqueradeAt("decides", way.before)
			w.tellEarlierNAT("decides", 1)
			w.eventTold("EgressSNATNotFirst", fmt.Sprintf("chain post of the nftables table inet decides, priority %d", way.before))
			w.onAll("nft delete table inet decides")
			w.tellEarlierNAT("decides", 0)
			for _, pod := range pods {
				w.leaves("tcp", pod, w.ips(10)...)
			}
		})
	}
}

// masqueradeAt has other software on all nodes masquerade what leaves, in an nftables table with this name.
func (w *world) masqueradeAt(name string, priority int) {
	w.Helper()
	w.onAll(fmt.Sprintf("nft add table inet %[1]s ; add chain inet %[1]s post { type nat hook postrouting priority %[2]d ; } ; add rule inet %[1]s post oifname eth0 masquerade", name, priority))
}

// tellEarlierNAT waits until all nodes tell of this many chains that come before egress SNAT in each IP family, 0 or 1, and of a table
// with this name.
func (w *world) tellEarlierNAT(table string, chains int) {
	w.Helper()
	for _, m := range w.members {
		w.eventually(func() error {
			out, errs, _ := m.Openshift("egress", "verify", "--socket="+m.Socket())
			got, err := w.get(m.Host, metricsAt, "/metrics")
			if err != nil {
				return err
			}
			for _, family := range w.families {
				metric := fmt.Sprintf("egress_snat_earlier_nat_chains{ip_family=%q} %d\n", family, chains)
				told := strings.Contains(out, fmt.Sprintf("%s: warning: the chain post of the nftables table inet %s, priority ", family, table))
				if told != (chains > 0) || !strings.Contains(got.body, metric) {
					return fmt.Errorf("%s: want %s and the chain of %s told %v; verify says %s%s", m.Name, metric, table, chains > 0, out, errs)
				}
			}
			return nil
		})
	}
}
