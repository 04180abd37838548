package rendezvous

import "net/netip"

// Score is that of an address and a name: the 64-bit FNV-1a of the address's bytes and the name, finished as MurmurHash3 does.
func Score(ip netip.Addr, name string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // as in hash/fnv, which allocates
	x := uint64(offset)
	from, address := 0, ip.As16()
	if ip.Is4() {
		from = 12
	}
	for _, b := range address[from:] {
		x = (x ^ uint64(b)) * prime
	}
	for i := range len(name) {
		x = (x ^ uint64(name[i])) * prime
	}
	// FNV's last bytes hardly reach the upper bits; this is the finish of MurmurHash3.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
