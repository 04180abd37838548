package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestUsers_OfAPort: the flow whose source leaves from it, and no other: not the node's own, not one of another port, nor of another
// network.
func TestUsers_OfAPort(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		to := netip.AddrPortFrom(addr(w.outside), 53)
		other := flow(udp, w.pod, to.String(), w.egressIP)
		other.Zone = 7
		for i, f := range []Flow{flow(udp, w.pod, to.String(), w.egressIP), flow(tcp, w.unbound, to.String(), w.egressIP), flow(tcp, w.egressIP, to.String(), w.egressIP), other} {
			n.holds(map[string]entry{string(rune('a' + i)): {Flow: f}})
		}
		for port, want := range map[uint16][]User{
			10001: {{addr(w.pod), udp, to}},
			10002: {{addr(w.unbound), tcp, to}},
			10003: nil, 10004: nil, 10005: nil, 53: nil,
		} {
			var got []User
			err := n.host.Do(func() (err error) {
				got, err = n.table.Users(n.Context(), netip.AddrPortFrom(addr(w.egressIP), port))
				return err
			})
			if diff := cmp.Diff(want, got, compareNetip); diff != "" || err != nil {
				n.Errorf("%d: %v (-want +got):\n%s", port, err, diff)
			}
		}
	})
}

// TestTable_KeepsItsSockets: whoever asks a Table, and however many do at once, no socket is closed.
func TestTable_KeepsItsSockets(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		n.holds(n.entries())
		written, of := w.plan(binding(w.pod, kernel.TCP, w.egressIP)), netip.AddrPortFrom(addr(w.egressIP), 443)
		ask := func() error {
			return n.host.Do(func() error {
				counted, err := n.table.Count(n.Context(), written)
				looked, _, lookErr := n.table.CountNew(n.Context(), written, nil)
				_, usersErr := n.table.Users(n.Context(), of)
				if err = errors.Join(err, lookErr, usersErr); err == nil && (counted[of.Addr()].Flows != 2 || looked[of.Addr()].Flows != 2) {
					err = fmt.Errorf("counted %+v, looked %+v; want two flows of %s", counted, looked, of.Addr())
				}
				return err
			})
		}
		if err := ask(); err != nil {
			n.Fatal(err)
		}
		kept := n.table.handle
		var all errgroup.Group
		for range 4 {
			all.Go(ask)
		}
		if err := all.Wait(); err != nil {
			n.Error(err)
		}
		if kept == nil || n.table.handle != kept {
			n.Error("its sockets were closed")
		}
	})
}
