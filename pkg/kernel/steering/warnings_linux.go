package steering

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Warnings says, for an operator and in a line each, what others have on this node that may keep packets from being steered, in
// one IP family: ip rules among ours, checks of the way back that follow our mark, rules that use bits of it, and firewalls that drop what is
// forwarded unless a rule accepts it. Whether they do cannot be told, and nothing here could change it: an accept in one table does not override a drop in another.
func Warnings(ctx context.Context, c Config, networks []netip.Prefix) ([]string, error) {
	warnings, err := ruleWarnings(c)
	if err != nil {
		return nil, err
	}
	checks, err := wayBackWarnings(ctx, c.Family)
	if err != nil {
		return nil, err
	}
	marks, err := findMarkUsers(ctx, c.Family, c.MarkMask)
	warnings = slices.Concat(warnings, checks, marks)
	if err != nil || c.Transport != VXLAN {
		return warnings, err
	}
	passes := passage{family: c.Family, networks: networks}
	chains, err := passes.closedChains(ctx)
	if err != nil {
		return nil, err
	}
	command := map[kernel.Family]string{kernel.IPv4: "iptables", kernel.IPv6: "ip6tables"}[c.Family]
	for _, chain := range chains {
		warnings = append(warnings, fmt.Sprintf("%s drops forwarded packets by default, and has no rule that accepts all packets coming in on %s: "+
			"packets that other nodes send here may be dropped. Let your firewall accept packets coming in and going out on %s, for example: %s -I FORWARD -i %s -j ACCEPT; %s -I FORWARD -o %s -j ACCEPT",
			chain, Device, Device, command, Device, command, Device))
	}
	return warnings, nil
}

// ruleWarnings says which ip rules of others are among ours, and match packets whatever their mark.
func ruleWarnings(c Config) (warnings []string, err error) {
	rules, err := listRules(c.Family)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.Mask == nil && r.Protocol != routeProtocol && r.Priority > firstPreference && r.Priority <= lastPreference {
			warnings = append(warnings, fmt.Sprintf("%s rule %d is not egress SNAT's but lies among its rules, %d to %d: steered packets that it matches are dropped. Give it a preference above %d, unless it matches no steered packets",
				ipCommand(c.Family), r.Priority, firstPreference+1, lastPreference, lastPreference))
		}
	}
	return warnings, nil
}

// validMarks are the settings by which the kernel's reverse path filter looks for the way back with a packet's mark: that of all interfaces,
// and that of new ones.
var validMarks = []string{"net/ipv4/conf/all/src_valid_mark", "net/ipv4/conf/default/src_valid_mark"}

// wayBackWarnings says what looks for the way back to the sender of a packet, and takes the packet's mark with it: the mark of a steered packet
// leads to the holder, and not back to the pod.
func wayBackWarnings(ctx context.Context, family kernel.Family) (warnings []string, err error) {
	for _, setting := range validMarks {
		value, err := readSysctl(setting)
		if err != nil {
			return nil, err
		}
		if value == "1" && family == kernel.IPv4 {
			warnings = append(warnings, "the sysctl "+strings.ReplaceAll(setting, "/", ".")+" is 1: where rp_filter is 1, or 2 on an interface without an address, the kernel drops what pods send to egress IPs on other nodes. Set it to 0")
		}
	}
	c, err := nft.Open(ctx)
	if err != nil {
		return warnings, nft.UnlessNone(err)
	}
	defer c.Close()
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list the nftables chains: %w", err)
	}
	families := []nftables.TableFamily{nft.FamilyOf(family).Table, nftables.TableFamilyINet}
	for _, chain := range chains {
		if chain.Hooknum == nil || *chain.Hooknum != *nftables.ChainHookPrerouting || !slices.Contains(families, chain.Table.Family) ||
			chain.Priority == nil || *chain.Priority < waysPriority {
			continue // where it comes before ours, packets have no mark yet
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err == nil && slices.ContainsFunc(rules, func(r *nftables.Rule) bool { return looksBackWithMark(r, family) }) {
			warnings = append(warnings, fmt.Sprintf("the nftables chain %s of the table %s %s looks up the way back to the sender with the packet's mark (fib saddr . mark), which drops what pods send to egress IPs on other nodes. "+
				"Have it look without the mark; with firewalld, set IPv6_rpfilter=no", chain.Name, nft.FamilyNames[chain.Table.Family], chain.Table.Name))
		}
	}
	return warnings, nil
}

// looksBackWithMark tells whether a rule asks the routes for the sender of a packet of an IP family, by the packet's mark.
func looksBackWithMark(r *nftables.Rule, family kernel.Family) bool {
	for i, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Fib:
			return e.FlagSADDR && e.FlagMARK
		case *expr.Cmp:
			m, is := r.Exprs[max(0, i-1)].(*expr.Meta)
			if is && m.Key == expr.MetaKeyNFPROTO && !bytes.Equal(e.Data, []byte{byte(nft.FamilyOf(family).Table)}) {
				return false // of the other family
			}
		}
	}
	return false
}

// passage is what packets of pods on other nodes need on their way through this one.
type passage struct {
	family   kernel.Family
	networks []netip.Prefix
}

