package kubeproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/proxy"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	proxyiptables "k8s.io/kubernetes/pkg/proxy/iptables"
	proxynftables "k8s.io/kubernetes/pkg/proxy/nftables"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/manifests"
	"github.com/openshift/origin-node/pkg/wake"
)

// stopTime is how long a stopping node waits for its unfinished work, such as a write or the
// removal of a temporary file.
const stopTime = 2 * time.Second

// Run runs the proxy until ctx ends, and returns nil then. The rules stay in the kernel. If another
// node process runs in the network namespace, Run changes nothing and returns an error.
func (p *Proxy) Run(ctx context.Context) error {
	p.logStart(ctx)
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	release, err := claimInstance(ctx, instanceFolder)
	if err != nil {
		return err
	}
	defer release()
	if err := p.leaveSysctls(ctx); err != nil {
		return err
	}

	n := &notifier{mode: string(p.options.Config().Mode), syncPeriod: p.options.Config().SyncPeriod.Duration, invalid: p.invalid}
	defer n.stopping()
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := make(chan error, 1)
	idle := make(chan struct{}) // closed when no work is left to wait for
	go func() { failed <- p.serve(running, n, idle, stop) }()
	select {
	case err := <-failed:
		if ctx.Err() != nil {
			return nil // it failed because it was stopped
		}
		return cmp.Or(context.Cause(running), err)
	case <-running.Done():
	}
	select {
	case <-idle:
	case <-failed: //nolint:errcheck // it failed because it was stopped
	case <-time.After(stopTime):
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// serve builds the server and runs it. Without an error it never returns, not even when ctx ends:
// kube-proxy runs until the process ends. It calls stop, which ends ctx, if the process must end before that.
func (p *Proxy) serve(ctx context.Context, n *notifier, idle chan<- struct{}, stop context.CancelCauseFunc) error {
	if _, err := iptables.AwaitLock(ctx); err != nil {
		return err
	}
	p.cleanupExtensions(ctx)
	extensions, err := p.newExtensions(ctx)
	if err != nil {
		return err
	}
	host := extension.NewHost(ctx, extensions.all()...)
	n.refused = extensions.refused
	server, clients, err := p.newServer(proxy.ContextWithSyncExtension(ctx, host), n)
	if err != nil {
		return err
	}
	n.queued, n.synced, n.knows = lastQueued, lastSynced, func() bool { return true }
	if p.options.Config().Mode != proxyconfig.ProxyModeIPVS {
		served := servedFamilies(server)
		if len(extensions.all()) > 0 && p.extension.Proxier == reconcile.IPTables {
			if err := checkServed(ctx, served); err != nil {
				return err
			}
		}
		server.Proxier, n.knows = host.Wrap(server.Proxier, served...), host.Knows
	}
	extensions.watch(ctx, clients, n)
	if steers := p.flags.enabled && p.extension.Steering.Mode != holders.Off; !steers && p.overrides.Manifests == "" {
		p.withdraw(ctx, clients.Kube)
	}
	var told sync.WaitGroup
	told.Go(func() { p.tell(ctx, extensions, listenAgain) })
	go func() {
		if err := n.run(ctx); err != nil { // until ctx ends
			stop(err)
		}
		host.Wait()
		extensions.wait()
		told.Wait()
		close(idle)
	}()
	if _, err := iptables.AwaitLock(ctx); err != nil { // upstream's clean-up skips iptables if it is locked
		return err
	}
	p.cleanupOtherModes(ctx)
	return fmt.Errorf("kube-proxy: %w", server.Run(ctx))
}

// nodeName is the name of this node's Node object, found as kube-proxy finds it.
func (p *Proxy) nodeName() string {
	name, err := nodeutil.GetHostname(p.options.Config().HostnameOverride)
	if err != nil {
		return "" // kube-proxy fails with the same error
	}
	return name
}

// servedFamilies returns the IP families for which server's proxier writes rules: both, or only
// the primary one on a node that supports no other.
func servedFamilies(server *app.ProxyServer) []v1.IPFamily {
	switch server.Proxier.(type) {
	case *proxyiptables.Proxier, *proxynftables.Proxier:
		return []v1.IPFamily{server.PrimaryIPFamily}
	}
	return []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
}

// checkServed returns an error if the proxier does not serve an IP family although it could: it
// checks once, and found iptables locked by another process.
func checkServed(ctx context.Context, served []v1.IPFamily) error {
	if len(served) > 1 {
		return nil
	}
	usable, err := iptables.AwaitLock(ctx)
	for _, family := range usable {
		family := v1.IPFamily(family)
		if !slices.Contains(served, family) && (family != v1.IPv6Protocol || ipv6Enabled()) {
			err = errors.Join(err, fmt.Errorf("kube-proxy could not use iptables for %s while another process held the iptables lock, and does not try again: restart the node", family))
		}
	}
	return err
}

// ipv6Enabled tells whether the kernel has IPv6.
func ipv6Enabled() bool {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		return false
	}
	disabled, err := os.ReadFile("/proc/sys/net/ipv6/conf/all/disable_ipv6")
	return err != nil || strings.TrimSpace(string(disabled)) != "1"
}

// newServer builds kube-proxy's server, and clients for the objects that it does not watch. It
// waits for the API server until ctx ends.
func (p *Proxy) newServer(ctx context.Context, n *notifier) (*app.ProxyServer, egress.Clients, error) {
	if p.overrides.Manifests != "" {
		remove, err := p.serveManifests(ctx)
		if err != nil {
			return nil, egress.Clients{}, err
		}
		defer remove() // the clients have read the kubeconfig when newServer returns
	}
	waiting, arrived := context.WithCancel(ctx)
	var reported sync.WaitGroup
	reported.Go(func() { p.reportWaiting(waiting, n) })
	server, err := p.options.NewProxyServer(ctx)
	arrived()
	reported.Wait()
	if err != nil {
		return nil, egress.Clients{}, err
	}
	config, err := newClient(p, configclient.NewForConfig)
	if err != nil {
		return nil, egress.Clients{}, err
	}
	claims, err := p.claimsClient()
	if err != nil {
		return nil, egress.Clients{}, err
	}
	dynamicClient, err := newClient(p, dynamic.NewForConfig)
	nodes := extension.NewNodes(server.Client, p.explain, append(p.tunnel.LabelKeys(), p.extension.LabelKeys()...))
	return server, egress.Clients{
		Kube: server.Client, Claims: claims, Config: config, Dynamic: dynamicClient, Nodes: nodes, Explain: p.explain, Outer: server.PrimaryIPFamily,
	}, err
}

// claimsQPS and claimsBurst limit the requests of claimsClient. A node sends one for each egress IP when its spare blocks are half used.
const claimsQPS, claimsBurst = 50, 100

// claimsClient returns the client that claims blocks of source ports. The proxier's waits up to a tenth of a second for each request while it
// sends many, and pods that start would wait with it.
func (p *Proxy) claimsClient() (kubernetes.Interface, error) {
	return newClient(p, func(config *rest.Config) (kubernetes.Interface, error) {
		config.QPS, config.Burst = claimsQPS, claimsBurst
		return kubernetes.NewForConfig(config)
	})
}

// newClient returns a client of the API server. Its error names the field of the configuration, and the kubeconfig.
func newClient[T any](p *Proxy, create func(*rest.Config) (T, error)) (client T, err error) {
	config, err := p.clientConfig()
	if err == nil {
		client, err = create(config)
	}
	if err != nil {
		return client, p.config.Errorf(p.kubeconfigPath(), "%s: %w", cmp.Or(p.options.Config().ClientConnection.Kubeconfig, p.master()), err)
	}
	return client, nil
}

// serveManifests serves the manifests folder as an API server and connects the server's client to it.
func (p *Proxy) serveManifests(ctx context.Context) (remove func(), err error) {
	source, err := manifests.Open(ctx, p.overrides.Manifests)
	if err != nil {
		return nil, fmt.Errorf("--manifests: %w", err)
	}
	kubeconfig, remove, err := source.Serve(ctx)
	if err != nil {
		return nil, fmt.Errorf("--manifests: %w", err)
	}
	connection := &p.options.Config().ClientConnection
	connection.Kubeconfig = kubeconfig
	connection.ContentType, connection.AcceptContentTypes = "application/json", "application/json"
	return remove, nil
}

// cleanupAgain removes the rules of the mode iptables in the mode nftables, and otherwise those of the mode nftables, once in a sync
// period until it succeeds or ctx ends. Those of ipvs are not tried again: that would end virtual servers of other software each time.
func (p *Proxy) cleanupAgain(ctx context.Context) {
	failed, mode := proxynftables.CleanupLeftovers, proxyconfig.ProxyModeNFTables
	if p.options.Config().Mode == proxyconfig.ProxyModeNFTables {
		failed, mode = cleanupIPTables, proxyconfig.ProxyModeIPTables
	}
	p.again(ctx, func() bool { return !failed(ctx) })
	if ctx.Err() == nil {
		klog.FromContext(ctx).Info("Removed the rules of another proxy mode", "mode", mode)
	}
}

// again tries something once in a sync period until it succeeds or ctx ends.
func (p *Proxy) again(ctx context.Context, succeeds func() bool) {
	for wake.Sleep(ctx.Done(), p.options.Config().SyncPeriod.Duration) {
		if succeeds() {
			return
		}
	}
}

// cleanupIPTables is upstream's clean-up of the mode iptables, which skips iptables if it is locked, and does not say so.
func cleanupIPTables(ctx context.Context) (failed bool) {
	_, err := iptables.AwaitLock(ctx)
	return err != nil || proxyiptables.CleanupLeftovers(ctx)
}

// cleanupOtherModes removes the proxier's rules of an earlier run in another mode, when nothing keeps this one from starting. As in
// kube-proxy itself, it starts even if that fails. They are tried again until they are gone: other software may use one of their chains.
func (p *Proxy) cleanupOtherModes(ctx context.Context) {
	if err := p.options.Cleanup(ctx, false); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to remove the rules of other proxy modes; will retry, except for those of ipvs: if any are left, restart the node. Further failures are logged by kube-proxy alone. 'openshift egress verify' shows what is left of iptables and nftables")
		go p.cleanupAgain(ctx)
	}
}

