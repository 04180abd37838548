package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPrimaryAddresses_OfNodes: what counts of what kubelets say, by the rules of the package's comment, and what they are told.
func TestPrimaryAddresses_OfNodes(t *testing.T) {
	node := func(name string, age int, ips ...string) Node {
		return Node{Name: name, Created: time.Unix(int64(1000-age), 0), InternalIPs: addrs(ips...)}
	}
	with := func(node Node, ips ...string) Node {
		node.Registered = append([]netip.Addr{}, addrs(ips...)...)
		return node
	}
	in := Input{
		ClusterCIDRs: prefixes("10.128.0.0/14", "fd00:10::/48"), ServiceCIDRs: prefixes("172.30.0.0/16"), AssignCIDRs: prefixes("192.0.2.96/27"),
		NamespaceCIDRs: map[string][]netip.Prefix{"bank": prefixes("198.51.100.0/28"), EveryOther: prefixes("192.0.2.0/24")},
	}
	type told map[string][]string // parts of the messages, by node
	tests := map[string]struct {
		nodes []Node
		allow bool
		want  map[string]string
		told  told
	}{
		"the first counts":         {nodes: []Node{node("n", 1, "192.0.2.2", "192.0.2.3")}, want: map[string]string{"n": "192.0.2.2"}},
		"no address":               {nodes: []Node{node("n", 1)}},
		"a pod's":                  {nodes: []Node{node("n", 1, "10.128.0.5")}, told: told{"n": {"10.128.0.5 of the node n is ignored because it lies in the cluster CIDR 10.128.0.0/14"}}},
		"a pod's, IPv6":            {nodes: []Node{node("n", 1, "fd00:10::5", "2001:db8::2")}, want: map[string]string{"n": "2001:db8::2"}, told: told{"n": {"cluster CIDR fd00:10::/48"}}},
		"a Service's":              {nodes: []Node{node("n", 1, "192.0.2.2", "172.30.0.1")}, want: map[string]string{"n": "192.0.2.2"}, told: told{"n": {"service CIDR 172.30.0.0/16"}}},
		"of the pool":              {nodes: []Node{node("n", 1, "192.0.2.100", "192.0.2.2")}, want: map[string]string{"n": "192.0.2.2"}, told: told{"n": {"192.0.2.96/27 of proxyArguments.egress-snat-assign-cidrs"}}},
		"reserved":                 {nodes: []Node{node("n", 1, "198.51.100.3")}, told: told{"n": {"198.51.100.0/28 of proxyArguments.egress-snat-namespace-cidrs"}}},
		"of the pool, allowed":     {nodes: []Node{node("n", 1, "192.0.2.100", "198.51.100.3")}, allow: true, want: map[string]string{"n": "192.0.2.100"}},
		"a pod's is never":         {nodes: []Node{node("n", 1, "10.128.0.5")}, allow: true, told: told{"n": {"10.128.0.5"}}},
		"no unicast address":       {nodes: []Node{node("n", 1, "224.0.0.1", "127.0.0.1", "192.0.2.2")}, want: map[string]string{"n": "192.0.2.2"}, told: told{"n": {"127.0.0.1", "224.0.0.1"}}},
		"of two, both keep it":     {nodes: []Node{node("old", 2, "192.0.2.2"), node("a", 1, "192.0.2.2")}, want: map[string]string{"old": "192.0.2.2", "a": "192.0.2.2"}, told: told{"a": {"192.0.2.2 of the node a is that of another node, old"}}},
		"of the same age":          {nodes: []Node{node("b", 1, "192.0.2.2"), node("a", 1, "192.0.2.2")}, want: map[string]string{"b": "192.0.2.2", "a": "192.0.2.2"}, told: told{"b": {"another node, a"}}},
		"a second one is no claim": {nodes: []Node{node("old", 2, "192.0.2.3", "192.0.2.2"), node("a", 1, "192.0.2.2")}, want: map[string]string{"old": "192.0.2.3", "a": "192.0.2.2"}},
		"a few are told": {nodes: []Node{node("n", 1, "10.128.0.1", "10.128.0.2", "10.128.0.3", "10.128.0.4", "10.128.0.5", "10.128.0.6", "10.128.0.7")},
			told: told{"n": {"10.128.0.1", "10.128.0.2", "10.128.0.3", "10.128.0.4", "10.128.0.5"}}},
		"each once": {nodes: []Node{node("n", 1, "10.128.0.1", "10.128.0.1", "10.128.0.1", "10.128.0.1", "10.128.0.1", "10.128.0.2")},
			told: told{"n": {"10.128.0.1", "10.128.0.2"}}},
		"the registered one counts": {nodes: []Node{with(node("n", 1, "192.0.2.3", "192.0.2.2", "192.0.2.4"), "192.0.2.2", "192.0.2.4")}, want: map[string]string{"n": "192.0.2.2"},
			told: told{"n": {"192.0.2.3 of the node n is ignored because it is not the one that it registered with"}}},
		"the first registered one counts": {nodes: []Node{with(node("n", 1, "192.0.2.4", "192.0.2.2"), "192.0.2.2", "192.0.2.4")}, want: map[string]string{"n": "192.0.2.2"},
			told: told{"n": {"192.0.2.4 of the node n is ignored because it is not the one that it registered with"}}},
		"the second registered one is another": {nodes: []Node{with(node("n", 1, "192.0.2.4"), "192.0.2.2", "192.0.2.4")}, want: map[string]string{"n": "192.0.2.4"},
			told: told{"n": {"192.0.2.4 of the node n is not the one that it registered with"}}},
		"a registered one that is ignored": {nodes: []Node{with(node("n", 1, "192.0.2.2"), "10.128.0.5", "192.0.2.2")}, want: map[string]string{"n": "192.0.2.2"}},
		"not registered": {nodes: []Node{with(node("n", 1, "10.128.0.5", "192.0.2.3", "192.0.2.4"))}, want: map[string]string{"n": "192.0.2.3"},
			told: told{"n": {"10.128.0.5 of the node n is ignored", "192.0.2.3 of the node n is not the one that it registered with"}}},
		"not registered, of an older node": {nodes: []Node{with(node("liar", 2, "192.0.2.2"), "192.0.2.3"), node("old", 1, "192.0.2.2")}, want: map[string]string{"old": "192.0.2.2", "liar": "192.0.2.2"},
			told: told{"liar": {"192.0.2.2 of the node liar is that of another node, old"}}},
		"another node's is told first": {nodes: []Node{node("old", 2, "192.0.2.2"), node("n", 1, "10.128.0.1", "10.128.0.2", "10.128.0.3", "10.128.0.4", "10.128.0.5", "192.0.2.2")},
			want: map[string]string{"old": "192.0.2.2", "n": "192.0.2.2"},
			told: told{"n": {"10.128.0.1", "10.128.0.2", "10.128.0.3", "10.128.0.4", "192.0.2.2 of the node n is that of another node, old"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Nodes, in.AllowNodeIPs = test.nodes, test.allow
			primary, oldest, byAge, faults := PrimaryAddresses(in)
			got := map[string]string{}
			for name, ip := range primary {
				got[name] = ip.String()
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, both := test.want["old"]; both && oldest[primary["old"]] != "old" {
				t.Errorf("%s is that of %s, want the oldest node", primary["old"], oldest[primary["old"]])
			}
			if len(byAge) != len(oldest) || len(byAge) > 0 && test.want["old"] != "" && byAge[0] != primary["old"] {
				t.Errorf("by age %v, want all of %v, and the oldest node's first", byAge, oldest)
			}
			for _, fault := range faults {
				if want := test.told[fault.Node]; len(want) == 0 || !strings.Contains(fault.Message, want[0]) {
					t.Errorf("told: %+v, want %q", fault, want)
				} else {
					test.told[fault.Node] = want[1:]
				}
			}
			for name, left := range test.told {
				if len(left) > 0 {
					t.Errorf("%s: %q is not told", name, left)
				}
			}
		})
	}
}

// TestBuild_LyingNodes: whatever a Node tells, pods behind a Service whose egress IP lies in an egress network stay bound to it,
// and the plan excludes no more than one address of it.
func TestBuild_LyingNodes(t *testing.T) {
	pod := owned("a", 0, "203.0.113.1", "10.128.0.5")
	pod.Endpoints[0].Node = "honest"
	in := Input{
		ClusterCIDRs: prefixes("10.128.0.0/14"), AssignCIDRs: prefixes("203.0.113.0/28"), ExcludeNodes: true, Claims: []Claim{pod},
		Nodes: []Node{{Name: "honest", Created: time.Unix(2, 0), InternalIPs: addrs("192.0.2.2")}},
	}
	for _, created := range []int64{1, 3} { // before the other, and after
		for _, lie := range [][]string{{"203.0.113.1"}, {"10.128.0.5"}, {"192.0.2.2"}, {"203.0.113.1", "10.128.0.5", "192.0.2.2", "192.0.2.3", "198.51.100.7"}} {
			in.Nodes = append(in.Nodes[:1:1], Node{Name: "liar", Created: time.Unix(created, 0), InternalIPs: addrs(lie...)})
			p := Build(in)
			if len(p.Bindings) != 1 || len(p.Refusals) != 0 {
				t.Errorf("the lie %s: bindings %v, refusals %v", lie, p.Bindings, p.Refusals)
			}
			if diff := cmp.Diff(prefixes("192.0.2.2/32"), p.Exclusions, compareNetip); diff != "" {
				t.Errorf("the lie %s: exclusions (-want +got):\n%s", lie, diff)
			}
			if primary, _, _, _ := PrimaryAddresses(in); primary["honest"] != addr("192.0.2.2") {
				t.Errorf("the lie %s takes the other node's address: %s", lie, primary)
			}
		}
	}
}

// TestBuild_AddedAddresses: whatever a Node that has registered tells later, also an egress IP outside of all egress networks or a
// partner's address, and in whatever order, pods stay bound and the partner is not excluded.
func TestBuild_AddedAddresses(t *testing.T) {
	pod := owned("a", 0, "203.0.113.1", "10.128.0.5")
	pod.Endpoints[0].Node = "honest"
	own := addr("192.0.2.3")
	for _, registered := range [][]string{{"192.0.2.3"}, {"192.0.2.3", "203.0.113.1", "198.51.100.7"}, {}} {
		for _, told := range [][]string{{"203.0.113.1"}, {"198.51.100.7"}, {"203.0.113.1", "192.0.2.3"}, {"198.51.100.7", "203.0.113.1", "192.0.2.3"}, {"192.0.2.2"}, {"10.128.0.5"}} {
			liar := Node{Name: "liar", InternalIPs: addrs(told...), Registered: append([]netip.Addr{}, addrs(registered...)...)}
			in := Input{
				ClusterCIDRs: prefixes("10.128.0.0/14"), ExcludeNodes: true, Claims: []Claim{pod},
				Nodes: []Node{{Name: "honest", Created: time.Unix(2, 0), InternalIPs: addrs("192.0.2.2")}, liar},
			}
			p, want := Build(in), prefixes("192.0.2.2/32")
			if slices.Contains(liar.InternalIPs, own) && len(registered) > 0 {
				want = prefixes("192.0.2.2/32", "192.0.2.3/32")
			}
			if len(p.Bindings) != 1 || len(p.Refusals) != 0 {
				t.Errorf("registered with %s, tells %s: bindings %v, refusals %v", registered, told, p.Bindings, p.Refusals)
			}
			if diff := cmp.Diff(want, p.Exclusions, compareNetip); diff != "" {
				t.Errorf("registered with %s, tells %s: exclusions (-want +got):\n%s", registered, told, diff)
			}
			if _, _, _, faults := PrimaryAddresses(in); len(faults) == 0 || faults[0].Node != "liar" {
				t.Errorf("registered with %s, tells %s: told %v", registered, told, faults)
			}
		}
	}
}
