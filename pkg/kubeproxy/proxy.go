package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"          // logging-format=json, as in kube-proxy's main
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as there
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metrics, as there
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/nodeconfig"
	"github.com/openshift/origin-node/pkg/tunnel"
)

// Overrides are the settings of the command line, which are not in the NodeConfig.
type Overrides struct {
	// LogLevel is klog's verbosity unless proxyArguments has v. If it is empty klog's default
	// applies.
	LogLevel string
	// Manifests is a folder whose objects replace the API server. With it the NodeConfig must
	// not name an API server.
	Manifests string
	// Version is the program's version, for 'openshift egress'.
	Version string
	// Cleanup: the Proxy only removes rules, and needs no API server.
	Cleanup bool
}

// Proxy is a validated configuration of kube-proxy and the egress extension.
type Proxy struct {
	options   *app.Options
	config    *nodeconfig.Config
	overrides Overrides
	// flags are the project's own. extension is their checked form.
	flags     egressFlags
	extension egress.Config
	// tunnelFlags are those of the tunnel's ports, tunnel their checked form.
	tunnelFlags tunnelFlags
	tunnel      tunnel.Config
	// withoutNFTables is why egress-snat-backend=auto selected iptables.
	withoutNFTables error
	// invalid tells whether the configuration has become invalid since.
	invalid func() bool
}

// New returns the Proxy that config and overrides describe, or all errors in them. It reads the
// files that they name but opens no connection. Feature gates belong to the process: New must not
// be called again while a Proxy runs.
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
	p := &Proxy{options: args.options, config: config, overrides: overrides, flags: args.egress, tunnelFlags: args.tunnel, invalid: func() bool { return false }}
	if err := args.options.Complete(args.flags); err != nil {
		return nil, config.Errorf(p.incompletePath(), "%w", err)
	}
	if connection := &args.options.Config().ClientConnection; connection.Kubeconfig == "" {
		// kube-proxy's own configuration file, if one is given, need not name it again.
		connection.Kubeconfig = config.NodeConfig.MasterKubeConfig
	}
	p.extension = args.extension()
	p.extension.Version, p.extension.SyncPeriod = overrides.Version, args.options.Config().SyncPeriod.Duration
	err = p.validate()
	p.extension.Published = published(args.own, p.extension.ClusterCIDRs)
	return p, err
}

// extension returns what egress SNAT takes of the arguments as they are.
func (a *arguments) extension() egress.Config {
	return egress.Config{
		Config: cluster.Config{
			ClusterCIDRs:    a.clusterCIDRs,
			ExcludeNodes:    a.egress.excludeNodes,
			AllowNodeIPs:    a.egress.allowNodeIPs,
			LoadBalancerIPs: a.egress.loadBalancerIPs,
			Scope:           placement.Scope(a.egress.scope),
		},
		PortSecurity:  egress.PortSecurity{Enabled: a.egress.portSecurity},
		Audit:         a.egress.audit,
		Attaching:     a.egress.attaching,
		MinSyncPeriod: a.egress.minSyncPeriod,
	}
}

// TellInvalidConfig has the status tell people as long as the configuration has changed to one that is not valid, and so is not
// used. It must be called before Run.
func (p *Proxy) TellInvalidConfig(invalid func() bool) { p.invalid = invalid }

func (p *Proxy) validate() error {
	if p.overrides.Cleanup {
		return nil // rules of all modes are removed
	}
	if err := p.validateMode(p.options.Config().Mode); err != nil {
		return err // kube-proxy would report the mode again, in other words
	}
	proxy := p.options.Config()
	errs := []error{p.validateObjects(), p.validateBurst(), p.takePeriods(), p.takeClusterCIDRs(proxy.DetectLocal.ClusterCIDRs), p.takeEgressFlags(), p.takeTunnel()}
	if err := p.options.Validate(); err != nil {
		errs = append(errs, p.config.Errorf("proxyArguments", "kube-proxy refuses its configuration: %w", err))
	}
	if err := logsapi.Validate(&proxy.Logging, utilfeature.DefaultFeatureGate, field.NewPath("logging")).ToAggregate(); err != nil {
		errs = append(errs, p.config.Errorf("proxyArguments", "kube-proxy refuses its configuration: %w", err))
	}
	return errors.Join(errs...)
}

