package e2e

import (
	"encoding/json"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestAttack_PoolWithoutAKey: a process in a node's own network, of a pod without any right for example, that speaks the pool's
// protocol in the name of each node, by datagrams and connections, moves no address, and the nodes find each other alive. The same
// with a host outside.
func TestAttack_PoolWithoutAKey(t *testing.T) {
	inBothOuterFamilies(t, poolWithoutAKey)
}

// inBothOuterFamilies does something in a cluster whose nodes speak by IPv4, and, from default on, in one whose nodes speak by IPv6.
func inBothOuterFamilies(t *testing.T, do func(w *poolWorld)) {
	t.Run("IPv4", func(t *testing.T) { do(newIdlePoolWorld(t, 3)) })
	t.Run("IPv6", func(t *testing.T) {
		belongsTo(t, usual)
		do(newIdlePoolWorldOf(t, settings{nodes: 3, families: families[1:]}))
	})
}

func poolWithoutAKey(w *poolWorld) {
	w.begin()
	w.complete()
	for _, attacker := range []*lab.Host{w.members[2].Host, w.Outside()} {
		w.scenario(attacker.Name, func() {
			holders := map[string]*member{}
			for _, ip := range w.egressIPs {
				holders[ip] = w.holderOf(ip, nil)
			}
			w.unmoved("attacked", func() {
				w.must(attacker.Do(func() error {
					for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
						for _, to := range w.members {
							if err := w.speakWithoutKey(outer(to.Host)); err != nil {
								return err
							}
						}
					}
					return nil
				}))
				w.complete() // a machine that is busy may find a node dead for a moment
			})
			for _, ip := range w.egressIPs {
				if now := w.holderOf(ip, nil); now != holders[ip] {
					w.Errorf("%s has moved from %s to %s", ip, holders[ip].Name, now.Name)
				}
			}
		})
	}
	w.drain(w.members[0], true) // which higher epochs would keep from ending
	for _, ip := range w.egressIPs {
		w.holderOf(ip, w.members[0])
	}
}

// TestAttack_PoolPortIsTaken by a process that was there before the node: people are told, the others are a pool without that node, and it
// joins them when the port is free.
func TestAttack_PoolPortIsTaken(t *testing.T) {
	inBothOuterFamilies(t, poolPortIsTaken)
}

func poolPortIsTaken(w *poolWorld) {
	squatted := w.members[0]
	var squatter net.PacketConn
	w.must(squatted.Host.Do(func() (err error) {
		squatter, err = net.ListenPacket("udp", netip.AddrPortFrom(outer(squatted.Host), poolPort).String())
		return err
	}))
	defer func() { _ = squatter.Close() }()
	w.begin()
	w.eventTold("EgressPoolAbsent", "address already in use, by process")
	w.printsPool(squatted, "warning: listen for the other nodes of the pool: ")
	w.sees(w.members[1], 2)
	for _, ip := range w.egressIPs {
		if holder := w.holderOf(ip, nil); holder == squatted {
			w.Errorf("%s has taken %s although it hears no other node", holder.Name, ip)
		}
	}
	w.must(squatter.Close())
	w.complete()
}

// speakWithoutKey tells a node in the name of each one that this has all addresses, with epochs that end in the highest ones, and that it is dead.
func (w *poolWorld) speakWithoutKey(to netip.Addr) error {
	held := map[string]uint64{}
	for _, ip := range w.egressIPs {
		held[ip] = 1<<62 - 1
	}
	at := netip.AddrPortFrom(to, poolPort).String()
	udp, err := net.Dial("udp", at)
	if err != nil {
		return err
	}
	defer func() { _ = udp.Close() }()
	for _, m := range w.members {
		state, err := json.Marshal(map[string]any{"name": m.Name, "run": 1, "version": time.Now().UnixNano() >> 10, "networks": []any{map[string]any{"prefix": "192.0.2.0/24", "up": true}, map[string]any{"prefix": "2001:db8:0:2::/64", "up": true}}, "held": held})
		if err != nil {
			return err
		}
		dead := append([]byte{5, 0x83, 0xab}, "Incarnation\xce\xff\xff\xff\xff\xa4Node"...) // memberlist's message that a node is dead
		dead = append(append(dead, 0xa0|byte(len(m.Name))), m.Name...)
		dead = append(append(append(dead, "\xa4From"...), 0xa0|byte(len(m.Name))), m.Name...)
		for _, packet := range [][]byte{append([]byte{8}, state...), dead, {}, {0}, {244, 1}} {
			_, _ = udp.Write(packet) // a node may refuse it
		}
		if tcp, err := net.DialTimeout("tcp", at, 50*time.Millisecond); err == nil {
			message := append([]byte{8, 0x81, 0xaa}, "UserMsgLen\xcd"...) // memberlist's, of a program's own, with its length in two bytes
			message = append(append(message, byte(len(state)>>8), byte(len(state))), state...)
			_, _ = tcp.Write(message)
			_ = tcp.Close()
		}
	}
	return nil
}
