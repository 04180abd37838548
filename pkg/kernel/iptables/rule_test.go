package iptables

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// addresses compares addresses, whose fields cmp cannot see.
var addresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func TestKernel_BindingsOfTheRules(t *testing.T) {
	binding := func(pod string, protocol kernel.Protocol, egressIP string) kernel.Binding {
		return kernel.Binding{Pod: netip.MustParseAddr(pod), Protocol: protocol, EgressIP: netip.MustParseAddr(egressIP)}
	}
	k := Kernel{Chains: Ruleset{
		RootChain: {
			"-d 10.128.0.0/14 -j RETURN",
			"-s 10.128.0.0/20 -g " + ChainPrefix + "0A800000-20",
			"-s 10.128.0.7/32 ! -d 203.0.113.7/32 -j SNAT --to-source 203.0.113.7 --random-fully",
		},
		ChainPrefix + "0A800000-20": {
			"-s 10.128.0.5/32 ! -d 203.0.113.1/32 -p udp -j SNAT --to-source 203.0.113.1 --random-fully",
			// As versions before this one wrote it.
			"-s 10.128.0.5/32 -p sctp -j SNAT --to-source 203.0.113.1 --random-fully",
		},
		RemovedChain: {
			"-s 10.128.0.5/32 ! -d 203.0.113.1/32 -p udp -j SNAT --to-source 203.0.113.1 --random-fully",
			"-s 10.128.0.4/32 ! -d 203.0.113.2/32 -p tcp -j SNAT --to-source 203.0.113.2 --random-fully",
		},
		ChainPrefix + "BY-HAND": {
			"-j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.0/24 -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 -d 192.0.2.1/32 -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 -j SNAT --to-source 203.0.113.9-203.0.113.10",
			"-s 10.128.0.9/32 -j SNAT --to-source",
			"-s 10.128.0.9/32 -p tcp -m tcp --dport 80 -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 -p udplite -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 -o eth0 -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 ! -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/99 -j SNAT --to-source 203.0.113.9",
			"-s 10.128.0.9/32 -j SNAT --to-source 203.0.113.9 --persistent",
			"-s 10.128.0.9/32 -j MASQUERADE",
			"-s",
			"",
		},
	}}
	want := []kernel.Binding{
		binding("10.128.0.4", kernel.TCP, "203.0.113.2"),
		binding("10.128.0.5", kernel.SCTP, "203.0.113.1"),
		binding("10.128.0.5", kernel.UDP, "203.0.113.1"),
		binding("10.128.0.7", kernel.All, "203.0.113.7"),
	}
	if diff := cmp.Diff(want, k.Bindings(), addresses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAddressText_AsIptablesPrintsIt: as inet_ntop of the C library prints them.
func TestAddressText_AsIptablesPrintsIt(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.1": "203.0.113.1",
		"2001:db8::1": "2001:db8::1",
		"::":          "::",
		"::1":         "::1",
		"::102:304":   "::1.2.3.4",
		"::102:0":     "::1.2.0.0",
	} {
		ip := netip.MustParseAddr(address)
		if got := addressText(ip); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
		if back, err := netip.ParseAddr(want); err != nil || back != ip {
			t.Errorf("%s is read back as %s, %v", want, back, err)
		}
	}
}
