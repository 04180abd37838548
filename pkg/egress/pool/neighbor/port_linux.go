package neighbor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// questions is how often an address is asked for, and patience how long an answer may take.
	questions = 2
	patience  = 40 * time.Millisecond
	// late is for reading what has arrived meanwhile, if this process did not get to it in time.
	late = 2 * time.Millisecond
)

// Advertise tells the hosts on an interface's segment that these addresses are here. The socket is opened on the
// caller's thread: what counts is the network namespace of that.
func Advertise(link *net.Interface, addresses []netip.Addr) error {
	var errs []error
	for _, f := range families {
		errs = append(errs, f.advertise(link, f.of(addresses)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("advertise addresses on %s: %w", link.Name, err)
	}
	return nil
}

// repeats are how long after one advertisement the next one comes: what is told may be lost.
var repeats = []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}

// AdvertiseHere is Advertise for addresses on any interfaces, on each the ones that it has, four times within two seconds. Those that are on no
// interface, or on one without a segment, are left out. It returns early when ctx ends.
func AdvertiseHere(ctx context.Context, addresses []netip.Addr) (err error) {
	for _, after := range repeats {
		if !wake.Sleep(ctx.Done(), after) {
			return err
		}
		err = advertiseHere(addresses)
	}
	return err
}

func advertiseHere(addresses []netip.Addr) error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("advertise addresses: %w", err)
	}
	var errs []error
	for _, link := range links {
		const segment = net.FlagUp | net.FlagBroadcast
		if link.Flags&(segment|net.FlagLoopback) != segment {
			continue
		}
		all, err := link.Addrs()
		if err != nil {
			errs = append(errs, fmt.Errorf("advertise addresses on %s: %w", link.Name, err))
			continue
		}
		var here []netip.Addr
		for _, has := range all {
			prefix, err := netip.ParsePrefix(has.String())
			if err == nil && slices.Contains(addresses, prefix.Addr()) {
				here = append(here, prefix.Addr())
			}
		}
		if len(here) > 0 {
			errs = append(errs, Advertise(&link, here))
		}
	}
	return errors.Join(errs...)
}

// Ask returns which of these addresses another host on an interface's segment has, with the MACs of those hosts. Own are the
// MACs of this host's other interfaces, which may be on the segment, too: their answers do not count.
// It takes 80 ms, unless all are answered for before that. answered is told of each answer at once, by several goroutines, unless
// it is nil. The sockets are opened on the caller's thread. Unasked are addresses that could not be asked for, so that it says nothing that
// nobody has answered; err is why, and nil if there are none.
func Ask(ctx context.Context, link *net.Interface, addresses []netip.Addr, own []net.HardwareAddr, answered func(netip.Addr)) (answers map[netip.Addr]net.HardwareAddr, unasked []netip.Addr, err error) {
	if answered == nil {
		answered = func(netip.Addr) {}
	}
	var polls []*poll
	defer func() {
		for _, p := range polls {
			_ = p.conn.Close()
		}
	}()
	for _, f := range families {
		open := f.of(addresses)
		if len(open) == 0 {
			continue
		}
		conn, err := f.listen(link)
		if err != nil {
			return nil, addresses, fmt.Errorf("ask for addresses on %s: %w", link.Name, err)
		}
		p := &poll{family: f, conn: conn, link: link, own: slices.Concat(own, []net.HardwareAddr{link.HardwareAddr}), answered: answered, open: map[netip.Addr]bool{}, answers: map[netip.Addr]net.HardwareAddr{}}
		for _, ip := range open {
			p.open[ip] = true
		}
		if f.protocol == unix.ETH_P_IPV6 {
			if p.local, err = linkLocal(link); err != nil {
				_ = conn.Close()
				return nil, addresses, fmt.Errorf("ask for addresses on %s: %w", link.Name, err)
			}
		}
		polls = append(polls, p)
	}
	ended := make(chan error, len(polls))
	for _, p := range polls {
		go func() { ended <- p.run(ctx) }()
	}
	var errs []error
	for range polls {
		errs = append(errs, <-ended)
	}
	answers = map[netip.Addr]net.HardwareAddr{}
	for _, p := range polls {
		maps.Copy(answers, p.answers)
		unasked = slices.AppendSeq(unasked, maps.Keys(p.open))
	}
	if err := errors.Join(errs...); err != nil {
		return answers, unasked, fmt.Errorf("ask for addresses on %s: %w", link.Name, err)
	}
	return answers, nil, nil
}

// family is how addresses of an IP family are asked for.
type family struct {
	is       func(netip.Addr) bool
	protocol int
	filter   []bpf.RawInstruction
	answer   func(payload []byte, sender net.HardwareAddr) (netip.Addr, net.HardwareAddr, bool)
}

var families = []family{
	{netip.Addr.Is4, unix.ETH_P_ARP, nil, func(payload []byte, _ net.HardwareAddr) (netip.Addr, net.HardwareAddr, bool) {
		return arpAnswer(payload)
	}},
	{netip.Addr.Is6, unix.ETH_P_IPV6, advertisementsOnly(), ndpAnswer},
}

