package pool

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"os"
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
const joinLimit = 100 * time.Millisecond

// join returns when the kernel has joined the groups of addresses that were put on their interfaces after l was read, or those of
// them whose group it has not joined in time. The kernel joins a moment after the address is there, and leaves with the address also
// what it has not joined yet (addrconf_leave_solict): another address of the same group, the node's own perhaps, would be lost to
// neighbours if this one was removed before.
func (k kernelAddresses) join(l *links, put []netip.Addr) (late []netip.Addr, err error) {
	if len(put) == 0 {
		return nil, nil
	}
	want, of := maps.Clone(l.groups), map[netip.Addr]group{}
	for _, ip := range put {
		if link, found := l.link(ip); found && ip.Is6() {
			of[ip] = groupOf(ip, link.Index)
			if l.ours[ip] != link.Index {
				want[of[ip]]++
			}
		}
	}
	for deadline := time.Now().Add(joinLimit); len(of) > 0; time.Sleep(time.Millisecond) {
		users, err := groupUsers()
		if err != nil {
			return sorted(of), err
		}
		maps.DeleteFunc(of, func(_ netip.Addr, g group) bool { return users[g] >= want[g] })
		if time.Now().After(deadline) {
			break
		}
	}
	return sorted(of), nil
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
			users[group{index, [3]byte(bytes)}] += n
		}
	}
	return users, nil
}
