package cni

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LocalPortsFile is the setting of the source ports that the kernel chooses from, of IPv4 and of IPv6, in the network namespace of the
// thread that opens it.
const LocalPortsFile = "/proc/sys/net/ipv4/ip_local_port_range"

// validateLocalPorts returns what is wrong with a file that was passed, which it closes then: it is not the setting, or cannot be written.
// Where the node's process does not see the plugin's /proc, the file's path has not its mount point.
func validateLocalPorts(file *os.File) error {
	if file == nil {
		return fmt.Errorf("no file was passed; expected %s of the pod's network namespace", LocalPortsFile)
	}
	var of unix.Statfs_t
	failed := unix.Fstatfs(int(file.Fd()), &of)
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	path, unread := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err := errors.Join(failed, err, unread); err != nil {
		return errors.Join(fmt.Errorf("what was passed cannot be looked at: %w", err), file.Close())
	}
	if of.Type != unix.PROC_SUPER_MAGIC || !strings.HasSuffix(path, strings.TrimPrefix(LocalPortsFile, "/proc")) || flags&unix.O_ACCMODE != unix.O_RDWR {
		return errors.Join(fmt.Errorf("%.200q was passed; expected %s of the pod's network namespace, for reading and writing", path, LocalPortsFile), file.Close())
	}
	return nil
}
