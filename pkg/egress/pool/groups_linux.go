package pool

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// group is the solicited-node multicast group of IPv6 addresses on an interface (RFC 4291, section 2.7.1): neighbours find an address by
// it. Addresses with the same last 24 bits share one.
type group struct {
	index  int
	suffix [3]byte
}

func groupOf(ip netip.Addr, index int) group {
	b := ip.As16()
	return group{index, [3]byte(b[13:])}
}

// joinLimit is how long to wait for the kernel to join groups. It takes less than a millisecond on an idle machine.
const joinLimit = 50 * time.Millisecond

// join waits until the kernel has joined the groups of the addresses in put. It returns those whose group it has not joined in time,
// as far as can be seen: sockets may be in a group, too.
//
// The kernel joins a moment after the address is there, and leaves with the address also what it has not joined yet
// (addrconf_leave_solict). So a removal that comes too early takes the group from another address, the node's own perhaps, and neighbours
// do not find that one any more.
func (k kernelAddresses) join(put []netip.Addr) (late []netip.Addr, err error) {
	waiting := slices.DeleteFunc(slices.Clone(put), netip.Addr.Is4)
	if len(waiting) == 0 {
		return nil, nil // without IPv6 the kernel has no groups to read
	}
	for deadline := time.Now().Add(joinLimit); ; time.Sleep(joinLimit / 100) {
		waiting, err = k.unjoined(waiting)
		if err != nil || len(waiting) == 0 || time.Now().After(deadline) {
			return waiting, err
		}
	}
}

// unjoined returns those of the addresses that are on an interface whose group has fewer users than addresses.
func (k kernelAddresses) unjoined(addresses []netip.Addr) ([]netip.Addr, error) {
	users, err := groupUsers() // before the addresses are read: what comes in between is joined later
	if err != nil {
		return addresses, err
	}
	l, err := k.read()
	if err != nil {
		return addresses, err
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool {
		index, here := l.ours[ip]
		return !here || users[groupOf(ip, index)] >= l.groups[groupOf(ip, index)]
	}), nil
}

// groupUsers returns for how many addresses, and sockets, the kernel is in each group.
func groupUsers() (map[group]int, error) {
	const file, solicited = "/proc/thread-self/net/igmp6", "ff0200000000000000000001ff"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	users := map[group]int{}
	for line := range strings.Lines(string(text)) {
		var index, n int
		var link, address string
		if _, err := fmt.Sscan(line, &index, &link, &address, &n); err != nil {
			return nil, fmt.Errorf("%s has the line %q: %w", file, line, err)
		}
		if suffix, found := strings.CutPrefix(address, solicited); found {
			bytes, err := hex.DecodeString(suffix)
			if err != nil || len(bytes) != 3 {
				return nil, fmt.Errorf("%s has the group %q", file, address)
			}
			users[group{index, [3]byte(bytes)}] = n
		}
	}
	return users, nil
}
