package pool

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/wake"
)

// keepAgain is how often addresses are kept by a process that has no part in the pool yet. When a cut-off node comes
// back, another one may have taken them over. It is asked more often at first, from keepSoon on: if the link came with the
// process, a port of a switch may forward nothing yet.
const (
	keepAgain = 500 * time.Millisecond
	keepSoon  = 50 * time.Millisecond
)

// Keep keeps the pool's addresses that an earlier process has put on this node, if there are any, until ctx ends: the API
// server may be away, so that it is not known who is in the pool. One that another host answers for is removed; one whose link is down
// is left to the kernel, which withdraws it.
func Keep(ctx context.Context, networks []netip.Prefix, ignored string) {
	k, logger := kernelAddresses{networks: networks, ignored: ignored}, klog.FromContext(ctx)
	var failing failure.Streak
	pauses := wait.Backoff{Duration: keepSoon, Factor: 2, Steps: 10, Cap: keepAgain}
	for ctx.Err() == nil {
		l, err := k.read()
		if err == nil && len(l.ours) == 0 {
			return
		}
		if err == nil {
			err = k.keep(ctx, logger, l)
		}
		if ctx.Err() == nil && failing.Turns(err) && err != nil {
			logger.Error(err, "Cannot keep the egress IPs that are on this node; if that goes on, the kernel withdraws them. Will retry, further failures are not logged")
		}
		wake.Sleep(ctx.Done(), pauses.Step())
	}
}

func (k kernelAddresses) keep(ctx context.Context, logger klog.Logger, l *links) error {
	var errs []error
	for link, addresses := range l.byOwn(sorted(l.ours)) {
		if !l.up[link.Index] {
			continue
		}
		answers, unasked, err := neighbor.Ask(ctx, link, addresses, l.hardware(), nil)
		errs = append(errs, err)
		for _, ip := range addresses {
			if mac, answered := answers[ip]; answered {
				logger.Info("Removed an egress IP", "address", ip, "because", AnsweredFor.Because(), "mac", mac)
				errs = append(errs, k.remove(ip, link.Index))
			} else if !slices.Contains(unasked, ip) && ctx.Err() == nil && time.Since(l.at) <= rereadAfter { // or this process was stopped, and another node may have it
				errs = append(errs, k.put(ip, link.Index))
			}
		}
	}
	return errors.Join(errs...)
}
