package rendezvous

import (
	"hash/fnv"
	"net/netip"
	"testing"
)

// TestScore_IsFNV: all nodes of a cluster have to agree, whichever version they run.
func TestScore_IsFNV(t *testing.T) {
	for _, text := range []string{"0.0.0.0", "203.0.113.10", "::", "2001:db8::1", "::ffff:203.0.113.10"} {
		for _, name := range []string{"", "node-1", "a.long-name.of-a.node.example.com"} {
			ip := netip.MustParseAddr(text)
			h := fnv.New64a()
			_, _ = h.Write(append(ip.AsSlice(), name...))
			x := h.Sum64()
			x = (x ^ x>>33) * 0xff51afd7ed558ccd
			x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
			if want := x ^ x>>33; Score(ip, name) != want {
				t.Errorf("%s and %q have the score %x, want %x", ip, name, Score(ip, name), want)
			}
		}
	}
}
