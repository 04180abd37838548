package oracle

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Arguments are the proxyArguments that decide, as they are documented.
type Arguments struct {
	ClusterCIDRs    []netip.Prefix            // cluster-cidr
	AllProtocols    bool                      // egress-snat-protocols: all
	ExcludeCIDRs    []netip.Prefix            // egress-snat-exclude-cidrs
	ExcludeNodes    bool                      // egress-snat-exclude-nodes
	AllowedCIDRs    []netip.Prefix            // egress-snat-allowed-cidrs; nil for any
	AssignCIDRs     []netip.Prefix            // egress-snat-assign-cidrs
	NamespaceCIDRs  map[string][]netip.Prefix // egress-snat-namespace-cidrs, by namespace or "*"
	AllowNodeIPs    bool                      // egress-snat-allow-node-ips
	LoadBalancerIPs bool                      // egress-snat-load-balancer-ips
	NodeScope       bool                      // egress-snat-scope: node
	SteeringOff     bool                      // egress-snat-steering: off
}

// ParseArguments returns what a node's proxyArguments mean, which must be valid.
func ParseArguments(given map[string][]string) (Arguments, error) {
	// The documented defaults.
	values := map[string][]string{
		"egress-snat-exclude-cidrs": {"169.254.0.0/16", "224.0.0.0/4", "fe80::/10", "ff00::/8"},
		"egress-snat-exclude-nodes": {"true"},
		"egress-snat-scope":         {"node"},
	}
	for key, list := range given {
		values[key] = strings.Split(strings.Join(list, ","), ",")
	}
	last := func(key, want string) bool {
		list := values[key]
		return len(list) > 0 && list[len(list)-1] == want
	}
	a := Arguments{
		AllProtocols: last("egress-snat-protocols", "all"), ExcludeNodes: last("egress-snat-exclude-nodes", "true"),
		AllowNodeIPs: last("egress-snat-allow-node-ips", "true"), LoadBalancerIPs: last("egress-snat-load-balancer-ips", "true"),
		NodeScope: last("egress-snat-scope", "node"), SteeringOff: last("egress-snat-steering", "off"), NamespaceCIDRs: map[string][]netip.Prefix{},
	}
	for key, cidrs := range map[string]*[]netip.Prefix{
		"cluster-cidr": &a.ClusterCIDRs, "egress-snat-exclude-cidrs": &a.ExcludeCIDRs, "egress-snat-allowed-cidrs": &a.AllowedCIDRs,
		"egress-snat-assign-cidrs": &a.AssignCIDRs,
	} {
		list := slices.DeleteFunc(values[key], func(text string) bool { return text == "" })
		if *cidrs = parsePrefixes(list); len(*cidrs) != len(list) {
			return a, fmt.Errorf("proxyArguments.%s: not CIDRs: %q", key, list)
		}
	}
	for _, text := range values["egress-snat-namespace-cidrs"] {
		namespace, cidr, _ := strings.Cut(text, "=")
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return a, fmt.Errorf("proxyArguments.egress-snat-namespace-cidrs: %q: %w", text, err)
		}
		a.NamespaceCIDRs[namespace] = append(a.NamespaceCIDRs[namespace], prefix.Masked())
	}
	return a, nil
}
