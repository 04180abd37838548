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

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/conflist"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// egressFlags are the values of this project's own proxyArguments.
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
	portSecurity    bool
	backend         string
	socket          string
	attaching       attach.Config
	steering        steeringFlags
	pool            poolFlags
	journal         journalFlags
}

// The names of arguments that messages mention.
const (
	excludeCIDRsKey   = "egress-snat-exclude-cidrs"
	allowedCIDRsKey   = "egress-snat-allowed-cidrs"
	namespaceCIDRsKey = "egress-snat-namespace-cidrs"
	protocolsKey      = "egress-snat-protocols"
	socketKey         = "egress-snat-socket"
	cniSocketKey      = "egress-snat-cni-socket"
	kubeletSocketKey  = "egress-snat-kubelet-socket"
	watchPodsKey      = "egress-snat-watch-pods"
	cniConfDirKey     = "egress-snat-cni-conf-dir"
	cniInstallKey     = "egress-snat-cni-install"
	backendKey        = "egress-snat-backend"
	scopeKey          = "egress-snat-scope"
	enabledKey        = "egress-snat"
	excludeNodesKey   = "egress-snat-exclude-nodes"
	allowNodeIPsKey   = "egress-snat-allow-node-ips"
	loadBalancersKey  = "egress-snat-load-balancer-ips"
	portSecurityKey   = "egress-snat-port-security"
	minSyncPeriodKey  = "egress-snat-min-sync-period"
)

// autoBackend is the value of egress-snat-backend that selects nftables if the kernel has it.
const autoBackend = "auto"

// The values of egress-snat-protocols.
const (
	serviceProtocols = "service"
	allProtocols     = "all"
)

// add adds the flags in the order of their help.
func (f *egressFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.enabled, enabledKey, true, "Pods behind a Service with external IPs leave the cluster from the first of these. "+
		"'false' switches that off and removes its rules when the node starts.")
	fs.StringVar(&f.protocols, protocolsKey, serviceProtocols, "Which packets of a bound pod leave from the egress IP. "+
		"'service': those of the protocols of the Service's ports. Behind a TCP-only Service, UDP (DNS!) and ICMP leave as without egress SNAT. "+
		"'all': those of every IP protocol, ICMP included.")
	fs.StringSliceVar(&f.excludeCIDRs, excludeCIDRsKey, DefaultExclusions, "Destinations that are never SNATed, besides the cluster CIDRs. "+
		"A list replaces the default, which is link-local addresses and multicast groups.")
	fs.BoolVar(&f.excludeNodes, excludeNodesKey, true, "Packets to the addresses of the cluster's nodes are never SNATed either: to the first InternalIP of each IP family that each Node registered with. "+
		"A kubelet writes its own Node's addresses. If you do not trust all kubelets, set this to 'false' and list the nodes' networks in egress-snat-exclude-cidrs. ExternalIPs are never covered: list them there, too.")
	fs.StringSliceVar(&f.allowedCIDRs, allowedCIDRsKey, nil, "The networks in which egress IPs may lie. If it is not set they may lie anywhere, but an address that only a Service's annotation network.openshift.io/egress-ip names then has to lie in a network of egress-snat-namespace-cidrs. "+
		"On OpenShift the external IP policy of Network.config.openshift.io/cluster applies as well.")
	fs.StringSliceVar(&f.namespaceCIDRs, namespaceCIDRsKey, nil, "NAMESPACE=CIDR: the network is reserved for the egress IPs of this namespace, which may lie nowhere else. "+
		"Several values for a namespace add up, and one network may be given to several namespaces. "+
		"*=CIDR: the network for the egress IPs of all namespaces that are not named. Without it, they may lie wherever nothing is reserved. "+
		"A reserved network must not contain nodes' addresses. They are ignored there, so that no kubelet can block an egress IP by claiming it as its own address.")
	fs.BoolVar(&f.allowNodeIPs, allowNodeIPsKey, false, "An egress IP may be a node's primary address (the first InternalIP that it registered with).")
	fs.BoolVar(&f.loadBalancerIPs, loadBalancersKey, false, "The egress IP of a Service of type LoadBalancer without external IPs is its first load-balancer IP "+
		"(status.loadBalancer.ingress, of ipMode VIP).")
	fs.DurationVar(&f.minSyncPeriod, minSyncPeriodKey, 100*time.Millisecond, "The least time between two writes of egress SNAT rules, for example '100ms' or '1s'. "+
		"Changes in between are written together. At most half of the proxy's sync period.")
	fs.StringVar(&f.scope, scopeKey, string(placement.Node), "Whose pods a node writes rules for. 'node': those whose packets leave through this node, "+
		"which are the pods that EndpointSlices place on it or on no node, and those with addresses in the Node's podCIDRs. "+
		"'cluster': all, for network plugins whose pods leave through other nodes than their own.")
	fs.StringVar(&f.backend, backendKey, "", "How the rules of egress SNAT are written. 'iptables': chains in the nat table. 'nftables': a table of their own. "+
		"'auto': nftables if the kernel has it, else iptables. The default is the back end of the proxy mode. In the proxy mode nftables it cannot be iptables.")
	fs.BoolVar(&f.portSecurity, portSecurityKey, true, "A packet that comes from a pod's interface with the address of a bound pod is accepted only if that pod is behind the interface, so that no other pod can use the address. "+
		"'false': sources are not checked. Use that only for network plugins whose pods share interfaces.")
	f.steering.add(fs)
	f.pool.add(fs)
	f.journal.add(fs)
	fs.StringVar(&f.socket, socketKey, status.DefaultSocket, "The local socket on which this node answers 'openshift egress' and 'openshift tunnel', to root alone: an absolute path, or empty for no socket.")
	addAttaching(fs, &f.attaching)
	fs.BoolVar(&f.audit, "egress-snat-audit", false, "For debugging. Twice in a sync period, the node also makes the plan from scratch, and logs any difference. "+
		"The cost grows with the size of the cluster.")
}

