package kubeproxy

import (
	"context"
	"errors"
	"fmt"

	utiliptables "k8s.io/kubernetes/pkg/util/iptables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
)

// Cleanup removes every rule and chain of the egress extension and of all modes of the
// proxier from the kernel, in both iptables back ends. It changes PATH while it runs: the
// process must do nothing else meanwhile. It is an error if a node's process runs: that would
// write them again.
func (p *Proxy) Cleanup(ctx context.Context) error {
	release, err := claimInstance(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := iptables.AwaitLock(ctx); err != nil { // upstream's clean-up skips what it cannot have
		return err
	}
	// Ours first: without them pods leave as the network plugin decides, while without the
	// proxier's they could not even be reached.
	proxier := func() error { return errors.Join(p.options.Cleanup(ctx, true), cleanupKubeletFirewall()) }
	err = errors.Join(cleanupEgress(ctx), proxier(), iptables.OnOtherBackend(ctx, proxier))
	if err != nil {
		return fmt.Errorf("rules are left in the kernel, the log above says which; run --cleanup again when the cause is gone: %w", err)
	}
	return nil
}

// cleanupEgress removes the rules of egress SNAT, and the tracked flows that they have given
// an egress IP: as from now on, these go without. Until the flows are gone a journal of the rules
// stays, in which the next attempt would find whose they were.
func cleanupEgress(ctx context.Context) error {
	rules, rulesErr := iptables.Withdraw(ctx)
	tables, tablesErr := nftables.Withdraw(ctx)
	errs := []error{rulesErr, tablesErr}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		withdrawn := append(rules[family], tables[family]...)
		if len(withdrawn) == 0 {
			continue
		}
		_, err := conntrack.Delete(ctx, family, kernel.Desired{}, conntrack.Scope{Removed: withdrawn})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(iptables.Cleanup(ctx), nftables.Cleanup(ctx))
}

// Chains that the kubelet shares with the proxier, or has for itself
// (pkg/kubelet/kubelet_network_linux.go).
const (
	kubeletFirewall utiliptables.Chain = "KUBE-FIREWALL"
	kubeletCanary   utiliptables.Chain = "KUBE-KUBELET-CANARY"
)

// cleanupKubeletFirewall removes the proxier's copy of the kubelet's firewall chain, which
// upstream's clean-up leaves in place because it cannot tell whose it is. Where a kubelet
// runs its canary stands beside the chain, and both stay.
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
