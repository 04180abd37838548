package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"          // logging-format=json, as in kube-proxy's main
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as there
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metrics, as there
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// Overrides are what the command line adds to a NodeConfig.
type Overrides struct {
	// LogLevel is klog's verbosity, unless proxyArguments has v. Empty leaves it alone.
	LogLevel string
	// Manifests is a folder whose objects take the API server's place. With it the
	// NodeConfig must not name an API server.
	Manifests string
	// Version is the program's, to be told to who asks the node.
	Version string
	// Cleanup is for a Proxy that is only to remove its rules: it needs no objects.
	Cleanup bool
}

// Proxy is a validated configuration of kube-proxy and the egress extension.
type Proxy struct {
	options   *app.Options
	config    *nodeconfig.Config
	overrides Overrides
	// flags are the project's own, of which extension is made.
	flags     egressFlags
	extension egress.Config
	// withoutNFTables is why nftables was not chosen where that was left to the program.
	withoutNFTables error
}

// New returns the Proxy that config and overrides describe, or all that is wrong with
// them. It reads the files that they name but contacts nobody. Feature gates are the
// process's: New must not be called again while a Proxy runs.
func New(config *nodeconfig.Config, overrides Overrides) (*Proxy, error) {
	args, err := setArguments(config)
	if err != nil {
		return nil, err
	}
	if overrides.LogLevel != "" && !args.flags.Changed("v") {
		if err := args.flags.Set("v", overrides.LogLevel); err != nil {
			return nil, fmt.Errorf("--loglevel: %w", err)
		}
	}
	p := &Proxy{options: args.options, config: config, overrides: overrides, flags: args.egress}
	verflag.PrintAndExitIfRequested()
	if err := args.options.Complete(args.flags); err != nil {
		return nil, config.Errorf("proxyArguments", "%w", err)
	}
	if connection := &args.options.Config().ClientConnection; connection.Kubeconfig == "" {
		// kube-proxy's own configuration file, if one is given, need not name it again.
		connection.Kubeconfig = config.NodeConfig.MasterKubeConfig
	}
	p.extension = egress.Config{
		Version:         overrides.Version,
		ClusterCIDRs:    args.clusterCIDRs,
		ExcludeNodes:    args.egress.excludeNodes,
		AllowNodeIPs:    args.egress.allowNodeIPs,
		LoadBalancerIPs: args.egress.loadBalancerIPs,
		Scope:           placement.Scope(args.egress.scope),
		Audit:           args.egress.audit,
		MinSyncPeriod:   args.egress.minSyncPeriod,
		SyncPeriod:      args.options.Config().SyncPeriod.Duration,
	}
	return p, p.validate()
}

func (p *Proxy) validate() error {
	if p.overrides.Cleanup {
		return nil // whatever the mode is, its rules are to go
	}
	if err := p.validateMode(p.options.Config().Mode); err != nil {
		return err // kube-proxy would say of the mode the same, in other words
	}
	proxy := p.options.Config()
	errs := []error{p.validateObjects(), p.validatePeriods(), p.takeClusterCIDRs(proxy.DetectLocal.ClusterCIDRs), p.takeEgressFlags()}
	if err := p.options.Validate(); err != nil {
		errs = append(errs, p.config.Errorf("proxyArguments", "kube-proxy refuses its configuration: %w", err))
	}
	if err := logsapi.Validate(&proxy.Logging, utilfeature.DefaultFeatureGate, field.NewPath("logging")).ToAggregate(); err != nil {
		errs = append(errs, p.config.Errorf("proxyArguments", "kube-proxy refuses its configuration: %w", err))
	}
	return errors.Join(errs...)
}

// validatePeriods makes sure that there is time to look at the kernel twice in a sync
// period.
func (p *Proxy) validatePeriods() error {
	const path = "proxyArguments.egress-snat-min-sync-period"
	least, most := p.extension.MinSyncPeriod, p.extension.SyncPeriod/2
	if p.flags.enabled && (least < 0 || least > most) {
		return p.config.Errorf(path, "%s does not do; expected a duration from 0s to %s, half of the sync period", least, most)
	}
	return nil
}

