package iptables

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

var (
	clusterV4 = netip.MustParsePrefix("10.128.0.0/14")
	clusterV6 = netip.MustParsePrefix("fd00:10:128::/48")
)

// pods returns a plan that binds these pods for TCP, each to an egress IP of its own.
func podPlan(cidr netip.Prefix, pods ...string) kernel.Desired {
	var bindings []kernel.Binding
	for i, pod := range pods {
		bindings = append(bindings, kernel.Binding{Pod: netip.MustParseAddr(pod), Protocol: kernel.TCP, EgressIP: egressIP(cidr, i)})
	}
	return desired(cidr, bindings)
}

// desired returns what binds pods of one network, each of them once for a protocol.
func desired(cidr netip.Prefix, bindings []kernel.Binding) kernel.Desired {
	return kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{cidr}}, Bindings: boundOnce(bindings)}
}

// boundOnce returns bindings sorted, and of those that a pod has for a protocol only one.
func boundOnce(bindings []kernel.Binding) []kernel.Binding {
	return slices.CompactFunc(kernel.Sorted(bindings), func(a, b kernel.Binding) bool { return a.Pod == b.Pod && a.Protocol == b.Protocol })
}

func egressIP(cidr netip.Prefix, i int) netip.Addr {
	if cidr.Addr().Is4() {
		return netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i%250)})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:113::%x", 1+i%250))
}

// randomPlan binds n random pods inside of cidr: clustered, as pods are, in /24s. One plan
// in four binds them for all protocols.
func randomPlan(r *rand.Rand, cidr netip.Prefix, n int) kernel.Desired {
	var bindings []kernel.Binding
	protocols := []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP}
	if r.IntN(4) == 0 {
		protocols = []kernel.Protocol{kernel.All}
	}
	for range n {
		bytes := cidr.Addr().AsSlice()
		bytes[len(bytes)-1] = byte(r.IntN(256))
		bytes[len(bytes)-2] = byte(r.IntN(20))
		bytes[len(bytes)-3] |= byte(r.IntN(2))
		pod, _ := netip.AddrFromSlice(bytes)
		ip := egressIP(cidr, r.IntN(250))
		for _, protocol := range protocols[:1+r.IntN(len(protocols))] {
			bindings = append(bindings, kernel.Binding{Pod: pod, Protocol: protocol, EgressIP: ip})
		}
	}
	return desired(cidr, bindings)
}

// withNodes returns p with the addresses of n random nodes among its exclusions: half of
// them close together, half of them anywhere in their network.
func withNodes(r *rand.Rand, p kernel.Desired, n int) kernel.Desired {
	p.Exclusions = nil
	network := netip.MustParsePrefix("172.16.0.0/12")
	if p.ClusterCIDRs[0].Addr().Is6() {
		network = netip.MustParsePrefix("2001:db8:5::/64")
	}
	taken := map[netip.Addr]bool{}
	for i := 0; len(taken) < n; i++ {
		bytes := network.Addr().AsSlice()
		for j := range bytes {
			if i%2 == 0 && j < len(bytes)-2 {
				continue
			}
			if fixed := network.Bits() - 8*j; fixed < 8 {
				bytes[j] |= byte(r.IntN(256)) >> max(fixed, 0)
			}
		}
		if ip, _ := netip.AddrFromSlice(bytes); !taken[ip] {
			taken[ip] = true
			p.Exclusions = append(p.Exclusions, host(ip))
		}
	}
	slices.SortFunc(p.Exclusions, netip.Prefix.Compare)
	return p
}

func TestPayload_Golden(t *testing.T) {
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("10.128.%d.%d", i%3*16, 10+i))
	}
	for name, p := range map[string]kernel.Desired{
		"one":   podPlan(clusterV4, "10.128.0.5"),
		"ipv6":  podPlan(clusterV6, "fd00:10:128::5", "fd00:10:128:1::5"),
		"tree":  podPlan(clusterV4, many...),
		"nodes": withNodes(rand.New(rand.NewPCG(1, 1)), podPlan(clusterV4, "10.128.0.5"), destinationRules+1),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".restore")
			comments := map[kernel.Binding]string{}
			for _, b := range p.Bindings {
				comments[b] = fmt.Sprintf("pod %s leaves from %s for %s", b.Pod, b.EgressIP, b.Protocol)
			}
			got := Payload(p, comments)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("go test -update if this is right (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPayload_NothingBound(t *testing.T) {
	if got := Payload(podPlan(clusterV4), nil); got != nil {
		t.Errorf("want nothing for a plan without bindings, got:\n%s", got)
	}
}

