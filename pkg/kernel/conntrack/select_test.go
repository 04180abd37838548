package conntrack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

const udp, icmp, icmpv6, esp, sctp = 17, 1, 58, 50, 132

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func prefixes(list ...string) (result []netip.Prefix) {
	for _, s := range list {
		result = append(result, netip.MustParsePrefix(s))
	}
	return result
}

func binding(pod string, protocol kernel.Protocol, egressIP string) kernel.Binding {
	return kernel.Binding{Pod: addr(pod), Protocol: protocol, EgressIP: addr(egressIP)}
}

func pods(list ...string) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, s := range list {
		set[addr(s)] = true
	}
	return set
}

// flow is a flow of zone 0.
func flow(protocol uint8, source, destination, seenAs string) Flow {
	f := Flow{Protocol: protocol, Source: addr(source), SeenAs: addr(seenAs), Answered: true}
	if ap, err := netip.ParseAddrPort(destination); err == nil {
		f.Destination = ap
	} else {
		f.Destination = netip.AddrPortFrom(addr(destination), 0)
	}
	return f
}

func inZone(zone uint16, f Flow) Flow {
	f.Zone = zone
	return f
}

func unanswered(f Flow) Flow {
	f.Answered = false
	return f
}

func keepsPort(f Flow) Flow {
	f.KeepsPort = true
	return f
}

// network is what a flow of one IP family can have to do with.
type network struct {
	pod, other, unbound      string
	egressIP, otherEgressIP  string
	node, secondNode         string
	outside, excluded        string
	cluster, exclusion, self string
}

var networks = map[kernel.Family]network{
	kernel.IPv4: {
		pod: "10.128.0.5", other: "10.128.0.6", unbound: "10.129.0.7", egressIP: "203.0.113.1", otherEgressIP: "203.0.113.2",
		node: "192.0.2.2", secondNode: "192.0.2.3", outside: "198.51.100.9", excluded: "169.254.169.254",
		cluster: "10.128.0.0/14", exclusion: "169.254.0.0/16", self: "127.0.0.1",
	},
	kernel.IPv6: {
		pod: "fd00:10:128::5", other: "fd00:10:128::6", unbound: "fd00:10:128:1::7", egressIP: "2001:db8:113::1", otherEgressIP: "2001:db8:113::2",
		node: "2001:db8:0:2::2", secondNode: "2001:db8:0:2::3", outside: "2001:db8:51::9", excluded: "fe80::1",
		cluster: "fd00:10:128::/48", exclusion: "fe80::/10", self: "::1",
	},
}

// plan returns one in which bindings hold.
func (n network) plan(bindings ...kernel.Binding) kernel.Desired {
	return kernel.Desired{
		Networks: kernel.Networks{
			ClusterCIDRs: prefixes(n.cluster),
			Exclusions:   append(prefixes(n.exclusion), netip.PrefixFrom(addr(n.secondNode), addr(n.secondNode).BitLen())),
		},
		Bindings: bindings,
	}
}

func (n network) local() kernel.CIDRSet {
	var local []netip.Prefix
	for _, ip := range []string{n.node, n.self} {
		local = append(local, netip.PrefixFrom(addr(ip), addr(ip).BitLen()))
	}
	return kernel.NewCIDRSet(local)
}

