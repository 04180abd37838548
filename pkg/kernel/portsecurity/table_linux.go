package portsecurity

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Table is the name of the nftables table, of the family netdev. Changing it orphans what earlier versions have written.
const Table = "openshift-egress-port-security"

const (
	podChains   = "pod-"   // begins the names of the chains of interfaces, behind it are the index, "-" and the name
	toldChain   = "told"   // for interfaces of which an address is known
	untoldChain = "untold" // for the others
	// behindTags begins the names of the chains for what comes with two VLAN tags, behind it is told or untold.
	behindTags = "tagged-"
)

// families has the names of what there is for each IP family, and how rules name it.
var families = map[kernel.Family]struct {
	bound, placed, counter string
	word, sourceBehindTag  string
	etherType              uint16
}{
	kernel.IPv4: {"bound-ipv4", "placed-ipv4", "spoofed-ipv4", "ip", "@nh,128,32", unix.ETH_P_IP},
	kernel.IPv6: {"bound-ipv6", "placed-ipv6", "spoofed-ipv6", "ip6", "@nh,96,128", unix.ETH_P_IPV6},
}

func spec() nft.Spec {
	s := nft.Spec{Name: Table, Family: kernel.IPv4, Ingress: true}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		names := families[family]
		s.Counters = append(s.Counters, names.counter)
		s.Sets = append(s.Sets, nft.Set{Name: names.bound, Family: family}, nft.Set{Name: names.placed, Family: family})
	}
	return s
}

// chains returns the rules for interfaces, and the devices of their chains.
func chains(interfaces []Interface, grants Grants) (rules map[string][]nft.Rule, devices map[string]string) {
	rules, devices = map[string][]nft.Rule{}, map[string]string{}
	for chain, sets := range map[string]map[kernel.Family]string{
		toldChain:   {kernel.IPv4: families[kernel.IPv4].bound, kernel.IPv6: families[kernel.IPv6].bound},
		untoldChain: {kernel.IPv4: families[kernel.IPv4].placed, kernel.IPv6: families[kernel.IPv6].placed},
	} {
		rules[chain], rules[behindTags+chain] = foreign(sets, behindTags+chain), foreignBehindTags(sets)
	}
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
func pod(i Interface, addresses []netip.Addr) (rules []nft.Rule) {
	for _, address := range addresses {
		rules = append(rules, rule(address.String()+" is behind "+i.Name, families[kernel.FamilyOf(address)].word+" saddr "+address.String()+" accept"))
	}
	rest := untoldChain
	if len(addresses) > 0 {
		rest = toldChain
	}
	return append(rules, rule("anything else from "+i.Name, "goto "+rest))
}

// foreign drops what has an address of a family's set as its source. It leaves frames with two VLAN tags to another chain, where the kernel
// says that they have them. Since Linux 7.1 it does not if the second tag is of 802.1Q and IP is behind it: it tells the packet's
// protocol, and takes the packet's fields from behind the tag. But of a packet that it cannot take apart it takes them from the tag on.
// Hosts do not take such an IPv4 packet. But they forward such an IPv6 packet, for example one whose extension headers end too early.
func foreign(sets map[kernel.Family]string, behindTags string) (rules []nft.Rule) {
	for _, tag := range []string{"8021q", "8021ad"} {
		rules = append(rules, rule("with two VLAN tags", "meta protocol "+tag+" goto "+behindTags))
	}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		f := families[family]
		rules = append(rules, rule("the address of a bound pod that is elsewhere, or an egress IP", f.word+" saddr @"+sets[family]+drop(f.counter)))
	}
	// In packets without a second tag these are bytes of both addresses, which together are none of the set.
	f := families[kernel.IPv6]
	return append(rules, rule("the same, behind a second VLAN tag",
		"meta protocol ip6 "+f.sourceBehindTag+" @"+sets[kernel.IPv6]+drop(f.counter)))
}

// foreignBehindTags is foreign for frames with two VLAN tags. The kernel has taken the first one off, and may take off the second one behind
// this hook: its network header begins with the second one's number, and has the packet's EtherType and then the packet itself behind
// it. More tags are nobody's, and whose packet is behind them is not found out: they are counted as IPv4.
func foreignBehindTags(sets map[kernel.Family]string) (rules []nft.Rule) {
	for _, tag := range []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD} {
		rules = append(rules, rule("hidden behind three VLAN tags", fmt.Sprintf("@nh,16,16 %#x", tag)+drop(families[kernel.IPv4].counter)))
	}
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		f := families[family]
		rules = append(rules, rule("the same, behind two VLAN tags",
			fmt.Sprintf("@nh,16,16 %#x %s @%s", f.etherType, f.sourceBehindTag, sets[family])+drop(f.counter)))
	}
	return rules
}

func drop(counter string) string { return " counter name " + counter + " drop" }

func rule(purpose, text string) nft.Rule { return spec().Commented(purpose, text) }

// granted reads from a table which addresses interfaces have been granted.
func granted(held nft.Held) Grants {
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

// String describes the refusal for logs and people.
func (r Refusal) String() string {
	if r.Owner == "" {
		return fmt.Sprintf("%s is an additional address behind %s", r.Address, r.Interface)
	}
	return fmt.Sprintf("%s is behind %s, and behind %s, to which it belongs", r.Address, r.Interface, r.Owner)
}
