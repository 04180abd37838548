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
	nftables "github.com/openshift/origin-node/pkg/kernel/nft"
)

// mostHashed is the largest nat table whose rules are part of a fingerprint, in bytes: some thirty
// thousand rules. The kernel copies and this process hashes it in a few milliseconds.
const mostHashed = 8 << 20

// LegacyFingerprint returns a text that is another one when somebody changed a legacy table of
// family, in the network namespace of the calling thread. It has the names of the tables, and of each
// what the kernel tells without listing it: number of rules, size, and where the chains of the hooks
// begin and end. Of the nat table it has the rules, too, without their counters, if the table is no
// larger than 8 MiB. In larger ones, and in other tables, a rule that was replaced by one of the same
// size does not show, nor do rules that changed places. It runs no program and makes no table.
func LegacyFingerprint(family kernel.Family) (string, error) {
	l, err := openLegacy(family)
	if err != nil {
		return "", err
	}
	defer l.Close()
	var text strings.Builder
	for _, name := range l.names {
		line, err := l.describe(name)
		if err != nil {
			return "", fmt.Errorf("ask for the legacy table %s: %w", name, err)
		}
		text.WriteString(line)
	}
	return text.String(), nil
}

// legacy are the legacy tables of an IP family.
type legacy struct {
	layout        entryLayout
	socket        int
	socketOptions uintptr // their level
	// names are those of the tables that there are: asking for another one makes it.
	names []string
	read  map[string]*legacyTable
}

// The options of getsockopt(2), the same in both families.
const (
	getInfoOption    = 64 // IPT_SO_GET_INFO
	getEntriesOption = 65 // IPT_SO_GET_ENTRIES
)

// openLegacy returns the tables in the network namespace of the calling thread.
func openLegacy(family kernel.Family) (*legacy, error) {
	l := &legacy{layout: entryLayoutOf(family), socket: -1, socketOptions: unix.IPPROTO_IP, read: map[string]*legacyTable{}}
	domain, namesFile := unix.AF_INET, "ip_tables_names"
	if family == kernel.IPv6 {
		l.socketOptions, domain, namesFile = unix.IPPROTO_IPV6, unix.AF_INET6, "ip6_tables_names"
	}
	data, err := os.ReadFile("/proc/thread-self/net/" + namesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the kernel module is not loaded, so there are no tables
		return nil, fmt.Errorf("read the names of the legacy tables: %w", err)
	}
	l.names = slices.Sorted(strings.FieldsSeq(string(data)))
	if len(l.names) == 0 {
		return l, nil
	}
	if l.socket, err = unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err != nil {
		return nil, fmt.Errorf("open a raw socket to ask for the legacy tables: %w", err)
	}
	return l, nil
}

// Close gives back what l has from the kernel.
func (l *legacy) Close() {
	for _, t := range l.read {
		unmap(t)
	}
	if l.socket >= 0 {
		_ = unix.Close(l.socket)
	}
}

func (l *legacy) describe(name string) (string, error) {
	info, err := l.info(name)
	if err != nil {
		return "", err
	}
	hash := uint64(0)
	if name == table && info.Size <= mostHashed {
		t, err := l.copy(name)
		if err != nil {
			return "", err
		}
		defer unmap(t)
		info = t.info
		if hash, err = t.hash(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s %d %d %v %v %x\n", name, info.Entries, info.Size, info.HookEntry, info.Underflow, hash), nil
}

var hashSeed = maphash.MakeSeed()

func (l *legacy) info(name string) (legacyInfo, error) {
	info := legacyInfo{}
	copy(info.Name[:], name)
	return info, l.get(getInfoOption, unsafe.Pointer(&info), unsafe.Sizeof(info))
}

// copy returns a table. It is not the garbage collector's, for it may have hundreds of MB: unmap ends it.
func (l *legacy) copy(name string) (t *legacyTable, err error) {
	const tries = 5 // while others write
	for range tries {
		info, err := l.info(name)
		if err != nil {
			return nil, err
		}
		t, err = l.copyAsOf(info)
		if !errors.Is(err, unix.EAGAIN) {
			return t, err
		}
	}
	return nil, fmt.Errorf("it has changed each of %d times meanwhile", tries)
}

// entriesHeader is the length of struct ipt_get_entries: the name, the size, and padding.
const entriesHeader = 40

// copyAsOf returns EAGAIN where the size has changed since.
func (l *legacy) copyAsOf(info legacyInfo) (*legacyTable, error) {
	buffer, err := unix.Mmap(-1, 0, entriesHeader+int(info.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for %d bytes: %w", info.Size, err)
	}
	t := &legacyTable{entryLayout: l.layout, info: info, copied: buffer, entries: buffer[entriesHeader:]}
	copy(buffer, info.Name[:])
	binary.NativeEndian.PutUint32(buffer[len(info.Name):], info.Size)
	if err := l.get(getEntriesOption, unsafe.Pointer(&buffer[0]), uintptr(len(buffer))); err != nil {
		unmap(t)
		return nil, err
	}
	return t, nil
}

func unmap(t *legacyTable) { _ = unix.Munmap(t.copied) }

func (l *legacy) get(option uintptr, value unsafe.Pointer, length uintptr) error {
	size := uint32(length)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(l.socket), l.socketOptions, option, uintptr(value), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Rules is that of [tables], for chains of interest. It costs a copy of the table, once.
func (l *legacy) Rules(table, chain string, visit func(nftables.ListedRule)) (exists bool, err error) {
	t, err := l.table(table)
	if t == nil || err != nil {
		return false, err
	}
	rules, exists := t.chains[chain]
	for at, entry := range t.all(rules) {
		visit(t.rule(at, entry))
	}
	return exists, nil
}

// HasRules is that of [tables], for chains of interest. It costs what Rules does.
func (l *legacy) HasRules(table, chain string) (bool, error) {
	t, err := l.table(table)
	if t == nil || err != nil {
		return false, err
	}
	rules := t.chains[chain]
	return rules.to > rules.from, nil
}

// table returns a table; nil if it does not exist.
func (l *legacy) table(name string) (t *legacyTable, err error) {
	if t = l.read[name]; t != nil || !slices.Contains(l.names, name) {
		return t, nil
	}
	if t, err = l.copy(name); err != nil {
		return nil, fmt.Errorf("copy the legacy table %s: %w", name, err)
	}
	l.read[name] = t
	if err := t.index(); err != nil {
		return nil, fmt.Errorf("read the legacy table %s: %w", name, err)
	}
	return t, nil
}
