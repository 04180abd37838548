package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// mostHashed is the largest nat table whose rules are part of a fingerprint, in bytes: some thirty
// thousand rules. The kernel copies and this process hashes it in a few milliseconds.
const mostHashed = 8 << 20

// LegacyFingerprint returns a text that is another one when somebody changed a legacy table of
// family, in the network namespace of the calling thread. It has the names of the tables, and of each
// what the kernel tells without listing it: number of rules, size, and where the chains of the hooks
// begin and end (IPT_SO_GET_INFO, include/uapi/linux/netfilter_ipv4/ip_tables.h). Of the nat table it
// has the rules, too, without their counters, if the table is no larger than 8 MiB. In larger ones, and
// in other tables, a rule that was replaced by one of the same size does not show, nor do rules that
// changed places. It runs no program and makes no table.
func LegacyFingerprint(family kernel.Family) (string, error) {
	l := legacyOf(family)
	data, err := os.ReadFile("/proc/thread-self/net/" + l.names)
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
	socket, err := unix.Socket(l.domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return "", fmt.Errorf("open a raw socket to ask for the legacy tables: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	slices.Sort(tables)
	var text strings.Builder
	for _, name := range tables {
		line, err := l.describe(socket, name)
		if err != nil {
			return "", fmt.Errorf("ask for the legacy table %s: %w", name, err)
		}
		text.WriteString(line)
	}
	return text.String(), nil
}

// legacy is how the kernel tells of the legacy tables of an IP family.
type legacy struct {
	domain int
	level  uintptr
	// names is the file with the names of the tables.
	names string
	// counters is where an entry has its counters (struct ipt_entry, struct ip6t_entry).
	counters int
}

func legacyOf(family kernel.Family) legacy {
	if family == kernel.IPv6 {
		return legacy{unix.AF_INET6, unix.IPPROTO_IPV6, "ip6_tables_names", 152}
	}
	return legacy{unix.AF_INET, unix.IPPROTO_IP, "ip_tables_names", 96}
}

// The options of getsockopt(2), the same in both families, and where an entry has the length of itself:
// right in front of comefrom and the counters.
const (
	getInfoOption    = 64 // IPT_SO_GET_INFO
	getEntriesOption = 65 // IPT_SO_GET_ENTRIES
	countersLength   = 16 // struct xt_counters
)

// getInfo is struct ipt_getinfo, and struct ip6t_getinfo.
type getInfo struct {
	Name                 [32]byte
	ValidHooks           uint32
	HookEntry, Underflow [5]uint32
	Entries, Size        uint32
}

func (l legacy) describe(socket int, name string) (string, error) {
	info := getInfo{}
	copy(info.Name[:], name)
	if err := l.get(socket, getInfoOption, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
		return "", err
	}
	hash := uint64(0)
	if name == table && info.Size <= mostHashed {
		var err error
		if hash, err = l.hash(socket, info); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s %d %d %v %v %x\n", name, info.Entries, info.Size, info.HookEntry, info.Underflow, hash), nil
}

var hashSeed = maphash.MakeSeed()

// hash returns one of a table's entries without their counters.
func (l legacy) hash(socket int, info getInfo) (uint64, error) {
	const header = 40 // struct ipt_get_entries: the name, the size, and padding
	buffer := make([]byte, header+int(info.Size))
	copy(buffer, info.Name[:])
	binary.NativeEndian.PutUint32(buffer[len(info.Name):], info.Size)
	if err := l.get(socket, getEntriesOption, unsafe.Pointer(&buffer[0]), uintptr(len(buffer))); err != nil {
		return 0, err // EAGAIN where the size has changed meanwhile
	}
	for entries := buffer[header:]; len(entries) >= l.counters+countersLength; {
		clear(entries[l.counters : l.counters+countersLength])
		next := int(binary.NativeEndian.Uint16(entries[l.nextOffset():]))
		if next == 0 || next > len(entries) {
			return 0, errors.New("the kernel told an entry that has no end")
		}
		entries = entries[next:]
	}
	return maphash.Bytes(hashSeed, buffer), nil
}

// nextOffset is where an entry has its length.
func (l legacy) nextOffset() int {
	if l.domain == unix.AF_INET6 {
		return 142
	}
	return 90
}

func (l legacy) get(socket int, option uintptr, value unsafe.Pointer, length uintptr) error {
	size := uint32(length)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), l.level, option, uintptr(value), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
