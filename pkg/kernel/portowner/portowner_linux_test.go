package portowner

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

func TestFind_NamesProcess(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	tcp, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	defer func() { _ = tcp.Close() }()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wildcard, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = wildcard.Close() }()
	want := fmt.Sprintf("process %d (%s) of user %d", os.Getpid(), program, os.Getuid())
	if got := Find("udp", udp.LocalAddr().(*net.UDPAddr).AddrPort()); got != want {
		t.Errorf("UDP: got %q, want %q", got, want)
	}
	if got := Find("tcp", tcp.Addr().(*net.TCPAddr).AddrPort()); got != want {
		t.Errorf("TCP: got %q, want %q", got, want)
	}
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), udp.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	if got := Find("udp", at); got != want {
		t.Errorf("some address: got %q, want %q", got, want)
	}
	at = netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), wildcard.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	if got := Find("udp", at); got != want {
		t.Errorf("all addresses: got %q, want %q", got, want)
	}
}

func TestFind_NobodyHasThePort(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if got := Find("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)); !strings.Contains(got, "could not be found") {
		t.Errorf("got %q, although another address has the port", got)
	}
}

// TestFind_ProcessOfAnotherUser: what may not be seen is named by its user. The test runs itself as another user, which looks for
// a port of root.
func TestFind_ProcessOfAnotherUser(t *testing.T) {
	const variable = "PORTOWNER_TEST_PORT"
	if text := os.Getenv(variable); text != "" {
		if got := Find("udp", netip.MustParseAddrPort(text)); !strings.HasPrefix(got, "a process of user 0 that this node may not see") {
			t.Errorf("got %q", got)
		}
		return
	}
	if got := hidden("4242424", 1); strings.Contains(got, "probably") {
		t.Errorf("a user without processes: %q", got)
	}
	if os.Getuid() != 0 {
		lab.Lacks(t, "needs root, to have a port that another user looks for")
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	command := exec.Command("/proc/self/exe", "-test.run=^TestFind_ProcessOfAnotherUser$", "-test.timeout="+time.Minute.String())
	command.Dir = "/"
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%s", variable, conn.LocalAddr()))
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const lonely = 424242
	sleeping := exec.Command("sleep", "60")
	sleeping.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: lonely, Gid: lonely}}
	if err := sleeping.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sleeping.Process.Kill(), sleeping.Wait() }()
	if got, want := hidden(strconv.Itoa(lonely), 1), fmt.Sprintf("probably process %d (", sleeping.Process.Pid); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
