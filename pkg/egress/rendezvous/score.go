// Package rendezvous ranks choices by hashing (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998): of those
// that there are, whoever chooses for a name takes the one with the highest score. All who choose for the same name among the same
// choices agree, and one that comes or goes changes nothing but its own share of the names.
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
