package portsecurity

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func addrs(texts ...string) (addresses []netip.Addr) {
	for _, text := range texts {
		addresses = append(addresses, netip.MustParseAddr(text))
	}
	return addresses
}

// TestAssign_Told: what the CNI plugin has told counts whole, and before what the kernel tells. Of interfaces that the kernel
// tells the same address of, the one that was made first has it.
func TestAssign_Told(t *testing.T) {
	one, two := Link{Index: 1, Name: "veth1"}, Link{Index: 2, Name: "veth2"}
	for name, test := range map[string]struct {
		before     Grants
		interfaces []Interface
		told       []Told
		want       Grants
		refused    []Refusal
	}{
		"the plugin's word against the kernel's": {
			interfaces: []Interface{{Link: one, Behind: addrs("10.128.0.12", "10.128.0.11")}, {Link: two}},
			told:       []Told{{[]string{"veth1"}, addrs("10.128.0.11")}, {[]string{"veth2"}, addrs("10.128.0.12")}},
			want:       Grants{one: addrs("10.128.0.11"), two: addrs("10.128.0.12")},
			refused:    []Refusal{{addrs("10.128.0.12")[0], "veth1", "veth2"}},
		},
		"the plugin's word against an earlier grant": {
			before:     Grants{one: addrs("10.128.0.12", "fd00::11")},
			interfaces: []Interface{{Link: one, Behind: addrs("10.128.0.12", "fd00::11")}},
			told:       []Told{{[]string{"veth1"}, addrs("10.128.0.11")}},
			want:       Grants{one: addrs("10.128.0.11", "fd00::11")},
			refused:    []Refusal{{addrs("10.128.0.12")[0], "veth1", ""}},
		},
		"several addresses of a family, and a bridge": {
			interfaces: []Interface{{Link: one, Behind: addrs("10.128.0.11", "10.129.0.11", "10.130.0.11")}},
			told:       []Told{{[]string{"cni0", "veth1"}, addrs("10.128.0.11", "10.129.0.11", "fd00::11", "fd00::12")}},
			want:       Grants{one: addrs("10.128.0.11", "10.129.0.11", "fd00::11", "fd00::12")},
			refused:    []Refusal{{addrs("10.130.0.11")[0], "veth1", ""}},
		},
		"what was told of before an earlier process ended": {
			before:     Grants{one: addrs("10.128.0.11", "10.129.0.11")},
			interfaces: []Interface{{Link: one, Behind: addrs("10.129.0.11", "10.130.0.11")}},
			want:       Grants{one: addrs("10.128.0.11", "10.129.0.11")},
			refused:    []Refusal{{addrs("10.130.0.11")[0], "veth1", ""}},
		},
		"one of each family of the kernel's": {
			interfaces: []Interface{{Link: one, Behind: addrs("10.128.0.11", "fd00::11", "10.128.0.12", "fd00::12")}},
			want:       Grants{one: addrs("10.128.0.11", "fd00::11")},
			refused:    []Refusal{{addrs("10.128.0.12")[0], "veth1", ""}, {addrs("fd00::12")[0], "veth1", ""}},
		},
		"of two that are new the older one": {
			interfaces: []Interface{{Link: two, Behind: addrs("10.128.0.11")}, {Link: one, Behind: addrs("10.128.0.11")}},
			want:       Grants{one: addrs("10.128.0.11")},
			refused:    []Refusal{{addrs("10.128.0.11")[0], "veth2", "veth1"}},
		},
		"an interface that does not exist": {
			interfaces: []Interface{{Link: two, Behind: addrs("10.128.0.11")}},
			told:       []Told{{[]string{"veth1"}, addrs("10.128.0.11")}},
			want:       Grants{two: addrs("10.128.0.11")},
		},
	} {
		got, refused := Assign(test.before, test.interfaces, test.told)
		if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s: grants (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.refused, refused, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s: refused (-want +got):\n%s", name, diff)
		}
	}
}
