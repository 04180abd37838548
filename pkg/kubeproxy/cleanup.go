package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	utiliptables "k8s.io/kubernetes/pkg/util/iptables"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/kept"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/handover"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Cleanup removes every rule and chain of egress SNAT, of the tunnel's ports and of all proxy modes from the kernel, in
// both iptables back ends, the CNI plugin from the list that the node has put it into, and the files that the node has kept. It changes PATH while it runs, so the process must do nothing else
// meanwhile. It is an error if a node process runs: that would write the rules again.
func (p *Proxy) Cleanup(ctx context.Context) error {
	release, err := claimInstance(ctx, instanceFolder)
	if err != nil {
		return err
	}
	defer release()
	p.withdrawOnce(ctx)
	if _, err := iptables.AwaitLock(ctx); err != nil { // else nothing is removed
		return err
	}
	// Egress SNAT first: without its rules pods leave as the network plugin decides, but without
	// the proxier's they cannot be reached.
	proxier := func() error {
		if _, err := iptables.AwaitLock(ctx); err != nil { // upstream's clean-up skips iptables if it is locked
			return err
		}
		return errors.Join(p.options.Cleanup(ctx, true), cleanupKubeletFirewall())
	}
	err = errors.Join(cleanupEgress(ctx), redirect.Withdraw(ctx), conntrack.Cleanup(ctx), proxier(), iptables.OnOtherBackend(ctx, proxier),
		p.removePlugin(), kept.Remove(keptKeys(p.flags.socket)), kept.Remove(keptNodes(p.flags.socket)), p.forgetDrain())
	if err != nil {
		return fmt.Errorf("not all rules were removed; the log above has the details. Fix the cause and run --cleanup again: %w", err)
	}
	p.giveBlocksBack(ctx) // no connection uses them any more
	return nil
}

// forgetDrain forgets that an operator has drained this node. A node without a socket cannot be drained.
func (p *Proxy) forgetDrain() error {
	if p.flags.socket == "" {
		return nil
	}
	return kept.Remove(drainNote(p.flags.socket))
}

// CleanupDryRun prints the files that Cleanup takes the CNI plugin out of, one in each line, and changes nothing.
func (p *Proxy) CleanupDryRun(out io.Writer) error {
	if p.flags.attaching.Install == "" {
		return nil
	}
	files, err := attach.PluginLists(p.flags.attaching.Lists)
	for _, file := range files {
		if _, printErr := fmt.Fprintln(out, file); printErr != nil {
			return printErr
		}
	}
	return err
}

// removePlugin takes the CNI plugin out of the list, if this node has put it there, and removes what is kept for it: pods
// then start without it, and with it, too.
func (p *Proxy) removePlugin() error {
	attaching := p.flags.attaching
	err := attach.ForgetAttachments(attaching.Socket)
	if attaching.Install != "" {
		err = errors.Join(err, attach.RemovePlugin(attaching.Lists))
	}
	return err
}

// cleanupEgress removes the rules of egress SNAT and the steering of packets, and the tracked connections that have an
// egress IP, or that another node gave one. A record of the rules, and the guard, stay until the connections are
// removed: after a failure the next attempt finds the pods there, and meanwhile the guard drops what they send.
func cleanupEgress(ctx context.Context) error {
	rules, rulesErr := iptables.Withdraw(ctx)
	tables, tablesErr := steering.WithdrawLocal(ctx)
	errs := []error{rulesErr, tablesErr, steering.Halt(ctx)}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		steered, err := steering.Stands(ctx, family)
		errs = append(errs, err)
		withdrawn := kernel.Sorted(slices.Concat(rules[family], tables[family], steered.All()))
		if len(withdrawn) == 0 {
			continue
		}
		_, err = conntrack.Delete(ctx, family, excluding(steered), conntrack.Scope{Removed: withdrawn, Steered: steered.Bindings, Blocks: steered.Blocks})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(iptables.Cleanup(ctx, iptables.Egress), steering.CleanupLocal(ctx), steering.Cleanup(ctx), handover.Cleanup(ctx), portsecurity.Cleanup(ctx))
}