// addAttaching adds the flags about the CNI plugin.
func addAttaching(fs *pflag.FlagSet, a *attach.Config) {
	fs.StringVar(&a.Socket, cniSocketKey, attachments.DefaultSocket, "The local socket on which this node answers the CNI plugin origin-node-cni, which lets a pod start when it is bound: an absolute path, or empty for no socket.")
	fs.StringVar(&a.Kubelet, kubeletSocketKey, kubelet.DefaultSocket, "The socket of the kubelet's Pods API (Kubernetes 1.37), which the node asks for the labels of pods that start: an absolute path, or empty to ask nobody.")
	fs.BoolVar(&a.WatchPods, watchPodsKey, false, "The node watches its pods, for their labels where the kubelet has no Pods API. "+
		"Its user needs the right to get, list and watch all pods.")
	fs.StringVar(&a.Lists, cniConfDirKey, conflist.DefaultFolder, "The folder in which the container runtime finds its list of CNI plugins. The node reports it if the plugin disappears from the list. An absolute path, or empty to watch no list.")
	fs.StringVar(&a.Install, cniInstallKey, "", "The folder with the plugin origin-node-cni, for example /opt/cni/bin. The node then puts the plugin at the end of the list of CNI plugins, again whenever other software rewrites the list, "+
		"and --cleanup removes it. The node never creates a list, and does not change it while it has no source of pods' labels. Empty: the node does not change the list.")
}

// arguments are the flags of kube-proxy and of this project, with values.
type arguments struct {
	options *app.Options
	flags   *pflag.FlagSet
	// own has this project's flags, which are in flags as well; they set egress and tunnel.
	own    *pflag.FlagSet
	egress egressFlags
	tunnel tunnelFlags
	// clusterCIDRs is the whole list. kube-proxy gets the first of each IP family.
	clusterCIDRs []netip.Prefix
}

// versionFlag is kube-proxy's --version. Its package registers it on every command line.
var versionFlag = pflag.Lookup("version")

// DefaultExclusions is the default of egress-snat-exclude-cidrs: packets to link-local addresses
// and multicast groups do not leave the node's network.
var DefaultExclusions = []string{"169.254.0.0/16", "224.0.0.0/4", "fe80::/10", "ff00::/8"}

// clusterCIDRKey is the only argument that takes a list where kube-proxy's flag does not.
const clusterCIDRKey = "cluster-cidr"

