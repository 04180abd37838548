package portowner

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// listening is the state of a TCP socket that listens, in /proc/net/tcp. Of UDP any state counts.
const listening = "0A"

// Find says for people who has a port of a protocol, "udp" or "tcp", in the caller's network namespace, at any address: the
// process with its number and user, or the user alone if the process cannot be seen. There may be several.
func Find(protocol string, port uint16) string {
	sockets := map[string]string{} // the user of each, by its inode
	for _, family := range []string{"", "6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + protocol + family)
		if err == nil { // without IPv6 there is no such file
			maps.Copy(sockets, socketsIn(string(text), protocol, port))
		}
	}
	if len(sockets) == 0 {
		return fmt.Sprintf("a process that could not be found; 'ss -apn sport = :%d' on the node may name it", port)
	}
	owners := map[string]bool{}
	for inode, process := range processes(sockets) {
		owners[process+" of user "+sockets[inode]] = true
		delete(sockets, inode)
	}
	for _, user := range sockets {
		owners[fmt.Sprintf("a process of user %s that this node may not see ('ss -apn sport = :%d' as root on the node names it)", user, port)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(owners)), " and ")
}

// socketsIn returns the users of the sockets with a port, by their inodes, of a file of /proc/net.
func socketsIn(text, protocol string, port uint16) map[string]string {
	sockets := map[string]string{}
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(text) {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		fields := strings.Fields(line)
		if len(fields) < 10 || !strings.HasSuffix(fields[1], suffix) || protocol == "tcp" && fields[3] != listening {
			continue
		}
		sockets[fields[9]] = fields[7]
	}
	return sockets
}

// processes returns the processes that have sockets, in words, by the inodes of these.
func processes(sockets map[string]string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	for _, file := range files {
		target, err := os.Readlink(file)
		inode, is := strings.CutPrefix(target, "socket:[")
		inode = strings.TrimSuffix(inode, "]")
		if _, wanted := sockets[inode]; err != nil || !is || !wanted {
			continue
		}
		found[inode] = process(strings.Split(file, "/")[2])
	}
	return found
}

// process names a process by what it runs. Its arguments may have secrets.
func process(pid string) string {
	if _, err := strconv.Atoi(pid); err != nil {
		return "a process"
	}
	name, err := os.Readlink("/proc/" + pid + "/exe")
	if err != nil {
		comm, _ := os.ReadFile("/proc/" + pid + "/comm") // it may have ended
		name = strings.TrimSpace(string(comm))
	}
	return fmt.Sprintf("process %s (%s)", pid, kernel.Printable(strings.TrimSuffix(name, " (deleted)")))
}