// excluding is nothing that binds, with the networks of a table of steering.
func excluding(s steering.Standing) kernel.Desired {
	return kernel.Desired{Networks: kernel.Networks{Exclusions: s.Exclusions}}
}

// cleanupSteering removes the steering of packets, and the tracked connections that other nodes gave an egress IP. Before that, a table
// without steering gets the bindings that the table of the steering has, unless iptables rules of the node have them: from then on pods use
// their egress IPs where they run.
func cleanupSteering(ctx context.Context, backend reconcile.Backend) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		errs = append(errs, keepBindings(ctx, backend, family))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keeping pods' egress IPs while steering is removed; remove the cause and restart the node, or remove all rules with --cleanup: %w", err)
	}
	errs = []error{steering.Halt(ctx)}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		steered, err := steering.Stands(ctx, family)
		errs = append(errs, err)
		_, err = conntrack.Delete(ctx, family, excluding(steered), conntrack.Scope{Steered: steered.Bindings})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending connections that were steered to other nodes: %w", err)
	}
	return errors.Join(steering.Cleanup(ctx), handover.Cleanup(ctx))
}

// keepBindings writes the table of nftables that there is without steering, for what the steering has of an IP family. What has no
// effect there any more is on record. After [steering.Halt] an earlier try has done so. In the iptables back end it is for a node that had
// the nftables back end before.
func keepBindings(ctx context.Context, backend reconcile.Backend, family kernel.Family) error {
	steered, err := steering.Stands(ctx, family)
	if err != nil || len(steered.All()) == 0 {
		return err
	}
	if backend == reconcile.IPTables {
		rules, err := iptables.Look(ctx, family)
		if err != nil || len(rules.Bindings()) > 0 {
			return err
		}
	}
	table := steering.NewLocalWriter(family)
	defer table.Close()
	_, err = table.Read(ctx)
	standing, _ := table.Standing()
	held := standing.All()
	if err != nil || len(steered.Given) == 0 && len(held) > 0 {
		return err
	}
	_, removed := kernel.Diff(kernel.Sorted(slices.Concat(held, steered.All())), steered.Given)
	desired := excluding(steered)
	desired.Bindings = steered.Given
	_, err = table.Write(ctx, desired, removed)
	return err
}

// A chain that the kubelet shares with the proxier, and one that only the kubelet has
// (pkg/kubelet/kubelet_network_linux.go).
const (
	kubeletFirewall utiliptables.Chain = "KUBE-FIREWALL"
	kubeletCanary   utiliptables.Chain = "KUBE-KUBELET-CANARY"
)

// cleanupKubeletFirewall removes the proxier's copy of the kubelet's firewall chain. Upstream's
// clean-up leaves it in place because it may be the kubelet's. Where a kubelet runs, its canary
// chain exists as well, and both stay.
func cleanupKubeletFirewall() error {
	var errs []error
	for _, ipt := range utiliptables.NewBestEffort() {
		if kubelet, _ := ipt.ChainExists(utiliptables.TableMangle, kubeletCanary); kubelet {
			continue
		}
		if exists, _ := ipt.ChainExists(utiliptables.TableFilter, kubeletFirewall); !exists {
			continue
		}
		errs = append(errs,
			ipt.DeleteRule(utiliptables.TableFilter, utiliptables.ChainInput, "-j", string(kubeletFirewall)),
			ipt.DeleteRule(utiliptables.TableFilter, utiliptables.ChainOutput, "-j", string(kubeletFirewall)),
			ipt.FlushChain(utiliptables.TableFilter, kubeletFirewall),
			ipt.DeleteChain(utiliptables.TableFilter, kubeletFirewall))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the chain %s: %w", kubeletFirewall, err)
	}
	return nil
}