// removeFormer removes the rules of an earlier run, and tries that again in each sync period if it fails. until says what is so until then.
func (p *Proxy) removeFormer(ctx context.Context, rules, until string, remove func() error) {
	logger := klog.FromContext(ctx)
	err := remove()
	if err == nil {
		return
	}
	logger.Error(err, "Failed to remove the "+rules+" of an earlier run; "+until+"; will retry, further failures are not logged")
	go func() {
		p.again(ctx, func() bool { return remove() == nil })
		if ctx.Err() == nil {
			logger.Info("Removed the " + rules + " of an earlier run")
		}
	}()
}

// cleanupExtensions removes the rules of extensions that are switched off.
func (p *Proxy) cleanupExtensions(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if !p.tunnelFlags.enabled {
		p.removeFormer(ctx, "rules of the tunnel's ports", "connections may go to a tunnel server that is gone", func() error { return redirect.Withdraw(ctx) })
	}
	if p.flags.enabled && p.flags.attaching.Socket == "" {
		if err := attach.ForgetAttachments(""); err != nil {
			logger.Error(err, "Failed to remove the data that an earlier run kept for the CNI plugin; as long as it is there, the plugin may keep pods from starting; run 'openshift start node --cleanup' to try again")
		}
	}
	if !p.flags.enabled {
		steered := p.tellOthers(ctx)
		p.removeFormer(ctx, "egress SNAT rules", "what pods send that were bound may be dropped", func() error {
			err := cleanupEgress(ctx)
			if err == nil { // until then the CNI plugin starts no pod with an address that is still bound
				err = attach.ForgetAttachments(p.flags.attaching.Socket)
			}
			if !p.tunnelFlags.enabled { // which resets connections, too
				err = errors.Join(err, conntrack.Cleanup(ctx))
			}
			if err == nil && steered {
				p.giveBlocksBack(ctx)
			}
			return err
		})
	}
}
