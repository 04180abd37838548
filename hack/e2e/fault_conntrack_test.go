package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// TestConntrack_TableIsFull: on one node the table of tracked flows is full, for a while in which objects change and the node's process is
// killed. What is tracked goes on; new flows fail, which only the kernel's administrator can change, and none leaves from a wrong address.
// When there is room again, all is as it should be.
//
// A network namespace has no limit of its own: net.netfilter.nf_conntrack_max is the machine's
// and cannot be written in another namespace than the first. But what it limits is each
// namespace's own count. So the node's table is filled up to the machine's limit, with flows
// that the kernel must not drop in favour of others.
func TestConntrack_TableIsFull(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{})
	victim := w.members[1]
	limit := w.conntrackLimit(victim.Host)
	blogger := w.podsOn(w.blog, victim)
	hit := w.apart(victim)
	hit.Stop() // its timeout is for pods that get answers
	hit.Traffic = lab.StartTraffic(lab.TrafficConfig{To: w.outside(), Rate: 100, Timeout: time.Second, Check: hit.check}, hit.pods...)
	w.round(hit)
	sum := hit.Summary()
	if sum.Unanswered > 0 {
		t.Fatalf("before the table is full: %s", sum)
	}

	began := time.Now()
	filler := newFiller(t, victim.Host, limit)
	filler.fill()
	t.Logf("the limit is the machine's, %d; full with %d flows more", limit, filler.made)
	filling := repeatedly(20*time.Millisecond, filler.fill) // also what ends
	defer filling.end()
	w.issue++
	hit.next(w.blogIPs(), blogger...)
	w.blog.next(w.blogIPs(), w.blog.pods...)
	w.must(w.publishAgain(t.Context()))
	w.atRest() // the node with the full table, too: its rules do not depend on it
	hit.settle(blogger...)
	w.blog.settle(w.blog.pods...)
	changed := since(began)
	victim.Kill()
	victim.Anew()
	time.Sleep(5 * time.Second) // the fault is its length
	if strings.Contains(victim.Printed.String(), inPlace) {
		t.Error("the node is ready although it cannot reach the API server")
	}
	filling.end()
	filler.empty()
	room := time.Now()
	victim.Ready()
	w.atRest()
	w.round(hit)
	sum = hit.Stop()
	// Nothing but the change of blog ends a connection, one in each IP family.
	if sum.Wrong > 0 || sum.Broken > 2 {
		t.Errorf("the node's pods: %s", sum)
	}
	if sum.Unanswered <= sum.Broken {
		t.Error("new flows were answered as if the table were not full")
	}
	w.must(w.strays(hit))
	w.report(fmt.Sprintf("a change was made in %s with a full table; all well %s after there was room; the node's pods", changed, since(room)), sum)
	w.calm("table full on one node")
}

// conntrackLimit returns how many flows a host can track, and skips the test if that is too many
// to have them all.
func (w *watchedWorld) conntrackLimit(host *lab.Host) int {
	w.Helper()
	const most = 1 << 20
	const file = "/proc/sys/net/netfilter/nf_conntrack_max"
	var limit int
	w.must(host.Do(func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o222 != 0 {
			w.Logf("%s is %s in a namespace: it could have a limit of its own here", file, info.Mode())
		}
		limit, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	}))
	if limit == 0 || limit > most {
		w.Skipf("the machine's limit is %d tracked flows, this test makes up to %d", limit, most)
	}
	return limit
}

// filler makes and deletes tracked flows that belong to no pod.
type filler struct {
	*testing.T
	handle  *netlink.Handle
	sockets map[int]*nl.SocketHandle
	limit   int
	made    int
}

