package conntrack

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Busiest is the destination that most tracked TCP connections of a pod go to, in front of DNAT: as the pod names it. The zero value is that
// of a pod without connections.
type Busiest struct {
	Destination netip.AddrPort
	// Ports is how many source ports of the pod are in use there, or some fewer: see mostDestinations. A connection that has been
	// closed is among them as long as conntrack remembers it, but not one that was reset: its port is free at once. So is one of UDP when
	// its socket is closed, which conntrack does not see: a few sockets would look like many.
	Ports int
}

// stateClose is TCP_CONNTRACK_CLOSE of linux/netfilter/nf_conntrack_tcp.h: the connection was reset.
const stateClose = 8

// Busiest returns the busiest destination of each of these pods that has flows. It goes through the table once, or again if the kernel
// says that the dump was interrupted.
func (t *Table) Busiest(ctx context.Context, pods map[netip.Addr]bool) (busiest map[netip.Addr]Busiest, err error) {
	var counts map[netip.Addr]destinations
	err = t.with(ctx, func(k *handle) error {
		return dump(func() error {
			counts = map[netip.Addr]destinations{} // an interrupted dump counts for nothing
			return k.table.dump(ctx, inet(k.family), everyone, func(t *tracked) { countOf(counts, pods, t) })
		})
	})
	if err != nil {
		return nil, fmt.Errorf("count the source ports of pods in use, %s: %w", t.family, err)
	}
	busiest = make(map[netip.Addr]Busiest, len(counts))
	for pod, c := range counts {
		to, ports := c.busiest()
		busiest[pod] = Busiest{to.to, ports}
	}
	return busiest, nil
}

// countOf counts a connection that one of these pods has begun.
func countOf(counts map[netip.Addr]destinations, pods map[netip.Addr]bool, t *tracked) {
	if t.Zone != 0 || !pods[t.Source] || t.Protocol != unix.IPPROTO_TCP || t.state == stateClose {
		return
	}
	if counts[t.Source] == nil {
		counts[t.Source] = destinations{}
	}
	counts[t.Source].note(destination{t.Protocol, t.original.destination})
}

// Tracked returns how many flows the kernel tracks, of both IP families, in the network namespace of the thread. That costs nothing.
func Tracked() (flows int, err error) {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
	if err != nil {
		return 0, fmt.Errorf("count the tracked flows: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
