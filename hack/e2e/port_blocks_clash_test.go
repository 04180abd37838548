package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// TestPortBlocks_PortClash is TestPool_PortClash for pods with blocks: the node dies that has the egress IP of two pods on two other nodes.
// Their connections live, from ports that the kernel has chosen, from such ports of the pod's own block as the pod has asked for, and where
// both have asked for the same ports outside of their blocks: every holder gives the same others for these.
func TestPortBlocks_PortClash(t *testing.T) {
	belongsTo(t, usual)
	w := newBlocksWorldOf(t, blocksOf512+poolArguments)
	pool := &poolWorld{&steeredWorld{world: w.world, egressIPs: w.egressIPs}}
	for _, r := range w.runtimes {
		w.runs(r, "clash", len(w.egressIPs))
	}
	for family, ip := range w.egressIPs {
		pool.complete()
		holder := pool.holderOf(ip, nil)
		var pods []*sandbox // others for each family, which have used no port yet
		for _, r := range w.runtimes {
			for _, s := range r.runs {
				if r.on != holder && strings.HasSuffix(s.pod.Name, fmt.Sprintf("-%d", family)) {
					pods = append(pods, s)
				}
			}
		}
		own, translated := w.keepOwn(pool, ip, pods), w.keepTranslated(pool, ip, pods)
		w.must(w.SetLink(holder.Host, false))
		pool.holderOf(ip, holder)
		own.noneHangs(pool)
		translated.noneHangs(pool)
		own.end(pool, ip, "link cut, ports of the pods' own blocks", 100)
		translated.end(pool, ip, "link cut, ports outside of the pods' blocks", 100)
		w.must(w.SetLink(holder.Host, true))
	}
}

// clashing is how many connections of each kind a pod has.
const clashing = 10

// keepOwn keeps connections of pods to the same destination, from ports of their blocks: those that they ask for, and those that the kernel
// chooses. Of one half both sides send.
func (w *blocksWorld) keepOwn(pool *poolWorld, ip string, pods []*sandbox) *connections {
	w.Helper()
	c, to := &connections{}, pool.beats(ip)
	w.Cleanup(c.close)
	for _, s := range pods {
		w.usesBlock(s, 1)
		block := w.block(s)
		for n := range clashing {
			c.keep(pool, s.Host, pool.dialFromPort(s.Host, int(block.First)+n, to), n%2 == 0)
		}
		for n := range clashing {
			conn, err := s.DialContext(w.Context(), "tcp", to)
			w.must(err)
			if port := portOf(conn); !block.Contains(port) {
				w.Errorf("the kernel has chosen port %d for %s, which is not of its block %s", port, s.pod.Name, block)
			}
			c.keep(pool, s.Host, conn, n%2 == 0)
		}
	}
	c.begin(pool)
	return c
}

// keepTranslated keeps connections of pods to one destination, which nothing else goes to: each pod asks for the same ports, which are of
// no block.
func (w *blocksWorld) keepTranslated(pool *poolWorld, ip string, pods []*sandbox) *connections {
	w.Helper()
	c, to := &connections{}, pool.beats(ip)
	w.Cleanup(c.close)
	for i, s := range pods {
		for n := range clashing {
			c.keep(pool, s.Host, pool.dialFromPort(s.Host, int(portblocks.Shared.First)+n, to), n%2 == i%2)
		}
	}
	c.begin(pool)
	return c
}
