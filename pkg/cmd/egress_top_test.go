package cmd

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/egress/status"
)

func someUsage() status.Usage {
	return status.Usage{Node: "node-1", Time: now, Seconds: 2, Addresses: []status.AddressUsage{
		{IP: addr("203.0.113.10"), Flows: 12, New: 3, Busiest: netip.MustParseAddrPort("198.51.100.7:443"), Protocol: "tcp", Ports: 9, PortSpace: 4096, Received: 4},
		{IP: addr("203.0.113.11"), PortSpace: 64512, Sent: 40, New: 41},
		{IP: addr("2001:db8::10"), PortSpace: 64512},
	}}
}

const topTable = `EGRESS IP      FLOWS   NEW/S   RECEIVED   SENT   PORTS            BUSIEST DESTINATION
203.0.113.11   0       20.5    0          40     0/64512 (0.0%)   <none>
203.0.113.10   12      1.5     4          0      9/4096 (0.2%)    tcp 198.51.100.7:443
2001:db8::10   0       0.0     0          0      0/64512 (0.0%)   <none>
`

// serveUsage serves what a node tells of its flows, and returns the socket.
func serveUsage(t *testing.T, usage func() (status.Usage, error)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "egress.sock")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx, status.Handler(nil, status.Resource{Path: status.UsagePath, Get: func(context.Context) (any, error) { return usage() }}), nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestTop_Batch(t *testing.T) {
	looks := 0
	socket := serveUsage(t, func() (status.Usage, error) {
		looks++
		usage := someUsage()
		usage.FastPath = &status.FastUsage{Packets: 2500}
		if looks == 1 {
			usage.Seconds, usage.FastPath = 0, nil
		}
		return usage, nil
	})
	stdout, stderr, err := openshift(t, "egress", "top", "-b", "-d", "0.5", "-n", "2", "--socket="+socket)
	if err != nil || stderr != "" {
		t.Fatalf("%v: %s", err, stderr)
	}
	first, second, _ := strings.Cut(stdout, "\n\n")
	if !strings.HasPrefix(first, "2026-11-20T12:00:00Z  node-1: 3 egress IPs, 12 flows, 40 sent to other nodes, - new/s\n") || !strings.Contains(first, "203.0.113.10   12      -       4 ") {
		t.Errorf("after one look there is no rate:\n%s", first)
	}
	const want = "2026-11-20T12:00:00Z  node-1: 3 egress IPs, 12 flows, 40 sent to other nodes, 22.0 new/s, fast path: 1250.0 packets/s\n" + topTable + "\n"
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTop_WrongArguments(t *testing.T) {
	for args, says := range map[string]string{
		"-d 0.1": "--delay", "-d fast": "--delay", "-d 2h": "--delay", "-n -1": "--count", "": "use --batch",
	} {
		_, _, err := openshift(t, append([]string{"egress", "top", "--socket=/absent"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("top %s: %v, want %s", args, err, says)
		}
	}
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "0.5": 500 * time.Millisecond, "1500ms": 1500 * time.Millisecond} {
		if got, err := parseDelay(text); got != want || err != nil {
			t.Errorf("delay %s: %s, %v; want %s", text, got, err, want)
		}
	}
}

// TestTop_Terminal: it draws on the alternate screen, again when the size changes, ends with q, and leaves the terminal as it
// was.
func TestTop_Terminal(t *testing.T) {
	master, slave := openTerminal(t, 30, 5)
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	socket := serveUsage(t, func() (status.Usage, error) { return someUsage(), nil })
	root := commandFor([]string{"openshift", "egress", "top", "-d", "3600", "--socket=" + socket})
	root.SetIn(slave)
	root.SetOut(slave)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(t.Context()) }()

	seen := readUntil(t, master, "203.0.113.10   12")
	if !strings.HasPrefix(seen, enterScreen) || strings.Contains(seen, "BUSIEST") || strings.Contains(seen, "2001:db8") {
		t.Errorf("of 30 columns and 5 lines it shows %q", seen)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: 200}); err != nil {
		t.Fatal(err)
	}
	// The kernel tells the foreground processes of a terminal, which this one is not.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if seen := readUntil(t, master, "2001:db8::10"); !strings.Contains(seen, "BUSIEST DESTINATION") || !strings.Contains(seen, "every 1h0m0s, q to quit") {
		t.Errorf("of 200 columns and 20 lines it shows %q", seen)
	}
	if _, err := master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	readUntil(t, master, leaveScreen)
	if after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("%v: the terminal is %+v, want %+v", err, after, before)
	}
}

// openTerminal returns both sides of a pseudoterminal of some size (pty(7)).
func openTerminal(t *testing.T, columns, rows uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		lab.Lacks(t, "no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// readUntil returns what a terminal is sent until some text has come. Reads of terminals have no deadline.
func readUntil(t *testing.T, terminal *os.File, text string) string {
	t.Helper()
	seen, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		var all []byte
		for buffer := make([]byte, 4096); !strings.Contains(string(all), text); {
			n, err := terminal.Read(buffer)
			if all = append(all, buffer[:n]...); err != nil {
				failed <- fmt.Errorf("after %q: %w", all, err)
				return
			}
		}
		seen <- string(all)
	}()
	select {
	case all := <-seen:
		return all
	case err := <-failed:
		t.Fatalf("want %q: %v", text, err)
	case <-time.After(30 * time.Second):
		t.Fatalf("%q does not come", text)
	}
	return ""
}

func TestFrame_FitsTheTerminal(t *testing.T) {
	lines := []string{"éabc", "def", "ghi"}
	for name, test := range map[string]struct {
		columns, rows int
		want          string
	}{
		"larger":  {80, 24, toTop + eraseLine + "éabc\r\n" + eraseLine + "def\r\n" + eraseLine + "ghi\r\n" + eraseBelow},
		"smaller": {2, 2, toTop + eraseLine + "éa\r\n" + eraseLine + "de"},
		"unknown": {0, 0, toTop + eraseLine + "éabc\r\n" + eraseLine + "def\r\n" + eraseLine + "ghi\r\n" + eraseBelow},
	} {
		if diff := cmp.Diff(test.want, frame(lines, test.columns, test.rows)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
