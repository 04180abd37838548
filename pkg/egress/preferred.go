package egress

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// preferredWarnings returns what a verification says of egress IPs on this node that its kernel may give to any packet.
func (e *Extension) preferredWarnings(family v1.IPFamily) (warnings []string, err error) {
	if family != v1.IPv6Protocol {
		return nil, nil // the first IPv4 address of a subnet counts, whoever adds others
	}
	preferred, err := holders.PreferredNow()
	if err != nil {
		return nil, fmt.Errorf("look for preferred egress IPs: %w", err)
	}
	for _, ip := range e.state.EgressIPs(family) {
		if device, is := preferred[ip]; is && !e.state.IsPrimary(ip) {
			warnings = append(warnings, fmt.Sprintf("%sthe egress IP %s is on %s with a preferred lifetime, so MASQUERADE of other software may give it to pods that are not bound; run: ip addr change %s/128 dev %s preferred_lft 0",
				status.Warning, ip, device, ip, device))
		}
	}
	return warnings, nil
}
