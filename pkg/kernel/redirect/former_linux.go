package redirect

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// formerSets are the IP sets that rules of former versions name: there were two generations of them.
func formerSets(family kernel.Family) (names []string) {
	prefix := map[kernel.Family]string{kernel.IPv4: "openshift-tunnel-4", kernel.IPv6: "openshift-tunnel-6"}[family]
	for _, generation := range []string{"a", "b"} {
		for _, set := range []string{"-nodes", "-secure", insecureSet} {
			names = append(names, prefix+generation+set)
		}
	}
	return names
}

// insecureSet ends the name of the set of ports to the insecure address.
const insecureSet = "-insecure"

// formerSet is what an IP set holds, sorted.
type formerSet struct {
	addresses []netip.Addr
	ports     []uint16
}

// readSet returns what an IP set holds; exists is false if there is no such set, as in a kernel without any. It has the kernel load no module:
// without it there are none.
func readSet(name string) (set formerSet, exists bool, err error) {
	if _, err := os.Stat("/sys/module/ip_set"); err != nil {
		return formerSet{}, false, nil
	}
	list, err := netlink.IpsetList(name)
	if errors.Is(err, unix.ENOENT) {
		return formerSet{}, false, nil
	}
	if err != nil {
		return formerSet{}, false, fmt.Errorf("list the IP set %s: %w", name, err)
	}
	for _, e := range list.Entries {
		if addr, is := netip.AddrFromSlice(e.IP); is {
			set.addresses = append(set.addresses, addr)
		} else if e.Port != nil {
			set.ports = append(set.ports, *e.Port)
		}
	}
	slices.SortFunc(set.addresses, netip.Addr.Compare)
	slices.Sort(set.ports)
	return set, true, nil
}

// destroySets removes the sets of former versions. It fails as long as a rule names one.
func destroySets(family kernel.Family) error {
	var errs []error
	for _, name := range formerSets(family) {
		_, exists, err := readSet(name) // the kernel takes tens of milliseconds to destroy one that does not exist, too
		if exists {
			err = netlink.IpsetDestroy(name)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("destroy the IP set %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
