package kubeproxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/kernel/portowner"
)

// holder is a process that holds what another one wants.
type holder struct {
	// pid is 0 if this process cannot see it: it lives in another container, or could not be
	// found.
	pid int
	// uid is its user, noUser if that is not known.
	uid int
}

const noUser = -1

// isNode tells whether a holder may be a node process: root's, and its program has this one's
// name or cannot be seen.
func (h holder) isNode() bool {
	if h.uid != 0 && h.uid != os.Geteuid() {
		return false
	}
	program := filepath.Base(h.program())
	own, err := os.Executable()
	return err != nil || program == "." || strings.HasPrefix(program, "openshift") || program == filepath.Base(own)
}

// program returns the file that a process runs, or what it calls itself where the file may
// not be seen (the unit has no CAP_SYS_PTRACE), or "". The file may have been replaced.
func (h holder) program() string {
	if file, err := os.Readlink(h.proc("exe")); err == nil {
		return strings.TrimSuffix(file, " (deleted)")
	}
	command, _, _ := strings.Cut(h.read("cmdline"), "\x00")
	return command
}

// String names a process for people.
func (h holder) String() string {
	if h.pid == 0 && h.uid == noUser {
		return "a process that could not be found; 'ss -xap' in each container on this network may show it"
	}
	name := "a process in another container"
	if h.pid != 0 {
		name = fmt.Sprintf("process %d", h.pid)
	}
	if program := h.program(); program != "" {
		command := strings.TrimSpace(strings.ReplaceAll(h.read("cmdline"), "\x00", " "))
		name += fmt.Sprintf(" (executable %q, command line %q)", program, command)
	}
	if h.uid != noUser {
		name += fmt.Sprintf(" of user %d", h.uid)
	}
	return name
}

func (h holder) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", h.pid, name) }

// read returns what /proc has about a process, "" if that cannot be read.
func (h holder) read(name string) string {
	text, err := os.ReadFile(h.proc(name))
	if err != nil {
		return ""
	}
	return string(text)
}

// user returns a process's effective user.
func (h holder) user() int {
	_, after, _ := strings.Cut(h.read("status"), "\nUid:")
	line, _, _ := strings.Cut(after, "\n")
	if ids := strings.Fields(line); len(ids) > 1 {
		if uid, err := strconv.Atoi(ids[1]); err == nil {
			return uid
		}
	}
	return noUser
}

// holderOf returns the process with this number.
func holderOf(pid int) holder {
	h := holder{pid: pid, uid: noUser}
	h.uid = h.user()
	return h
}

// askSocket returns the process that listens on the socket, as the kernel names it to a
// client.
func askSocket() (holder, error) {
	conn, err := net.DialTimeout("unix", instanceSocket, time.Second)
	if err != nil {
		return holder{uid: noUser}, err
	}
	defer conn.Close()
	peer, err := socket.Credentials(conn.(*net.UnixConn))
	if err != nil {
		return holder{uid: noUser}, err
	}
	return holder{pid: int(peer.Pid), uid: int(peer.Uid)}, nil
}

// findSocketHolder returns the process that has the socket's name and does not answer: the
// one that has an open file with the socket's inode.
func findSocketHolder() holder {
	text, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return holder{uid: noUser}
	}
	inodes := map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		// Num: RefCount Protocol Flags Type St Inode Path
		if fields := strings.Fields(line); len(fields) == 8 && fields[7] == instanceSocket {
			inodes[fields[6]] = true
		}
	}
	for _, text := range portowner.Holders(inodes) {
		if pid, err := strconv.Atoi(text); err == nil {
			return holderOf(pid)
		}
	}
	return holder{uid: noUser}
}

// findLockHolder returns the process that has locked a file (proc_locks(5)). One in another
// container has the number 0 there.
func findLockHolder(file *os.File) holder {
	unseen := holder{uid: os.Geteuid()} // nobody else can open the file
	var stat unix.Stat_t
	text, err := os.ReadFile("/proc/locks")
	if err = errors.Join(err, unix.Fstat(int(file.Fd()), &stat)); err != nil {
		return unseen
	}
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for line := range strings.SplitSeq(string(text), "\n") {
		// 1: FLOCK ADVISORY WRITE PID DEVICE:INODE START END
		if fields := strings.Fields(line); len(fields) == 8 && fields[1] == "FLOCK" && fields[5] == id {
			if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
				return holderOf(pid)
			}
		}
	}
	return unseen
}
