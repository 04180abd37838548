package iptables

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

var (
	clusterV4 = netip.MustParsePrefix("10.128.0.0/14")
	clusterV6 = netip.MustParsePrefix("fd00:10:128::/48")
)

// pods returns a plan that binds these pods for TCP, each to an egress IP of its own.
func podPlan(cidr netip.Prefix, pods ...string) plan.Plan {
	in := plan.Input{ClusterCIDRs: []netip.Prefix{cidr}}
	for i, pod := range pods {
		in.Claims = append(in.Claims, plan.Claim{
			Service:   plan.Service{Namespace: "ns", Name: fmt.Sprintf("s%d", i)},
			EgressIP:  egressIP(cidr, i),
			Protocols: []plan.Protocol{plan.TCP},
			Endpoints: []netip.Addr{netip.MustParseAddr(pod)},
		})
	}
	return plan.Build(in)
}

func egressIP(cidr netip.Prefix, i int) netip.Addr {
	if cidr.Addr().Is4() {
		return netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i%250)})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:113::%x", 1+i%250))
}

// randomPlan binds n random pods inside of cidr: clustered, as pods are, in /24s.
func randomPlan(r *rand.Rand, cidr netip.Prefix, n int) plan.Plan {
	in := plan.Input{ClusterCIDRs: []netip.Prefix{cidr}}
	protocols := []plan.Protocol{plan.TCP, plan.UDP, plan.SCTP}
	for i := range n {
		bytes := cidr.Addr().AsSlice()
		bytes[len(bytes)-1] = byte(r.IntN(256))
		bytes[len(bytes)-2] = byte(r.IntN(20))
		bytes[len(bytes)-3] |= byte(r.IntN(2))
		pod, _ := netip.AddrFromSlice(bytes)
		in.Claims = append(in.Claims, plan.Claim{
			Service:   plan.Service{Namespace: "ns", Name: fmt.Sprintf("s%d", i)},
			EgressIP:  egressIP(cidr, r.IntN(250)),
			Protocols: protocols[:1+r.IntN(3)],
			Endpoints: []netip.Addr{pod},
		})
	}
	return plan.Build(in)
}

func TestGolden(t *testing.T) {
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("10.128.%d.%d", i%3*16, 10+i))
	}
	for name, p := range map[string]plan.Plan{
		"one":  podPlan(clusterV4, "10.128.0.5"),
		"ipv6": podPlan(clusterV6, "fd00:10:128::5", "fd00:10:128:1::5"),
		"tree": podPlan(clusterV4, many...),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".restore")
			got := Payload(p)
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

func TestNothingBoundNothingWritten(t *testing.T) {
	if got := Payload(plan.Build(plan.Input{ClusterCIDRs: []netip.Prefix{clusterV4}})); got != nil {
		t.Errorf("want nothing for a plan without bindings, got:\n%s", got)
	}
}

// packet walks a packet through rules as netfilter would and returns the address that it
// leaves from, and how many rules it met.
func packet(t *testing.T, rules Ruleset, src, dst netip.Addr, protocol plan.Protocol) (from netip.Addr, met int) {
	t.Helper()
	chain := RootChain
walk:
	for {
		list, exists := rules[chain]
		if !exists && len(rules) > 0 {
			t.Fatalf("a rule leads to %s, which does not exist", chain)
		}
		for _, rule := range list {
			met++
			fields := strings.Fields(rule)
			matches, verdict, argument := true, "", ""
			for i := 0; i+1 < len(fields); i++ {
				switch fields[i] {
				case "-s":
					matches = matches && netip.MustParsePrefix(fields[i+1]).Contains(src)
				case "-d":
					matches = matches && netip.MustParsePrefix(fields[i+1]).Contains(dst)
				case "-p":
					matches = matches && fields[i+1] == string(protocol)
				case "-j", "-g":
					verdict, argument = fields[i+1], fields[len(fields)-2]
				}
			}
			switch {
			case !matches:
			case verdict == "RETURN":
				return src, met
			case verdict == "SNAT":
				return netip.MustParseAddr(argument), met
			default:
				chain = verdict
				continue walk
			}
		}
		return src, met
	}
}

