package conntrack

import (
	"context"
	"fmt"
	"net/netip"
)

// User is a tracked flow that leaves from an address that its source does not have.
type User struct {
	Source      netip.Addr
	Protocol    uint8
	Destination netip.AddrPort
}

// Users returns the tracked flows that leave from an address and a port, by source NAT on this node. It goes through the table once.
func (t *Table) Users(ctx context.Context, of netip.AddrPort) (users []User, err error) {
	err = t.with(ctx, func(k *handle) error {
		return dump(func() error {
			users = nil // an interrupted dump counts for nothing
			return k.table.dump(ctx, inet(k.family), everyone, func(t *tracked) {
				if t.Zone == 0 && t.replying.destination == of && t.Source != of.Addr() {
					users = append(users, User{t.Source, t.Protocol, t.Destination})
				}
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for the flows from %s: %w", of, err)
	}
	return users, nil
}
