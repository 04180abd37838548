package steering

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/portowner"
)

// portConflict returns which other VXLAN interface has the tunnel's UDP port. A process that has it is no conflict: no right is needed to
// have it, so nobody shall end steering by that for good. As long as it has the port, [Writer.Write] returns an error that names it.
func portConflict(port uint16) (conflict, error) {
	other, err := vxlanWith(port)
	if err != nil || other == "" {
		return nil, err
	}
	return conflict{portOf(other, port)}, nil
}

// portTaken says which program has the tunnel's UDP port.
func portTaken(port uint16) string {
	owner := portowner.Find("udp", netip.AddrPortFrom(netip.IPv6Unspecified(), port)) // the tunnel's socket is bound to no address
	return fmt.Sprintf("another program uses the UDP port %d, %s: end it, or choose another port with egress-snat-steering-port on all nodes", port, owner)
}

// vxlanWith returns the name of a VXLAN interface other than steer0 that has a UDP port; "" if there is none.
func vxlanWith(port uint16) (name string, err error) {
	links, err := changes.Outlast(netlink.LinkList)
	if err != nil {
		return "", fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		if other, ok := l.(*netlink.Vxlan); ok && other.Port == int(port) && ours(l) == nil {
			return other.Name, nil
		}
	}
	return "", nil
}

func portOf(device string, port uint16) string {
	return fmt.Sprintf("interface %s uses the UDP port %d: delete it, or choose another port with egress-snat-steering-port on all nodes", device, port)
}

// readTables finds others' routes in all tables that numbers may get.
func (s *pathState) readTables() error {
	handle, err := openRoutes()
	if err != nil {
		return err
	}
	defer handle.Close()
	for number := 1; number <= lastNumber; number++ {
		routes, err := s.listRoutes(handle, netlink.Route{Table: firstTable + number})
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Protocol != routeProtocol {
				s.foreignRoute(r)
				break // one is enough
			}
		}
	}
	return nil
}

func (s *pathState) foreignRoute(r netlink.Route) {
	s.conflict("routing table %d is egress SNAT's and has a foreign route: delete it, or move it to another table: %s", r.Table, r)
}

// markConflicts returns which nftables rules of others use bits of the mark, of iptables-nft as well; a line for each
// chain. Packets of the IP family do not pass tables of the other one; those of both are meant if the family is empty.
func markConflicts(c *nft.Conn, of kernel.Family, mask uint32) (found conflict, err error) {
	other := map[kernel.Family]nftables.TableFamily{kernel.IPv4: nftables.TableFamilyIPv6, kernel.IPv6: nftables.TableFamilyIPv4}[of]
	tables, err := c.OtherTables(nftables.TableFamilyUnspecified)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.Family == other {
			continue
		}
		chains, err := c.Chains(t, usesOtherBits)
		if err != nil {
			return nil, err
		}
		for _, chain := range slices.DeleteFunc(chains.Names(), usesOtherBits) {
			rules, err := c.RulesOf(t, chain)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("list the nftables rules of others: %w", err)
			}
			// An error is of a kind of rules that the library does not know, or the chain is gone meanwhile.
			if slices.ContainsFunc(rules, func(r *nftables.Rule) bool { return usesMark(r, mask) }) {
				found = append(found, markUsed(fmt.Sprintf("nftables chain %s of the table %s %s", chain, nft.FamilyNames[t.Family], t.Name), mask))
			}
		}
	}
	return found, nil
}

// usesOtherBits tells whether a chain is kube-proxy's, which uses other bits of the mark, or ours. There may be tens of thousands.
func usesOtherBits(chain string) bool {
	return strings.HasPrefix(chain, "KUBE-") || strings.HasPrefix(chain, iptables.ChainPrefix)
}

// MarkUsers finds the rules of others that use bits of a mask, again and again.
type MarkUsers struct {
	// Family is the IP family whose packets are meant; both if it is empty.
	Family kernel.Family
	Mask   uint32
	found  nft.Found[conflict]
	// legacy has what was found last in the tables of iptables-legacy.
	legacy conflict
}

// Find returns which rules do so now, for an operator and in a line for each chain. If it cannot look everywhere, it returns an error, and
// those that it found there the last time. It must not be used by two goroutines at once.
func (m *MarkUsers) Find(ctx context.Context) ([]string, error) {
	found, err := m.found.Find(ctx, func(c *nft.Conn) (conflict, error) { return markConflicts(c, m.Family, m.Mask) })
	legacy, legacyErr := legacyMarkConflicts(m.Family, m.Mask)
	if legacyErr == nil {
		m.legacy = legacy
	}
	return slices.Concat(found, m.legacy), errors.Join(err, legacyErr)
}

// Close ends the connection to the kernel. The next Find opens another one.
func (m *MarkUsers) Close() { m.found.Close() }