// takePeriods refuses periods with which the proxier does not start, and leaves time to check the kernel twice in a sync period.
func (p *Proxy) takePeriods() error {
	proxier := p.options.Config()
	period, least := proxier.SyncPeriod.Duration, proxier.MinSyncPeriod.Duration
	if period <= 0 {
		return nil // kube-proxy refuses it
	}
	mode, most := "iptables", min(period, proxyutil.FullSyncPeriod) // upstream's runner panics above FullSyncPeriod
	if proxier.Mode == proxyconfig.ProxyModeIPVS {
		mode, most = "ipvs", period // its runner has no limit of its own
	}
	if least > most {
		proxier.MinSyncPeriod.Duration = 0 // else kube-proxy would refuse it again, in other words
		return p.config.Errorf(p.periodPath(mode), "with a sync period of %s, %s-min-sync-period can be at most %s, but it is %s", period, mode, most, least)
	}
	least, most = p.extension.MinSyncPeriod, p.extension.SyncPeriod/2
	switch {
	case !p.given(minSyncPeriodKey):
		p.extension.MinSyncPeriod = min(least, most)
	case p.flags.enabled && (least < 0 || least > most):
		return p.config.Errorf("proxyArguments."+minSyncPeriodKey, "invalid value \"%s\": expected a duration from 0s to %s, half of the sync period", least, most)
	}
	return nil
}

// periodPath returns the field that sets one of the proxier's periods.
func (p *Proxy) periodPath(mode string) string {
	for _, argument := range []string{"config", mode + "-min-sync-period", mode + "-sync-period"} {
		if p.given(argument) {
			return "proxyArguments." + argument
		}
	}
	return "iptablesSyncPeriod"
}

// incompletePath returns the field that kube-proxy takes files, a name and feature gates from, if it is in the file.
func (p *Proxy) incompletePath() string {
	if name := p.config.Last("hostname-override", ""); name != "" && strings.TrimSpace(name) == "" && !p.given("config") {
		return "proxyArguments.hostname-override"
	}
	for _, argument := range []string{"config", "feature-gates"} { // a file has its own gates
		if p.given(argument) {
			return "proxyArguments." + argument
		}
	}
	return "proxyArguments"
}

// given tells whether proxyArguments has an argument.
func (p *Proxy) given(argument string) bool { return len(p.config.Values(argument)) > 0 }

// takeEgressFlags parses this project's flags that are not booleans.
func (p *Proxy) takeEgressFlags() error {
	var errs [3]error
	p.extension.Exclusions, errs[0] = p.parseCIDRs(excludeCIDRsKey, p.flags.excludeCIDRs, parseInside, "a network that pods reach under their own address, for example 192.0.2.0/24")
	if p.flags.allowedCIDRs != nil {
		p.extension.AllowedCIDRs, errs[1] = p.parseCIDRs(allowedCIDRsKey, p.flags.allowedCIDRs, parseCIDR, "a network of egress IPs, for example 203.0.113.0/28")
	}
	p.extension.NamespaceCIDRs, errs[2] = p.parseNamespaceCIDRs()
	return errors.Join(append(errs[:], p.takeProtocols(), p.validateScope(), p.takeBackend(), p.takeSteering(), p.takePool(), p.takeJournal(), p.validatePaths())...)
}

// parseCIDRs parses the values of an argument. The result is not nil.
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

func (p *Proxy) takeProtocols() error {
	switch p.flags.protocols {
	case serviceProtocols, allProtocols:
		p.extension.AllProtocols = p.flags.protocols == allProtocols
		return nil
	}
	return p.config.Errorf("proxyArguments."+protocolsKey, "invalid value %q: expected %q or %q", p.flags.protocols, serviceProtocols, allProtocols)
}

