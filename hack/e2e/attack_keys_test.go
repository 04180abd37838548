package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// announceAs, in the environment of this program, has it be a liar, as JSON.
const announceAs = "E2E_ANNOUNCE_AS"

// liar is a process that speaks for a node by direct announcements. The protocol is that of pkg/egress/holders.
type liar struct {
	// Bind is where it speaks from, To are those that it speaks to.
	Bind netip.AddrPort
	To   []netip.AddrPort
	// Nodes are in whose name it says that it has the addresses, in so many parts. Of more than one part each has other addresses.
	Nodes     []string
	Addresses []netip.Addr
	Parts     int
	// Key signs; without one nothing is signed.
	Key []byte
}

// becomeALiar has this process be one until standard input ends.
func becomeALiar(text string) error {
	var l liar
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return err
	}
	return l.run()
}

// run announces until standard input ends, and answers whoever asks.
func (l liar) run() error {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.Bind))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, "bound"); err != nil {
		return err
	}
	go func() {
		for buffer := make([]byte, 2000); ; {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			const kind, nonce = 5, 30
			if n > nonce+8 && buffer[kind] == 1 {
				l.say(conn, from, binary.BigEndian.Uint64(buffer[nonce:]))
			}
		}
	}()
	go func() {
		for ; ; time.Sleep(100 * time.Millisecond) {
			for _, to := range l.To {
				l.say(conn, to, 0)
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, conn.Close())
}

func (l liar) say(conn *net.UDPConn, to netip.AddrPort, nonce uint64) {
	for _, node := range l.Nodes {
		for part := range l.Parts {
			_, _ = conn.WriteToUDPAddrPort(l.statement(node, nonce, part), to) // what is lost is said again
		}
	}
}

// statement returns a part of one.
func (l liar) statement(node string, nonce uint64, part int) []byte {
	signed := byte(0)
	if l.Key != nil {
		signed = 1
	}
	b := []byte{'O', 'E', 'A', 1, signed, 3}
	for _, n := range []uint64{4242, uint64(time.Now().UnixNano()), 1 << 30, nonce} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(part)), uint16(l.Parts))
	b = append(append(b, byte(len(node))), node...)
	addresses, epoch := l.Addresses, uint64(1<<30)
	if l.Parts > 1 {
		addresses, epoch = nil, 1 // a larger one would not fit
		for i := range 150 {
			addresses = append(addresses, netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 11<<24+uint32(part*150+i)))))
		}
	}
	for _, ip := range addresses {
		family := byte(6)
		if ip.Is4() {
			family = 4
		}
		b = binary.AppendUvarint(append(append(b, family), ip.AsSlice()...), epoch)
	}
	if l.Key != nil {
		mac := hmac.New(sha256.New, l.Key)
		mac.Write(b)
		b = mac.Sum(b)
	}
	return b
}

