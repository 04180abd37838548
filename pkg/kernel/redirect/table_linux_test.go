package redirect

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// TestRedirectsIn_ReadsWhatWasWritten, also by the version whose marks were no hashes.
func TestRedirectsIn_ReadsWhatWasWritten(t *testing.T) {
	secure, insecure := netip.MustParseAddrPort("[2001:db8::10]:10263"), netip.MustParseAddrPort("[2001:db8::10]:10264")
	for _, others := range []bool{false, true} {
		want := kernel.Redirects{
			Nodes: []netip.Addr{netip.MustParseAddr("2001:db8::50")}, Others: others,
			Secure: kernel.Target{To: secure, Ports: []uint16{10250}}, Insecure: kernel.Target{To: insecure, Ports: []uint16{9100, 10255}},
		}
		state := newTableDriver(kernel.IPv6).stateOf(want, nil)
		now := nft.Held{Sets: state.Sets, Chains: map[string][]string{}}
		for chain, rules := range state.Chains {
			for _, r := range rules {
				now.Chains[chain] = append(now.Chains[chain], r.Mark)
			}
		}
		to := map[bool]string{false: "to nodes", true: "to others than nodes"}[others]
		before := nft.Held{Sets: state.Sets, Chains: map[string][]string{
			outputChain:   {"openshift-tunnel 1 " + to},
			redirectChain: {"openshift-tunnel 1 secure: " + secure.String(), "openshift-tunnel 1 insecure: " + insecure.String()},
		}}
		for version, held := range map[string]nft.Held{"this one": now, "the one before": before} {
			if got := redirectsIn(held); !got.Equal(want) {
				t.Errorf("%s: got %+v, want %+v", version, got, want)
			}
		}
	}
}