// closedChains returns the base chains that forwarded packets pass which drop what no rule accepts, and have no rule
// that accepts what comes in by steer0, or from the pods.
func (p passage) closedChains(ctx context.Context) (closed []string, err error) {
	c, err := nft.Open(ctx)
	if errors.Is(err, nft.ErrNone) {
		return p.closedLegacy(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list the nftables chains: %w", err)
	}
	families := []nftables.TableFamily{nft.FamilyOf(p.family).Table, nftables.TableFamilyINet}
	for _, chain := range chains {
		if chain.Hooknum == nil || *chain.Hooknum != *nftables.ChainHookForward || !slices.Contains(families, chain.Table.Family) {
			continue
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			continue // gone meanwhile, or of a kind that the library does not know
		}
		drops := chain.Policy != nil && *chain.Policy == nftables.ChainPolicyDrop || len(rules) > 0 && endsPackets(rules[len(rules)-1])
		if drops && !p.acceptedIn(c, chain.Table, chains) {
			closed = append(closed, fmt.Sprintf("the nftables chain %s of the table %s %s", chain.Name, nft.FamilyNames[chain.Table.Family], chain.Table.Name))
		}
	}
	legacy, err := p.closedLegacy(ctx)
	return append(closed, legacy...), err
}

// endsPackets tells whether a rule drops or rejects whatever meets it.
func endsPackets(r *nftables.Rule) bool {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Counter, *expr.Log:
		case *expr.Reject:
			return true
		case *expr.Verdict:
			return e.Kind == expr.VerdictDrop
		default:
			return false
		}
	}
	return false
}

func (p passage) acceptedIn(c *nft.Conn, t *nftables.Table, chains []*nftables.Chain) bool {
	for _, chain := range chains {
		if chain.Table.Name != t.Name || chain.Table.Family != t.Family || strings.HasPrefix(chain.Name, "KUBE-") {
			continue
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err == nil && slices.ContainsFunc(rules, p.accepts) {
			return true
		}
	}
	return false
}

// accepts tells whether a rule accepts what comes in by steer0, or from the pods, as far as one can see.
func (p passage) accepts(r *nftables.Rule) bool {
	var meets, accepts bool
	for i, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Cmp:
			if i == 0 || e.Op != expr.CmpOpEq {
				continue
			}
			if m, ok := r.Exprs[i-1].(*expr.Meta); ok && m.Key == expr.MetaKeyIIFNAME {
				meets = meets || strings.HasPrefix(Device, string(bytes.TrimRight(e.Data, "\x00"))) && len(e.Data) > 0
			}
			meets = meets || p.comesFromPods(r.Exprs[:i], e.Data)
		case *expr.Ct:
			return false // a new flow needs more
		case *expr.Match:
			if e.Name == "conntrack" || e.Name == "state" {
				return false
			}
		case *expr.Verdict:
			accepts = accepts || e.Kind == expr.VerdictAccept
		}
	}
	return meets && accepts
}

// comesFromPods tells whether the comparison with data, behind these expressions, is of the source address, and one of the pods'
// networks lies within what is compared.
func (p passage) comesFromPods(before []expr.Any, data []byte) bool {
	mask := bytes.Repeat([]byte{0xff}, len(data))
	if n := len(before); n > 0 {
		if b, ok := before[n-1].(*expr.Bitwise); ok && len(b.Mask) == len(data) {
			mask, before = b.Mask, before[:n-1]
		}
	}
	if len(before) == 0 {
		return false
	}
	offset := map[kernel.Family]uint32{kernel.IPv4: 12, kernel.IPv6: 8}[p.family]
	load, ok := before[len(before)-1].(*expr.Payload)
	if !ok || load.Base != expr.PayloadBaseNetworkHeader || load.Offset != offset {
		return false
	}
	bits := 0
	for _, b := range mask {
		for ; b != 0; b <<= 1 {
			bits++
		}
	}
	return slices.ContainsFunc(p.networks, func(network netip.Prefix) bool {
		addr := network.Addr().AsSlice()
		for i := range data {
			if len(addr) != len(innerAddr(p.family, 0).AsSlice()) || i >= len(addr) || addr[i]&mask[i] != data[i] {
				return false
			}
		}
		return bits <= network.Bits()
	})
}

// closedLegacy is closedChains for iptables-legacy.
func (p passage) closedLegacy(ctx context.Context) ([]string, error) {
	names := map[kernel.Family]string{kernel.IPv4: "/proc/thread-self/net/ip_tables_names", kernel.IPv6: "/proc/thread-self/net/ip6_tables_names"}[p.family]
	tables, err := os.ReadFile(names)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.Contains(strings.Fields(string(tables)), "filter") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the tables of iptables-legacy: %w", err)
	}
	command := map[kernel.Family]string{kernel.IPv4: "iptables-legacy-save", kernel.IPv6: "ip6tables-legacy-save"}[p.family]
	saved, err := exec.CommandContext(ctx, command, "-t", "filter").Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT) {
		return nil, nil // nobody could have written a rule with it
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	if p.closedBySave(string(saved)) {
		return []string{"the chain FORWARD of " + strings.TrimSuffix(command, "-save")}, nil
	}
	return nil, nil
}

// closedBySave tells whether what iptables-save says of the table filter is closed.
func (p passage) closedBySave(saved string) bool {
	if !strings.Contains(saved, "\n:FORWARD DROP ") {
		return false
	}
	for line := range strings.Lines(saved) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(strings.TrimSpace(line), "-j ACCEPT") || strings.Contains(line, "state ") {
			continue // a new flow needs more
		}
		for i := range len(fields) - 1 {
			network, err := netip.ParsePrefix(fields[i+1])
			switch {
			case i > 0 && fields[i-1] == "!":
			case fields[i] == "-i" && fields[i+1] == Device:
				return false
			case fields[i] == "-s" && err == nil && slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return network.Contains(n.Addr()) && network.Bits() <= n.Bits() }):
				return false
			}
		}
	}
	return true
}
