package steering

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

func TestParts_AsPrinted(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8:0:2::2")
	up := uplink{name: "eth0", mtu: 1500}
	for name, test := range map[string]struct {
		config  Config
		up      uplink
		holders map[int]netip.Addr
		want    string
	}{
		"IPv4": {
			Config{Family: kernel.IPv4, NodeIP: v4, Transport: VXLAN, Port: 4799, MarkMask: 0x7e}, up,
			map[int]netip.Addr{2: netip.MustParseAddr("192.0.2.4"), 1: netip.MustParseAddr("192.0.2.3")},
			`ip link steer0 address 02:57:c0:00:02:02 mtu 1450 up type vxlan id 4789 local 192.0.2.2 dstport 4799 nolearning
sysctl net/ipv4/conf/steer0/rp_filter=2
sysctl net/ipv4/conf/steer0/forwarding=1
ip addr 169.254.77.0/32 dev steer0
ip neigh 169.254.77.1 lladdr 02:57:c0:00:02:03 dev steer0 nud permanent
bridge fdb 02:57:c0:00:02:03 dev steer0 dst 192.0.2.3 self permanent
ip route blackhole default table 7701 metric 4294967295 proto 77
ip route default via 169.254.77.1 dev steer0 onlink table 7701 metric 10 proto 77
ip rule pref 901 fwmark 0x2/0x7e lookup 7701 proto 77
ip neigh 169.254.77.2 lladdr 02:57:c0:00:02:04 dev steer0 nud permanent
bridge fdb 02:57:c0:00:02:04 dev steer0 dst 192.0.2.4 self permanent
ip route blackhole default table 7702 metric 4294967295 proto 77
ip route default via 169.254.77.2 dev steer0 onlink table 7702 metric 10 proto 77
ip rule pref 902 fwmark 0x4/0x7e lookup 7702 proto 77
`,
		},
		"IPv6 over IPv6, another mask": {
			Config{Family: kernel.IPv6, NodeIP: v6, Transport: VXLAN, Port: 4800, MarkMask: 0xfe000000}, up,
			map[int]netip.Addr{60: netip.MustParseAddr("2001:db8:0:2::3")},
			`ip link steer0 address 02:57:af:ec:85:47 mtu 1430 up type vxlan id 4789 local 2001:db8:0:2::2 dstport 4800 nolearning
sysctl net/ipv6/conf/steer0/disable_ipv6=0
sysctl net/ipv6/conf/steer0/accept_ra=0
ip neigh fe80::57:3c lladdr 02:57:ae:ec:83:b4 dev steer0 nud permanent
bridge fdb 02:57:ae:ec:83:b4 dev steer0 dst 2001:db8:0:2::3 self permanent
ip -6 route blackhole default table 7760 metric 4294967295 proto 77
ip -6 route default via fe80::57:3c dev steer0 onlink table 7760 metric 10 proto 77
ip -6 rule pref 960 fwmark 0x78000000/0xfe000000 lookup 7760 proto 77
`,
		},
		"direct": {
			Config{Family: kernel.IPv4, NodeIP: v4, Transport: Direct, MarkMask: 0x7e}, uplink{name: "eth0", mtu: 1500},
			map[int]netip.Addr{1: netip.MustParseAddr("192.0.2.3")},
			`ip route blackhole default table 7701 metric 4294967295 proto 77
ip route default via 192.0.2.3 dev eth0 onlink table 7701 metric 10 proto 77
ip rule pref 901 fwmark 0x2/0x7e lookup 7701 proto 77
`,
		},
	} {
		var b strings.Builder
		for _, p := range test.config.parts(test.up, test.holders) {
			fmt.Fprintln(&b, p)
		}
		if diff := cmp.Diff(test.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNumberOf_EachPart(t *testing.T) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		c := Config{Family: family, NodeIP: netip.MustParseAddr("192.0.2.2"), Transport: VXLAN, MarkMask: 0x7e}
		for number := 1; number <= maxNumber; number++ {
			for _, p := range c.holderParts(uplink{}, number, netip.MustParseAddr("192.0.2.3")) {
				if _, shared := p.(remote); !shared && numberOf(p) != number {
					t.Errorf("%s: number %d, want %d", p, numberOf(p), number)
				}
			}
		}
	}
}

func TestCompare_InWords(t *testing.T) {
	r := ipRule{family: kernel.IPv4, preference: 901, mark: 2, mask: 0x7e, lookupTable: 7701}
	other := ipRule{family: kernel.IPv4, preference: 901, mark: 4, mask: 0x7e, lookupTable: 7701}
	on, off := sysctl{"net/ipv4/conf/steer0/forwarding", "1"}, sysctl{"net/ipv4/conf/steer0/forwarding", "0"}
	for name, test := range map[string]struct {
		want, held []part
		lines      []string
	}{
		"the same":   {[]part{r, on}, []part{on, r}, nil},
		"missing":    {[]part{r, on}, []part{on}, []string{r.String() + ": is missing"}},
		"unexpected": {[]part{r}, []part{r, other}, []string{other.String() + ": is unexpected"}},
		"twice":      {[]part{r}, []part{r, r}, []string{r.String() + ": is unexpected"}},
		"another":    {[]part{on}, []part{off}, []string{off.String() + ": should be: " + on.String()}},
	} {
		if diff := cmp.Diff(test.lines, describeParts(compareParts(test.want, test.held))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestClashes_WithBitsOfTheMark(t *testing.T) {
	c := Config{MarkMask: 0x7e}
	for _, test := range []struct {
		mark, mask uint32
		want       bool
	}{
		{0, 0, false},                // no mark
		{0x4000, 0xc000, false},      // kube-proxy
		{0x80, 0x80, false},          // AWS
		{0x200, 0xf00, false},        // Cilium
		{0, 0xff, false},             // only packets without our bits
		{0x300, 0xffffffff, false},   // the same
		{0xca6c, 0xffffffff, true},   // wg-quick
		{0x1745ec, 0xffffffff, true}, // OVN-Kubernetes
		{0x2, 0x2, true},
	} {
		if got := c.clashes(test.mark, test.mask); got != test.want {
			t.Errorf("%#x/%#x: %t, want %t", test.mark, test.mask, got, test.want)
		}
	}
}
