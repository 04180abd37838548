package conntrack

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
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
				got, err = Users(n.Context(), netip.AddrPortFrom(addr(w.egressIP), port))
				return err
			})
			if diff := cmp.Diff(want, got, compareNetip); diff != "" || err != nil {
				n.Errorf("%d: %v (-want +got):\n%s", port, err, diff)
			}
		}
	})
}