func TestPacketsLeaveAsPlanned(t *testing.T) {
	for _, cidr := range []netip.Prefix{clusterV4, clusterV6} {
		outside := egressIP(cidr, 249)
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := randomPlan(r, cidr, []int{1, 30, 65, 500, 3000}[seed%5])
			rules := Render(p)
			wellFormed(t, rules)
			bound := map[netip.Addr]map[plan.Protocol]netip.Addr{}
			for _, b := range p.Bindings {
				if bound[b.Pod] == nil {
					bound[b.Pod] = map[plan.Protocol]netip.Addr{}
				}
				bound[b.Pod][b.Protocol] = b.EgressIP
			}
			for pod := range bound {
				for _, source := range []netip.Addr{pod, pod.Next()} {
					for _, protocol := range []plan.Protocol{plan.TCP, plan.UDP, plan.SCTP} {
						want, ok := bound[source][protocol]
						if !ok {
							want = source
						}
						got, met := packet(t, rules, source, outside, protocol)
						if got != want {
							t.Fatalf("seed %d: %s/%s leaves from %s, want %s", seed, source, protocol, got, want)
						}
						if most := 1 + 16*8 + leafRules; met > most {
							t.Fatalf("seed %d: a packet of %s meets %d rules of %d bindings, want %d at most", seed, source, met, len(p.Bindings), most)
						}
						if got, _ := packet(t, rules, source, cidr.Addr().Next(), protocol); got != source {
							t.Fatalf("seed %d: %s is SNATed to %s inside of the cluster", seed, source, got)
						}
					}
				}
			}
		}
	}
}

func wellFormed(t *testing.T, rules Ruleset) {
	t.Helper()
	leads := map[string]int{RootChain: 1}
	for name, list := range rules {
		if len(name) > 28 {
			t.Fatalf("chain name %s has %d characters, netfilter allows 28", name, len(name))
		}
		snats := 0
		for _, rule := range list {
			if tgt := target(rule); isOwned(tgt) {
				leads[tgt]++
			} else if tgt == "SNAT" {
				snats++
			}
		}
		if snats > leafRules {
			t.Fatalf("chain %s has %d bindings, want %d at most", name, snats, leafRules)
		}
	}
	for name := range rules {
		if leads[name] != 1 {
			t.Fatalf("%d rules lead to chain %s, want 1", leads[name], name)
		}
	}
}

// TestChangeIsLocal: what one changed binding costs does not grow with the others.
func TestChangeIsLocal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	p := randomPlan(r, clusterV4, 3000)
	before := Render(p)
	for range 200 {
		q := p
		q.Bindings = append([]plan.Binding(nil), p.Bindings...)
		q.Bindings[r.IntN(len(q.Bindings))].EgressIP = netip.MustParseAddr("198.51.100.1")
		payload := string(Transaction(Render(q), Kernel{Chains: before, jumps: []string{jumpRule}, jumpInFront: true}, nil))
		if chains := strings.Count(payload, "\n:"); chains != 1 {
			t.Fatalf("one changed binding rewrites %d chains, want 1:\n%s", chains, payload)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add(uint64(1), 10, true)
	f.Fuzz(func(t *testing.T, seed uint64, n int, v4 bool) {
		cidr := clusterV6
		if v4 {
			cidr = clusterV4
		}
		p := randomPlan(rand.New(rand.NewPCG(seed, 0)), cidr, min(max(n, 0), 2000))
		rules := Render(p)
		wellFormed(t, rules)
		for _, b := range p.Bindings {
			if got, _ := packet(t, rules, b.Pod, egressIP(cidr, 3), b.Protocol); got != b.EgressIP {
				t.Fatalf("%v leaves from %s", b, got)
			}
		}
	})
}