func (p *Proxy) validateScope() error {
	if scope := p.extension.Scope; scope != placement.Node && scope != placement.Cluster {
		return p.config.Errorf("proxyArguments."+scopeKey, "invalid value %q: expected %q or %q", scope, placement.Node, placement.Cluster)
	}
	return nil
}

// takeBackend selects the back end. With the nftables proxier it is always nftables: iptables
// rules have the same priority as the proxier's, so the order in which they were loaded would decide.
func (p *Proxy) takeBackend() error {
	p.extension.Proxier, p.extension.Backend = reconcile.IPTables, reconcile.IPTables
	if p.options.Config().Mode == proxyconfig.ProxyModeNFTables {
		p.extension.Proxier, p.extension.Backend = reconcile.NFTables, reconcile.NFTables
	}
	const path = "proxyArguments." + backendKey
	switch backend := p.flags.backend; {
	case backend == "" || backend == string(p.extension.Backend), backend == autoBackend && p.extension.Proxier == reconcile.NFTables:
		return nil
	case backend == string(reconcile.NFTables):
		p.extension.Backend = reconcile.NFTables
		return nil
	case backend == autoBackend:
		if p.withoutNFTables = steering.LocalAvailable(context.Background()); p.withoutNFTables == nil {
			p.extension.Backend = reconcile.NFTables
		}
		return nil
	case backend == string(reconcile.IPTables):
		return p.config.Errorf(path, "invalid value %q in the proxy mode \"nftables\", whose rules could come first: remove the argument, or use \"nftables\"", backend)
	}
	return p.config.Errorf(path, "invalid value %q: expected \"iptables\", \"nftables\" or \"auto\"", p.flags.backend)
}

func (p *Proxy) validatePaths() error {
	// Bytes: unix(7) allows 107, and the temporary name of a socket is longer than its path; the kernel takes no longer path of a folder.
	const mostOfSocket, mostOfFolder = 95, 4095
	var errs []error
	attaching := p.flags.attaching
	for _, a := range []struct {
		key, path, what string
		most            int
	}{
		{socketKey, p.flags.socket, "socket", mostOfSocket},
		{cniSocketKey, attaching.Socket, "socket", mostOfSocket},
		{kubeletSocketKey, attaching.Kubelet, "socket", mostOfSocket},
		{cniConfDirKey, attaching.Lists, "folder", mostOfFolder},
		{cniInstallKey, attaching.Install, "folder", mostOfFolder},
		{journalKey, p.flags.journal.folder, "folder", mostOfFolder},
	} {
		if a.path != "" && (!filepath.IsAbs(a.path) || len(a.path) > a.most) {
			errs = append(errs, p.config.Errorf("proxyArguments."+a.key, "invalid value %q: expected the absolute path of a %s, at most %d bytes, or nothing", a.path, a.what, a.most))
		}
	}
	if attaching.Install != "" && (attaching.Lists == "" || attaching.Socket == "") {
		errs = append(errs, p.config.Errorf("proxyArguments."+cniInstallKey, "needs %s and %s", cniConfDirKey, cniSocketKey))
	}
	if attaching.Install != "" && attaching.Kubelet == "" && !attaching.WatchPods {
		errs = append(errs, p.config.Errorf("proxyArguments."+cniInstallKey, "needs %s or %s: without the labels of pods those of namespaces with egress IPs would not start", kubeletSocketKey, watchPodsKey))
	}
	return errors.Join(errs...)
}

// takeClusterCIDRs takes the cluster CIDRs of kube-proxy's own configuration file, if there is one
// and proxyArguments has none.
func (p *Proxy) takeClusterCIDRs(texts []string) (err error) {
	if p.extension.ClusterCIDRs == nil && len(texts) > 0 {
		p.extension.ClusterCIDRs, err = p.parseCIDRs("config.clusterCIDR", texts, parseInside, "the network of the cluster's pods")
	}
	return err
}

