package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// forge has another host send packets under the far side's address to the ports of connections outside, with numbers of
// chance, until the test ends. It returns when the first ones are on their way.
func (c *clashing) forge(connections ...connection) {
	c.Helper()
	n := c.forger()
	ctx, end := context.WithCancel(c.Context())
	ended, rounds := make(chan struct{}), atomic.Int64{}
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; rounds.Add(1) {
			for _, forged := range connections {
				_ = n.forge(addrPort(forged.far.LocalAddr()), addrPort(forged.far.RemoteAddr())) // a full queue drops some
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	c.Cleanup(func() {
		end()
		<-ended
		c.Logf("%d packets were forged for each connection", rounds.Load())
	})
	c.eventually("packets are forged", func() bool { return rounds.Load() > 3 })
}

// forger returns what has another host send packets under any address.
func (c *clashing) forger() (n *nudger) {
	c.Helper()
	host, option := c.Control(), map[bool]string{true: "-4", false: "-6"}[c.egressIP.Is4()]
	c.run(host, "ip", option, "route", "replace", c.egressIP.String(), "via", c.address(c.Node()).String())
	if err := host.Do(func() (err error) { n, err = openNudger(c.family); return err }); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(n.close)
	return n
}

func addrPort(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// forge sends a packet in the middle of a connection, with numbers of chance.
func (n *nudger) forge(from, to netip.AddrPort) error {
	packet := nudgeFrom(from, to)
	header := packet[len(packet)-lengthTCP:]
	binary.BigEndian.PutUint32(header[4:], rand.Uint32())
	binary.BigEndian.PutUint32(header[8:], rand.Uint32())
	header[13] = flagACK
	binary.BigEndian.PutUint16(header[checksumAt:], 0)
	pseudo := slices.Concat(from.Addr().AsSlice(), to.Addr().AsSlice(), []byte{0, 0, 0, unix.IPPROTO_TCP, 0, 0, 0, lengthTCP})
	binary.BigEndian.PutUint16(header[checksumAt:], checksum(append(pseudo, header...)))
	var address unix.Sockaddr = &unix.SockaddrInet6{Addr: to.Addr().As16()}
	if to.Addr().Is4() {
		address = &unix.SockaddrInet4{Addr: to.Addr().As4()}
	}
	return unix.Sendto(n.fd, packet, 0, address)
}

func (c *clashing) eventually(what string, holds func() bool) {
	c.Helper()
	for began := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > soon {
			c.Fatalf("it does not happen that %s", what)
		}
	}
}

// isPickedUp has a pod's node nudge the pod, as it does when the address has come here, and waits until the forger has been heard as the
// far side, whose first packet says for the kernel where it is.
func (c *clashing) isPickedUp(both connection) {
	c.Helper()
	near, far := addrPort(both.near.LocalAddr()), addrPort(both.near.RemoteAddr())
	asks := tuple{protocol: tcp, source: near, destination: far}
	c.eventually(fmt.Sprintf("the connection from %s is picked up, and its far side forged", near), func() bool {
		err := c.Node().Do(func() error {
			n, err := openNudger(c.family)
			if err != nil {
				return err
			}
			defer n.close()
			return n.nudge(asks) // a pod that has answered a forged packet in this half second answers the next one
		})
		if err != nil {
			c.Fatal(err)
		}
		entries := c.run(c.Node(), "conntrack", "-L", "-f", strings.ToLower(string(c.family)), "-p", "tcp", "--orig-src", near.Addr().String(), "--orig-port-src", fmt.Sprint(near.Port()))
		return strings.Contains(entries, "sport=") && !strings.Contains(entries, "UNREPLIED")
	})
}

// TestAttack_ForgedPacketsAfterAFailover: a host that can send under the far side's address, and knows the ports, has none of the
// connections end that go on after a failover, while those of two pods with one port end as ever.
func TestAttack_ForgedPacketsAfterAFailover(t *testing.T) {
	onHolder(t, func(c *clashing) {
		kept, _ := c.connectFrom(1, 40000)
		moved, _ := c.connectFrom(2, 40000)
		var sound []connection
		for i := range 4 {
			both, _ := c.connectFrom(1+i%2, 40001+i)
			sound = append(sound, both)
		}
		up, _ := c.connectFrom(2, 40010)
		received := make(chan error, 1)
		go pour(up.near)
		go func() { received <- drink(up.far) }()
		c.forge(append(sound, up, kept)...)
		c.forgets()
		for _, both := range sound {
			c.isPickedUp(both)
		}
		for range 3 {
			c.ends(c.egressIP, 0)
		}
		for i, both := range sound {
			c.carries(fmt.Sprintf("pod of connection %d", i), both.near, both.far)
			c.carries(fmt.Sprintf("far side of connection %d", i), both.far, both.near)
		}
		c.write("the pod that had another port", moved.near)
		c.ends(c.egressIP, 1)
		c.isReset("the pod that had another port", moved.near)
		_ = up.near.Close()
		select {
		case err := <-received:
			if err != nil {
				t.Errorf("the upload has ended: %v", err)
			}
		case <-time.After(soon):
			t.Error("the upload hangs")
		}
		for i, both := range sound {
			c.carries(fmt.Sprintf("pod of connection %d, at the end", i), both.near, both.far)
		}
	})
}

// TestAttack_MorePacketsThanAreNoted: what is noted of them takes no more memory than there is for it, and nothing is concluded.
func TestAttack_MorePacketsThanAreNoted(t *testing.T) {
	onHolder(t, func(c *clashing) {
		both, _ := c.connectFrom(1, 40000)
		near, far := addrPort(both.near.LocalAddr()), addrPort(both.far.LocalAddr())
		asks := tuple{protocol: tcp, source: near, destination: far}
		answers := tuple{protocol: tcp, source: far, destination: addrPort(both.far.RemoteAddr())}
		n := c.forger()
		err := c.Node().Do(func() error {
			k, err := open(c.family)
			if err != nil {
				return err
			}
			defer k.close()
			l, err := k.listen(pairs{asks: answers}, allPackets)
			if err != nil {
				return err
			}
			began, heard := time.Now(), hearing{}
			for heard != nil && err == nil {
				for range 10_000 {
					_ = n.forge(far, answers.destination) // a full queue drops some
				}
				if heard, err = l.heard(); len(heard[answers]) > mostNotes || time.Since(began) > lab.Stretch(time.Minute) {
					err = errors.Join(err, fmt.Errorf("%d packets of the far side are noted after %v", len(heard[answers]), time.Since(began)))
				}
			}
			return errors.Join(err, l.end())
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestConclude_SeveralHearings: near and far are what was heard of each side, in one hearing after the other.
func TestConclude_SeveralHearings(t *testing.T) {
	type heard = [][]segment
	sound, elsewhere := segment{9, 5}, segment{9 + 1<<30, 5 + 1<<29}
	for name, test := range map[string]struct {
		near, far heard
		want      finding
	}{
		"both sides repeat themselves":              {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {elsewhere}}, twoConnections},
		"a stranger was first":                      {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {sound}}, oneConnection},
		"a stranger repeats himself":                {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {elsewhere, sound}}, oneConnection},
		"strangers alone, with numbers of chance":   {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {{1 << 28, 1 << 27}}}, undecided},
		"a far side that was heard once":            {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, nil}, undecided},
		"twice in one hearing":                      {heard{{{5, 9}}, {{5, 9}}}, heard{nil, {elsewhere, elsewhere}}, undecided},
		"a near side that was heard once":           {heard{{{5, 9}}, nil}, heard{{elsewhere}, {elsewhere}}, undecided},
		"the far side takes bytes":                  {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {{elsewhere.sends, elsewhere.expects + 1<<20}}}, undecided},
		"the far side sends what nobody takes":      {heard{{{5, 9}}, {{5, 9}}}, heard{{elsewhere}, {{elsewhere.sends + 1<<20, elsewhere.expects}}}, twoConnections},
		"two strangers, and the clash all the same": {heard{{{5, 9}}, {{5, 9}}, {{5, 9}}}, heard{{{7, 1 << 27}}, {elsewhere, {3, 1 << 28}}, {elsewhere}}, twoConnections},
		"nothing": {nil, nil, undecided},
	} {
		if got := conclude(test.near, test.far); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