func TestSelector_JudgesIdentities(t *testing.T) {
	all := Scope{All: true}
	for family, n := range networks {
		web := binding(n.pod, kernel.TCP, n.egressIP)
		every := binding(n.pod, kernel.All, n.egressIP)
		removed := func(b ...kernel.Binding) Scope { return Scope{Removed: b} }
		tests := []struct {
			name  string
			after []kernel.Binding
			scope Scope
			flow  Flow
			want  Verdict
		}{
			{"bound, seen as its own address", []kernel.Binding{web}, all, flow(tcp, n.pod, n.outside, n.pod), Ends},
			{"bound, seen as the node's address", []kernel.Binding{web}, all, flow(tcp, n.pod, n.outside, n.node), Ends},
			{"bound, seen as another's egress IP", []kernel.Binding{web}, all, flow(tcp, n.pod, n.outside, n.otherEgressIP), Ends},
			{"bound, in scope by name", []kernel.Binding{web}, Scope{Pods: pods(n.pod)}, flow(tcp, n.pod, n.outside, n.node), Ends},
			{"bound, but not in scope", []kernel.Binding{web}, Scope{Pods: pods(n.other)}, flow(tcp, n.pod, n.outside, n.node), Stays},
			{"nothing in scope", []kernel.Binding{web}, Scope{}, flow(tcp, n.pod, n.outside, n.node), Stays},
			{"in scope, but not bound", []kernel.Binding{web}, Scope{Pods: pods(n.pod, n.unbound)}, flow(tcp, n.unbound, n.outside, n.node), Stays},
			{"right", []kernel.Binding{web}, all, flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"not bound", []kernel.Binding{web}, all, flow(tcp, n.unbound, n.outside, n.node), Stays},
			{"not bound for this protocol", []kernel.Binding{web}, all, flow(udp, n.pod, n.outside, n.node), Stays},
			{"UDP", []kernel.Binding{binding(n.pod, kernel.UDP, n.egressIP)}, all, flow(udp, n.pod, n.outside, n.node), Ends},
			{"SCTP", []kernel.Binding{binding(n.pod, kernel.SCTP, n.egressIP)}, all, flow(sctp, n.pod, n.outside, n.node), Ends},
			{"bound for all protocols: TCP", []kernel.Binding{every}, all, flow(tcp, n.pod, n.outside, n.node), Ends},
			{"bound for all protocols: ICMP", []kernel.Binding{every}, all, flow(icmp, n.pod, n.outside, n.node), Ends},
			{"bound for all protocols: ESP", []kernel.Binding{every}, all, flow(esp, n.pod, n.outside, n.node), Ends},
			{"bound for all protocols: number 0", []kernel.Binding{every}, all, flow(0, n.pod, n.outside, n.node), Ends},
			{"bound for all protocols, right", []kernel.Binding{every}, all, flow(icmp, n.pod, n.outside, n.egressIP), Stays},
			{"all protocols come before one, right", []kernel.Binding{every, binding(n.pod, kernel.TCP, n.otherEgressIP)}, all, flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"all protocols come before one, wrong", []kernel.Binding{every, binding(n.pod, kernel.TCP, n.otherEgressIP)}, all, flow(tcp, n.pod, n.outside, n.otherEgressIP), Ends},
			{"zone 1", []kernel.Binding{web}, all, inZone(1, flow(tcp, n.pod, n.outside, n.node)), Stays},
			{"zone 1, binding removed", nil, removed(web), inZone(1, flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			{"to a pod", []kernel.Binding{web}, all, flow(tcp, n.pod, n.other, n.pod), Stays},
			{"to itself through a Service, masqueraded", []kernel.Binding{web}, all, flow(tcp, n.pod, n.pod, n.node), Stays},
			{"to an exclusion", []kernel.Binding{web}, all, flow(tcp, n.pod, n.excluded, n.pod), Stays},
			{"to another node", []kernel.Binding{web}, all, flow(tcp, n.pod, n.secondNode, n.node), Stays},
			{"to its own egress IP", []kernel.Binding{web}, all, flow(tcp, n.pod, n.egressIP, n.pod), Stays},
			{"to another's egress IP", []kernel.Binding{web}, all, flow(tcp, n.pod, n.otherEgressIP, n.pod), Ends},
			{"to its node", []kernel.Binding{web}, all, flow(tcp, n.pod, n.node, n.pod), Stays},
			{"to its node's loopback, by DNAT", []kernel.Binding{web}, all, flow(tcp, n.pod, n.self, n.pod), Stays},
			{"inbound to the pod", []kernel.Binding{web}, all, flow(tcp, n.outside, n.pod, n.outside), Stays},
			{"inbound to the pod, masqueraded", []kernel.Binding{web}, all, flow(tcp, n.outside, n.pod, n.node), Stays},
			{"from the egress IP itself", []kernel.Binding{web}, all, flow(tcp, n.egressIP, n.outside, n.egressIP), Stays},

			{"binding removed", nil, removed(web), flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			{"binding removed, whatever the destination", nil, removed(web), flow(tcp, n.pod, n.other, n.egressIP), Ends},
			{"binding removed, excluded meanwhile", []kernel.Binding{binding(n.pod, kernel.TCP, n.otherEgressIP)}, removed(web), flow(tcp, n.pod, n.excluded, n.egressIP), Ends},
			{"binding removed, seen as the node's address", nil, removed(web), flow(tcp, n.pod, n.outside, n.node), Stays},
			{"binding removed, another protocol", nil, removed(web), flow(udp, n.pod, n.outside, n.egressIP), Stays},
			{"binding removed, another pod", nil, removed(web), flow(tcp, n.other, n.outside, n.egressIP), Stays},
			{"binding of all protocols removed", nil, removed(every), flow(icmp, n.pod, n.outside, n.egressIP), Ends},
			{"removed and bound again to the same IP", []kernel.Binding{web}, removed(web), flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"the same, with the pod in scope", []kernel.Binding{web}, Scope{Pods: pods(n.pod), Removed: []kernel.Binding{web}}, flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"rebound for one protocol of all, that one", []kernel.Binding{web}, removed(every), flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"rebound for one protocol of all, another", []kernel.Binding{web}, removed(every), flow(udp, n.pod, n.outside, n.egressIP), Ends},
			{"widened to all protocols", []kernel.Binding{every}, removed(web), flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"moved to another IP, seen as the old", []kernel.Binding{binding(n.pod, kernel.TCP, n.otherEgressIP)}, removed(web), flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			{"moved to another IP, seen as the new", []kernel.Binding{binding(n.pod, kernel.TCP, n.otherEgressIP)}, Scope{Pods: pods(n.pod), Removed: []kernel.Binding{web}}, flow(tcp, n.pod, n.outside, n.otherEgressIP), Stays},
			{"moved twice in one burst, seen as the first", nil, removed(web, binding(n.pod, kernel.TCP, n.otherEgressIP)), flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			{"moved there and back", []kernel.Binding{web}, removed(binding(n.pod, kernel.TCP, n.otherEgressIP), web), flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			{"rebound, seen as the node's address, not in scope", []kernel.Binding{web}, removed(web), flow(tcp, n.pod, n.outside, n.node), Stays},
			{"the pod's address was given to another, unbound", nil, removed(web), flow(tcp, n.pod, n.outside, n.pod), Stays},
			{"the kernel told no addresses", []kernel.Binding{every}, all, Flow{Protocol: tcp}, Stays},
			{"the kernel told only the source", []kernel.Binding{every}, all, Flow{Protocol: tcp, Source: addr(n.pod)}, Stays},
		}
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s/%s", family, test.name), func(t *testing.T) {
				s := NewSelector(n.plan(test.after...), test.scope, n.local())
				if got := s.Judge(test.flow); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
				if test.want != Stays && s.Empty() {
					t.Error("it says that it is empty")
				}
			})
		}
	}
}

// TestSelector_JudgesByTheWay: a flow whose egress IP leaves elsewhere has to be seen as its own source here.
func TestSelector_JudgesByTheWay(t *testing.T) {
	all := Scope{All: true}
	for family, n := range networks {
		web, other := binding(n.pod, kernel.TCP, n.egressIP), binding(n.pod, kernel.TCP, n.otherEgressIP)
		steered := func(pods ...string) Scope {
			scope := Scope{Pods: map[netip.Addr]bool{}, Steered: []kernel.Binding{web}}
			for _, pod := range pods {
				scope.Pods[addr(pod)] = true
			}
			return scope
		}
		removed := Scope{Removed: []kernel.Binding{web}, Steered: []kernel.Binding{web}}
		excluded := Scope{Sent: []kernel.Binding{web}, Excluded: prefixes(n.cluster)}
		own := flow(tcp, n.pod, n.outside, n.pod)
		const here = ""
		for name, test := range map[string]struct {
			after []kernel.Binding
			way   kernel.WayKind
			scope Scope
			flow  Flow
			want  Verdict
		}{
			"steered":                                   {[]kernel.Binding{web}, kernel.ToNode, all, own, Stays},
			"translated here to the egress IP":          {[]kernel.Binding{web}, kernel.ToNode, all, flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			"translated here, with its own port":        {[]kernel.Binding{web}, kernel.ToNode, all, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Moves},
			"translated here to the node, its own port": {[]kernel.Binding{web}, kernel.ToNode, all, keepsPort(flow(tcp, n.pod, n.outside, n.node)), Ends},
			"its own port, to another pod":              {[]kernel.Binding{web}, kernel.ToNode, all, keepsPort(flow(tcp, n.pod, n.other, n.egressIP)), Stays},
			"steered here, and the address goes away":   {nil, kernel.ToNode, Scope{Removed: []kernel.Binding{web}}, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Leaves},
			"the same, and it is lost":                  {nil, kernel.Blackhole, Scope{Removed: []kernel.Binding{web}}, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Leaves},
			"steered here, and the binding goes":        {nil, here, Scope{Removed: []kernel.Binding{web}}, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Ends},
			"bound to another, and the former goes":     {[]kernel.Binding{other}, kernel.ToNode, Scope{Removed: []kernel.Binding{web}}, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Ends},
			"translated here to the node":               {[]kernel.Binding{web}, kernel.ToNode, all, flow(tcp, n.pod, n.outside, n.node), Ends},
			"translated here, not in scope":             {[]kernel.Binding{web}, kernel.ToNode, Scope{}, flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			"translated here, not bound":                {[]kernel.Binding{web}, kernel.ToNode, all, flow(udp, n.pod, n.outside, n.egressIP), Stays},
			"translated here, inside":                   {[]kernel.Binding{web}, kernel.ToNode, all, flow(tcp, n.pod, n.other, n.node), Stays},
			"to its own egress IP, masqueraded":         {[]kernel.Binding{web}, kernel.ToNode, all, flow(tcp, n.pod, n.egressIP, n.node), Stays},
			"to its own node, masqueraded":              {[]kernel.Binding{web}, kernel.ToNode, all, flow(tcp, n.pod, n.node, n.egressIP), Stays},
			"zone 1":                                    {[]kernel.Binding{web}, kernel.ToNode, all, inZone(1, flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			"blackhole, its own source":                 {[]kernel.Binding{web}, kernel.Blackhole, all, own, Stays},
			"blackhole, translated here":                {[]kernel.Binding{web}, kernel.Blackhole, all, flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			"blackhole, translated here, its own port":  {[]kernel.Binding{web}, kernel.Blackhole, all, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			"blackhole, bound again, its own port":      {[]kernel.Binding{web}, kernel.Blackhole, Scope{Removed: []kernel.Binding{web}}, keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			"a node has taken what was lost":            {[]kernel.Binding{web}, kernel.ToNode, steered(n.pod), keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Moves},
			"what was lost is here again":               {[]kernel.Binding{web}, here, steered(n.pod), keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			"no node has taken what was lost":           {[]kernel.Binding{web}, kernel.Prohibit, steered(n.pod), keepsPort(flow(tcp, n.pod, n.outside, n.egressIP)), Stays},
			"no node has taken what was lost, a SYN":    {[]kernel.Binding{web}, kernel.Prohibit, steered(n.pod), unanswered(keepsPort(flow(tcp, n.pod, n.outside, n.egressIP))), Moves},
			"no node has taken what was lost, UDP":      {[]kernel.Binding{binding(n.pod, kernel.All, n.egressIP)}, kernel.Prohibit, steered(n.pod), keepsPort(flow(udp, n.pod, n.outside, n.egressIP)), Moves},

			"prohibited, its own source":                {[]kernel.Binding{web}, kernel.Prohibit, all, own, Stays},
			"prohibited, translated here":               {[]kernel.Binding{web}, kernel.Prohibit, all, flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			"another's egress IP has a way":             {[]kernel.Binding{other}, kernel.ToNode, all, own, Ends},
			"to a third node":                           {[]kernel.Binding{web}, kernel.ToNode, steered(n.pod), own, Resumes},
			"to a third node, UDP":                      {[]kernel.Binding{binding(n.pod, kernel.All, n.egressIP)}, kernel.ToNode, Scope{Steered: []kernel.Binding{binding(n.pod, kernel.All, n.egressIP)}}, flow(udp, n.pod, n.outside, n.pod), Resumes},
			"to a third node, inside":                   {[]kernel.Binding{web}, kernel.ToNode, steered(n.pod), flow(tcp, n.pod, n.other, n.pod), Stays},
			"to a third node, to its own egress IP":     {[]kernel.Binding{web}, kernel.ToNode, steered(n.pod), flow(tcp, n.pod, n.egressIP, n.pod), Stays},
			"the node is lost":                          {[]kernel.Binding{web}, kernel.Blackhole, steered(n.pod), own, Stays},
			"the address comes here":                    {[]kernel.Binding{web}, here, steered(n.pod), own, Moves},
			"the address comes here, translated before": {[]kernel.Binding{web}, here, steered(n.pod), flow(tcp, n.pod, n.outside, n.egressIP), Stays},
			"the address comes here, masqueraded":       {[]kernel.Binding{web}, here, steered(n.pod), flow(tcp, n.pod, n.outside, n.node), Ends},
			"the address comes here, inside":            {[]kernel.Binding{web}, here, steered(n.pod), flow(tcp, n.pod, n.other, n.pod), Stays},
			"the address comes here, another pod":       {[]kernel.Binding{web, binding(n.other, kernel.TCP, n.egressIP)}, here, steered(n.other), flow(tcp, n.other, n.outside, n.other), Ends},
			"the binding is removed":                    {nil, here, removed, own, EndsAtPod},
			"the binding is removed, inside":            {nil, here, removed, flow(tcp, n.pod, n.other, n.pod), Stays},
			"the binding is removed, another protocol":  {nil, here, removed, flow(udp, n.pod, n.outside, n.pod), Stays},
			"the binding is removed, translated here":   {nil, here, removed, flow(tcp, n.pod, n.outside, n.egressIP), Ends},
			"the binding is removed and made again":     {[]kernel.Binding{web}, kernel.ToNode, removed, own, Resumes},
			"excluded now":                              {[]kernel.Binding{web}, kernel.ToNode, excluded, flow(tcp, n.pod, n.excluded, n.pod), EndsAtPod},
			"excluded now, while lost":                  {[]kernel.Binding{web}, kernel.Blackhole, excluded, flow(tcp, n.pod, n.excluded, n.pod), EndsAtPod},
			"excluded now, the address comes here":      {[]kernel.Binding{web}, here, excluded, flow(tcp, n.pod, n.excluded, n.pod), EndsAtPod},
			"excluded now, and the binding goes":        {nil, here, excluded, flow(tcp, n.pod, n.excluded, n.pod), EndsAtPod},
			"excluded now, translated here":             {[]kernel.Binding{web}, kernel.ToNode, excluded, keepsPort(flow(tcp, n.pod, n.excluded, n.egressIP)), Stays},
			"excluded now, another pod":                 {[]kernel.Binding{web, binding(n.other, kernel.TCP, n.egressIP)}, kernel.ToNode, excluded, flow(tcp, n.other, n.excluded, n.other), Stays},
			"excluded now, another protocol":            {[]kernel.Binding{web}, kernel.ToNode, excluded, flow(udp, n.pod, n.excluded, n.pod), Stays},
			"excluded before, too":                      {[]kernel.Binding{web}, kernel.ToNode, excluded, flow(tcp, n.pod, n.other, n.pod), Stays},
			"not excluded":                              {[]kernel.Binding{web}, kernel.ToNode, excluded, own, Stays},
			"more is excluded, to its node":             {[]kernel.Binding{web}, kernel.ToNode, excluded, flow(tcp, n.pod, n.node, n.pod), Stays},
			"more is excluded, to its own egress IP":    {[]kernel.Binding{web}, kernel.ToNode, excluded, flow(tcp, n.pod, n.egressIP, n.pod), Stays},
			"bound to an address that is here":          {[]kernel.Binding{other}, here, Scope{Pods: pods(n.pod), Removed: removed.Removed, Steered: removed.Steered}, own, EndsAtPod},
		} {
			t.Run(fmt.Sprintf("%s/%s", family, name), func(t *testing.T) {
				after := n.plan(test.after...)
				if test.way != here {
					after.Steering.Ways = map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: test.way, Node: addr(n.secondNode)}}
				}
				if got := NewSelector(after, test.scope, n.local()).Judge(test.flow); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		}
	}
}

// TestJudge_NothingIsPickedUp: where kernels track connections from their beginning alone, none goes on from another node.
func TestJudge_NothingIsPickedUp(t *testing.T) {
	n := networks[kernel.IPv4]
	all, pod := binding(n.pod, kernel.All, n.egressIP), Scope{Steered: []kernel.Binding{binding(n.pod, kernel.All, n.egressIP)}}
	translated := keepsPort(flow(tcp, n.pod, n.outside, n.egressIP))
	for name, test := range map[string]struct {
		after []kernel.Binding
		here  bool
		scope Scope
		flow  Flow
		want  Verdict
	}{
		"to a third node":        {[]kernel.Binding{all}, false, pod, flow(tcp, n.pod, n.outside, n.pod), EndsAtPod},
		"to a third node, UDP":   {[]kernel.Binding{all}, false, pod, flow(udp, n.pod, n.outside, n.pod), Resumes},
		"the address comes here": {[]kernel.Binding{all}, true, pod, flow(tcp, n.pod, n.outside, n.pod), EndsAtPod},
		"the address goes away":  {[]kernel.Binding{all}, false, Scope{All: true}, translated, Ends},
		"a pod of another node":  {nil, false, Scope{Removed: []kernel.Binding{all}}, translated, Ends},
		"nothing has changed":    {[]kernel.Binding{all}, true, Scope{All: true}, translated, Stays},
	} {
		after := n.plan(test.after...)
		if !test.here {
			after.Steering.Ways = map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: kernel.ToNode, Node: addr(n.secondNode)}}
		}
		s := NewSelector(after, test.scope, n.local())
		s.begun = true
		if got := s.Judge(test.flow); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	for way, want := range map[kernel.WayKind]Verdict{kernel.Blackhole: Stays, kernel.Prohibit: Ends} {
		after := n.plan(all)
		after.Steering.Ways = map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: way}}
		s := NewSelector(after, Scope{All: true}, n.local())
		s.begun = true
		if got := s.Judge(translated); got != want {
			t.Errorf("no node has the address, %s: got %v, want %v", way, got, want)
		}
	}
}

// TestJudge_PodOfAnotherNode: the node on which a pod runs nudges it when its egress IP leaves this node, and no other.
func TestJudge_PodOfAnotherNode(t *testing.T) {
	n := networks[kernel.IPv4]
	after := n.plan(binding(n.pod, kernel.TCP, n.egressIP))
	after.Steering.Self = addr(n.node)
	for home, want := range map[string]map[kernel.WayKind]Verdict{
		n.node:       {kernel.ToNode: Moves, kernel.Blackhole: Stays, kernel.Prohibit: Stays},
		n.secondNode: {kernel.ToNode: Leaves, kernel.Blackhole: Leaves, kernel.Prohibit: Leaves},
	} {
		after.Steering.Homes = map[netip.Addr]netip.Addr{addr(n.pod): addr(home)}
		for way, want := range want {
			after.Steering.Ways = map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: way, Node: addr(n.secondNode)}}
			if got := NewSelector(after, Scope{All: true}, n.local()).Judge(keepsPort(flow(tcp, n.pod, n.outside, n.egressIP))); got != want {
				t.Errorf("the pod runs on %s, the way is %q: got %v, want %v", home, way, got, want)
			}
		}
	}
}

// TestJudge_ExcludedForAPodOfAnotherNode: the holder resets what it has translated for another node, for nothing more comes from there.
func TestJudge_ExcludedForAPodOfAnotherNode(t *testing.T) {
	n := networks[kernel.IPv4]
	web := binding(n.pod, kernel.TCP, n.egressIP)
	after := n.plan(web)
	after.Steering.Self = addr(n.node)
	scope := Scope{Sent: []kernel.Binding{web}, Excluded: prefixes(n.cluster)}
	for _, test := range []struct {
		home string
		flow Flow
		want Verdict
	}{
		{n.secondNode, flow(tcp, n.pod, n.excluded, n.egressIP), Ends},
		{n.secondNode, flow(tcp, n.pod, n.outside, n.egressIP), Stays},
		{n.secondNode, flow(tcp, n.pod, n.other, n.egressIP), Stays},
		{n.secondNode, flow(tcp, n.pod, n.excluded, n.otherEgressIP), Stays},
		{n.secondNode, flow(udp, n.pod, n.excluded, n.egressIP), Stays},
		{n.node, flow(tcp, n.pod, n.excluded, n.egressIP), Stays},
	} {
		after.Steering.Homes = map[netip.Addr]netip.Addr{addr(n.pod): addr(test.home)}
		if got := NewSelector(after, scope, n.local()).Judge(test.flow); got != test.want {
			t.Errorf("the pod runs on %s, flow %+v: got %v, want %v", test.home, test.flow, got, test.want)
		}
	}
}

func TestSelector_Empty(t *testing.T) {
	n := networks[kernel.IPv4]
	web := binding(n.pod, kernel.TCP, n.egressIP)
	tests := []struct {
		name  string
		after []kernel.Binding
		scope Scope
		want  bool
	}{
		{"nothing bound, nothing removed", nil, Scope{All: true}, true},
		{"nothing in scope", []kernel.Binding{web}, Scope{}, true},
		{"only unbound pods in scope", []kernel.Binding{web}, Scope{Pods: pods(n.unbound)}, true},
		{"a bound pod in scope", []kernel.Binding{web}, Scope{Pods: pods(n.pod)}, false},
		{"all in scope", []kernel.Binding{web}, Scope{All: true}, false},
		{"a binding removed", nil, Scope{Removed: []kernel.Binding{web}}, false},
		{"more is excluded", nil, Scope{Sent: []kernel.Binding{web}}, false},
		{"a protocol that no packet has", []kernel.Binding{binding(n.pod, "dccp", n.egressIP)}, Scope{All: true, Removed: []kernel.Binding{binding(n.pod, "", n.egressIP)}}, true},
	}
	for _, test := range tests {
		if got := NewSelector(n.plan(test.after...), test.scope, n.local()).Empty(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestSelector_Pods(t *testing.T) {
	v4, v6 := networks[kernel.IPv4], networks[kernel.IPv6]
	bound := []kernel.Binding{binding(v4.pod, kernel.TCP, v4.egressIP), binding(v4.pod, kernel.UDP, v4.egressIP), binding(v4.other, kernel.TCP, v4.egressIP), binding(v6.pod, kernel.TCP, v6.egressIP)}
	both := []netip.Addr{addr(v4.pod), addr(v4.other)}
	tests := []struct {
		name   string
		scope  Scope
		family kernel.Family
		limit  int
		want   []netip.Addr
		few    bool
	}{
		{"all", Scope{All: true}, kernel.IPv4, 2, both, true},
		{"all, too many", Scope{All: true}, kernel.IPv4, 1, nil, false},
		{"all, of the other family", Scope{All: true}, kernel.IPv6, 1, []netip.Addr{addr(v6.pod)}, true},
		{"in scope", Scope{Pods: pods(v4.other)}, kernel.IPv4, 1, both[1:], true},
		{"unbound", Scope{Pods: pods(v4.unbound)}, kernel.IPv4, 1, nil, true},
		{"removed", Scope{Removed: bound[:1]}, kernel.IPv4, 1, both[:1], true},
		{"removed, unbound", Scope{Removed: []kernel.Binding{binding(v4.unbound, kernel.All, v4.egressIP)}}, kernel.IPv4, 1, []netip.Addr{addr(v4.unbound)}, true},
		{"removed, in scope", Scope{Removed: bound[:1], Pods: pods(v4.pod, v4.other)}, kernel.IPv4, 2, both, true},
		{"more is excluded", Scope{Sent: bound[:1]}, kernel.IPv4, 1, both[:1], true},
		{"removed, too many", Scope{Removed: bound[:1], Pods: pods(v4.other)}, kernel.IPv4, 1, nil, false},
	}
	for _, test := range tests {
		got, few := NewSelector(v4.plan(bound...), test.scope, v4.local()).pods(test.family, test.limit)
		slices.SortFunc(got, netip.Addr.Compare)
		if diff := cmp.Diff(test.want, got, compareNetip); diff != "" || few != test.few {
			t.Errorf("%s: few is %v, want %v; pods (-want +got):\n%s", test.name, few, test.few, diff)
		}
	}
}

// judgement is the definition of what Judge says, word by word.
func judgement(w world, f Flow) Verdict {
	speaksOf := func(b kernel.Binding) bool {
		number := map[kernel.Protocol]uint8{kernel.TCP: tcp, kernel.UDP: udp, kernel.SCTP: sctp}
		return b.Pod == f.Source && (b.Protocol == kernel.All || number[b.Protocol] == f.Protocol)
	}
	of := func(bindings []kernel.Binding) (egressIP netip.Addr) {
		if i := slices.IndexFunc(bindings, speaksOf); i >= 0 {
			return bindings[i].EgressIP
		}
		return netip.Addr{}
	}
	inside := func(p netip.Prefix) bool { return p.Contains(f.Destination.Addr()) }
	leaves := func(egressIP netip.Addr) bool {
		return egressIP.IsValid() && f.Destination.Addr() != egressIP && !slices.ContainsFunc(slices.Concat(w.after.ClusterCIDRs, w.after.Exclusions, w.local), inside)
	}
	left := func(egressIP netip.Addr) bool {
		return egressIP.IsValid() && f.Destination.Addr() != egressIP && !slices.ContainsFunc(slices.Concat(w.scope.Excluded, w.local), inside)
	}
	now, former, own := of(w.after.Bindings), of(w.scope.Steered), f.SeenAs == f.Source
	way := w.after.Steering.Ways[now]
	translatedElsewhere := own && leaves(former)
	lost := slices.ContainsFunc(w.scope.Removed, func(b kernel.Binding) bool { return speaksOf(b) && b.EgressIP == f.SeenAs })
	wrong := leaves(now) && (w.scope.All || w.scope.Pods[f.Source])
	waits := f.SeenAs == now && (way.Kind == kernel.Blackhole || way.Kind == kernel.Prohibit && f.Protocol == tcp && f.Answered)
	staysBehind := w.after.Steering.Ways[f.SeenAs].Kind != "" && f.KeepsPort && (f.SeenAs == now || !now.IsValid())
	switch {
	case f.Zone != 0:
		return Stays
	case own && left(of(w.scope.Sent)) && !leaves(of(w.scope.Sent)):
		return EndsAtPod
	case own && way.Kind == kernel.ToNode && translatedElsewhere && former == now:
		return Resumes
	case own && way.Kind != "", f.SeenAs == now && way.Kind == "":
		return Stays
	case translatedElsewhere && former == now:
		return Moves
	case translatedElsewhere:
		return EndsAtPod
	case (lost || wrong) && staysBehind && waits:
		return Stays
	case (lost || wrong) && staysBehind && now.IsValid():
		return Moves
	case (lost || wrong) && staysBehind:
		return Leaves
	case lost, wrong:
		return Ends
	}
	return Stays
}

// TestSelector_JudgesByDefinition compares with the definition in small worlds, where most
// addresses have to do with each other.
func TestSelector_JudgesByDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	verdicts := map[Verdict]int{}
	for range 4000 {
		w := newWorld(r)
		s := NewSelector(w.after, w.scope, kernel.NewCIDRSet(w.local))
		for range 60 {
			f := w.flow(r)
			got, want := s.Judge(f), judgement(w, f)
			if got != want {
				t.Fatalf("got %v, want %v\nflow %+v\nplan %+v\nscope %+v\nlocal %v", got, want, f, w.after, w.scope, w.local)
			}
			if pods, _ := s.pods(w.family, len(w.addresses)); got != Stays && (s.Empty() || !slices.Contains(pods, f.Source)) {
				t.Fatalf("a selector that says it is empty, %v, or is about the pods %v only, judges %+v to be %v", s.Empty(), pods, f, got)
			}
			verdicts[got]++
		}
	}
	for verdict, least := range map[Verdict]int{Stays: 10000, Resumes: 300, Moves: 300, Leaves: 300, EndsAtPod: 1000, Ends: 10000} {
		if verdicts[verdict] < least {
			t.Errorf("the worlds prove little: %d flows with the verdict %v", verdicts[verdict], verdict)
		}
	}
}

// world is a plan, what changed, and the addresses that there are.
type world struct {
	family    kernel.Family
	after     kernel.Desired
	scope     Scope
	local     []netip.Prefix
	addresses []netip.Addr
}

func newWorld(r *rand.Rand) world {
	w := world{family: []kernel.Family{kernel.IPv4, kernel.IPv6}[r.IntN(2)]}
	format := map[kernel.Family]string{kernel.IPv4: "192.0.2.%d", kernel.IPv6: "2001:db8::%d"}[w.family]
	for i := range 8 {
		w.addresses = append(w.addresses, addr(fmt.Sprintf(format, i)))
	}
	some := func() netip.Addr { return w.addresses[r.IntN(len(w.addresses))] }
	single := func() []netip.Prefix {
		return slices.Repeat([]netip.Prefix{netip.PrefixFrom(some(), some().BitLen())}, r.IntN(2))
	}
	bindings := func() (list []kernel.Binding) {
		type target struct {
			pod      netip.Addr
			protocol kernel.Protocol
		}
		taken := map[target]bool{}
		for range r.IntN(8) {
			b := kernel.Binding{Pod: some(), Protocol: []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.All}[r.IntN(4)], EgressIP: some()}
			if !taken[target{b.Pod, b.Protocol}] {
				list = append(list, b)
			}
			taken[target{b.Pod, b.Protocol}] = true
		}
		return kernel.Sorted(list)
	}
	w.after = kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: single(), Exclusions: single()}, Bindings: bindings()}
	w.after.Steering.Ways = map[netip.Addr]kernel.Way{}
	for range r.IntN(5) {
		w.after.Steering.Ways[some()] = kernel.Way{Kind: []kernel.WayKind{kernel.ToNode, kernel.Blackhole, kernel.Prohibit}[r.IntN(3)]}
	}
	w.local = single()
	w.scope = Scope{All: r.IntN(3) == 0, Pods: map[netip.Addr]bool{some(): true, some(): true}, Removed: bindings(), Steered: bindings()}
	if r.IntN(3) == 0 {
		w.scope.Sent, w.scope.Excluded = bindings(), single()
	}
	// Mostly the bindings are those of before.
	for _, b := range w.after.Bindings {
		if r.IntN(2) == 0 {
			w.scope.Steered = slices.DeleteFunc(w.scope.Steered, func(other kernel.Binding) bool { return other.Pod == b.Pod && other.Protocol == b.Protocol })
			w.scope.Steered = kernel.Sorted(append(w.scope.Steered, b))
		}
	}
	return w
}

func (w world) flow(r *rand.Rand) Flow {
	some := func() netip.Addr { return w.addresses[r.IntN(len(w.addresses))] }
	source := some()
	return Flow{
		Protocol: []uint8{tcp, udp, sctp, icmp, 0}[r.IntN(5)],
		Source:   source, Destination: netip.AddrPortFrom(some(), uint16(r.IntN(2))), SeenAs: []netip.Addr{source, some(), some()}[r.IntN(3)],
		KeepsPort: r.IntN(2) == 0, Answered: r.IntN(2) == 0, Zone: uint16(max(0, r.IntN(10)-8)),
	}
}

func TestSelector_AllocatesNothing(t *testing.T) {
	for family, n := range networks {
		s := NewSelector(n.plan(binding(n.pod, kernel.TCP, n.egressIP)), Scope{All: true, Removed: []kernel.Binding{binding(n.other, kernel.All, n.egressIP)}}, n.local())
		flows := []Flow{flow(tcp, n.pod, n.outside, n.node), flow(tcp, n.pod, n.secondNode, n.node), flow(tcp, n.other, n.outside, n.egressIP), flow(udp, n.unbound, n.outside, n.node)}
		if got := testing.AllocsPerRun(100, func() {
			for _, f := range flows {
				s.Judge(f)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations for %d flows", family, got, len(flows))
		}
	}
}

func TestCounter_CountsByDestination(t *testing.T) {
	n := networks[kernel.IPv4]
	c := newCounter(n.plan(binding(n.pod, kernel.TCP, n.egressIP), binding(n.pod, kernel.UDP, n.otherEgressIP)), n.local())
	for _, f := range []Flow{
		flow(tcp, n.pod, n.outside+":443", n.egressIP),
		flow(tcp, n.other, n.outside+":443", n.egressIP),
		flow(tcp, n.pod, n.outside+":80", n.egressIP),
		flow(udp, n.pod, n.outside+":443", n.egressIP),
		inZone(1, flow(udp, n.pod, n.outside+":443", n.egressIP)),
		flow(tcp, n.egressIP, n.outside+":443", n.egressIP),
		flow(tcp, n.unbound, n.outside+":443", n.node),
		{Protocol: esp},
	} {
		c.add(f)
	}
	want := map[netip.Addr]Usage{
		addr(n.egressIP):      {Flows: 4, Busiest: netip.MustParseAddrPort(n.outside + ":443"), Protocol: tcp, Ports: 2, PortSpace: 64512},
		addr(n.otherEgressIP): {PortSpace: 64512},
	}
	if diff := cmp.Diff(want, c.usage(), compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCounter_SharedPorts: where pods have blocks, what others share are few ports, which are used up while all ports are far from that.
func TestCounter_SharedPorts(t *testing.T) {
	for family, n := range networks {
		shared := kernel.Ports{First: 61440, Last: 65535}
		written := n.plan(binding(n.pod, kernel.TCP, n.egressIP), binding(n.pod, kernel.UDP, n.otherEgressIP))
		written.Steering.Shared = map[netip.Addr]kernel.Ports{addr(n.egressIP): shared}
		to := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(addr(n.outside), port) }
		c := newCounter(written, n.local())
		add := func(from kernel.Ports, egressIP string, at uint16) {
			for port := int(from.First); port <= int(from.Last); port++ {
				c.addTracked(&tracked{
					Flow: flow(tcp, n.pod, to(at).String(), egressIP),
					ends: ends{replying: tuple{source: to(at), destination: netip.AddrPortFrom(addr(egressIP), uint16(port))}},
				})
			}
		}
		check := func(want Usage) {
			if diff := cmp.Diff(want, c.usage()[addr(n.egressIP)], compareNetip); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", family, diff)
			}
		}
		add(kernel.Ports{First: 1024, Last: 9999}, n.egressIP, 80) // of blocks
		check(Usage{Flows: 8976, Busiest: to(80), Protocol: tcp, Ports: 8976, PortSpace: 64512})
		add(shared, n.egressIP, 443)
		check(Usage{Flows: 8976 + 4096, Busiest: to(443), Protocol: tcp, Ports: 4096, PortSpace: 4096})
		add(shared, n.otherEgressIP, 443) // without blocks
		if other := c.usage()[addr(n.otherEgressIP)]; other.Ports != 4096 || other.PortSpace != 64512 {
			t.Errorf("%s: without blocks: %+v", family, other)
		}
	}
}

// TestCounter_NewFlows: those that the look before did not see; without one before, none.
func TestCounter_NewFlows(t *testing.T) {
	n := networks[kernel.IPv4]
	looks := []struct {
		flows []uint32
		want  int
	}{{[]uint32{1, 2}, 0}, {[]uint32{2, 3, 4}, 2}, {[]uint32{2, 3, 4}, 0}, {nil, 0}, {[]uint32{2}, 1}}
	var before Seen
	for i, look := range looks {
		c := newCounter(n.plan(binding(n.pod, kernel.TCP, n.egressIP)), n.local())
		c.before, c.seen = before, Seen{}
		for range 2 { // an interrupted dump counts for nothing
			c.reset()
			for _, number := range look.flows {
				c.see(c.add(flow(tcp, n.pod, n.outside+":443", n.egressIP)), number)
			}
		}
		if got := c.usage()[addr(n.egressIP)]; got.New != look.want || got.Flows != len(look.flows) {
			t.Errorf("look %d: %d new flows of %d, want %d of %d", i, got.New, got.Flows, look.want, len(look.flows))
		}
		before = c.seen
	}
}

// TestCounter_SteeredFlows: those that leave here are told from those that stay in the cluster, and whose pod is here.
func TestCounter_SteeredFlows(t *testing.T) {
	for family, n := range networks {
		written := n.plan(binding(n.pod, kernel.TCP, n.otherEgressIP), binding(n.other, kernel.All, n.egressIP), binding(n.unbound, kernel.UDP, n.egressIP))
		written.Steering = kernel.Steering{
			Self:  addr(n.node),
			Ways:  map[netip.Addr]kernel.Way{addr(n.otherEgressIP): {Kind: kernel.ToNode, Node: addr(n.secondNode)}},
			Homes: map[netip.Addr]netip.Addr{addr(n.pod): addr(n.node), addr(n.other): addr(n.secondNode), addr(n.unbound): addr(n.node)},
		}
		c := newCounter(written, n.local())
		for _, f := range []Flow{
			flow(tcp, n.pod, n.outside, n.pod), // sent
			flow(udp, n.pod, n.outside, n.pod), // not bound
			flow(tcp, n.pod, n.excluded, n.pod),
			flow(tcp, n.pod, n.other, n.pod),
			flow(tcp, n.pod, n.otherEgressIP, n.pod),
			flow(tcp, n.pod, n.node, n.pod),
			inZone(1, flow(tcp, n.pod, n.outside, n.pod)),
			flow(tcp, n.outside, n.pod, n.outside),      // from outside
			flow(esp, n.other, n.outside, n.egressIP),   // received
			flow(tcp, n.other, n.outside, n.egressIP),   // received
			flow(udp, n.unbound, n.outside, n.egressIP), // runs here
			flow(udp, n.other, n.outside, n.other),      // leaves here
		} {
			c.add(f)
		}
		got := c.usage()
		if sent := got[addr(n.otherEgressIP)]; sent.Sent != 1 || sent.Received != 0 {
			t.Errorf("%s: sent on: %+v, want one", family, sent)
		}
		if received := got[addr(n.egressIP)]; received.Sent != 0 || received.Received != 2 || received.Flows != 3 {
			t.Errorf("%s: received: %+v, want two of three", family, received)
		}
		written.Steering.Ways[addr(n.otherEgressIP)] = kernel.Way{Kind: kernel.Blackhole}
		c = newCounter(written, n.local())
		c.add(flow(tcp, n.pod, n.outside, n.pod))
		if sent := c.usage()[addr(n.otherEgressIP)]; sent.Sent != 0 {
			t.Errorf("%s: no node has it: %+v, want none", family, sent)
		}
	}
}

// TestCounter_EquallyBusyDestinations: the same one is named each time.
func TestCounter_EquallyBusyDestinations(t *testing.T) {
	n := networks[kernel.IPv4]
	c := newCounter(n.plan(binding(n.pod, kernel.TCP, n.egressIP)), n.local())
	for port := range 50 {
		c.add(flow(udp, n.pod, fmt.Sprintf("%s:%d", n.outside, 100+port), n.egressIP))
		c.add(flow(tcp, n.pod, fmt.Sprintf("%s:%d", n.outside, 200+port), n.egressIP))
	}
	want := Usage{Flows: 100, Busiest: netip.MustParseAddrPort(n.outside + ":200"), Protocol: tcp, Ports: 1, PortSpace: 64512}
	for range 20 {
		if diff := cmp.Diff(want, c.usage()[addr(n.egressIP)], compareNetip); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

var compareNetip = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

// TestCounter_ManyDestinations: a pod that sends to everywhere costs no more memory than one that sends to a few thousand
// destinations, and hides none that is busy.
func TestCounter_ManyDestinations(t *testing.T) {
	const everywhere, busy = 300_000, 5000
	for family, n := range networks {
		c := newCounter(n.plan(binding(n.pod, kernel.TCP, n.egressIP)), kernel.CIDRSet{})
		to := addr(n.outside)
		f := flow(udp, n.pod, netip.AddrPortFrom(to, 443).String(), n.egressIP)
		busiest := f
		for i := range everywhere {
			to = to.Next()
			f.Destination = netip.AddrPortFrom(to, 443)
			c.add(f)
			if i%(everywhere/busy) == 0 {
				c.add(busiest)
			}
			if held := len(c.of[addr(n.egressIP)].toAll); held > mostDestinations {
				t.Fatalf("%s: %d destinations are held", family, held)
			}
		}
		got := c.usage()[addr(n.egressIP)]
		const most = (everywhere + busy) / mostDestinations
		if got.Flows != everywhere+busy || got.Busiest != busiest.Destination || got.Ports > busy || got.Ports < busy-most {
			t.Errorf("%s: %+v; want %d flows, of which %d to %d to %s", family, got, everywhere+busy, busy-most, busy, busiest.Destination)
		}
	}
}

// TestSelector_JudgesFlowsOfTheFarSide: a flow that the far side has made known here ends with its binding, and goes on elsewhere when the
// egress IP does. Those of a Service, with the same addresses, are none.
func TestSelector_JudgesFlowsOfTheFarSide(t *testing.T) {
	for family, n := range networks {
		block := kernel.Block{Pod: addr(n.pod), EgressIP: addr(n.egressIP), Ports: kernel.Ports{First: 32000, Last: 32511}}
		inward := func(protocol uint8, at, to uint16) Flow {
			f := flow(protocol, n.outside, netip.AddrPortFrom(addr(n.pod), to).String(), n.outside)
			f.To = netip.AddrPortFrom(addr(n.egressIP), at)
			return f
		}
		web := binding(n.pod, kernel.TCP, n.egressIP)
		names, every := binding(n.pod, kernel.UDP, n.egressIP), binding(n.pod, kernel.All, n.egressIP)
		here, away := map[netip.Addr]kernel.Way(nil), map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: kernel.ToNode, Node: addr(n.secondNode)}}
		lost := map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: kernel.Blackhole}}
		nowhere := map[netip.Addr]kernel.Way{addr(n.egressIP): {Kind: kernel.Prohibit}}
		moved := Scope{Pods: pods(n.pod), Blocks: []kernel.Block{block}}
		for _, test := range []struct {
			name  string
			after []kernel.Binding
			ways  map[netip.Addr]kernel.Way
			scope Scope
			flow  Flow
			home  string
			want  Verdict
		}{
			{"right", []kernel.Binding{web}, here, moved, inward(tcp, 32000, 32000), n.node, Stays},
			{"right, all are judged", []kernel.Binding{web}, here, Scope{All: true}, inward(tcp, 32000, 32000), n.node, Stays},
			{"the address is elsewhere", []kernel.Binding{web}, away, moved, inward(tcp, 32511, 32511), n.node, Returns},
			{"the address is elsewhere, all are judged", []kernel.Binding{every}, away, Scope{All: true}, inward(tcp, 32511, 32511), n.node, Returns},
			{"the address is elsewhere, as the pod is", []kernel.Binding{web}, away, moved, inward(tcp, 32511, 32511), n.secondNode, Leaves},
			{"the address is elsewhere, UDP", []kernel.Binding{names}, away, moved, inward(udp, 32511, 32511), n.node, Leaves},
			{"the address is elsewhere, not in scope", []kernel.Binding{web}, away, Scope{Pods: pods(n.other), Blocks: moved.Blocks}, inward(tcp, 32511, 32511), n.node, Stays},
			{"the address is lost", []kernel.Binding{web}, lost, moved, inward(tcp, 32511, 32511), n.node, Stays},
			{"the address is lost, UDP", []kernel.Binding{names}, lost, moved, inward(udp, 32511, 32511), n.node, Stays},
			{"no node takes the address", []kernel.Binding{web}, nowhere, moved, inward(tcp, 32511, 32511), n.node, Stays},
			{"no node takes the address, UDP", []kernel.Binding{names}, nowhere, moved, inward(udp, 32511, 32511), n.node, Leaves},
			{"the address is lost, the pod is elsewhere", []kernel.Binding{web}, lost, moved, inward(tcp, 32511, 32511), n.secondNode, Leaves},
			{"the binding is removed", nil, here, Scope{Removed: []kernel.Binding{web}, Blocks: moved.Blocks}, inward(tcp, 32000, 32000), n.node, Ends},
			{"the binding of all is removed", nil, here, Scope{Removed: []kernel.Binding{every}, Blocks: moved.Blocks}, inward(tcp, 32000, 32000), n.node, Ends},
			{"the binding is removed, UDP", nil, here, Scope{Removed: []kernel.Binding{names}, Blocks: moved.Blocks}, inward(udp, 32000, 32000), n.node, Leaves},
			{"another binding is removed", nil, here, Scope{Removed: []kernel.Binding{names}, Blocks: moved.Blocks}, inward(tcp, 32000, 32000), n.node, Stays},
			{"a Service's other port", nil, here, Scope{Removed: []kernel.Binding{web}, Blocks: moved.Blocks}, inward(tcp, 443, 32000), n.node, Stays},
			{"a Service's port", nil, here, Scope{Removed: []kernel.Binding{web}, Blocks: moved.Blocks}, inward(tcp, 8080, 8080), n.node, Stays},
			{"in another zone", nil, here, Scope{Removed: []kernel.Binding{web}, Blocks: moved.Blocks}, inZone(7, inward(tcp, 32000, 32000)), n.node, Stays},
		} {
			after := n.plan(test.after...)
			after.Steering = kernel.Steering{Self: addr(n.node), Ways: test.ways, Homes: map[netip.Addr]netip.Addr{addr(n.pod): addr(test.home)}, Blocks: []kernel.Block{block}}
			if got := NewSelector(after, test.scope, n.local()).Judge(test.flow); got != test.want {
				t.Errorf("%s, %s: %d, want %d", family, test.name, got, test.want)
			}
		}
	}
}
