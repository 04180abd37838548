package plan

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBuild_PinnedNetworks: each namespace's only Service claims the same address, the first one is
// the oldest. Those that may not have it neither leave from it nor own it.
func TestBuild_PinnedNetworks(t *testing.T) {
	type cidrs = map[string][]netip.Prefix
	const ip = "203.0.113.1"
	tests := []struct {
		name       string
		cidrs      cidrs
		namespaces []string
		want       map[string]Reason // why they are refused; nothing for the one that is bound
	}{
		{"no pins: the oldest", nil, []string{"old", "young"}, map[string]Reason{"young": OwnedByOtherNamespace}},
		{"a namespace that is not named has no pinned address, however old it is",
			cidrs{"bank": prefixes("203.0.113.0/28")}, []string{"old", "bank"}, map[string]Reason{"old": NotAllowed}},
		{"not even if the other does not want it",
			cidrs{"bank": prefixes("203.0.113.0/28")}, []string{"old"}, map[string]Reason{"old": NotAllowed}},
		{"nor one that is pinned elsewhere",
			cidrs{"bank": prefixes("203.0.113.0/28"), "old": prefixes("198.51.100.0/24")}, []string{"old", "bank"}, map[string]Reason{"old": NotAllowed}},
		{"of a network that two share the older has the address",
			cidrs{"a": prefixes("203.0.113.0/28"), "b": prefixes("203.0.113.0/28")}, []string{"b", "a"}, map[string]Reason{"a": OwnedByOtherNamespace}},
		{"a network inside another's takes nothing from it",
			cidrs{"a": prefixes("203.0.113.0/24"), "b": prefixes("203.0.113.1/32")}, []string{"a", "b"}, map[string]Reason{"b": OwnedByOtherNamespace}},
		{"and gets all of its own",
			cidrs{"a": prefixes("203.0.113.0/24"), "b": prefixes("203.0.113.1/32")}, []string{"b", "a"}, map[string]Reason{"a": OwnedByOtherNamespace}},
		{"any of a namespace's own networks",
			cidrs{"a": prefixes("198.51.100.0/24", "2001:db8::/32", "203.0.113.0/24")}, []string{"a"}, map[string]Reason{}},
		{"a namespace that is named has nothing of the other IP family",
			cidrs{"a": prefixes("2001:db8::/32")}, []string{"a"}, map[string]Reason{"a": NotAllowed}},
		{"who is not named has what is pinned to none",
			cidrs{"bank": prefixes("198.51.100.0/24")}, []string{"old"}, map[string]Reason{}},
		{"who is not named has the networks of all others",
			cidrs{EveryOther: prefixes("203.0.113.0/24")}, []string{"old"}, map[string]Reason{}},
		{"and nothing else",
			cidrs{EveryOther: prefixes("198.51.100.0/24")}, []string{"old"}, map[string]Reason{"old": NotAllowed}},
		{"nor what of them is pinned",
			cidrs{EveryOther: prefixes("203.0.113.0/24"), "bank": prefixes("203.0.113.0/28")}, []string{"old", "bank"}, map[string]Reason{"old": NotAllowed}},
		{"who is named does not have the networks of all others",
			cidrs{EveryOther: prefixes("203.0.113.0/24"), "bank": prefixes("198.51.100.0/24")}, []string{"bank", "young"}, map[string]Reason{"bank": NotAllowed}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := Input{ClusterCIDRs: prefixes("10.128.0.0/14"), NamespaceCIDRs: test.cidrs}
			for i, namespace := range test.namespaces {
				in.Claims = append(in.Claims, owned(namespace, 9-i, ip, "10.128.0.5"))
			}
			p := Build(in)
			got := map[string]Reason{}
			for _, r := range p.Refusals {
				got[r.Service.Namespace] = r.Reason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if want := len(test.namespaces) - len(test.want); len(p.Bindings) != want {
				t.Errorf("bindings %v; want %d", p.Bindings, want)
			}
		})
	}
}

// TestBuild_PinnedNetworkMessages: a refusal names the argument and what to write there.
func TestBuild_PinnedNetworkMessages(t *testing.T) {
	const argument = "proxyArguments.egress-snat-namespace-cidrs"
	named := map[string][]netip.Prefix{"bank": prefixes("203.0.113.0/28")}
	everyOther := maps.Clone(named)
	everyOther[EveryOther] = prefixes("198.51.100.0/24")
	for _, test := range []struct {
		cidrs         map[string][]netip.Prefix
		namespace, ip string
		want          []string
	}{
		{named, "shop", "203.0.113.1", []string{"203.0.113.0/28", argument, "shop=203.0.113.1/32"}},
		{named, "bank", "192.0.2.1", []string{argument, "bank=192.0.2.1/32"}},
		{named, "bank", "2001:db8::1", []string{argument, "bank=2001:db8::1/128"}},
		{everyOther, "shop", "192.0.2.1", []string{argument, "*=192.0.2.1/32"}},
	} {
		message := newPins(test.cidrs).forbid(test.namespace, addr(test.ip))
		for _, want := range test.want {
			if !strings.Contains(message, want) {
				t.Errorf("%s, %s: %q lacks %q", test.namespace, test.ip, message, want)
			}
		}
	}
}
