package kubeproxy

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/iptables"
	"github.com/openshift/origin-node/pkg/manifests"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// Run runs the proxy until ctx ends, and returns nil then. The rules stay in the kernel.
func (p *Proxy) Run(ctx context.Context) error {
	p.logStart(ctx)
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	if p.options.CleanupAndExit {
		return p.Cleanup(ctx)
	}
	if p.options.WriteConfigTo != "" || p.options.InitAndExit {
		return p.options.Run(ctx)
	}

	p.cleanupOtherModes(ctx)
	extension := egress.New(ctx, p.extension)
	server, err := p.newServer(ctx, extension)
	if ctx.Err() != nil {
		return nil // told to stop while waiting for the API server
	}
	if err != nil {
		return err
	}
	notifier := &notifier{mode: string(server.Config.Mode), syncPeriod: server.Config.SyncPeriod.Duration}
	if p.egress {
		server.Proxier = extension.Wrap(server.Proxier)
		notifier.egress = extension.Status
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Run(ctx) }()
	go notifier.run(ctx)
	select {
	case <-ctx.Done():
		notifier.stopping()
		return nil
	case err := <-failed:
		return fmt.Errorf("kube-proxy: %w", err)
	}
}

// newServer builds kube-proxy's server, whose proxiers tell extension of their syncs. It
// waits for the API server as long as ctx lasts.
func (p *Proxy) newServer(ctx context.Context, extension *egress.Extension) (*app.ProxyServer, error) {
	if p.overrides.Manifests != "" {
		remove, err := p.serveManifests(ctx)
		if err != nil {
			return nil, err
		}
		defer remove() // the server's client has read it by then
	}
	if p.egress {
		ctx = proxy.ContextWithSyncExtension(ctx, extension)
	}
	return p.options.NewProxyServer(ctx)
}

// serveManifests makes the objects in the manifests folder what the server's client sees.
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

// cleanupOtherModes removes the rules that an earlier run in another mode has left. As in
// kube-proxy itself, failing at that does not keep the proxy from starting.
func (p *Proxy) cleanupOtherModes(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if err := p.options.Cleanup(ctx, false); err != nil {
		logger.Error(err, "Rules of another proxy mode may be left in the kernel")
	}
	if !p.egress {
		if err := iptables.Cleanup(ctx); err != nil {
			logger.Error(err, "Egress SNAT rules of an earlier run may be left in the kernel; run 'openshift start node --cleanup'")
		}
	}
}