func findMarkUsers(ctx context.Context, family kernel.Family, mask uint32) ([]string, error) {
	m := MarkUsers{Family: family, Mask: mask}
	defer m.Close()
	return m.Find(ctx)
}

// legacyMarkConflicts is markConflicts for iptables-legacy.
func legacyMarkConflicts(of kernel.Family, mask uint32) (found conflict, err error) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		if of != "" && of != family {
			continue
		}
		tool := map[kernel.Family]string{kernel.IPv4: "iptables", kernel.IPv6: "ip6tables"}[family]
		uses := func(p iptables.LegacyPart) bool {
			return (string(p.Name) == "MARK" || string(p.Name) == "mark") && bytesUse(p.Info, mask)
		}
		table, chain := "", "" // found last
		err := iptables.LegacyRules(family, func(r iptables.LegacyRule) {
			if r.Table == table && r.Chain == chain || strings.HasPrefix(r.Chain, "KUBE-") || !slices.ContainsFunc(r.Parts, uses) {
				return
			}
			table, chain = r.Table, r.Chain
			found = append(found, markUsed(fmt.Sprintf("chain %s of the table %s of %s-legacy", chain, table, tool), mask))
		})
		if err != nil {
			return nil, fmt.Errorf("look for marks: %w", err)
		}
	}
	return found, nil
}

// markUsed says what to do about a chain that uses bits of the mark.
func markUsed(chain string, mask uint32) string {
	return fmt.Sprintf("a rule in the %s uses bits of egress SNAT's mark %#x, so packets of either would be misrouted: "+
		"delete the rule, or choose another mask with egress-snat-mark-mask", chain, mask)
}

// markBits is what a register has of the mark: mark & mask ^ xor. A constant has the mask 0.
type markBits struct{ mask, xor uint32 }

// usesMark tells whether a rule sets bits of a mask, or matches packets that have some. A rule that copies the mark from
// elsewhere is not recognised.
func usesMark(r *nftables.Rule, mask uint32) bool {
	registers := map[uint32]markBits{}
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Meta:
			if e.Key != expr.MetaKeyMARK {
				delete(registers, e.Register)
				continue
			}
			if bits, known := registers[e.Register]; e.SourceRegister && known && bits.xor&mask != 0 {
				return true
			}
			if !e.SourceRegister {
				registers[e.Register] = markBits{mask: ^uint32(0)}
			}
		case *expr.Bitwise:
			bits, known := registers[e.SourceRegister]
			if !known || len(e.Mask) != 4 || len(e.Xor) != 4 {
				delete(registers, e.DestRegister)
				continue
			}
			with := binary.NativeEndian.Uint32(e.Mask)
			registers[e.DestRegister] = markBits{bits.mask & with, bits.xor&with ^ binary.NativeEndian.Uint32(e.Xor)}
		case *expr.Immediate:
			if len(e.Data) == 4 {
				registers[e.Register] = markBits{xor: binary.NativeEndian.Uint32(e.Data)}
			}
		case *expr.Cmp:
			if bits := registers[e.Register]; bits.mask != 0 && len(e.Data) == 4 {
				value := binary.NativeEndian.Uint32(e.Data)
				if value&bits.mask&mask != 0 || e.Op == expr.CmpOpNeq && bits.mask&mask != 0 && ^bits.mask != 0 && value == 0 {
					return true
				}
			}
		case *expr.Target:
			if e.Name == "MARK" && extensionUses(e.Info, mask) {
				return true
			}
		case *expr.Match:
			if e.Name == "mark" && extensionUses(e.Info, mask) {
				return true
			}
		}
	}
	return false
}

// extensionUses is usesMark for iptables' target MARK and match mark: both begin with the mark and its mask
// (linux/netfilter/xt_mark.h).
func extensionUses(info xt.InfoAny, mask uint32) bool {
	raw, ok := info.(*xt.Unknown)
	return ok && bytesUse(*raw, mask)
}

// bytesUse is extensionUses for the bytes of the structure.
func bytesUse(info []byte, mask uint32) bool {
	return len(info) >= 8 && binary.NativeEndian.Uint32(info)&binary.NativeEndian.Uint32(info[4:])&mask != 0
}

// conflictsAtStart returns what of somebody else's is in the way of a path that is to be made.
func (c Config) conflictsAtStart(ctx context.Context) (found conflict, err error) {
	s, err := changes.Outlast(func() (*pathState, error) { // a node begins while its pods begin
		s := &pathState{config: c}
		return s, errors.Join(s.readRules(), s.readDevice(), s.readTables())
	})
	if err != nil {
		return nil, err
	}
	found = s.conflicts
	marks, err := findMarkUsers(ctx, c.Family, c.MarkMask)
	if err != nil {
		return nil, err
	}
	found = append(found, marks...)
	if c.Transport == VXLAN && c.Family == kernel.IPv4 { // both families have the same port
		port, err := portConflict(c.Port)
		if err != nil {
			return nil, err
		}
		found = append(found, port...)
	}
	return found, nil
}
