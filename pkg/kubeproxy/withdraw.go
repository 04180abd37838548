package kubeproxy

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/wake"
)

// withdraw empties this node's Lease, if it has one, because the node steers nothing any more: others would go
// on to send packets here. It returns when that is done, so that they know before the rules for their pods go; or when it is
// forbidden, or after a while: then it goes on behind its caller, until ctx ends.
func (p *Proxy) withdraw(ctx context.Context, client kubernetes.Interface) {
	const patience = time.Second
	answered := make(chan struct{})
	go keepWithdrawing(ctx, func() error { return p.leases(client).Withdraw(ctx, p.nodeName()) }, sync.OnceFunc(func() { close(answered) }))
	wake.Sleep(answered, patience)
}

// keepWithdrawing tries until ctx ends, and calls answered when that has succeeded, or is forbidden. Who may not read Leases has mostly never
// written one. But an API server that has just started forbids for a moment what it allows, so that is tried again, too.
func keepWithdrawing(ctx context.Context, withdraw func() error, answered func()) {
	const again = 10 * time.Second
	forbidden := wait.Backoff{Duration: again, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Minute}
	for {
		err, pause := withdraw(), again
		switch {
		case err == nil:
			answered()
			return
		case apierrors.IsForbidden(err):
			answered()
			pause = forbidden.Step()
		}
		klog.FromContext(ctx).V(2).Info("Cannot withdraw this node's egress IPs from its Lease; will retry", "err", err)
		if !wake.Sleep(ctx.Done(), pause) {
			return
		}
	}
}

// tellOthers is withdrawOnce for a node that steers nothing any more, if an earlier process has: before its rules go. It tells whether one has.
func (p *Proxy) tellOthers(ctx context.Context) (steered bool) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		if standing, err := steering.Stands(ctx, family); err != nil || len(standing.All()) > 0 {
			p.withdrawOnce(ctx)
			return true
		}
	}
	return false
}

// withdrawOnce is withdraw for a process that ends, or that does not wait. It needs an API server, and says so if there is none.
func (p *Proxy) withdrawOnce(ctx context.Context) {
	p.once(ctx, "If this node has announced egress IPs, other nodes still send packets here: delete the Lease of its name", func(ctx context.Context, client kubernetes.Interface) error {
		return p.leases(client).Withdraw(ctx, p.nodeName())
	})
}

// giveBlocksBack gives back the blocks of source ports that this node has claimed, as withdrawOnce does.
func (p *Proxy) giveBlocksBack(ctx context.Context) {
	const advice = "Blocks of source ports that this node has claimed may stay claimed: remove its entries from the Leases egress-ports-*, or delete its Node if it is gone for good"
	p.once(ctx, advice, func(ctx context.Context, client kubernetes.Interface) error {
		return portblocks.Withdraw(ctx, client, p.flags.steering.leaseNamespace, p.nodeName())
	})
}

// once asks the API server for something, and says what to do about it if that fails. Who may not read Leases has mostly never written one.
func (p *Proxy) once(ctx context.Context, advice string, ask func(context.Context, kubernetes.Interface) error) {
	const patience = 5 * time.Second
	if p.options.Config().ClientConnection.Kubeconfig == "" && p.master() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := p.claimsClient()
	if err == nil {
		err = ask(ctx, client)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, advice, "namespace", p.flags.steering.leaseNamespace, "node", p.nodeName())
	}
}

func (p *Proxy) leases(client kubernetes.Interface) holders.Leases {
	return holders.Leases{Client: client, Namespace: p.flags.steering.leaseNamespace}
}
