package kubeproxy

import (
	"context"
	"errors"
	"fmt"

	utiliptables "k8s.io/kubernetes/pkg/util/iptables"

	"github.com/openshift/origin-node/pkg/egress/iptables"
)

// Cleanup removes every rule and chain of the egress extension and of all modes of the
// proxier from the kernel.
func (p *Proxy) Cleanup(ctx context.Context) error {
	// Ours first: SNAT without the proxier is harmless, a leftover of it is not.
	return errors.Join(iptables.Cleanup(ctx), p.options.Cleanup(ctx, true), cleanupKubeletFirewall())
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
