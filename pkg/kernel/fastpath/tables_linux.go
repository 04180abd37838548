package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// mirror is one of the kernel's maps, and what it holds.
type mirror[K, V comparable] struct {
	kernel *ebpf.Map
	held   map[K]V
	// array: the kernel's map has all keys, and zeros for those that are not held.
	array bool
}

// set has the kernel hold a value for a key, or none.
func (m *mirror[K, V]) set(key K, value V, there bool) (err error) {
	held, was := m.held[key]
	switch {
	case there && was && held == value, !there && !was:
		return nil
	case there:
		err = m.kernel.Put(key, value)
	case m.array:
		var none V
		err = m.kernel.Put(key, none)
	default:
		if err = m.kernel.Delete(key); errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("write the map %s: %w", m.kernel, err)
	}
	if m.held[key] = value; !there {
		delete(m.held, key)
	}
	return nil
}

// shrink removes what is not wanted, or not with its value.
func (m *mirror[K, V]) shrink(want map[K]V) (err error) {
	for key, value := range m.held {
		if !has(want, key, value) {
			err = errors.Join(err, m.set(key, value, false))
		}
	}
	return err
}

// grow adds what is wanted.
func (m *mirror[K, V]) grow(want map[K]V) (err error) {
	for key, value := range want {
		err = errors.Join(err, m.set(key, value, true))
	}
	return err
}

func mirrorOf[K, V comparable](m *ebpf.Map) mirror[K, V] {
	return mirror[K, V]{kernel: m, held: map[K]V{}, array: m.Type() == ebpf.Array}
}

// tables are the maps that programs go by.
type tables struct {
	settings   mirror[uint32, programsSettings]
	pods       mirror[programsPod, uint32]
	holders    mirror[uint32, programsHolder]
	excluded   mirror[programsAddress, uint32]
	exclusions mirror[programsNetwork, uint32]
	outsides   mirror[programsAddress, uint32]
	senders    mirror[programsSender, programsHardware]
}

func tablesOf(o *programsObjects) tables {
	return tables{
		settings: mirrorOf[uint32, programsSettings](o.Current), pods: mirrorOf[programsPod, uint32](o.Pods), holders: mirrorOf[uint32, programsHolder](o.Holders),
		excluded: mirrorOf[programsAddress, uint32](o.Excluded), exclusions: mirrorOf[programsNetwork, uint32](o.Exclusions), outsides: mirrorOf[programsAddress, uint32](o.Outsides),
		senders: mirrorOf[programsSender, programsHardware](o.Senders),
	}
}

// write has the tables hold what is wanted. First goes what lets packets into the fast path, and comes what keeps them out of it.
// If that fails nothing else is let in.
func (t *tables) write(want wantedTables) error {
	if err := errors.Join(
		t.settings.shrink(want.settings), t.holders.shrink(want.holders), t.outsides.shrink(want.outsides), t.senders.shrink(want.senders),
		t.excluded.grow(want.excluded), t.exclusions.grow(want.exclusions),
	); err != nil {
		return errors.Join(err, t.settings.shrink(nil))
	}
	return errors.Join(
		t.excluded.shrink(want.excluded), t.exclusions.shrink(want.exclusions),
		t.senders.grow(want.senders), t.outsides.grow(want.outsides), t.holders.grow(want.holders), t.settings.grow(want.settings),
	)
}

// wantedTables are what the tables should hold, but the pods.
type wantedTables struct {
	settings   map[uint32]programsSettings
	holders    map[uint32]programsHolder
	excluded   map[programsAddress]uint32
	exclusions map[programsNetwork]uint32
	outsides   map[programsAddress]uint32
	senders    map[programsSender]programsHardware
}

// add adds what one IP family's packets meet.
func (w wantedTables) add(f *family, all bool) error {
	s := f.Surroundings
	for prefix := range s.Exclusions {
		w.exclude(prefix)
	}
	for egressIP := range s.EgressIPs {
		w.outsides[addressOf(egressIP)] = 0
		w.excluded[addressOf(egressIP)] = 0
	}
	for egressIP := range s.Elsewhere {
		w.excluded[addressOf(egressIP)] = 0
	}
	direct := s.Uplink.Tunnel == 0
	for node, at := range s.Senders {
		switch {
		case direct:
			w.senders[senderOf(at)] = programsHardware{Address: at}
		case f.routes[node].leads: // package steering takes a node's packets by the interface alone that leads there
			w.senders[programsSender(addressOf(node))] = programsHardware{Address: at}
		}
	}
	for number, h := range s.Holders {
		holder := programsHolder{Node: addressOf(h.Node), Hardware: h.Hardware, Own: h.Own}
		if direct {
			holder.Direct = 1
		}
		if f.routes[h.Node].onLink {
			holder.OnLink = 1
		}
		w.holders[uint32(placeOf(f.name, number))] = holder
	}
	settings, err := readTimeouts()
	if err != nil {
		return err
	}
	settings.Uplink, settings.Mtu = uint32(s.Uplink.Index), uint32(s.Uplink.MTU)
	if other, known := w.settings[0]; known {
		settings.Mtu = min(settings.Mtu, other.Mtu) // a family may not have seen yet that it is smaller now
	}
	if !direct {
		settings.Self, settings.Port, settings.Vni = addressOf(s.Uplink.Self), uint32(s.Uplink.Port), s.Uplink.VNI
	}
	if all {
		settings.All = 1
	}
	w.settings[0] = settings
	return nil
}