func newFiller(t *testing.T, host *lab.Host, limit int) *filler {
	t.Helper()
	f := &filler{T: t, limit: limit}
	err := host.Do(func() (err error) {
		socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		t.Cleanup(socket.Close)
		f.sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: {Socket: socket}}
		f.handle, err = netlink.NewHandle(unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.handle.Close)
	return f
}

// fill makes flows until the kernel takes no more.
func (f *filler) fill() {
	for f.made < 2*f.limit {
		err := f.create(f.made)
		if errors.Is(err, unix.ENOMEM) {
			return
		}
		if err != nil {
			f.Errorf("flow %d: %v", f.made, err)
			return
		}
		f.made++
	}
	f.Errorf("the kernel has taken %d flows, beyond its limit of %d", f.made, f.limit)
}

// create makes the flow with a number: of UDP, answered and assured, for an hour.
func (f *filler) create(number int) error {
	const assured = 1<<1 | 1<<2 | 1<<3 // IPS_SEEN_REPLY, IPS_ASSURED, IPS_CONFIRMED
	client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{100, 64, byte(number >> 24), byte(number >> 16)}), uint16(number))
	server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{100, 65, 0, 1}), 9)
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_NEW, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	req.Sockets = f.sockets
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	req.AddData(tuple(nl.CTA_TUPLE_ORIG, client, server))
	req.AddData(tuple(nl.CTA_TUPLE_REPLY, server, client))
	req.AddData(nl.NewRtAttr(nl.CTA_TIMEOUT, nl.BEUint32Attr(3600)))
	req.AddData(nl.NewRtAttr(nl.CTA_STATUS, nl.BEUint32Attr(assured)))
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}

// tuple is one direction of a flow.
func tuple(direction int, src, dst netip.AddrPort) *nl.RtAttr {
	tuple := nl.NewRtAttr(unix.NLA_F_NESTED|direction, nil)
	addresses := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
	addresses.AddRtAttr(nl.CTA_IP_V4_SRC, src.Addr().AsSlice())
	addresses.AddRtAttr(nl.CTA_IP_V4_DST, dst.Addr().AsSlice())
	transport := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	transport.AddRtAttr(nl.CTA_PROTO_NUM, []byte{unix.IPPROTO_UDP})
	transport.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(src.Port()))
	transport.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(dst.Port()))
	return tuple
}

// empty deletes the flows.
func (f *filler) empty() {
	f.Helper()
	filter := &netlink.ConntrackFilter{}
	if err := filter.AddIP(netlink.ConntrackOrigDstIP, []byte{100, 65, 0, 1}); err != nil {
		f.Fatal(err)
	}
	if _, err := f.handle.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, filter); err != nil {
		f.Fatal(err)
	}
}

// TestConntrack_WithoutItsNetlink: on a kernel without conntrack's netlink the log says what it cannot
// do, and the node is not ready, for old flows may still use the old address.
func TestConntrack_WithoutItsNetlink(t *testing.T) {
	belongsTo(t, usual)
	// iptables-nft and steering use that netlink, too.
	w := newWatchedWorld(t, settings{backend: lab.Legacy, arguments: `egress-snat-steering: ["off"]`})
	victim := w.members[1]
	victim.Stop()
	victim.Printed.Reset()
	victim.Variables = []string{withoutConntrack + "=" + os.Getenv("OPENSHIFT")}
	self, err := os.Executable()
	w.must(err)
	t.Setenv("OPENSHIFT", self)
	victim.Start()
	w.publish()
	w.settled()
	for _, pod := range w.podsOn(w.blog, victim) {
		for i, at := range w.outside() {
			victim.Sees([]string{"tcp4", "tcp6"}[i], pod, at, netip.MustParseAddr(w.blogIPs()[i]))
		}
	}
	victim.Says("Could not write the egress SNAT rules or end flows that contradict them")
	victim.Says("the kernel does not offer its conntrack table over netlink")
	if strings.Contains(victim.Printed.String(), inPlace) {
		t.Error("the node is ready although it has not seen to the flows")
	}
	w.round(w.residents, w.blog)
	if err := w.strays(w.blog); err == nil {
		t.Error("no flow uses the old address, so the test shows nothing")
	}

	t.Setenv("OPENSHIFT", strings.TrimPrefix(victim.Variables[0], withoutConntrack+"="))
	victim.Variables = nil
	victim.Stop()
	victim.AnewReady()
	w.published()
	w.calm("no conntrack netlink on one node")
}
