package node

import (
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kubeproxy"
)

// Save returns what iptables-save prints of the family.
func (n *Node) Save(family v1.IPFamily, args ...string) string {
	n.t.Helper()
	name := "iptables-save"
	if family == v1.IPv6Protocol {
		name = "ip6tables-save"
	}
	out, err := n.Host.Run(n.t.Context(), name, args...)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// Iptables runs iptables as somebody else on the node would.
func (n *Node) Iptables(args ...string) {
	n.t.Helper()
	n.AsSomebodyElse("", "iptables", append([]string{"-w"}, args...)...)
}

// Reload empties tables, chains included, in one step.
func (n *Node) Reload(tables ...string) {
	n.t.Helper()
	n.AsSomebodyElse("*"+strings.Join(tables, "\nCOMMIT\n*")+"\nCOMMIT\n", "iptables-restore", "-w")
}

// AsSomebodyElse runs a program on the node, with the lock that the node's process takes too.
func (n *Node) AsSomebodyElse(stdin, name string, args ...string) {
	n.t.Helper()
	cmd := n.Host.Command(n.t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// CheckPlan returns an error unless the kernel holds this node's part of the plan for the objects
// and nothing else of ours, in these IP families, with the jump in front.
func (n *Node) CheckPlan(config egress.Config, objects egress.Objects, families ...v1.IPFamily) error {
	config.NodeName, config.Scope = n.Name, n.Scope
	for _, family := range families {
		planned, err := egress.PlanFor(family, config, objects)
		if err != nil {
			return err
		}
		differences, err := n.compare(family, planned.Desired())
		if err != nil {
			return err
		}
		if len(differences) > 0 {
			return fmt.Errorf("%s, %s: the kernel does not hold the plan:\n%s", n.Name, family, strings.Join(differences, "\n"))
		}
	}
	return nil
}

// compare says how the kernel differs from a plan. What the node's back end is not must hold nothing.
func (n *Node) compare(family v1.IPFamily, d kernel.Desired) (differences []string, err error) {
	rules, table := d, kernel.Desired{}
	if n.Backend == reconcile.NFTables {
		rules, table = table, rules
	}
	held, err := iptables.ParseSave(n.Save(family))
	if err != nil {
		return nil, err
	}
	err = n.Host.Do(func() error {
		differences, err = nftables.Compare(n.t.Context(), kernel.Family(family), table)
		return err
	})
	return append(differences, iptables.Differences(iptables.Render(rules), held)...), err
}

// PlanConfig is what [Node.Configure] without arguments makes of the extensions of all nodes together.
func PlanConfig(clusterCIDRs ...netip.Prefix) egress.Config {
	config := egress.Config{Scope: placement.Cluster, ClusterCIDRs: clusterCIDRs, ExcludeNodes: true}
	for _, text := range kubeproxy.DefaultExclusions {
		config.Exclusions = append(config.Exclusions, netip.MustParsePrefix(text))
	}
	return config
}