// endings are flags of kube-proxy with which no node runs, and what to do instead.
var endings = map[string]string{
	"cleanup":         "use 'openshift start node --cleanup'",
	"init-only":       "use 'openshift start node --init-only'",
	"version":         "use 'openshift version'",
	"write-config-to": "use kube-proxy itself",
}

// setArguments sets the flags in origin's order: first the defaults of a node, then the fields of
// the NodeConfig, then proxyArguments. Later ones override earlier ones. All errors in
// proxyArguments are returned together.
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
			return nil, config.Errorf(field.path, "invalid value %q: %w", field.value, err)
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
	a.egress.pool.nodesGiven = a.own.Changed(assignNodesKey)
	return a, errors.Join(errs...)
}

// newArguments returns the flags with kube-proxy's defaults.
func newArguments() *arguments {
	a := &arguments{
		options: app.NewOptions(),
		flags:   pflag.NewFlagSet("proxyArguments", pflag.ContinueOnError),
		own:     pflag.NewFlagSet("egress SNAT", pflag.ContinueOnError),
	}
	a.flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	a.options.AddFlags(a.flags)
	a.flags.AddGoFlagSet(goflag.CommandLine) // kube-proxy's command gets --boot-id-file and --machine-id-file from there
	a.flags.AddFlag(versionFlag)
	a.own.SortFlags = false
	a.egress.add(a.own)
	a.tunnel.add(a.own)
	a.flags.AddFlagSet(a.own)
	return a
}

// nodeField is a field of the NodeConfig that sets a flag.
type nodeField struct{ path, flag, value string }

// nodeFields returns the values of flags before proxyArguments override them. A path is empty for a
// default without a field.
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

// set sets the flag that key names to each of the values, in order.
func (a *arguments) set(config *nodeconfig.Config, key string, values []string) error {
	path := "proxyArguments." + key
	flag := a.flags.Lookup(key)
	if flag == nil {
		return a.unknown(config, path, key)
	}
	if flag.Name == clusterCIDRKey {
		return a.setClusterCIDRs(config, path, values) // no value: no network
	}
	if len(values) == 0 { // what it is about would be neither given nor the default
		return config.Errorf(path, "it has no value: remove the argument, or give it one; [''] is an empty text")
	}
	var errs []error
	for i, value := range values {
		if err := a.flags.Set(key, value); err != nil {
			errs = append(errs, config.Errorf(fmt.Sprintf("%s[%d]", path, i), "%w; expected a value of the type %s", err, flag.Value.Type()))
		}
	}
	if instead, ends := endings[flag.Name]; ends && flag.Value.String() != flag.DefValue {
		errs = append(errs, config.Errorf(path, "it would end the node: remove the argument, and %s", instead))
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

// setClusterCIDRs reads the cluster CIDRs, one or several in each value. kube-proxy accepts only
// one of each IP family, so it gets the first of each.
func (a *arguments) setClusterCIDRs(config *nodeconfig.Config, path string, values []string) error {
	var errs []error
	var first []netip.Prefix
	for i, value := range values {
		for _, text := range strings.Split(value, ",") {
			prefix, err := parseInside(text, "the network of the cluster's pods, for example 10.128.0.0/14 or fd01::/48")
			if err != nil {
				errs = append(errs, config.Errorf(fmt.Sprintf("%s[%d]", path, i), "%w", err))
				continue
			}
			a.clusterCIDRs = append(a.clusterCIDRs, prefix)
			if !slices.ContainsFunc(first, func(p netip.Prefix) bool { return p.Addr().Is4() == prefix.Addr().Is4() }) {
				first = append(first, prefix)
			}
		}
	}
	if len(errs) == 0 && len(first) > 0 {
		errs = append(errs, a.flags.Set(clusterCIDRKey, kernel.Join(first, ",")))
	}
	return errors.Join(errs...)
}

// parseInside parses a network of destinations that are never SNATed. The error describes the
// expected network as what.
func parseInside(text, what string) (netip.Prefix, error) {
	prefix, err := parseCIDR(text, what)
	if err == nil && prefix.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("%q covers every address, so nothing would be SNATed; expected %s", text, what)
	}
	return prefix, err
}

// parseCIDR parses a network as kube-proxy does. The error describes the expected network as what.
func parseCIDR(text, what string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR; expected %s", text, what)
	}
	return prefix.Masked(), nil
}
