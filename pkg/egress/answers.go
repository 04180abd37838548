package egress

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/openshift/origin-node/pkg/egress/status"
)

var (
	_ status.Source     = &Extension{}
	_ status.PoolSource = &Extension{}
)

// PortUsers returns a list of [status.PortUser], for a query that [status.AskedPort] reads.
func (e *Extension) PortUsers(ctx context.Context, query url.Values) (any, error) {
	return e.usage.Users(ctx, query)
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