// lies starts a liar in a node's own network, as a process of an ordinary user without any capability, until the returned function
// is called.
func (w *world) lies(host *lab.Host, l liar) (end func(), pid int) {
	w.Helper()
	text, err := json.Marshal(l)
	w.must(err)
	const nobody = 65534
	command := exec.Command("/proc/self/exe")
	command.Dir, command.Env = "/", []string{announceAs + "=" + string(text)}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	in, err := command.StdinPipe()
	w.must(err)
	out, err := command.StdoutPipe()
	w.must(err)
	command.Stderr = os.Stderr
	w.must(host.Do(command.Start))
	end = sync.OnceFunc(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	w.Cleanup(end)
	if said, err := io.ReadAll(io.LimitReader(out, 6)); string(said) != "bound\n" {
		w.Fatalf("the liar says %q, %v", said, err)
	}
	return end, command.Process.Pid
}

// counted is a node's counter of direct announcements with a result.
func (w *world) counted(m *member, result string) float64 {
	w.Helper()
	return w.metric(m, fmt.Sprintf(`egress_snat_announcements_total{result=%q}`, result))
}

// sharedKey is the one that nodes announce with; nil if they share none.
func (w *world) sharedKey() []byte {
	w.Helper()
	list, err := w.secrets()
	w.must(err)
	for _, secret := range list {
		if text := string(secret.Data["keys"]); strings.TrimSpace(text) != "" {
			keys, err := holders.ParseKeys(text)
			w.must(err)
			return keys.For("announcements")[0]
		}
	}
	return nil
}

// TestAttack_BoundPortWhileNodeIsAway: a hostNetwork process without any right that has bound the port of announcements, at the address of
// a node whose process is away, is not believed: neither as that node nor as another one. The node names it when it is back, and has
// the port as soon as it is free.
func TestAttack_BoundPortWhileNodeIsAway(t *testing.T) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			if family == v1.IPv6Protocol {
				belongsTo(t, usual)
			}
			w := newSteeredWorld(t, settings{families: []v1.IPFamily{family}}, nil)
			victim, away := w.members[1], w.members[2]
			away.Kill()
			before := w.counted(victim, "unauthenticated")
			end, pid := w.lies(away.Host, liar{
				Bind: netip.AddrPortFrom(outer(away.Host), lab.AnnouncePort), To: []netip.AddrPort{netip.AddrPortFrom(outer(victim.Host), lab.AnnouncePort)},
				Nodes: []string{away.Name, w.holder.Name}, Addresses: addrs(w.egressIPs), Parts: 1,
			})
			w.eventually(func() error {
				if now := w.counted(victim, "unauthenticated"); now < before+20 {
					return fmt.Errorf("%s has counted %v of what the liar says", victim.Name, now-before)
				}
				return nil
			})
			w.knownBy("both", victim)
			w.only(w.holder.Host, w.sends(w.answered))

			away.AnewReady()
			owner := fmt.Sprintf("process %d ", pid)
			away.saysInOneLine(w.world, strings.NewReplacer(), owner, "of user 65534", "egress-snat-announce-port")
			w.eventually(func() error { return w.hasEvent("EgressIPsNotAnnounced", "Node/"+away.Name, owner) })
			w.eventually(func() error { return w.verifies(away, owner) })
			w.eventually(func() error { return w.faulty(away, "announcements", 1) })
			end()
			w.eventually(func() error { return w.faulty(away, "announcements", 0) })
			w.move(away)
			w.knownBy("both")
			w.clean(1)
		})
	}
}

// TestAttack_EndlessStatement: a node that has the key, and says that it has ten million addresses, in as many parts as can be numbered,
// costs the others neither memory nor time; and neither does one that says no more than it may. What is kept of that is counted in
// TestAttack_UnclaimedAddressesAreBounded of pkg/egress/holders.
func TestAttack_EndlessStatement(t *testing.T) {
	w := newSteeredWorld(t, settings{families: families[:1]}, nil)
	victim, traitor := w.members[1], w.members[2]
	traitor.Kill()
	l := liar{
		Bind: netip.AddrPortFrom(outer(traitor.Host), lab.AnnouncePort), To: []netip.AddrPort{netip.AddrPortFrom(outer(victim.Host), lab.AnnouncePort)},
		Nodes: []string{traitor.Name}, Key: w.sharedKey(),
	}
	before := w.peakMemory(victim)
	for _, test := range []struct {
		parts  int
		result string
		least  float64
	}{{1<<16 - 1, "unreadable", 20000}, {64, "accepted", 200}} {
		l.Parts = test.parts
		counted := w.counted(victim, test.result)
		end, _ := w.lies(traitor.Host, l)
		w.eventually(func() error {
			if now := w.counted(victim, test.result); now < counted+test.least {
				return fmt.Errorf("%s has counted %v of what the traitor says as %s", victim.Name, now-counted, test.result)
			}
			return nil
		})
		w.knownBy("both", victim)
		end()
		grown := w.peakMemory(victim) - before
		if t.Logf("%d parts: %s has grown by %d MiB at most", test.parts, victim.Name, grown>>20); grown > mostGrown {
			t.Errorf("want %d MiB at most", mostGrown>>20)
		}
	}
	began := time.Now()
	w.move(victim)
	w.knownBy("both", w.members[0])
	t.Logf("a move is known after %s", since(began))
	w.clean(0)
}

// mostGrown is by how much a node's process may grow, in bytes, because of what another node says. Garbage is of it: the process may have
// twice as much as it uses.
const mostGrown = 64 << 20

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most that a node's process has had in memory, in bytes.
func (w *world) peakMemory(m *member) int {
	w.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID()))
	w.must(err)
	found := peakMemory.FindSubmatch(text)
	if found == nil {
		w.Fatalf("no memory in %s", text)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	w.must(err)
	return kilobytes << 10
}
