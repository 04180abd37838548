package steering

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestTracer_NamesRulesOfTheTable: what is said to decide about a packet is part of a rule that the Writer writes, by the element that it names.
func TestTracer_NamesRulesOfTheTable(t *testing.T) {
	addr := netip.MustParseAddr
	pod, all, egressIP := addr("10.128.0.11"), addr("10.128.0.12"), addr("203.0.113.10")
	d := kernel.Desired{Bindings: kernel.Sorted([]kernel.Binding{
		{Pod: pod, Protocol: kernel.TCP, EgressIP: egressIP}, {Pod: all, Protocol: kernel.All, EgressIP: egressIP},
	})}
	d.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	withBlock := d
	withBlock.Steering.Blocks = []kernel.Block{
		{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 3071}, Second: true}, {Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: 1024, Last: 2047}},
	}
	outside := addr("198.51.100.7")
	for name, test := range map[string]struct {
		desired       kernel.Desired
		packet        Packet
		rule, element string
		leaves        netip.Addr
	}{
		"to the outside":   {d, Packet{pod, outside, kernel.TCP}, "ip saddr . meta l4proto vmap @sources", "10.128.0.11 . tcp : goto from-203.0.113.10", egressIP},
		"of all protocols": {d, Packet{all, outside, kernel.All}, "ip saddr vmap @pod-sources", "10.128.0.12 : goto from-203.0.113.10", egressIP},
		"by UDP, of one that is bound for all": {
			d, Packet{all, outside, kernel.UDP}, "ip saddr vmap @pod-sources", "10.128.0.12 : goto from-203.0.113.10", egressIP,
		},
		"of another protocol": {d, Packet{pod, outside, kernel.UDP}, "", "", netip.Addr{}},
		"to a pod": {
			d, Packet{pod, all, kernel.TCP},
			"ip daddr @exclusions accept", "10.128.0.0-10.131.255.255", netip.Addr{},
		},
		"to its own egress IP": {
			d, Packet{all, egressIP, kernel.TCP}, "ip daddr 203.0.113.10 accept", "10.128.0.12 : goto from-203.0.113.10", netip.Addr{},
		},
		"from ports of its own": {
			withBlock, Packet{pod, outside, kernel.TCP}, "snat ip to ip saddr . meta l4proto map @blocks", "10.128.0.11 . tcp : 203.0.113.10 . 2048-3071", egressIP,
		},
	} {
		step, leaves := NewTracer(kernel.IPv4, test.desired).Trace(test.packet)
		if step != (Step{test.rule, test.element}) || leaves != test.leaves {
			t.Errorf("%s: %q with %q, from %s; want %q with %q, from %s", name, step.Rule, step.Element, leaves, test.rule, test.element, test.leaves)
		}
		config := Config{Family: kernel.IPv4, NodeIP: addr("192.0.2.1"), Transport: VXLAN, Port: 4799, MarkMask: 0x7e, PortBlocks: true}
		l := newLayout(config)
		text, err := l.spec.Text(l.stateOf(newContent(config, test.desired, nil), nil, links{}))
		if err != nil || !strings.Contains(text, test.rule) || !strings.Contains(text, test.element) {
			t.Errorf("%s: %v; the table has no rule %q, or no element %q:\n%s", name, err, test.rule, test.element, text)
		}
	}
}

func TestLocal_TracerNamesRulesOfTheTable(t *testing.T) {
	addr := netip.MustParseAddr
	for family, test := range map[kernel.Family]struct {
		pod, egressIP netip.Addr
		cluster       netip.Prefix
		elements      map[string]string
	}{
		kernel.IPv4: {addr("10.128.0.11"), addr("203.0.113.10"), lab.ClusterV4, map[string]string{
			"198.51.100.7": "10.128.0.11 . tcp : 203.0.113.10", "203.0.113.10": "10.128.0.11 . tcp . 203.0.113.10", "10.128.0.12": "10.128.0.0-10.131.255.255",
		}},
		kernel.IPv6: {addr("fd00:10:128::11"), addr("2001:db8::10"), netip.MustParsePrefix("fd00:10:128::/48"), map[string]string{
			"2001:db8:1::7": "fd00:10:128::11 . tcp : 2001:db8::10", "2001:db8::10": "fd00:10:128::11 . tcp . 2001:db8::10",
			"fd00:10:128::12": "fd00:10:128::-fd00:10:128:ffff:ffff:ffff:ffff:ffff",
		}},
	} {
		d := kernel.Desired{Bindings: []kernel.Binding{{Pod: test.pod, Protocol: kernel.TCP, EgressIP: test.egressIP}}}
		d.ClusterCIDRs = []netip.Prefix{test.cluster}
		text, err := LocalText(family, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		for to, element := range test.elements {
			step, _ := NewLocalTracer(family, d).Trace(Packet{test.pod, addr(to), kernel.TCP})
			if step.Element != element || step.Rule == "" || !strings.Contains(text, step.Rule) || !strings.Contains(text, element) {
				t.Errorf("to %s: %+v, want the element %q, and a rule of\n%s", to, step, element, text)
			}
		}
	}
}
