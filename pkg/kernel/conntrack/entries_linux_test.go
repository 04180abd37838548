package conntrack

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// entry is a conntrack entry to create.
type entry struct {
	Flow
	// dialled is whom the source asked, if DNAT made another of it.
	dialled netip.AddrPort
	// sourcePort is of the source, and what it is seen as has the same; for ICMP the id.
	sourcePort uint16
	mark       uint32
	// halfZone has the zone only be that of the flow as the source asks.
	halfZone bool
	// unanswered: the far side has sent nothing.
	unanswered bool
	// state is that of a TCP connection; 0 is the kernel's for a new one.
	state uint8
}

// creator creates entries in the namespace of a host. The tool conntrack can create none
// of ICMP, of other zones by family, nor many.
type creator struct {
	sockets map[int]*nl.SocketHandle
}

func newCreator(t testing.TB, h *lab.Host) *creator {
	t.Helper()
	c := &creator{sockets: map[int]*nl.SocketHandle{}}
	err := h.Do(func() error {
		socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_NETFILTER)
		if err == nil {
			c.sockets[unix.NETLINK_NETFILTER] = &nl.SocketHandle{Socket: socket}
			t.Cleanup(socket.Close)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *creator) create(e entry) error {
	family, dialled := unix.AF_INET, e.dialled
	if e.Source.Is6() {
		family = unix.AF_INET6
	}
	if !dialled.IsValid() {
		dialled = e.Destination
	}
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_NEW, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	req.Sockets = c.sockets
	req.AddData(&nl.Nfgenmsg{NfgenFamily: uint8(family), Version: nl.NFNETLINK_V0})
	req.AddData(e.tuple(nl.CTA_TUPLE_ORIG, netip.AddrPortFrom(e.Source, e.sourcePort), dialled))
	req.AddData(e.tuple(nl.CTA_TUPLE_REPLY, e.Destination, netip.AddrPortFrom(e.SeenAs, e.sourcePort)))
	req.AddData(nl.NewRtAttr(nl.CTA_TIMEOUT, nl.BEUint32Attr(3600)))
	if !e.unanswered {
		const confirmed = 1 << 3 // IPS_CONFIRMED, as all entries of the table are
		req.AddData(nl.NewRtAttr(attrStatus, nl.BEUint32Attr(statusReplied|confirmed)))
	}
	if e.state > 0 {
		about := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_PROTOINFO, nil)
		about.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_PROTOINFO_TCP, nil).AddRtAttr(nl.CTA_PROTOINFO_TCP_STATE, []byte{e.state})
		req.AddData(about)
	}
	req.AddData(nl.NewRtAttr(nl.CTA_MARK, nl.BEUint32Attr(e.mark)))
	if !e.halfZone {
		req.AddData(nl.NewRtAttr(nl.CTA_ZONE, nl.BEUint16Attr(e.Zone)))
	}
	if _, err := req.Execute(unix.NETLINK_NETFILTER, 0); err != nil {
		return fmt.Errorf("create %+v: %w", e, err)
	}
	return nil
}

// tuple is one direction of the entry.
func (e entry) tuple(direction int, src, dst netip.AddrPort) *nl.RtAttr {
	tuple := nl.NewRtAttr(unix.NLA_F_NESTED|direction, nil)
	addresses := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
	source, destination := nl.CTA_IP_V4_SRC, nl.CTA_IP_V4_DST
	if src.Addr().Is6() {
		source, destination = nl.CTA_IP_V6_SRC, nl.CTA_IP_V6_DST
	}
	addresses.AddRtAttr(source, src.Addr().AsSlice())
	addresses.AddRtAttr(destination, dst.Addr().AsSlice())
	transport := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	transport.AddRtAttr(nl.CTA_PROTO_NUM, []byte{e.Protocol})
	reply := direction == nl.CTA_TUPLE_REPLY
	if e.halfZone && !reply {
		tuple.AddRtAttr(tupleZone, nl.BEUint16Attr(e.Zone))
	}
	switch e.Protocol {
	case tcp, udp, sctp:
		transport.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(src.Port()))
		transport.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(dst.Port()))
	case icmp:
		e.echo(transport, 4, map[bool]uint8{false: 8, true: 0}[reply])
	case icmpv6:
		e.echo(transport, 7, map[bool]uint8{false: 128, true: 129}[reply])
	}
	return tuple
}

// echo adds id, type and code of an ICMP echo; their attributes follow each other from
// first on, CTA_PROTO_ICMP_ID or CTA_PROTO_ICMPV6_ID.
func (e entry) echo(transport *nl.RtAttr, first int, kind uint8) {
	transport.AddRtAttr(first, binary.BigEndian.AppendUint16(nil, e.sourcePort))
	transport.AddRtAttr(first+1, []byte{kind})
	transport.AddRtAttr(first+2, []byte{0})
}
