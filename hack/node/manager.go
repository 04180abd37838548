package node

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Manager is a service manager's end of sd_notify(3).
type Manager struct {
	mu   sync.Mutex
	told []Told
}

// Told is an assignment that a process has told, and when it came.
type Told struct {
	Text string
	At   time.Time
}

func (t Told) String() string { return strconv.Quote(t.Text) }

// Manage lets the processes that start from now on notify a service manager, until the test ends.
func (n *Node) Manage() *Manager {
	n.t.Helper()
	path := n.File("notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	n.Variables = append(n.Variables, "NOTIFY_SOCKET="+path)
	m := &Manager{}
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			length, err := conn.Read(buffer)
			if err != nil {
				return
			}
			m.mu.Lock()
			for text := range strings.SplitSeq(string(buffer[:length]), "\n") {
				m.told = append(m.told, Told{text, time.Now()})
			}
			m.mu.Unlock()
		}
	}()
	return m
}

// All is what the manager was told that contains a text, in order.
func (m *Manager) All(text string) []Told {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.told), func(t Told) bool { return !strings.Contains(t.Text, text) })
}

// Told returns an error unless the manager was told a text.
func (m *Manager) Told(text string) error {
	if len(m.All(text)) == 0 {
		return fmt.Errorf("the service manager was not told %q, but %v", text, m.All(""))
	}
	return nil
}
