package kubeproxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/tunnel"
)

// extensions are those that act beside the proxier. One that is switched off is nil.
type extensions struct {
	snat  *egress.Extension
	ports *tunnel.Extension
}

// newExtensions returns those that are switched on.
func (p *Proxy) newExtensions(ctx context.Context) (x extensions, err error) {
	if p.flags.enabled {
		p.extension.NodeName = p.nodeName()
		if p.overrides.Manifests == "" { // no kubelet writes these
			p.extension.KeptNodes = keptNodes(p.flags.socket)
		}
		if err := p.checkBackend(ctx); err != nil {
			return extensions{}, err
		}
		if err := p.checkSteering(ctx); err != nil {
			return extensions{}, err
		}
		if err := p.checkPortSecurity(ctx); err != nil {
			return extensions{}, err
		}
		p.loadFastPath(ctx)
		x.snat = egress.New(ctx, p.extension)
	}
	if p.tunnelFlags.enabled {
		p.tunnel.NodeName = p.nodeName()
		var err error
		if p.tunnel.Backend, err = tunnelBackend(ctx, p.extension.Proxier); err != nil {
			klog.FromContext(ctx).Info("Connections are redirected by chains of iptables because this kernel's nftables cannot do that", "err", err)
		}
		x.ports = tunnel.New(ctx, p.tunnel)
	}
	return x, nil
}

// tunnelBackend returns the back end of the tunnel's ports beside a proxier: nftables, because a table changes as a whole; beside that of
// iptables chains if this kernel cannot do it, and why.
func tunnelBackend(ctx context.Context, proxier reconcile.Backend) (reconcile.Backend, error) {
	if proxier == reconcile.NFTables {
		return proxier, nil
	}
	if err := probed(ctx, func() error { return redirect.Available(ctx, steeredFamilies()...) }); err != nil {
		return reconcile.IPTables, err
	}
	return reconcile.NFTables, nil
}

// refused is told why the API server gives this node no objects.
func (x extensions) refused(err error) {
	if x.snat != nil {
		x.snat.Refused(err)
	}
}

// checkBackend returns an error if the rules are to be written by nftables and this kernel cannot do that: no pod would have its egress IP.
func (p *Proxy) checkBackend(ctx context.Context) error {
	if p.extension.Backend != reconcile.NFTables || p.flags.backend == autoBackend && p.extension.Proxier == reconcile.IPTables { // that was chosen because the kernel can
		return nil
	}
	err := steering.LocalAvailable(ctx)
	switch {
	case err == nil:
		return nil
	case p.extension.Proxier == reconcile.NFTables:
		return p.config.Errorf("proxyArguments.proxy-mode", "egress SNAT cannot be done in the mode \"nftables\": use \"iptables\": %w", err)
	}
	return p.config.Errorf("proxyArguments."+backendKey, "use \"iptables\" or \"auto\": %w", err)
}

// checkPortSecurity finds out whether this kernel can check the sources of what pods send. A node that does not check them
// removes what an earlier run has left.
func (p *Proxy) checkPortSecurity(ctx context.Context) error {
	security := &p.extension.PortSecurity
	if !security.Enabled {
		return portsecurity.Cleanup(ctx)
	}
	if security.Unavailable = probed(ctx, func() error { return portsecurity.Available(ctx) }); security.Unavailable != nil {
		klog.FromContext(ctx).Error(security.Unavailable, "Other pods can use the addresses of this node's bound pods, because the sources of their packets cannot be checked")
	}
	return nil
}

// loadFastPath loads the fast path of established flows, if this kernel can. The process has it until it ends. A node without it
// puts back what an earlier run has set for it, before the proxier looks.
func (p *Proxy) loadFastPath(ctx context.Context) {
	logger, argument := klog.FromContext(ctx), "proxyArguments."+fastPathKey
	if err := p.findFastPath(ctx); err != nil {
		logger.Info("All packets take the slow path", "reason", err.Error(), "argument", argument)
	}
	switch {
	case p.extension.Steering.Mode == holders.Off:
	case p.extension.Ways.Kernel.Fast != nil:
		logger.Info("The fast path is there for packets of established flows", "which", p.flags.steering.fastPath, "argument", argument)
	default:
		if err := steering.PutBackFast(ctx); err != nil { // the first write tries it again, but the proxier may have looked
			logger.Error(err, "Cannot find out whether settings of a fast path have to be put back")
		}
	}
}

// findFastPath loads it, unless it is off. The error says why it cannot be: packets take the slow path then.
func (p *Proxy) findFastPath(ctx context.Context) (err error) {
	security := p.extension.PortSecurity
	if p.extension.Steering.Mode == holders.Off || p.flags.steering.fastPath == fastPathOff {
		return nil
	}
	if !security.Enabled || security.Unavailable != nil {
		return errors.New("port security is off, so it is not known behind which interface a pod is")
	}
	p.extension.Ways.Kernel.Fast, err = fastpath.Load(klog.FromContext(ctx), p.flags.steering.fastPath == fastPathAll)
	return err
}

func (x extensions) all() (all []extension.Extension) {
	if x.snat != nil {
		all = append(all, x.snat)
	}
	if x.ports != nil {
		all = append(all, x.ports)
	}
	return all
}

// watch has them follow what the proxier does not, until ctx ends.
func (x extensions) watch(ctx context.Context, clients egress.Clients, n *notifier) {
	if x.snat != nil {
		x.snat.Watch(clients)
		n.extensions = append(n.extensions, func() extension.Summary { return x.snat.Summary().Brief() })
	}
	if x.ports != nil {
		x.ports.Watch(clients.Kube, clients.Nodes, clients.Explain)
		n.extensions = append(n.extensions, x.ports.Summary)
	}
	if len(x.all()) > 0 {
		go clients.Nodes.RunWithContext(ctx)
	}
}

// wait returns when all that they do has ended.
func (x extensions) wait() {
	if x.snat != nil {
		x.snat.Wait()
	}
	if x.ports != nil {
		x.ports.Wait()
	}
}

// listenAgain is when the socket is tried again that could not be made.
const listenAgain = 5 * time.Second

// tell answers 'openshift egress' and 'openshift tunnel' until ctx ends. Its errors are only logged: no rule depends on it. Where the
// socket could not be made it tries again after a rest.
func (p *Proxy) tell(ctx context.Context, x extensions, rest time.Duration) {
	if p.flags.socket == "" || len(x.all()) == 0 {
		return
	}
	var source status.Source
	var others []status.Resource
	if x.snat != nil {
		source = x.snat
		others = append(others, status.Resource{Path: status.UsagePath, Get: x.snat.Usage}, status.Resource{Path: status.PortUsersPath, Ask: x.snat.PortUsers})
	}
	if x.ports != nil {
		others = append(others, status.Resource{Path: tunnel.SnapshotPath, Get: x.ports.Snapshot}, status.Resource{Path: tunnel.VerifyPath, Get: x.ports.Verify})
	}
	var failed failure.Streak
	logger := klog.FromContext(ctx)
	errorLog := slog.NewLogLogger(logr.ToSlogHandler(klog.LoggerWithName(logger, "egress-status")), slog.LevelInfo)
	socket.Answer(ctx, p.flags.socket, rest, status.Handler(source, others...), errorLog, func(err error) {
		switch news := failed.Changes(err); {
		case news && err != nil:
			logger.Error(err, "'openshift egress' and 'openshift tunnel' do not work on this node because its socket failed; will retry, the same failure is not logged again", "socket", p.flags.socket)
		case news:
			logger.Info("'openshift egress' and 'openshift tunnel' work on this node again", "socket", p.flags.socket)
		}
	})
}
