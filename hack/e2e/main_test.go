package e2e

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutConntrack names a program that this one is to become, without conntrack's netlink.
const withoutConntrack = "E2E_WITHOUT_CONNTRACK"

func TestMain(m *testing.M) {
	if program := os.Getenv(withoutConntrack); program != "" {
		fmt.Fprintln(os.Stderr, becomeWithoutConntrack(program))
		os.Exit(1)
	}
	if text := os.Getenv(announceAs); text != "" {
		fmt.Fprintln(os.Stderr, becomeALiar(text))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// becomeWithoutConntrack replaces this process, and returns only an error.
func becomeWithoutConntrack(program string) error {
	// socket(AF_NETLINK, …, NETLINK_NETFILTER) fails with EPROTONOSUPPORT; offsets are of
	// struct seccomp_data, whose arguments are of 64 bits.
	const number, family, protocol = 0, 16, 32
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	end := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	filter := []unix.SockFilter{
		load(number), unless(unix.SYS_SOCKET, 5),
		load(family), unless(unix.AF_NETLINK, 3),
		load(protocol), unless(unix.NETLINK_NETFILTER, 1),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)),
		end(unix.SECCOMP_RET_ALLOW),
	}
	runtime.LockOSThread()
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	runtime.KeepAlive(&fprog)
	return unix.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
}
