package portblocks

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// secondOf is behind the ID of a pod where the second block is meant. No container ID has it.
const secondOf = "+second"

// Second returns under which ID a [Book] and a [Keeper] know the second block of a pod.
func Second(id string) string { return id + secondOf }

// First returns the ID of a pod, also if it is that of its second block.
func First(id string) string { return strings.TrimSuffix(id, secondOf) }

// secondPatience is how long a second block is waited for: nobody starts meanwhile.
const secondPatience = 10 * time.Second

// AddSecond gives a pod that has a block a second one of the same size, of the same egress IPs: one that is its neighbour, if possible; none
// where fewer than an eighth of the blocks are free, which are for pods to come. See Of for [Second] what it has. If there was none to be had,
// it tries again.
func (b *Book) AddSecond(id string, now time.Time) {
	first, second := b.tenants[id], b.tenants[Second(id)]
	switch {
	case first == nil || !first.decided || isNone(first.ports):
		return
	case second != nil && (!second.decided || len(second.has)+len(second.asks) > 0):
		return
	}
	t := &tenant{
		id: Second(id), ips: sorted(slices.Collect(maps.Keys(first.has))), size: sizeOf(first.ports), near: first.ports, has: map[netip.Addr]bool{}, asks: map[netip.Addr]bool{},
		deadline: now.Add(secondPatience),
	}
	b.tenants[t.id] = t
	if t.decided = b.isScarce(&group{ips: t.ips, size: t.size}, 8, now); !t.decided {
		b.choose(t, now)
	}
	b.changed = b.changed || t.decided
}

// beside returns a block in front of that which a tenant wants to be near, or behind it, of all of its egress IPs; none if there is no such
// one, or the tenant has no such wish.
func (b *Book) beside(t *tenant, of reach, now time.Time) kernel.Ports {
	if isNone(t.near) {
		return kernel.Ports{}
	}
	for _, first := range []int{int(t.near.Last) + 1, int(t.near.First) - t.size} {
		ports := kernel.Ports{First: uint16(max(first, 0)), Last: uint16(max(first, 0) + t.size - 1)}
		has := func(ip netip.Addr) bool {
			l := b.ledger(ip)
			return b.isSpare(l, ports, now) || of >= unclaimed && b.isFree(l, ports)
		}
		if Validate(ports) == nil && !slices.ContainsFunc(t.ips, func(ip netip.Addr) bool { return !has(ip) }) {
			return ports
		}
	}
	return kernel.Ports{}
}

// AddSecond gives a pod that has a block a second one, or tries to: see [Book.AddSecond]. Changed is told when it has one.
func (k *Keeper) AddSecond(id string) {
	k.do(func(b *Book, now time.Time) { b.AddSecond(id, now) })
}

// Widened returns the source ports that a pod is to use inside which has two blocks: both if they are neighbours, else the first and as
// many beside it, which are translated into the second one. They are in a row, as Linux wants them.
func Widened(first, second kernel.Ports) kernel.Ports {
	switch {
	case second.First == first.Last+1:
		return kernel.Ports{First: first.First, Last: second.Last}
	case first.First == second.Last+1:
		return kernel.Ports{First: second.First, Last: first.Last}
	}
	size := uint16(sizeOf(first))
	if int(first.Last)+int(size) < int(Shared.First) {
		return kernel.Ports{First: first.First, Last: first.Last + size}
	}
	return kernel.Ports{First: first.First - size, Last: first.Last}
}
