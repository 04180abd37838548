package iptables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// LegacyFingerprint returns a text that is another one when rules were added to or removed from
// one of the legacy tables of family, in the network namespace of the calling thread: the names of
// the tables, and what the kernel tells of each (IPT_SO_GET_INFO, include/uapi/linux/netfilter_ipv4/ip_tables.h):
// number of rules, size, and where the chains of the hooks begin and end. A rule that was replaced by one of the same size
// does not show. It costs a system call for each table, and makes no table.
func LegacyFingerprint(family kernel.Family) (string, error) {
	names, level := "ip_tables_names", unix.IPPROTO_IP
	domain := unix.AF_INET
	if family == kernel.IPv6 {
		names, level, domain = "ip6_tables_names", unix.IPPROTO_IPV6, unix.AF_INET6
	}
	data, err := os.ReadFile("/proc/thread-self/net/" + names)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the kernel module is not loaded, so there are no tables
	}
	if err != nil {
		return "", fmt.Errorf("read the names of the legacy tables: %w", err)
	}
	tables := strings.Fields(string(data))
	if len(tables) == 0 {
		return "", nil
	}
	socket, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return "", fmt.Errorf("open a raw socket to ask for the legacy tables: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	slices.Sort(tables)
	var text strings.Builder
	for _, table := range tables {
		info := getInfo{}
		copy(info.Name[:], table)
		size := uint32(unsafe.Sizeof(info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), uintptr(level), getInfoOption,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			return "", fmt.Errorf("ask for the size of the legacy table %s: %w", table, errno)
		}
		fmt.Fprintf(&text, "%s %d %d %v %v\n", table, info.Entries, info.Size, info.HookEntry, info.Underflow)
	}
	return text.String(), nil
}

// getInfoOption is IPT_SO_GET_INFO, and IP6T_SO_GET_INFO.
const getInfoOption = 64

// getInfo is struct ipt_getinfo, and struct ip6t_getinfo.
type getInfo struct {
	Name                 [32]byte
	ValidHooks           uint32
	HookEntry, Underflow [5]uint32
	Entries, Size        uint32
}