// takeEgressFlags reads those of the project's flags that are more than a switch.
func (p *Proxy) takeEgressFlags() error {
	var errs [3]error
	p.extension.Exclusions, errs[0] = p.parseCIDRs(excludeCIDRsKey, p.flags.excludeCIDRs, parseInside, "a network that pods reach under their own address, for example 192.0.2.0/24")
	if p.flags.allowedCIDRs != nil {
		p.extension.AllowedCIDRs, errs[1] = p.parseCIDRs(allowedCIDRsKey, p.flags.allowedCIDRs, parseCIDR, "a network of egress IPs, for example 203.0.113.0/28")
	}
	p.extension.NamespacePolicies, errs[2] = p.parseNamespaceCIDRs()
	return errors.Join(append(errs[:], p.takeProtocols(), p.validateScope(), p.takeBackend(), p.validateSocket())...)
}

// parseCIDRs reads the values of an argument. The result is not nil.
func (p *Proxy) parseCIDRs(key string, texts []string, parse func(text, what string) (netip.Prefix, error), what string) ([]netip.Prefix, error) {
	var errs []error
	cidrs := []netip.Prefix{}
	for _, text := range texts {
		cidr, err := parse(text, what)
		if err != nil {
			errs = append(errs, p.config.Errorf("proxyArguments."+key, "%w", err))
			continue
		}
		cidrs = append(cidrs, cidr)
	}
	return cidrs, errors.Join(errs...)
}

// parseNamespaceCIDRs reads where the egress IPs of single namespaces may lie.
func (p *Proxy) parseNamespaceCIDRs() (map[string]plan.Policy, error) {
	const path = "proxyArguments." + namespaceCIDRsKey
	policies := map[string]plan.Policy{}
	var errs []error
	for _, text := range p.flags.namespaceCIDRs {
		namespace, cidrText, found := strings.Cut(strings.TrimSpace(text), "=")
		if wrong := validation.IsDNS1123Label(namespace); !found || len(wrong) > 0 {
			errs = append(errs, p.config.Errorf(path, "%q does not do; expected NAMESPACE=CIDR, for example shop=203.0.113.0/28", text))
			continue
		}
		cidr, err := parseCIDR(cidrText, "a network of egress IPs, for example 203.0.113.0/28")
		if err != nil {
			errs = append(errs, p.config.Errorf(path, "%w", err))
			continue
		}
		policies[namespace] = plan.Policy{Source: path + " for the namespace " + namespace, Allowed: append(policies[namespace].Allowed, cidr)}
	}
	return policies, errors.Join(errs...)
}

func (p *Proxy) takeProtocols() error {
	switch p.flags.protocols {
	case serviceProtocols, allProtocols:
		p.extension.AllProtocols = p.flags.protocols == allProtocols
		return nil
	}
	return p.config.Errorf("proxyArguments."+protocolsKey, "%q does not do; expected %q or %q", p.flags.protocols, serviceProtocols, allProtocols)
}

func (p *Proxy) validateScope() error {
	if scope := p.extension.Scope; scope != placement.Node && scope != placement.Cluster {
		return p.config.Errorf("proxyArguments."+scopeKey, "invalid value %q: expected %q or %q", scope, placement.Node, placement.Cluster)
	}
	return nil
}

// takeBackend takes how rules are written. Beside the nftables proxier it is a table of their own:
// at the priority of iptables the order would be that of loading.
func (p *Proxy) takeBackend() error {
	p.extension.Proxier, p.extension.Backend = reconcile.IPTables, reconcile.IPTables
	if p.options.Config().Mode == proxyconfig.ProxyModeNFTables {
		p.extension.Proxier, p.extension.Backend = reconcile.NFTables, reconcile.NFTables
	}
	const path = "proxyArguments." + backendKey
	switch backend := p.flags.backend; {
	case backend == "" || backend == string(p.extension.Backend):
		return nil
	case backend == string(reconcile.NFTables):
		p.extension.Backend = reconcile.NFTables
		return nil
	case backend == autoBackend:
		if p.withoutNFTables = nftables.Available(context.Background()); p.withoutNFTables == nil {
			p.extension.Backend = reconcile.NFTables
		}
		return nil
	case backend == string(reconcile.IPTables):
		return p.config.Errorf(path, "%q does not do in the proxy mode \"nftables\", whose rules could come first; leave it out, or use \"nftables\"", backend)
	}
	return p.config.Errorf(path, "%q does not do; expected \"iptables\", \"nftables\" or \"auto\"", p.flags.backend)
}

func (p *Proxy) validateSocket() error {
	const most = 95 // bytes: of the 107 of unix(7) some are for the name that it is made under
	if socket := p.flags.socket; socket != "" && (!filepath.IsAbs(socket) || len(socket) > most) {
		return p.config.Errorf("proxyArguments."+socketKey, "%q does not do; expected the absolute path of a socket, at most %d bytes, or nothing", socket, most)
	}
	return nil
}