// wantedEgressIP returns the address that p wants a packet to leave from, invalid if p does
// not want it SNATed. It is all that a plan means.
func wantedEgressIP(p kernel.Desired, bound map[netip.Addr][]kernel.Binding, packet Packet) netip.Addr {
	for _, cidr := range slices.Concat(p.ClusterCIDRs, p.Exclusions) {
		if cidr.Contains(packet.Destination) {
			return netip.Addr{}
		}
	}
	for _, b := range bound[packet.Source] {
		if (b.Protocol == kernel.All || b.Protocol == packet.Protocol) && b.EgressIP != packet.Destination {
			return b.EgressIP
		}
	}
	return netip.Addr{}
}

func byPod(p kernel.Desired) map[netip.Addr][]kernel.Binding {
	bound := map[netip.Addr][]kernel.Binding{}
	for _, b := range p.Bindings {
		bound[b.Pod] = append(bound[b.Pod], b)
	}
	return bound
}

// destinations returns some of every kind: outside, inside, beside and at an exclusion.
func destinations(r *rand.Rand, p kernel.Desired) []netip.Addr {
	cidr := p.ClusterCIDRs[0]
	result := []netip.Addr{netip.MustParseAddr("198.51.100.7"), cidr.Addr().Next(), egressIP(cidr, r.IntN(250))}
	if cidr.Addr().Is6() {
		result[0] = netip.MustParseAddr("2001:db8:200::7")
	}
	for range min(2, len(p.Exclusions)) {
		node := p.Exclusions[r.IntN(len(p.Exclusions))].Addr()
		result = append(result, node, node.Next())
	}
	return result
}

var everyProtocol = []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.All}

func TestRender_PacketsLeaveAsPlanned(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := withNodes(r, randomPlan(r, cidr, []int{1, 30, 65, 500, 3000}[seed%5]), []int{0, 64, 65, 1000}[seed%4])
			rules := Render(p)
			wellFormed(t, rules)
			bound := byPod(p)
			for pod, bindings := range bound {
				if r.IntN(1+len(bound)/20) > 0 {
					continue
				}
				for _, destination := range append(destinations(r, p), bindings[0].EgressIP) {
					for _, protocol := range everyProtocol {
						for _, source := range []netip.Addr{pod, pod.Next()} {
							packet := Packet{source, destination, protocol}
							if _, got := rules.Trace(packet); got != wantedEgressIP(p, bound, packet) {
								t.Fatalf("seed %d: %v leaves from %s, want %s", seed, packet, got, wantedEgressIP(p, bound, packet))
							}
						}
					}
				}
			}
		}
	}
}

// TestRender_PacketsMeetFewRules: what a packet costs hardly grows with bindings and nodes.
func TestRender_PacketsMeetFewRules(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		r := rand.New(rand.NewPCG(5, 5))
		p := withNodes(r, randomPlan(r, cidr, 5000), 5000)
		if len(p.Bindings) < 4000 || len(p.Exclusions) != 5000 {
			t.Fatalf("%d bindings and %d nodes make no test", len(p.Bindings), len(p.Exclusions))
		}
		rules := Render(p)
		most := 0
		for range 2000 {
			packet := Packet{Source: p.Bindings[r.IntN(len(p.Bindings))].Pod, Protocol: kernel.All}
			for _, packet.Destination = range destinations(r, p) {
				steps, _ := rules.Trace(packet)
				most = max(most, met(rules, steps))
			}
		}
		// A network, the gotos to the trees, and for each tree a leaf below three levels of
		// 16 branches.
		if bound := 1 + 2 + (3*16 + destinationRules) + (3*16 + leafRules); most > bound {
			t.Errorf("%s: a packet meets %d rules, want %d at most", cidr, most, bound)
		}
	}
}

