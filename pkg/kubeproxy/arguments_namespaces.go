package kubeproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// parseNamespaceCIDRs reads the networks that namespaces are pinned to.
func (p *Proxy) parseNamespaceCIDRs() (map[string][]netip.Prefix, error) {
	cidrs := map[string][]netip.Prefix{}
	var errs []error
	for _, text := range p.flags.namespaceCIDRs {
		namespace, cidr, err := parseNamespaceCIDR(text)
		if err != nil {
			errs = append(errs, p.config.Errorf("proxyArguments."+namespaceCIDRsKey, "invalid value %q: %w", text, err))
			continue
		}
		cidrs[namespace] = append(cidrs[namespace], cidr)
	}
	return cidrs, errors.Join(errs...)
}

func parseNamespaceCIDR(text string) (namespace string, cidr netip.Prefix, err error) {
	namespace, cidrText, found := strings.Cut(strings.TrimSpace(text), "=")
	if wrong := validation.IsDNS1123Label(namespace); !found || len(wrong) > 0 && namespace != plan.EveryOther {
		return "", netip.Prefix{}, fmt.Errorf("expected NAMESPACE=CIDR, or %s=CIDR for all namespaces that are not named, for example shop=203.0.113.0/28", plan.EveryOther)
	}
	cidr, err = parseCIDR(cidrText, "a network of egress IPs, for example 203.0.113.0/28")
	return namespace, cidr, err
}
