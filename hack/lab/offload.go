package lab

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offload has an interface of h make segments and checksums of what it sends, or the kernel before it. A veth that makes them leaves both
// undone, and whoever receives takes that as it is. No packet from another machine lacks its checksum.
func (h *Host) Offload(device string, on bool) error {
	return h.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		for _, command := range []uint32{unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_STXCSUM} {
			setting := struct{ command, value uint32 }{command: command}
			if on {
				setting.value = 1
			}
			request := struct {
				name [unix.IFNAMSIZ]byte
				data unsafe.Pointer
				_    [16]byte // the kernel's structure is larger
			}{data: unsafe.Pointer(&setting)}
			copy(request.name[:], device)
			if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); err != 0 {
				return fmt.Errorf("ethtool command %#x of %s: %w", command, device, err)
			}
		}
		return nil
	})
}
