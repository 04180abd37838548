package portowner

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// listening is the state of a TCP socket that listens, in /proc/net/tcp. Of UDP any state counts.
const listening = "0A"

// findAgain is how long a [Cache] does without finding again.
const findAgain = 10 * time.Second

// Find says for people who keeps others from a port at an address, of a protocol, "udp" or "tcp", in the caller's network namespace:
// the process with its number and user, or the user alone if the process cannot be seen. There may be several. An unspecified address
// cannot be had as long as anybody has the port at any. It costs as much as there are open files.
func Find(protocol string, at netip.AddrPort) string {
	sockets := map[string]string{} // the user of each, by its inode
	for _, family := range []string{"", "6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + protocol + family)
		if err == nil { // without IPv6 there is no such file
			maps.Copy(sockets, socketsIn(string(text), protocol, at))
		}
	}
	if len(sockets) == 0 {
		return fmt.Sprintf("a process that could not be found; 'ss -apn sport = :%d' on the node may name it", at.Port())
	}
	owners := map[string]bool{}
	for inode, pid := range Holders(sockets) {
		owners[process(pid)+" of user "+sockets[inode]] = true
		delete(sockets, inode)
	}
	for _, user := range sockets {
		owners[hidden(user, at.Port())] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(owners)), " and ")
}

// Cache is [Find] as it was a moment ago, for one goroutine. The zero value has found nothing.
type Cache struct {
	protocol string
	at       netip.AddrPort
	owner    string
	found    time.Time
}

// Find is the package's.
func (c *Cache) Find(protocol string, at netip.AddrPort) string {
	if c.protocol != protocol || c.at != at || time.Since(c.found) > findAgain {
		*c = Cache{protocol, at, Find(protocol, at), time.Now()}
	}
	return c.owner
}

// socketsIn returns the users of the sockets that have a port at an address or at all, by their inodes, of a file of /proc/net.
func socketsIn(text, protocol string, at netip.AddrPort) map[string]string {
	sockets := map[string]string{}
	for line := range strings.Lines(text) {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		fields := strings.Fields(line)
		if len(fields) < 10 || protocol == "tcp" && fields[3] != listening {
			continue
		}
		local, err := parse(fields[1])
		if err == nil && local.Port() == at.Port() && (local.Addr().IsUnspecified() || at.Addr().IsUnspecified() || local.Addr() == at.Addr()) {
			sockets[fields[9]] = fields[7]
		}
	}
	return sockets
}

// parse parses an address of /proc/net: words in the machine's byte order, and the port.
func parse(text string) (netip.AddrPort, error) {
	words, portText, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(words)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(bytes, 4) {
		if len(word) == 4 {
			binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
		}
	}
	addr, _ := netip.AddrFromSlice(bytes) // another length has no address, and is equal to none
	port, err := strconv.ParseUint(portText, 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), err
}

// Holders returns the numbers of the processes that have sockets, by the inodes of these, as far as they may be seen. It costs as much as there
// are open files.
func Holders[V any](sockets map[string]V) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	for _, file := range files {
		target, err := os.Readlink(file)
		inode, is := strings.CutPrefix(target, "socket:[")
		inode = strings.TrimSuffix(inode, "]")
		if _, wanted := sockets[inode]; err != nil || !is || !wanted {
			continue
		}
		found[inode] = strings.Split(file, "/")[2]
	}
	return found
}

// hidden names a process of which only the user is known. If that has few processes, it is one of these.
func hidden(user string, port uint16) string {
	const few = 3
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	var names []string
	for _, folder := range folders {
		status, err := os.ReadFile(folder + "/status") // it may have ended
		_, after, _ := strings.Cut(string(status), "\nUid:")
		line, _, _ := strings.Cut(after, "\n")
		if ids := strings.Fields(line); err == nil && len(ids) > 1 && ids[1] == user {
			names = append(names, process(filepath.Base(folder)))
		}
	}
	which := ""
	if len(names) > 0 && len(names) <= few {
		which = ", probably " + strings.Join(names, " or ")
	}
	return fmt.Sprintf("a process of user %s that this node may not see%s ('ss -apn sport = :%d' as root on the node names it)", user, which, port)
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
