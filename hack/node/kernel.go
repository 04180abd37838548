package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
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
	if err := n.Host.Feed(n.t.Context(), stdin, name, args...); err != nil {
		n.t.Fatal(err)
	}
}

// CheckPlan returns an error unless the kernel holds, in these IP families, the rules that hack/oracle
// asks of this node and nothing else of ours, with the jump in front.
func (n *Node) CheckPlan(cluster oracle.Cluster, families ...v1.IPFamily) error {
	bindings := cluster.BindingsOn(n.Name)
	for _, family := range families {
		differences, err := n.compare(family, expected(family, cluster, bindings))
		if err != nil {
			return err
		}
		if len(differences) > 0 {
			return fmt.Errorf("%s, %s: the kernel does not hold the plan:\n%s", n.Name, family, strings.Join(differences, "\n"))
		}
	}
	return nil
}

// expected is what the kernel should hold of a family that has these bindings.
func expected(family v1.IPFamily, cluster oracle.Cluster, bindings []oracle.Binding) kernel.Desired {
	d := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: ofFamily(family, cluster.PodNetworks()), Exclusions: ofFamily(family, cluster.Exclusions())}}
	for _, b := range bindings {
		if familyOf(b.Pod) == family {
			d.Bindings = append(d.Bindings, kernel.Binding{Pod: b.Pod, Protocol: kernel.Protocol(b.Protocol), EgressIP: b.EgressIP})
		}
	}
	d.Bindings = kernel.Sorted(d.Bindings)
	return d
}

// ofFamily returns the networks of a family, sorted and without duplicates, as a plan has them.
func ofFamily(family v1.IPFamily, cidrs []netip.Prefix) (result []netip.Prefix) {
	for _, cidr := range cidrs {
		if familyOf(cidr.Addr()) == family {
			result = append(result, cidr.Masked())
		}
	}
	slices.SortFunc(result, netip.Prefix.Compare)
	return slices.Compact(result)
}

func familyOf(addr netip.Addr) v1.IPFamily {
	if addr.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// compare says how the kernel differs from a plan. What the node's back end is not must hold nothing. Where there is a table of steering,
// that is the back end's only table.
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
		steered, err := steering.Stands(n.t.Context(), kernel.Family(family))
		if err != nil {
			return err
		}
		if len(steered.Exclusions) > 0 {
			differences, table = differencesOf(steered, d), kernel.Desired{}
		}
		others, err := steering.CompareLocal(n.t.Context(), kernel.Family(family), table)
		differences = append(differences, others...)
		return err
	})
	return append(differences, iptables.Differences(iptables.Render(rules), held)...), err
}

// differencesOf says how what a table of steering gives flows differs from a plan.
func differencesOf(steered steering.Standing, d kernel.Desired) (differences []string) {
	if !slices.Equal(steered.Given, d.Bindings) {
		differences = append(differences, fmt.Sprintf("table %s has the bindings %v, want %v", steering.Table, steered.Given, d.Bindings))
	}
	if outside := nft.Prefixes(nft.Ranges(slices.Concat(d.ClusterCIDRs, d.Exclusions))); !slices.Equal(steered.Exclusions, outside) {
		differences = append(differences, fmt.Sprintf("table %s has the exclusions %v, want %v", steering.Table, steered.Exclusions, outside))
	}
	return differences
}

// Refuses has the kernel refuse changes of nftables tables, named as nft does with their families, until what it returns is called, or the
// test ends: they belong to another process.
func (n *Node) Refuses(tables ...string) (end func()) {
	n.t.Helper()
	owner := n.Host.Command(context.WithoutCancel(n.t.Context()), "nft", "-i")
	commands, err := owner.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	ended, err := lab.Start(owner)
	if err != nil {
		n.t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = commands.Close() // nft ends then
		<-ended
	})
	n.t.Cleanup(end)
	for _, table := range tables {
		if _, err := fmt.Fprintf(commands, "add table %s { flags owner; }\n", table); err != nil {
			n.t.Fatal(err)
		}
		n.Eventually(Soon, func() error {
			listed, err := n.Host.Run(n.t.Context(), "nft", "list", "tables")
			if err == nil && !strings.Contains(listed, table) {
				err = fmt.Errorf("there is no table %s: %s", table, listed)
			}
			return err
		})
	}
	return end
}