// advertisementsOnly is a filter of IPv6 packets: all others of the node would wake this process, too.
func advertisementsOnly() []bpf.RawInstruction {
	const advertisement, nextHeader, all = 136, 6, 0xffff
	program, _ := bpf.Assemble([]bpf.Instruction{ // these are valid
		bpf.LoadAbsolute{Off: nextHeader, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: icmpv6, SkipTrue: 3},
		bpf.LoadAbsolute{Off: ipv6HeaderLength, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: advertisement, SkipTrue: 1},
		bpf.RetConstant{Val: all},
		bpf.RetConstant{Val: 0},
	})
	return program
}

// of returns the addresses of the family.
func (f family) of(addresses []netip.Addr) (result []netip.Addr) {
	for _, ip := range addresses {
		if f.is(ip) {
			result = append(result, ip)
		}
	}
	return result
}

// receiveBuffer has room for an answer for each address that a node may have, all at once. What is lost looks as if nobody had answered.
const receiveBuffer = 16 << 20

func (f family) listen(link *net.Interface) (*packet.Conn, error) {
	conn, err := packet.Listen(link, packet.Datagram, f.protocol, &packet.Config{Filter: f.filter})
	if err != nil {
		return nil, err
	}
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) })
	}
	return conn, nil
}

func (f family) advertise(link *net.Interface, addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return nil
	}
	conn, err := f.listen(link)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, ip := range addresses {
		messages, err := advertisements(link.HardwareAddr, ip)
		if err != nil {
			return err
		}
		if err := send(conn, messages...); err != nil {
			return err
		}
	}
	return nil
}

// linkLocal returns the IPv6 address that an interface has for its own segment; invalid if it has none that others may answer
// to. Another host may have one that somebody has added, a virtual router's for example. So the oldest counts, which the kernel
// lists last.
func linkLocal(link *net.Interface) (local netip.Addr, err error) {
	const unusable = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_DEPRECATED
	addresses, err := changes.Outlast(func() ([]netlink.Addr, error) {
		return netlink.AddrList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link.Index}}, netlink.FAMILY_V6)
	})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list the IPv6 addresses: %w", err)
	}
	for _, a := range addresses {
		if a.Scope == unix.RT_SCOPE_LINK && a.Flags&unix.IFA_F_PERMANENT != 0 && a.Flags&unusable == 0 {
			local, _ = netip.AddrFromSlice(a.IP)
		}
	}
	return local, nil
}

func send(conn *packet.Conn, messages ...message) error {
	for _, m := range messages {
		if _, err := conn.WriteTo(m.payload, &packet.Addr{HardwareAddr: m.to}); err != nil {
			return err
		}
	}
	return nil
}

// poll is a round of questions in an IP family.
type poll struct {
	family
	conn *packet.Conn
	link *net.Interface
	// local is the link-local address of link.
	local netip.Addr
	// own are the MACs of this host.
	own      []net.HardwareAddr
	answered func(netip.Addr)
	// open are the addresses that nobody has answered for yet; when run has ended, those that were not asked for.
	open    map[netip.Addr]bool
	answers map[netip.Addr]net.HardwareAddr
}

func (p *poll) run(ctx context.Context) error {
	asked := map[netip.Addr]bool{}
	for range questions {
		for ip := range p.open {
			m, err := question(p.link.HardwareAddr, p.local, ip)
			if err != nil {
				return err
			}
			err = send(p.conn, m)
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
			asked[ip] = asked[ip] || err == nil // otherwise a queue was full, and the frame is lost
		}
		if err := p.read(patience); err != nil || len(p.open) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	// A process that was kept waiting finds its time over, and the answers unread.
	if err := p.read(late); err != nil {
		return err
	}
	if maps.DeleteFunc(p.open, func(ip netip.Addr, _ bool) bool { return asked[ip] }); len(p.open) > 0 {
		return unix.ENOBUFS
	}
	return nil
}

// read takes note of answers for so long, or until there is one for each address.
func (p *poll) read(during time.Duration) error {
	if err := p.conn.SetReadDeadline(time.Now().Add(during)); err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	for len(p.open) > 0 {
		n, from, err := p.conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		sender, _ := from.(*packet.Addr)
		if sender == nil || p.isOwn(sender.HardwareAddr) {
			continue // sent by this host
		}
		if ip, mac, ok := p.answer(buffer[:n], sender.HardwareAddr); ok && p.open[ip] && !p.isOwn(mac) {
			delete(p.open, ip)
			p.answers[ip] = bytes.Clone(mac)
			p.answered(ip)
		}
	}
	return nil
}

func (p *poll) isOwn(mac net.HardwareAddr) bool {
	return slices.ContainsFunc(p.own, func(own net.HardwareAddr) bool { return bytes.Equal(own, mac) })
}
