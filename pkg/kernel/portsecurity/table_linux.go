package portsecurity

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// Table is the name of the nftables table, of the family netdev. Changing it orphans what earlier versions have written.
const Table = "openshift-egress-port-security"

const (
	podChains   = "pod-"   // begins the names of the chains of interfaces, behind it are the index, "-" and the name
	toldChain   = "told"   // for interfaces of which an address is known
	untoldChain = "untold" // for the others
)

// families has the names of what there is for each IP family.
var families = map[kernel.Family]struct {
	bound, placed, counter string
	etherType              uint16
}{
	kernel.IPv4: {"bound-ipv4", "placed-ipv4", "spoofed-ipv4", unix.ETH_P_IP},
	kernel.IPv6: {"bound-ipv6", "placed-ipv6", "spoofed-ipv6", unix.ETH_P_IPV6},
}

func familyOf(address netip.Addr) kernel.Family {
	if address.Is4() {
		return kernel.IPv4
	}
	return kernel.IPv6
}

func spec() table.Spec {
	s := table.Spec{Name: Table, Family: kernel.IPv4, Ingress: true}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		names := families[family]
		s.Counters = append(s.Counters, names.counter)
		s.Sets = append(s.Sets, table.Set{Name: names.bound, Family: family}, table.Set{Name: names.placed, Family: family})
	}
	return s
}

// chains returns the rules for interfaces, and the devices of their chains.
func chains(interfaces []Interface, grants Grants) (rules map[string][]table.Rule, devices map[string]string) {
	rules, devices = map[string][]table.Rule{toldChain: told(), untoldChain: untold()}, map[string]string{}
	for _, i := range interfaces {
		devices[i.chain()] = i.Name
		rules[i.chain()] = pod(i, grants[i.Link])
	}
	return rules, devices
}

// chain is the name of the chain at an interface. One that is renamed gets another chain: since Linux 6.16 a chain is at whatever
// has the name with which it was made.
func (l Link) chain() string { return podChains + strconv.Itoa(l.Index) + "-" + l.Name }

// linkOf is the opposite of chain.
func linkOf(chain string) (l Link, is bool) {
	text, is := strings.CutPrefix(chain, podChains)
	number, name, _ := strings.Cut(text, "-")
	index, err := strconv.Atoi(number)
	return Link{index, name}, is && err == nil
}

// pod returns the rules of an interface with these addresses.
func pod(i Interface, addresses []netip.Addr) (rules []table.Rule) {
	for _, address := range addresses {
		rules = append(rules, rule(address.String()+" is behind "+i.Name, source(address), verdict(expr.VerdictAccept, "")))
	}
	rest := untoldChain
	if len(addresses) > 0 {
		rest = toldChain
	}
	return append(rules, rule("anything else from "+i.Name, verdict(expr.VerdictGoto, rest)))
}

func told() []table.Rule {
	return slices.Concat(stacked(), foreign(families[kernel.IPv4].bound, kernel.IPv4), foreign(families[kernel.IPv6].bound, kernel.IPv6))
}

func untold() []table.Rule {
	return slices.Concat(stacked(), foreign(families[kernel.IPv4].placed, kernel.IPv4), foreign(families[kernel.IPv6].placed, kernel.IPv6))
}

// foreign drops what has an address of a set as its source.
func foreign(set string, family kernel.Family) []table.Rule {
	f := table.FamilyOf(family)
	return []table.Rule{rule("the address of a bound pod that is elsewhere", etherType(families[family].etherType), f.Source(f.First),
		[]expr.Any{&expr.Lookup{SourceRegister: f.First, SetName: set}}, drop(family))}
}

// stacked drops frames with two VLAN tags. The kernel has taken the first one off, and may take off the second one behind this hook.
func stacked() (rules []table.Rule) {
	for _, tag := range []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD} {
		rules = append(rules, rule("hidden behind two VLAN tags", etherType(tag), drop(kernel.IPv4)))
	}
	return rules
}

func etherType(number uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, number)},
	}
}

// source lets packets pass that have an address as their source.
func source(address netip.Addr) []expr.Any {
	family := familyOf(address)
	f := table.FamilyOf(family)
	return slices.Concat(etherType(families[family].etherType), f.Source(f.First),
		[]expr.Any{&expr.Cmp{Op: expr.CmpOpEq, Register: f.First, Data: address.AsSlice()}})
}

func drop(family kernel.Family) []expr.Any {
	return []expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: families[family].counter}, &expr.Verdict{Kind: expr.VerdictDrop}}
}

func verdict(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}

func rule(purpose string, parts ...[]expr.Any) table.Rule {
	return table.Commented(nftables.TableFamilyNetdev, purpose, parts...)
}

// granted reads from a table which addresses interfaces have been granted.
func granted(held table.Held) Grants {
	grants := Grants{}
	for chain, marks := range held.Chains {
		link, is := linkOf(chain)
		if !is {
			continue
		}
		for _, mark := range marks {
			comment, _ := userdata.GetString([]byte(mark), userdata.TypeComment)
			word, _, _ := strings.Cut(comment, " ")
			if address, err := netip.ParseAddr(word); err == nil {
				grants[link] = append(grants[link], address)
			}
		}
	}
	return grants
}

// told in words: String is for logs.
func (r Refusal) String() string {
	if r.Owner == "" {
		return fmt.Sprintf("%s is an additional address behind %s", r.Address, r.Interface)
	}
	return fmt.Sprintf("%s is behind %s, and behind %s, to which it belongs", r.Address, r.Interface, r.Owner)
}
