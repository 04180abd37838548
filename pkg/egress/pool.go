package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/status"
)

var _ status.PoolSource = &Extension{}

// poolConfig is that of this node's part in the pool.
func (e *Extension) poolConfig() poolnode.Config {
	return poolnode.Config{
		Membership: e.config.Membership, Running: &e.running,
		Event:   e.events.Tell,
		Changed: func() { e.changed(true, time.Now()) },
		Await: func(ctx context.Context, family v1.IPFamily) {
			if f := e.families[family]; f != nil {
				_ = f.loop.Await(ctx)
			}
		},
		Reserved: func() map[netip.Addr]bool { return e.balancer.reserved() },
		Keys:     e.keys.ring.For("pool"), NoKey: e.errNoKey,
		Missing: e.barrier.Missing,
	}
}

// Drain has this node give its egress IPs to the other nodes of the pool, and take none, or not any more. What is
// remembered counts after a restart of the process as well. It is an error if this node has no part in the pool.
func (e *Extension) Drain(now, remember bool) error {
	if err := e.noPool(); err != nil {
		return err
	}
	return e.pool.Drain(now, remember)
}

// PoolStatus returns how the pool stands, as far as this node knows; an error if it has no part in it.
func (e *Extension) PoolStatus() (status.Pool, error) {
	if err := e.noPool(); err != nil {
		return status.Pool{}, err
	}
	return e.pool.Report()
}

// noPool returns why this node can have no part in a pool.
func (e *Extension) noPool() error {
	switch {
	case len(e.config.Pool.Networks) == 0:
		return errors.New("there is no pool: proxyArguments.egress-snat-assign-cidrs is not set")
	case e.pool == nil:
		return fmt.Errorf("this node has no part in the pool, because it cannot send packets to other nodes: %w", e.config.Steering.Unavailable)
	}
	return nil
}
