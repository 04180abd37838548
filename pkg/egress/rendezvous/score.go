package rendezvous

import (
	"hash/fnv"
	"io"
	"net/netip"
)

// Score is that of an address and a name: the 64-bit FNV-1a of the address's bytes and the name, finished as MurmurHash3 does.
func Score(ip netip.Addr, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(ip.AsSlice())
	_, _ = io.WriteString(h, name)
	// FNV's last bytes hardly reach the upper bits; this is the finish of MurmurHash3.
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
