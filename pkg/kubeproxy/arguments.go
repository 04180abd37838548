package kubeproxy

import (
	"errors"
	goflag "flag"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// egressFlags are the proxyArguments that kube-proxy does not have.
type egressFlags struct {
	enabled         bool
	minSyncPeriod   time.Duration
	scope           string
	audit           bool
	excludeCIDRs    []string
	excludeNodes    bool
	allowedCIDRs    []string
	namespaceCIDRs  []string
	allowNodeIPs    bool
	protocols       string
	loadBalancerIPs bool
	backend         string
	socket          string
}

// Their names, where messages have them.
const (
	excludeCIDRsKey   = "egress-snat-exclude-cidrs"
	allowedCIDRsKey   = "egress-snat-allowed-cidrs"
	namespaceCIDRsKey = "egress-snat-namespace-cidrs"
	protocolsKey      = "egress-snat-protocols"
	socketKey         = "egress-snat-socket"
	backendKey        = "egress-snat-backend"
	scopeKey          = "egress-snat-scope"
)

// autoBackend is the value of egress-snat-backend by which the kernel decides.
const autoBackend = "auto"

// The values of egress-snat-protocols.
const (
	serviceProtocols = "service"
	allProtocols     = "all"
)

func (f *egressFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.enabled, "egress-snat", true, "Let the pods behind a Service with external IPs leave from the first of them.")
	fs.StringVar(&f.protocols, protocolsKey, serviceProtocols, "Which packets of a bound pod leave from the egress IP: 'service', those of the protocols of the Service's ports, or 'all', ICMP included.")
	fs.StringSliceVar(&f.excludeCIDRs, excludeCIDRsKey, DefaultExclusions, "Destinations that are never SNATed, besides the cluster CIDRs. A list replaces the default: link-local addresses and multicast.")
	fs.BoolVar(&f.excludeNodes, "egress-snat-exclude-nodes", true, "Never SNAT packets to the addresses of the cluster's nodes either.")
	fs.StringSliceVar(&f.allowedCIDRs, allowedCIDRsKey, nil, "Networks that egress IPs may lie in; any if it is not given. On OpenShift the external IP policy of Network.config.openshift.io/cluster holds as well.")
	fs.StringSliceVar(&f.namespaceCIDRs, namespaceCIDRsKey, nil, "NAMESPACE=CIDR: the egress IPs of that namespace may lie in these networks only. Several for one namespace add up.")
	fs.BoolVar(&f.allowNodeIPs, "egress-snat-allow-node-ips", false, "Let an external IP that is a node's primary address be an egress IP.")
	fs.BoolVar(&f.loadBalancerIPs, "egress-snat-load-balancer-ips", false, "Let the pods behind a Service of type LoadBalancer without external IPs leave from its first load-balancer IP of mode VIP.")
	fs.DurationVar(&f.minSyncPeriod, "egress-snat-min-sync-period", 100*time.Millisecond, "The least time between two writes of egress SNAT rules (e.g. '100ms', '1s'). Changes that come in between are written together.")
	fs.StringVar(&f.scope, scopeKey, string(placement.Node), "Whose pods rules are written for: 'node', those of this node, whose packets leave through it; or 'cluster', all, for network plugins whose pods leave through other nodes.")
	fs.BoolVar(&f.audit, "egress-snat-audit", false, "For debugging: twice in a sync period, also make the plan of all objects at once and log a difference. It costs as much as the cluster is large.")
	fs.StringVar(&f.backend, backendKey, "", "How the rules are written: 'iptables', 'nftables' in a table of their own, or 'auto', nftables where the kernel has it. The default is that of the proxy mode.")
	fs.StringVar(&f.socket, socketKey, status.DefaultSocket, "The local socket at which 'openshift egress' asks this node; empty for none.")
}

// arguments are kube-proxy's flags with values, and those of the project.
type arguments struct {
	options *app.Options
	flags   *pflag.FlagSet
	egress  egressFlags
	// clusterCIDRs is the whole list, of which kube-proxy gets the first of each family.
	clusterCIDRs []netip.Prefix
}

// versionFlag is kube-proxy's --version, which registers itself on every command line.
var versionFlag = pflag.Lookup("version")

// DefaultExclusions are what egress-snat-exclude-cidrs has if it is not given: packets to
// link-local addresses and multicast groups do not leave the node's network.
var DefaultExclusions = []string{"169.254.0.0/16", "224.0.0.0/4", "fe80::/10", "ff00::/8"}

// clusterCIDRKey is the one argument that takes a list although kube-proxy's flag does not.
const clusterCIDRKey = "cluster-cidr"

// setArguments gives kube-proxy's flags their values, in origin's order: what origin sets
// for every node, then the NodeConfig's fields, then the proxyArguments, which override
// both. All errors of the proxyArguments are returned together.
func setArguments(config *nodeconfig.Config) (*arguments, error) {
	a := newArguments()
	given := map[string]bool{}
	for key := range config.NodeConfig.ProxyArguments {
		given[a.normalize(key)] = true
	}
	for _, field := range nodeFields(config) {
		if field.value == "" || given[field.flag] {
			continue
		}
		if err := a.flags.Set(field.flag, field.value); err != nil {
			return nil, config.Errorf(field.path, "%q does not do: %v", field.value, err)
		}
	}
	a.options.Config().ClientConnection.AcceptContentTypes = config.NodeConfig.MasterClientConnectionOverrides.AcceptContentTypes

	var errs []error
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(config.NodeConfig.ProxyArguments)) {
		if other, twice := seen[a.normalize(key)]; twice {
			errs = append(errs, config.Errorf("proxyArguments."+key, "the same argument as %q; keep one of them", other))
			continue
		}
		seen[a.normalize(key)] = key
		errs = append(errs, a.set(config, key, config.NodeConfig.ProxyArguments[key]))
	}
	return a, errors.Join(errs...)
}