// share has unbound pods' flows of an IP family get this node's own addresses, but those that are egress IPs, or were.
func (w wantedTables) share(family kernel.Family, around around, egressIPs map[netip.Addr]bool) {
	for address, shared := range around.shared {
		if shared && kernel.FamilyOf(address) == family && !egressIPs[address] {
			w.outsides[addressOf(address)] = uint32(around.at[address])
		}
	}
}

func (w wantedTables) exclude(prefix netip.Prefix) {
	if prefix.IsSingleIP() {
		w.excluded[addressOf(prefix.Addr())] = 0
		return
	}
	w.exclusions[networkOf(prefix)] = 0
}

// route is how packets get to a node: by the uplink, and if so whether the node is their next hop.
type route struct{ leads, onLink bool }

// findRoutes looks for the routes to nodes that are not known yet, or to all again.
func (f *family) findRoutes(again bool) {
	before := f.routes
	f.routes = map[netip.Addr]route{}
	find := func(node netip.Addr) {
		r, known := before[node]
		if !known || again {
			r = routeTo(node, f.Uplink.Index)
		}
		f.routes[node] = r
	}
	for node := range f.Senders {
		find(node)
	}
	for _, h := range f.Holders {
		find(h.Node)
	}
}

// routeTo asks the kernel for a route. One that it does not tell leads by no uplink.
func routeTo(node netip.Addr, uplink int) route {
	routes, err := netlink.RouteGet(node.AsSlice())
	if err != nil || len(routes) != 1 || routes[0].LinkIndex != uplink {
		return route{}
	}
	return route{leads: true, onLink: routes[0].Gw == nil && routes[0].Via == nil && len(routes[0].MultiPath) == 0}
}

// readTimeouts reads how long conntrack remembers flows.
func readTimeouts() (s programsSettings, err error) {
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return s, fmt.Errorf("ask the kernel for the length of a tick: %w", err)
	}
	s.Hz = uint32(1_000_000_000 / tick.Nsec)
	for name, to := range map[string]*uint32{"tcp_timeout_established": &s.TcpEstablished, "udp_timeout_stream": &s.UdpStream} {
		path := "/proc/sys/net/netfilter/nf_conntrack_" + name
		text, err := os.ReadFile(path)
		if err != nil {
			return s, fmt.Errorf("read how long conntrack remembers flows: %w", err)
		}
		seconds, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		if err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
		// Both are multiplied as the kernel's signed 32 bits: a million seconds are eleven days.
		*to = uint32(min(seconds, 1_000_000))
	}
	return s, nil
}

// hasIPsec tells whether the kernel has policies of IPsec. What a program redirects does not meet them, so it might leave in clear.
func hasIPsec() (bool, error) {
	policies, err := changes.Outlast(func() ([]netlink.XfrmPolicy, error) { return netlink.XfrmPolicyList(netlink.FAMILY_ALL) })
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOPROTOOPT) {
		return false, nil // a kernel without IPsec
	}
	if err != nil {
		return false, fmt.Errorf("list the policies of IPsec: %w", err)
	}
	return len(policies) > 0, nil
}

// readInterfaces reads this node's interfaces and own addresses. local has those that no packet to the outside has, too.
func (a *around) readInterfaces() error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list this node's interfaces: %w", err)
	}
	a.ethernet = map[int]bool{}
	for _, link := range links {
		a.ethernet[link.Index] = len(link.HardwareAddr) == len(kernel.HardwareAddr{})
	}
	addresses, err := changes.Outlast(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list this node's addresses: %w", err)
	}
	for _, text := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/128", "::1/128", "fe80::/10", "ff00::/8"} {
		a.local = append(a.local, netip.MustParsePrefix(text))
	}
	a.at, a.shared = map[netip.Addr]int{}, map[netip.Addr]bool{}
	for _, has := range addresses {
		for _, ip := range []net.IP{has.IP, has.Broadcast} {
			if address := kernel.AddrOf(ip); address.IsValid() {
				a.local = append(a.local, netip.PrefixFrom(address, address.BitLen()))
			}
		}
		address := kernel.AddrOf(has.IP)
		if !address.IsValid() {
			continue
		}
		a.at[address] = has.LinkIndex
		a.shared[address] = has.Scope == unix.RT_SCOPE_UNIVERSE && has.Flags&unix.IFA_F_DEPRECATED == 0
	}
	return nil
}

// addressOf returns an address as the maps have it.
func addressOf(address netip.Addr) (a programsAddress) {
	bytes := address.As16() // RFC 4291, section 2.5.5.2
	for i := range a.Words {
		a.Words[i] = binary.NativeEndian.Uint32(bytes[4*i:])
	}
	return a
}

func networkOf(prefix netip.Prefix) programsNetwork {
	bits, v6 := 32+96+prefix.Bits(), uint32(0)
	if prefix.Addr().Is6() {
		bits, v6 = 32+prefix.Bits(), 1
	}
	return programsNetwork{Bits: uint32(bits), V6: v6, Address: addressOf(prefix.Masked().Addr())}
}

func senderOf(at [6]byte) (s programsSender) {
	var bytes [8]byte
	copy(bytes[:], at[:])
	s.Words[0], s.Words[1] = binary.NativeEndian.Uint32(bytes[:]), binary.NativeEndian.Uint32(bytes[4:])
	return s
}