// takeClusterCIDRs takes the cluster CIDRs of kube-proxy's own configuration file, if one
// is given and proxyArguments have none.
func (p *Proxy) takeClusterCIDRs(texts []string) error {
	if p.extension.ClusterCIDRs != nil {
		return nil
	}
	var errs []error
	for _, text := range texts {
		prefix, err := parseInside(text, "the network of the cluster's pods")
		if err != nil {
			errs = append(errs, p.config.Errorf("proxyArguments.config", "clusterCIDR: %w", err))
			continue
		}
		p.extension.ClusterCIDRs = append(p.extension.ClusterCIDRs, prefix)
	}
	return errors.Join(errs...)
}

// validateMode refuses modes that do not exist, and those in which the pods would leave
// under another address than the configuration promises.
func (p *Proxy) validateMode(mode proxyconfig.ProxyMode) error {
	const path = "proxyArguments.proxy-mode"
	switch mode {
	case proxyconfig.ProxyModeIPTables, proxyconfig.ProxyModeNFTables:
		return nil
	case proxyconfig.ProxyModeIPVS:
		if p.flags.enabled {
			return p.config.Errorf(path, "egress SNAT does not serve the mode %q, so pods would not leave from their Service's external IP; use \"iptables\" or \"nftables\", or set proxyArguments.egress-snat to \"false\" to run without", mode)
		}
		return nil
	case "userspace":
		return p.config.Errorf(path, "the mode \"userspace\" was removed in Kubernetes 1.26; use \"iptables\"")
	}
	return p.config.Errorf(path, "unknown mode %q; expected \"iptables\", \"nftables\" or \"ipvs\"", mode)
}

// validateObjects makes sure that there is one place that Services come from.
func (p *Proxy) validateObjects() error {
	kubeconfig, master := p.options.Config().ClientConnection.Kubeconfig, p.master()
	switch {
	case p.overrides.Manifests != "" && (kubeconfig != "" || master != ""):
		return p.config.Errorf(p.kubeconfigPath(), "--manifests=%s takes the API server's place; name no API server, or run without --manifests", p.overrides.Manifests)
	case p.overrides.Manifests != "" || p.options.CleanupAndExit || p.options.WriteConfigTo != "":
		return nil
	case kubeconfig == "" && master == "":
		return p.config.Errorf("masterKubeConfig", "is required: name the kubeconfig of this node, or run with --manifests=DIR")
	}
	if _, err := p.clientConfig(); err != nil {
		return p.config.Errorf(p.kubeconfigPath(), "%s: %w", kubeconfig, err)
	}
	return nil
}

// master is the API server's address that overrides the kubeconfig's.
func (p *Proxy) master() string {
	if values := p.config.NodeConfig.ProxyArguments["master"]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// kubeconfigPath is the field that the kubeconfig's name comes from.
func (p *Proxy) kubeconfigPath() string {
	for _, argument := range []string{"config", "kubeconfig"} {
		if len(p.config.NodeConfig.ProxyArguments[argument]) > 0 && p.options.Config().ClientConnection.Kubeconfig != p.config.NodeConfig.MasterKubeConfig {
			return "proxyArguments." + argument
		}
	}
	return "masterKubeConfig"
}

// clientConfig reads the kubeconfig as kube-proxy does.
func (p *Proxy) clientConfig() (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.options.Config().ClientConnection.Kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: p.master()}}).ClientConfig()
}

// logStart says in one place what somebody who reads the log later will want to know.
func (p *Proxy) logStart(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, path := range p.config.Unused() {
		logger.Info("Configured but not used: this program runs the node's service proxy only", "file", p.config.File, "field", path)
	}
	if p.withoutNFTables != nil {
		logger.Info("Egress SNAT is done by iptables rules, for nftables does not do", "because", p.withoutNFTables)
	}
	switch {
	case !p.flags.enabled:
		logger.Info("Egress SNAT is off: pods leave as the network plugin decides", "proxyMode", p.options.Config().Mode)
	case len(p.extension.ClusterCIDRs) == 0:
		logger.Info("Egress SNAT is on, and proxyArguments.cluster-cidr is not set: without OpenShift's Network object, which would tell the cluster CIDRs, it writes no rules", "file", p.config.File)
	default:
		logger.Info("Egress SNAT is on", "clusterCIDRs", joinPrefixes(p.extension.ClusterCIDRs), "exclusions", joinPrefixes(p.extension.Exclusions))
	}
}

func joinPrefixes(prefixes []netip.Prefix) string {
	var texts []string
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}
