package redirect

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// TestHeldBy_FormerRules: what rules of a former version stand for, with the IP sets that they name.
func TestHeldBy_FormerRules(t *testing.T) {
	addr, port := netip.MustParseAddr, netip.MustParseAddrPort
	sets := map[string]formerSet{
		"openshift-tunnel-4b-nodes":    {addresses: []netip.Addr{addr("192.0.2.5"), addr("192.0.2.6")}},
		"openshift-tunnel-4b-secure":   {ports: []uint16{9443, 10250}},
		"openshift-tunnel-4b-insecure": {ports: []uint16{9100}},
	}
	rules := func(not string) iptables.Ruleset {
		return iptables.Ruleset{
			nodesChain: {"-m set " + not + "--match-set openshift-tunnel-4b-nodes dst -m addrtype ! --dst-type LOCAL -g " + toChain},
			podsChain:  {"-s 10.128.0.0/14 -g " + nodesChain},
			toChain: {
				"-p tcp -m set --match-set openshift-tunnel-4b-secure dst -j DNAT --to-destination 192.0.2.10:10263",
				"-p tcp -m set --match-set openshift-tunnel-4b-insecure dst -j DNAT --to-destination 192.0.2.10:10264",
			},
		}
	}
	for _, others := range []bool{false, true} {
		want := kernel.Redirects{
			Nodes: sets["openshift-tunnel-4b-nodes"].addresses, Others: others, Sources: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
			Secure:   kernel.Target{To: port("192.0.2.10:10263"), Ports: []uint16{9443, 10250}},
			Insecure: kernel.Target{To: port("192.0.2.10:10264"), Ports: []uint16{9100}},
		}
		if got := heldBy(rules(map[bool]string{true: "! "}[others]), sets); !got.Equal(want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
