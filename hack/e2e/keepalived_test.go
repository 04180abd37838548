package e2e

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

type keepalivedFault struct {
	name          string
	end, mend     func(*keepalivedWorld, *member)
	silent        time.Duration // how long VRRP takes to find another node, three advertisements and a skew, and more
	cutOff, stays bool          // stays: the addresses are on the former node, too, which is not cut off
}

// keepalivedFaults are what happens to the node whose keepalived has the egress IPs.
var keepalivedFaults = []keepalivedFault{
	{"ended", func(w *keepalivedWorld, m *member) { w.daemons[m].end(syscall.SIGTERM) }, (*keepalivedWorld).keepAlive, 3 * time.Second, false, false},
	{"killed", (*keepalivedWorld).kill, (*keepalivedWorld).keepAlive, 3 * time.Second, false, true},
	{
		"its link cut", func(w *keepalivedWorld, m *member) { w.must(w.SetLink(m.Host, false)) },
		func(w *keepalivedWorld, m *member) { w.must(w.SetLink(m.Host, true)) }, 6 * time.Second, true, false,
	},
}

// TestKeepalived_PodsLeaveFromTheMaster: keepalived puts the egress IPs on a node, by VRRP. Pods on all nodes leave from there, and are
// answered; also when the addresses move, because keepalived is ended or killed, which leaves them on two nodes, or the node's link is cut;
// and when it comes back.
func TestKeepalived_PodsLeaveFromTheMaster(t *testing.T) {
	belongsTo(t, long)
	w := newKeepalivedWorld(t)
	first, second, ip := w.members[0], w.members[1], w.egressIPs[0]
	for _, fault := range keepalivedFaults {
		p, began := w.probe(ip, first), time.Now()
		fault.end(w, first)
		w.tookOver(second)
		r, gap := w.judged(p, ip, fault.name, began)
		if r.wrong > 0 || gap > fault.silent {
			w.Errorf("%s: %d under another address, want 0; a gap of %v, want at most %v", fault.name, r.wrong, gap, fault.silent)
		}
		if w.answeredAt(w.podsOff(first)); !fault.cutOff {
			w.answered()
		}
		for _, ip := range w.egressIPs {
			if fault.stays {
				w.eventually(func() error { return w.hasEvent("EgressIPOnSeveralNodes", "", ip, first.Name, second.Name) })
			}
		}
		fault.mend(w, first)
		w.tookOver(first)
		w.heldBy(first, w.egressIPs...)
		w.settled()
		w.answered()
	}
	w.clean(100)
}

// keepalivedWorld is a cluster in which keepalived puts the egress IPs on the first node that is there.
type keepalivedWorld struct {
	*poolWorld
	daemons map[*member]*neighbour
}

func newKeepalivedWorld(t *testing.T) *keepalivedWorld {
	t.Helper()
	if _, err := exec.LookPath("keepalived"); err != nil {
		lab.Lacks(t, "keepalived: %v", err)
	}
	w := &keepalivedWorld{&poolWorld{&steeredWorld{world: newIdleWorld(t, settings{onLAN: true})}}, map[*member]*neighbour{}}
	w.egressIPs = w.lanIPs(100)
	w.watchPackets()
	t.Cleanup(func() { _ = w.wire.Close() }) // it may be closed
	w.start()
	w.pods = w.shop(w.egressIPs...)
	for _, m := range w.members {
		w.keepAlive(m)
	}
	w.tookOver(w.members[0])
	w.heldBy(w.members[0], w.egressIPs...)
	w.settled()
	w.answered()
	return w
}

// keepAlive starts keepalived on a node.
func (w *keepalivedWorld) keepAlive(m *member) {
	w.Helper()
	file := m.File("keepalived.conf")
	m.Write(file, []byte(w.configuration(m)))
	w.daemons[m] = w.runNeighbour("keepalived-"+m.Name, m.Host, nil, "keepalived", "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file="+file,
		"--pid="+m.File("keepalived.pid"), "--vrrp_pid="+m.File("vrrp.pid"))
}

// configuration is that of a node. The first node has the highest priority, and the others priorities with which not two of them take over.
func (w *keepalivedWorld) configuration(m *member) string {
	var text strings.Builder
	text.WriteString("global_defs {\n  router_id " + m.Name + "\n  vrrp_garp_master_delay 1\n}\n")
	for i, ip := range addrs(w.egressIPs) {
		var peers []string
		for _, peer := range w.members {
			if peer != m {
				peers = append(peers, like(ip, peer.Host).String())
			}
		}
		fmt.Fprintf(&text, `vrrp_instance egress_%d {
  state BACKUP
  interface eth0
  virtual_router_id %d
  priority %d
  advert_int 1
  unicast_src_ip %s
  unicast_peer {
    %s
  }
  virtual_ipaddress {
    %s dev eth0%s
  }
}
`, i, 51+i, 250-100*slices.Index(w.members, m), like(ip, m.Host), strings.Join(peers, "\n    "), netip.PrefixFrom(ip, ip.BitLen()), map[bool]string{true: " preferred_lft 0"}[ip.Is6()])
	}
	return text.String()
}

// kill kills keepalived and its child, so that nobody takes the addresses away.
func (w *keepalivedWorld) kill(m *member) {
	w.Helper()
	_, err := m.Host.Run(w.Context(), "sh", "-c", fmt.Sprintf("kill -KILL $(cat %s) %d", m.File("vrrp.pid"), w.daemons[m].cmd.Process.Pid))
	w.must(err)
	<-w.daemons[m].ended
}

// tookOver waits until a node has the egress IPs.
func (w *keepalivedWorld) tookOver(m *member) {
	w.Helper()
	w.holder = m
	w.eventually(func() error {
		for _, ip := range w.egressIPs {
			if !w.has(m, ip) {
				return fmt.Errorf("%s has not %s", m.Name, ip)
			}
		}
		return nil
	})
}
