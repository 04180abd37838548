package conntrack

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTable_Busiest: the source ports that pods have in use towards their busiest destinations, whatever they are seen as; not those of others, of
// another zone.
func TestTable_Busiest(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		to, other := netip.AddrPortFrom(addr(w.outside), 443), netip.AddrPortFrom(addr(w.outside), 53)
		add := func(count int, f Flow) {
			for range count {
				n.holds(map[string]entry{"": {Flow: f}})
				n.names[uint32(len(n.names)+1)] = "" // so that the next one has another port
			}
		}
		add(3, flow(tcp, w.pod, to.String(), w.egressIP))
		add(2, flow(tcp, w.pod, to.String(), w.pod))         // steered
		add(9, flow(udp, w.pod, other.String(), w.egressIP)) // of a few sockets, or many
		add(1, flow(tcp, w.unbound, other.String(), w.unbound))
		elsewhere := flow(tcp, w.unbound, other.String(), w.unbound)
		elsewhere.Zone = 7
		add(5, elsewhere)
		busiest := func(pods ...string) (got map[netip.Addr]Busiest) {
			all := map[netip.Addr]bool{}
			for _, pod := range pods {
				all[addr(pod)] = true
			}
			err := n.host.Do(func() (err error) {
				table := NewTable(n.family)
				defer table.Close()
				got, err = table.Busiest(n.Context(), all)
				return err
			})
			if err != nil {
				n.Error(err)
			}
			return got
		}
		pod, unbound := Busiest{to, 5}, Busiest{other, 1}
		for i, test := range []struct{ want, got map[netip.Addr]Busiest }{
			{map[netip.Addr]Busiest{addr(w.pod): pod, addr(w.unbound): unbound}, busiest(w.pod, w.unbound, w.outside)},
			{map[netip.Addr]Busiest{addr(w.unbound): unbound}, busiest(w.unbound)},
			{map[netip.Addr]Busiest{}, busiest()},
		} {
			if diff := cmp.Diff(test.want, test.got, compareNetip); diff != "" {
				n.Errorf("%d (-want +got):\n%s", i, diff)
			}
		}
		err := n.host.Do(func() error {
			flows, err := Tracked()
			if flows < 15 {
				n.Errorf("%d flows are tracked, want 15", flows)
			}
			return err
		})
		if err != nil {
			n.Error(err)
		}
	})
}

// TestCountOf_Reset: the port of a connection that was reset is free at once.
func TestCountOf_Reset(t *testing.T) {
	pod, to := netip.MustParseAddrPort("10.128.0.5:40000"), netip.MustParseAddrPort("198.51.100.7:443")
	counts := map[netip.Addr]destinations{}
	for state := range uint8(10) {
		of := tracked{Flow: Flow{Protocol: tcp, Source: pod.Addr()}, ends: ends{original: tuple{protocol: tcp, source: pod, destination: to}, state: state}}
		countOf(counts, map[netip.Addr]bool{pod.Addr(): true}, &of)
	}
	if _, ports := counts[pod.Addr()].busiest(); ports != 9 {
		t.Errorf("%d ports are in use, want 9", ports)
	}
}
