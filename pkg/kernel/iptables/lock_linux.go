package iptables

import (
	"context"
	"strings"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"k8s.io/klog/v2"
)

// AwaitLock waits until nobody keeps iptables from its lock, and returns the IP families in
// which iptables can be used then. It is for what looks once whether iptables works, as the
// proxier does, and takes a lock that it does not get for a family that does not exist. The
// only error is that of ctx.
func AwaitLock(ctx context.Context) (usable []kernel.Family, err error) {
	logger := klog.FromContext(ctx)
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		var waits failure.Streak
		for {
			_, err := run(ctx, nil, commandsFor(family, "").version, "-w", lockWait, "-t", "nat", "-S", "POSTROUTING")
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err == nil {
				usable = append(usable, family)
			}
			if err == nil || !strings.Contains(err.Error(), "xtables lock") {
				break // if it cannot be used, kube-proxy says so
			}
			if waits.Turns(err) {
				logger.Error(err, "Another process holds the iptables lock; waiting for it, further waits are not logged")
			}
		}
	}
	return usable, nil
}