// newArguments returns the flags with kube-proxy's defaults.
func newArguments() *arguments {
	a := &arguments{options: app.NewOptions(), flags: pflag.NewFlagSet("proxyArguments", pflag.ContinueOnError)}
	a.flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	a.options.AddFlags(a.flags)
	a.flags.AddGoFlagSet(goflag.CommandLine) // kube-proxy's command takes --boot-id-file and --machine-id-file from there
	a.flags.AddFlag(versionFlag)
	a.egress.add(a.flags)
	return a
}

// ArgumentUsages returns the help text for all proxyArguments.
func ArgumentUsages() string { return newArguments().flags.FlagUsages() }

// nodeField is a NodeConfig field that a flag takes its value from.
type nodeField struct{ path, flag, value string }

// nodeFields are the flags' values before proxyArguments, later ones over earlier ones.
func nodeFields(config *nodeconfig.Config) []nodeField {
	node := config.NodeConfig
	host, _, _ := net.SplitHostPort(node.ServingInfo.BindAddress)
	overrides := node.MasterClientConnectionOverrides
	return []nodeField{
		{"servingInfo.bindAddress", "bind-address", host},
		{"", "oom-score-adj", "0"},
		{"masterKubeConfig", "kubeconfig", node.MasterKubeConfig},
		{"masterClientConnectionOverrides.contentType", "kube-api-content-type", overrides.ContentType},
		{"masterClientConnectionOverrides.qps", "kube-api-qps", strconv.FormatFloat(float64(overrides.QPS), 'f', -1, 32)},
		{"masterClientConnectionOverrides.burst", "kube-api-burst", strconv.Itoa(int(overrides.Burst))},
		{"", "proxy-mode", "iptables"},
		{"iptablesSyncPeriod", "iptables-sync-period", node.IPTablesSyncPeriod},
		{"nodeName", "hostname-override", node.NodeName},
	}
}

func (a *arguments) normalize(key string) string {
	return string(a.flags.GetNormalizeFunc()(a.flags, key))
}

// set gives the flag that key names its values, in order.
func (a *arguments) set(config *nodeconfig.Config, key string, values []string) error {
	path := "proxyArguments." + key
	flag := a.flags.Lookup(key)
	if flag == nil {
		return a.unknown(config, path, key)
	}
	if flag.Name == clusterCIDRKey {
		return a.setClusterCIDRs(config, path, values)
	}
	var errs []error
	for i, value := range values {
		if err := a.flags.Set(key, value); err != nil {
			errs = append(errs, config.Errorf(fmt.Sprintf("%s[%d]", path, i), "%v; expected a value of the type %s", err, flag.Value.Type()))
		}
	}
	return errors.Join(errs...)
}

func (a *arguments) unknown(config *nodeconfig.Config, path, key string) error {
	var known []string
	a.flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if nearest := nodeconfig.Nearest(key, known); nearest != "" {
		return config.Errorf(path, "%q is not a valid flag; did you mean %q?", key, nearest)
	}
	return config.Errorf(path, "%q is not a valid flag; see 'openshift help proxy-arguments' for those that are", key)
}

// setClusterCIDRs reads the cluster CIDRs, one or several in each value. kube-proxy
// accepts and uses one of each IP family, so it gets the first of each.
func (a *arguments) setClusterCIDRs(config *nodeconfig.Config, path string, values []string) error {
	var errs []error
	var first [2]string // of IPv4 and IPv6
	order := []int{}
	for i, value := range values {
		for _, text := range strings.Split(value, ",") {
			prefix, err := parseInside(text, "the network of the cluster's pods, for example 10.128.0.0/14 or fd01::/48")
			if err != nil {
				errs = append(errs, config.Errorf(fmt.Sprintf("%s[%d]", path, i), "%v", err))
				continue
			}
			a.clusterCIDRs = append(a.clusterCIDRs, prefix)
			family := 0
			if prefix.Addr().Is6() {
				family = 1
			}
			if first[family] == "" {
				first[family] = prefix.String()
				order = append(order, family)
			}
		}
	}
	var forKubeProxy []string
	for _, family := range order {
		forKubeProxy = append(forKubeProxy, first[family])
	}
	if len(errs) == 0 && len(forKubeProxy) > 0 {
		errs = append(errs, a.flags.Set(clusterCIDRKey, strings.Join(forKubeProxy, ",")))
	}
	return errors.Join(errs...)
}

// parseInside reads a network of destinations that are never SNATed. what says what is
// expected.
func parseInside(text, what string) (netip.Prefix, error) {
	prefix, err := parseCIDR(text, what)
	if err == nil && prefix.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("%q covers every address, so nothing would be SNATed; expected %s", text, what)
	}
	return prefix, err
}

// parseCIDR accepts what kube-proxy accepts. what says what is expected.
func parseCIDR(text, what string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR; expected %s", text, what)
	}
	return prefix.Masked(), nil
}