// met returns how many rules a packet meets that matches those of steps, the others included.
func met(rules Ruleset, steps []Step) (count int) {
	chain := RootChain
	for _, step := range steps {
		matched, _ := parseRule(step.Rule)
		count += 1 + slices.Index(rules[chain], step.Rule)
		chain = matched.chain
	}
	return count + len(rules[chain]) // of a chain in which it matches none
}

// TestTrace_TellsTheRule shows the steps, in a small ruleset and from tree to tree.
func TestTrace_TellsTheRule(t *testing.T) {
	small := podPlan(clusterV4, "10.128.0.5")
	large := withNodes(rand.New(rand.NewPCG(6, 6)), small, 0)
	for i := range 65 {
		large.Exclusions = append(large.Exclusions, host(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})))
	}
	const snat = "-s 10.128.0.5/32 ! -d 203.0.113.1/32 -p tcp -j SNAT --to-source 203.0.113.1 --random-fully"
	branches := []Step{
		{RootChain, "-d 192.0.2.0/24 -g " + ChainPrefix + "D-C00002"},
		{ChainPrefix + "D-C00002", "-d 192.0.2.16/28 -g " + ChainPrefix + "D-C000021"},
	}
	type trace struct {
		Steps []Step
		From  string
	}
	for name, test := range map[string]struct {
		plan        kernel.Desired
		destination string
		protocol    kernel.Protocol
		want        trace
	}{
		"leaves":         {small, "198.51.100.1", kernel.TCP, trace{[]Step{{RootChain, snat}}, "203.0.113.1"}},
		"other protocol": {small, "198.51.100.1", kernel.UDP, trace{nil, "invalid IP"}},
		"own egress IP":  {small, "203.0.113.1", kernel.TCP, trace{nil, "invalid IP"}},
		"stays":          {small, "10.128.0.1", kernel.TCP, trace{[]Step{{RootChain, "-d 10.128.0.0/14 -j RETURN"}}, "invalid IP"}},
		"past the nodes": {large, "198.51.100.1", kernel.TCP, trace{[]Step{{RootChain, "-g " + SourceChain}, {SourceChain, snat}}, "203.0.113.1"}},
		"to a node":      {large, "192.0.2.17", kernel.TCP, trace{append(branches, Step{ChainPrefix + "D-C000021", "-d 192.0.2.17/32 -j RETURN"}), "invalid IP"}},
	} {
		t.Run(name, func(t *testing.T) {
			packet := Packet{netip.MustParseAddr("10.128.0.5"), netip.MustParseAddr(test.destination), test.protocol}
			steps, from := Render(test.plan).Trace(packet)
			if diff := cmp.Diff(test.want, trace{steps, from.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// depth returns how many chains follow each other from chain on.
func depth(rules Ruleset, chain string) int {
	deepest := 0
	for _, text := range rules[chain] {
		if r, _ := parseRule(text); r.chain != "" && r.chain != SourceChain {
			deepest = max(deepest, depth(rules, r.chain))
		}
	}
	if slices.Contains(rules[chain], "-g "+SourceChain) {
		deepest = max(deepest, depth(rules, SourceChain))
	}
	return 1 + deepest
}

// skewed returns addresses that would make a tree as deep as can be: 70 neighbours, and for
// each level above them one that differs there.
func skewed(network netip.Prefix) []netip.Addr {
	var result []netip.Addr
	ip := network.Addr()
	for range 70 {
		ip = ip.Next()
		result = append(result, ip)
	}
	for bit := network.Bits(); bit < ip.BitLen()-8; bit += levelBits {
		bytes := network.Addr().AsSlice()
		bytes[bit/8] ^= 1 << (7 - bit%8)
		other, _ := netip.AddrFromSlice(bytes)
		result = append(result, other.Next())
	}
	return result
}

// skewedPlan has trees of both kinds that would be too deep for iptables-nft.
func skewedPlan(cidr netip.Prefix) kernel.Desired {
	var bindings []kernel.Binding
	for _, ip := range skewed(cidr) {
		bindings = append(bindings, kernel.Binding{Pod: ip, Protocol: kernel.TCP, EgressIP: egressIP(cidr, 0)})
	}
	p := desired(cidr, bindings)
	nodes := netip.MustParsePrefix("64.0.0.0/4")
	if cidr.Addr().Is6() {
		nodes = netip.MustParsePrefix("2001:db8::/32")
	}
	for _, ip := range skewed(nodes) {
		p.Exclusions = append(p.Exclusions, host(ip))
	}
	slices.SortFunc(p.Exclusions, netip.Prefix.Compare)
	return p
}

func TestRender_SkewedTreesAreNotTooDeep(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		p := skewedPlan(cidr)
		rules := Render(p)
		wellFormed(t, rules)
		bound := byPod(p)
		for pod := range bound {
			for _, cidr := range p.Exclusions {
				for _, destination := range []netip.Addr{cidr.Addr(), cidr.Addr().Next()} {
					packet := Packet{pod, destination, kernel.TCP}
					steps, got := rules.Trace(packet)
					if want := wantedEgressIP(p, bound, packet); got != want {
						t.Fatalf("%v leaves from %s, want %s", packet, got, want)
					}
					// 20 levels have two branches each at most.
					if met := met(rules, steps); met > 1+2*(2*20+leafRules)+15 {
						t.Fatalf("%v meets %d rules", packet, met)
					}
				}
			}
		}
	}
}

// TestTrace_LoopEnds: a ruleset may come from anywhere.
func TestTrace_LoopEnds(t *testing.T) {
	rules := Ruleset{RootChain: {"-j ACCEPT", "-g " + SourceChain}, SourceChain: {"-g " + RootChain}}
	want := []Step{{RootChain, "-g " + SourceChain}, {SourceChain, "-g " + RootChain}}
	got, snat := rules.Trace(Packet{})
	if diff := cmp.Diff(want, got); diff != "" || snat.IsValid() {
		t.Errorf("SNAT to %s (-want +got):\n%s", snat, diff)
	}
}

// wellFormed fails the test unless rules are something that iptables takes, short chains
// each of which one rule leads to.
func wellFormed(t *testing.T, rules Ruleset) {
	t.Helper()
	leads := map[string]int{}
	for name, list := range rules {
		if len(name) > 28 {
			t.Fatalf("chain name %s has %d characters, netfilter allows 28", name, len(name))
		}
		leaves := 0
		for _, text := range list {
			switch r, ok := parseRule(text); {
			case !ok:
				t.Fatalf("chain %s: %s cannot be read back", name, text)
			case r.chain != "":
				leads[r.chain]++
			case name != RootChain || r.egressIP.IsValid():
				leaves++
			}
		}
		if leaves > leafRules {
			t.Fatalf("chain %s has %d leaves, want %d at most", name, leaves, leafRules)
		}
	}
	if n := depth(rules, RootChain); n > 15 {
		t.Fatalf("a packet can come through %d chains, iptables-nft takes 15", n)
	}
	if leads[RootChain] > 0 {
		t.Fatalf("%d rules lead to %s", leads[RootChain], RootChain)
	}
	destinations := 0
	for name, list := range rules {
		if strings.HasPrefix(name, ChainPrefix+"D-") {
			destinations++
			if list[len(list)-1] != "-g "+SourceChain {
				t.Fatalf("chain %s does not end at %s", name, SourceChain)
			}
		}
		if name != RootChain && name != SourceChain && leads[name] != 1 {
			t.Fatalf("%d rules lead to chain %s, want 1", leads[name], name)
		}
	}
	if _, exists := rules[SourceChain]; exists != (destinations > 0) || exists && leads[SourceChain] != destinations+1 {
		t.Fatalf("%d rules lead to %s, behind %d chains", leads[SourceChain], SourceChain, destinations)
	}
}

// TestRender_ChangeIsLocal: what one changed binding costs does not grow with the others.
func TestRender_ChangeIsLocal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	p := randomPlan(r, clusterV4, 3000)
	before := Render(p)
	for range 200 {
		q := p
		q.Bindings = append([]kernel.Binding(nil), p.Bindings...)
		q.Bindings[r.IntN(len(q.Bindings))].EgressIP = netip.MustParseAddr("198.51.100.1")
		payload := string(Transaction(Render(q), Kernel{Chains: before, hooks: hookWith(true, jumpRule)}, nil))
		if chains := strings.Count(payload, "\n:"); chains != 1 {
			t.Fatalf("one changed binding rewrites %d chains, want 1:\n%s", chains, payload)
		}
	}
}

// TestRender_ChangedNodeIsLocal: neither does what one changed node costs.
func TestRender_ChangedNodeIsLocal(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		r := rand.New(rand.NewPCG(2, 3))
		p := withNodes(r, randomPlan(r, cidr, 1000), 3000)
		before := Kernel{Chains: Render(p), hooks: hookWith(true, jumpRule)}
		more := 0
		for range 200 {
			q := p
			q.Exclusions = slices.Clone(p.Exclusions)
			q.Exclusions[r.IntN(len(q.Exclusions))] = withNodes(r, p, 1).Exclusions[0]
			slices.SortFunc(q.Exclusions, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
			// One chain where the address was and one where it is, as a rule.
			payload := string(Transaction(Render(q), before, nil))
			switch chains := strings.Count(payload, "\n:"); {
			case chains == 0 || chains > 2+16:
				t.Fatalf("one changed node rewrites %d chains:\n%s", chains, payload)
			case chains > 2:
				more++
			}
		}
		if more > 10 {
			t.Errorf("%d of 200 changed nodes rewrite more than two chains", more)
		}
	}
}

func TestRuleset_Rules(t *testing.T) {
	rules := Render(podPlan(clusterV4, "10.128.0.5", "10.128.0.6"))
	if got := rules.Rules(); got != 3 {
		t.Errorf("got %d rules, want 3: %v", got, rules)
	}
}

func TestRuleset_Record(t *testing.T) {
	p := podPlan(clusterV4, "10.128.0.6", "10.128.0.5")
	rules := Ruleset{}
	rules.Record(nil)
	if len(rules) > 0 {
		t.Errorf("nothing went, got %v", rules)
	}
	rules.Record([]kernel.Binding{p.Bindings[1], p.Bindings[0], p.Bindings[0]})
	want := Ruleset{RemovedChain: {
		"-s 10.128.0.5/32 ! -d 203.0.113.2/32 -p tcp -j SNAT --to-source 203.0.113.2 --random-fully",
		"-s 10.128.0.6/32 ! -d 203.0.113.1/32 -p tcp -j SNAT --to-source 203.0.113.1 --random-fully",
	}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if payload := string(Transaction(rules, Kernel{}, nil)); strings.Contains(payload, postrouting) {
		t.Errorf("a journal needs no jump:\n%s", payload)
	}
}

func FuzzRender(f *testing.F) {
	f.Add(uint64(1), 10, 0, true)
	f.Add(uint64(2), 100, 100, false)
	f.Add(uint64(3), 0, 0, false)
	f.Fuzz(func(t *testing.T, seed uint64, n, nodes int, v4 bool) {
		cidr := clusterV6
		if v4 {
			cidr = clusterV4
		}
		r := rand.New(rand.NewPCG(seed, 0))
		p := withNodes(r, randomPlan(r, cidr, min(max(n, 0), 2000)), min(max(nodes, 0), 2000))
		rules := Render(p)
		wellFormed(t, rules)
		bound := byPod(p)
		for _, destination := range destinations(r, p) {
			for _, b := range p.Bindings {
				packet := Packet{b.Pod, destination, b.Protocol}
				if _, got := rules.Trace(packet); got != wantedEgressIP(p, bound, packet) {
					t.Fatalf("%v leaves from %s, want %s", packet, got, wantedEgressIP(p, bound, packet))
				}
			}
		}
	})
}
