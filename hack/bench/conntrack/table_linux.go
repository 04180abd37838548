package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

const flowsPerPod = 100

var (
	// before is the source address of all flows, after that which flows of changed pods should have.
	before = netip.MustParseAddr("203.0.113.1")
	after  = netip.MustParseAddr("203.0.113.2")
)

// table is the conntrack table of a node, with the flows of so many pods.
type table struct {
	lab    *lab.Lab
	socket int
	pods   int
}

func newTable(ctx context.Context, pods int) (t *table, err error) {
	t = &table{pods: pods, socket: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.lab, err = lab.New(ctx, lab.Config{}); err != nil {
		return t, err
	}
	err = t.lab.Node().Do(func() error {
		t.socket, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		return t, fmt.Errorf("open netlink: %w", err)
	}
	return t, t.refill(0, pods)
}

func (t *table) close() error {
	var errs []error
	if t.socket >= 0 {
		errs = append(errs, unix.Close(t.socket))
	}
	if t.lab != nil {
		errs = append(errs, t.lab.Close())
	}
	return errors.Join(errs...)
}

// refill adds the missing flows of some pods, and checks that the table is full then.
func (t *table) refill(from, to int) error {
	for pod := from; pod < to; pod++ {
		var messages []byte
		for i := range flowsPerPod {
			messages = append(messages, entry(pod, i)...)
		}
		if err := unix.Sendto(t.socket, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("fill conntrack: %w", err)
		}
	}
	have, err := tables.Flows(t.lab.Node())
	if want := t.pods * flowsPerPod; err == nil && have != want {
		err = fmt.Errorf("conntrack has %d flows, want %d", have, want)
	}
	return err
}

// dumped returns how many flows the kernel dumps.
func dumped() (flows int, err error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, fmt.Errorf("open netlink: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	if err := unix.Sendto(socket, request.Serialize(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("dump conntrack: %w", err)
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(socket, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return flows, fmt.Errorf("dump conntrack: %w", err)
		}
		for at := 0; at < n; at += int(binary.NativeEndian.Uint32(buffer[at:])) {
			switch binary.NativeEndian.Uint16(buffer[at+4:]) {
			case unix.NLMSG_DONE:
				return flows, nil
			case unix.NLMSG_ERROR:
				return flows, errors.New("dump conntrack: the kernel returned an error")
			}
			flows++
		}
	}
}

func podAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)}) }

// entry is the message that creates a flow of a pod, to a destination that no other pod has.
func entry(pod, i int) []byte {
	port := uint16(2000 + i)
	far := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(pod >> 8), byte(pod)}), 443)
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_NEW, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	request.AddData(tuple(nl.CTA_TUPLE_ORIG, netip.AddrPortFrom(podAddr(pod), port), far))
	request.AddData(tuple(nl.CTA_TUPLE_REPLY, far, netip.AddrPortFrom(before, port)))
	request.AddData(nl.NewRtAttr(nl.CTA_TIMEOUT, nl.BEUint32Attr(3600)))
	return request.Serialize()
}

// tuple is one direction of a flow.
func tuple(direction int, src, dst netip.AddrPort) *nl.RtAttr {
	t := nl.NewRtAttr(unix.NLA_F_NESTED|direction, nil)
	addresses := t.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
	addresses.AddRtAttr(nl.CTA_IP_V4_SRC, src.Addr().AsSlice())
	addresses.AddRtAttr(nl.CTA_IP_V4_DST, dst.Addr().AsSlice())
	transport := t.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	transport.AddRtAttr(nl.CTA_PROTO_NUM, []byte{unix.IPPROTO_TCP})
	transport.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(src.Port()))
	transport.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(dst.Port()))
	return t
}

// planOf binds the first pods, which have moved, to after, and all others to before.
func (t *table) planOf(moved int) kernel.Desired {
	p := kernel.Desired{Networks: kernel.Networks{
		ClusterCIDRs: []netip.Prefix{lab.ClusterV4},
		Exclusions:   []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/4")},
	}}
	for i := range t.pods {
		b := kernel.Binding{Pod: podAddr(i), Protocol: kernel.TCP, EgressIP: before}
		if i < moved {
			b.EgressIP = after
		}
		p.Bindings = append(p.Bindings, b)
	}
	return p
}