// validateMode refuses modes that do not exist, and modes in which egress SNAT is on but would not
// work.
func (p *Proxy) validateMode(mode proxyconfig.ProxyMode) error {
	const path = "proxyArguments.proxy-mode"
	switch mode {
	case proxyconfig.ProxyModeIPTables, proxyconfig.ProxyModeNFTables:
		return nil
	case proxyconfig.ProxyModeIPVS:
		if p.flags.enabled {
			return p.config.Errorf(path, "egress SNAT does not support the mode %q, so pods would not leave from their Service's external IP: use \"iptables\" or \"nftables\", or set proxyArguments.egress-snat to \"false\"", mode)
		}
		return nil
	case "userspace":
		return p.config.Errorf(path, "the mode \"userspace\" was removed in Kubernetes 1.26: use \"iptables\" or \"nftables\"")
	}
	return p.config.Errorf(path, "unknown mode %q: expected \"iptables\", \"nftables\" or \"ipvs\"", mode)
}

// validateObjects requires exactly one source of Services: an API server or a folder.
func (p *Proxy) validateObjects() error {
	kubeconfig, master := p.options.Config().ClientConnection.Kubeconfig, p.master()
	switch {
	case p.overrides.Manifests != "" && (kubeconfig != "" || master != ""):
		return p.config.Errorf(p.kubeconfigPath(), "--manifests=%s replaces the API server: remove this field, or start without --manifests", p.overrides.Manifests)
	case p.overrides.Manifests != "":
		return nil
	case kubeconfig == "" && master == "":
		return p.config.Errorf("masterKubeConfig", "missing: set it to the kubeconfig of this node, or start with --manifests=DIR")
	}
	if master != "" {
		if _, _, err := rest.DefaultServerURL(master, "", schema.GroupVersion{}, true); err != nil {
			return p.config.Errorf("proxyArguments.master", "%w", err)
		}
	}
	_, err := newClient(p, kubernetes.NewForConfig)
	return err
}

// validateBurst refuses a burst with which kube-proxy makes no client. Only the argument can set it: everywhere else 0 is the default.
func (p *Proxy) validateBurst() error {
	if c := p.options.Config().ClientConnection; c.QPS <= 0 || c.Burst != 0 { // upstream refuses less than 0
		return nil
	}
	return p.config.Errorf("proxyArguments.kube-api-burst", "invalid value \"0\": expected 1 or more, or kube-api-qps 0")
}

// master returns the API server's address that overrides the kubeconfig's, or "".
func (p *Proxy) master() string { return p.config.Last("master", "") }

// kubeconfigPath returns the field that names the kubeconfig, or the API server if there is none.
func (p *Proxy) kubeconfigPath() string {
	if p.options.Config().ClientConnection.Kubeconfig == "" && p.master() != "" {
		return "proxyArguments.master"
	}
	for _, argument := range []string{"config", "kubeconfig"} {
		if p.given(argument) && p.options.Config().ClientConnection.Kubeconfig != p.config.NodeConfig.MasterKubeConfig {
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

// logStart logs the settings that explain the rest of the log.
func (p *Proxy) logStart(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, path := range p.config.Unused() {
		logger.Info("The field is set but has no effect: this program runs only the node's service proxy", "file", p.config.File, "field", path)
	}
	if p.withoutNFTables != nil {
		logger.Info("Egress SNAT uses iptables rules because nftables is unavailable", "err", p.withoutNFTables)
	}
	switch {
	case !p.flags.enabled:
		logger.Info("Egress SNAT is off: pods leave as the network plugin decides", "proxyMode", p.options.Config().Mode)
	case len(p.extension.ClusterCIDRs) == 0:
		logger.Info("Egress SNAT is on, but proxyArguments.cluster-cidr is not set: it writes no rules unless OpenShift's Network object has the cluster CIDRs", "file", p.config.File)
	default:
		logger.Info("Egress SNAT is on", "clusterCIDRs", kernel.Join(p.extension.ClusterCIDRs, ","), "exclusions", kernel.Join(p.extension.Exclusions, ","))
	}
}
