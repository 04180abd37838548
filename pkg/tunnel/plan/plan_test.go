package plan

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/kernel"
)

func addrs(texts ...string) (result []netip.Addr) {
	for _, text := range texts {
		result = append(result, netip.MustParseAddr(text))
	}
	return result
}

func node(name string, agent, ready bool, addresses ...string) Node {
	return Node{Name: name, Agent: agent, Ready: ready, Addresses: addrs(addresses...)}
}

// input is a cluster of a control node, a direct node, two edge nodes and one that is not Ready.
func input() Input {
	return Input{
		Self: "control",
		Nodes: []Node{
			node("control", false, true, "192.0.2.1", "2001:db8::1"),
			node("direct", false, true, "192.0.2.2", "2001:db8::2"),
			node("edge-1", true, true, "192.0.2.51", "2001:db8::51"),
			node("edge-2", true, false, "192.0.2.50"),
			node("gone", false, false, "192.0.2.60"),
		},
		Ports:    Ports{Secure: []uint16{10250}, Insecure: []uint16{9100, 10255}},
		Secure:   []netip.AddrPort{netip.MustParseAddrPort("192.0.2.10:10263")},
		Insecure: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.10:10264")},
	}
}

var exact = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }), cmpopts.EquateEmpty()}

// reasons are those of problems, with whom they are about.
func reasons(problems []Problem) (result []string) {
	for _, p := range problems {
		result = append(result, strings.TrimSpace(string(p.Reason)+" "+p.Node+p.ConfigMap))
	}
	return result
}

// TestBuild_Nodes: which addresses are redirected, as the nodes change.
func TestBuild_Nodes(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*Input)
		want     []netip.Addr
		problems []string
	}{
		"as they are":                      {func(*Input) {}, addrs("192.0.2.50", "192.0.2.51", "192.0.2.60"), nil},
		"this node has the label":          {func(in *Input) { in.Nodes[0].Agent = true }, addrs("192.0.2.50", "192.0.2.51", "192.0.2.60"), nil},
		"this node is not Ready":           {func(in *Input) { in.Nodes[0].Ready = false }, addrs("192.0.2.50", "192.0.2.51", "192.0.2.60"), nil},
		"Ready again":                      {func(in *Input) { in.Nodes[4].Ready = true }, addrs("192.0.2.50", "192.0.2.51"), nil},
		"a direct node gets the agent":     {func(in *Input) { in.Nodes[1].Agent = true }, addrs("192.0.2.2", "192.0.2.50", "192.0.2.51", "192.0.2.60"), nil},
		"an edge node claims a direct one": {func(in *Input) { in.Nodes[2].Addresses = addrs("192.0.2.2", "192.0.2.51") }, addrs("192.0.2.50", "192.0.2.51", "192.0.2.60"), []string{"AddressOfDirectNode edge-1"}},
		"an edge node claims this one":     {func(in *Input) { in.Nodes[2].Addresses = addrs("192.0.2.1") }, addrs("192.0.2.50", "192.0.2.60"), []string{"AddressOfDirectNode edge-1"}},
		"an edge node claims the server":   {func(in *Input) { in.Nodes[2].Addresses = addrs("192.0.2.10") }, addrs("192.0.2.50", "192.0.2.60"), []string{"AddressOfTunnel edge-1"}},
		"two edge nodes share an address":  {func(in *Input) { in.Nodes[2].Addresses = addrs("192.0.2.50") }, addrs("192.0.2.50", "192.0.2.60"), nil},
		"any destination":                  {func(in *Input) { in.AnyDestination = true }, addrs("192.0.2.1", "192.0.2.2", "192.0.2.10"), nil},
		"no edge nodes":                    {func(in *Input) { in.Nodes = in.Nodes[:2] }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			test.change(&in)
			got := Build(kernel.IPv4, in)
			if diff := cmp.Diff(test.want, got.Redirects.Nodes, exact); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, reasons(got.Problems), exact); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			rand.Shuffle(len(in.Nodes), func(i, j int) { in.Nodes[i], in.Nodes[j] = in.Nodes[j], in.Nodes[i] })
			if again := Build(kernel.IPv4, in); !again.Redirects.Equal(got.Redirects) || !slices.Equal(again.Problems, got.Problems) {
				t.Errorf("another order of the nodes gives another plan: %v, %v", again, got)
			}
		})
	}
}

// TestBuild_NoAddressOfAFamily: nothing is redirected there, and somebody is told.
func TestBuild_NoAddressOfAFamily(t *testing.T) {
	got := Build(kernel.IPv6, input())
	if !got.Redirects.Empty() || !got.Redirects.Equal(kernel.Redirects{}) {
		t.Errorf("redirects: %v", got.Redirects)
	}
	if diff := cmp.Diff([]string{"NoTunnelAddress", "NoTunnelAddress"}, reasons(got.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	in := input()
	in.Secure = append(in.Secure, netip.MustParseAddrPort("[2001:db8::10]:10263"))
	got = Build(kernel.IPv6, in)
	if want := addrs("2001:db8::51"); !slices.Equal(got.Redirects.Nodes, want) || len(got.Redirects.Insecure.Ports) > 0 || len(got.Problems) != 1 {
		t.Errorf("with a secure address alone: %v", got)
	}
}

// TestRedirects_To: where a connection goes.
func TestRedirects_To(t *testing.T) {
	narrow := Build(kernel.IPv4, input()).Redirects
	in := input()
	in.AnyDestination = true
	wide := Build(kernel.IPv4, in).Redirects
	for to, want := range map[string][2]string{
		"192.0.2.51:10250":   {"192.0.2.10:10263", "192.0.2.10:10263"},
		"192.0.2.51:9100":    {"192.0.2.10:10264", "192.0.2.10:10264"},
		"192.0.2.51:22":      {"", ""},
		"192.0.2.2:10250":    {"", ""},
		"198.51.100.7:10255": {"", "192.0.2.10:10264"},
		"192.0.2.10:10250":   {"", ""},
	} {
		for i, r := range []kernel.Redirects{narrow, wide} {
			got, redirected := r.To(netip.MustParseAddrPort(to))
			if redirected != (want[i] != "") || redirected && got.String() != want[i] {
				t.Errorf("%s, any destination %v: got %s, %v; want %q", to, i == 1, got, redirected, want[i])
			}
		}
	}
}

// TestReadPorts_Values: what the ConfigMap's keys may hold.
func TestReadPorts_Values(t *testing.T) {
	for name, test := range map[string]struct {
		data             map[string]string
		secure, insecure []uint16
		problems         []string
	}{
		"all keys": {map[string]string{"dnat-ports-pair": "9100=10264, 9200=10264", "http-proxy-ports": "9445,", "https-proxy-ports": " 9443 ,9444"},
			[]uint16{9443, 9444, 10250}, []uint16{9100, 9200, 9445, 10255}, nil},
		"empty":                     {map[string]string{"dnat-ports-pair": ""}, []uint16{10250}, []uint16{10255}, nil},
		"none of the keys":          {map[string]string{"other": "1"}, []uint16{10250}, []uint16{10255}, []string{"MissingKey n/m"}},
		"ports out of range":        {map[string]string{"dnat-ports-pair": "0=10264,65536=10264,-1=10264,1=10264,65535=10264"}, []uint16{10250}, []uint16{1, 10255, 65535}, []string{"InvalidPort n/m", "InvalidPort n/m", "InvalidPort n/m"}},
		"pairs that are none":       {map[string]string{"dnat-ports-pair": "9100,=,9=9=9,9101=10264=1", "http-proxy-ports": "9445=10264"}, []uint16{10250}, []uint16{10255}, []string{"InvalidPair n/m", "InvalidPort n/m", "InvalidPair n/m", "InvalidPair n/m", "InvalidPair n/m"}},
		"to another port":           {map[string]string{"dnat-ports-pair": "9100=10263"}, []uint16{10250}, []uint16{10255}, []string{"InvalidPair n/m"}},
		"the kubelet's ports again": {map[string]string{"dnat-ports-pair": "10255=10264", "https-proxy-ports": "10250"}, []uint16{10250}, []uint16{10255}, nil},
		"given twice":               {map[string]string{"dnat-ports-pair": "10250=10264", "http-proxy-ports": "9443", "https-proxy-ports": "9443"}, []uint16{10250}, []uint16{9443, 10255}, []string{"PortGivenTwice n/m", "PortGivenTwice n/m"}},
	} {
		t.Run(name, func(t *testing.T) {
			ports, problems := ReadPorts(ConfigMap{Name: "n/m", Found: true, Data: test.data}, []uint16{10264})
			if diff := cmp.Diff(Ports{test.secure, test.insecure}, ports); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, reasons(problems), exact); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadPorts_Missing: without a ConfigMap, or an insecure address, the other ports go on.
func TestReadPorts_Missing(t *testing.T) {
	ports, problems := ReadPorts(ConfigMap{Name: "n/m"}, []uint16{10264})
	if diff := cmp.Diff(Ports{[]uint16{10250}, []uint16{10255}}, ports); diff != "" || !slices.Equal(reasons(problems), []string{"MissingConfigMap n/m"}) {
		t.Errorf("no ConfigMap: %v (-want +got):\n%s", problems, diff)
	}
	ports, problems = ReadPorts(ConfigMap{}, nil)
	if diff := cmp.Diff(Ports{Secure: []uint16{10250}}, ports); diff != "" || len(problems) > 0 {
		t.Errorf("none followed, no insecure address: %v (-want +got):\n%s", problems, diff)
	}
	ports, problems = ReadPorts(ConfigMap{Name: "n/m", Found: true, Data: map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "9443"}}, nil)
	if diff := cmp.Diff(Ports{Secure: []uint16{9443, 10250}}, ports); diff != "" || !slices.Equal(reasons(problems), []string{"NoTunnelAddress n/m"}) {
		t.Errorf("no insecure address: %v (-want +got):\n%s", problems, diff)
	}
}

// FuzzReadPorts: whatever the values are, the kubelet's ports go where they should, no port is in both lists, and what is
// told fits into Events.
func FuzzReadPorts(f *testing.F) {
	f.Add("9100=10264,9200=10264", "9445", "9443")
	f.Add("=,,=,1=1", "0,-1,65536,१", "\x00,9443=1")
	f.Add("10250=10264", "10250", "10255")
	f.Fuzz(func(t *testing.T, pairs, http, https string) {
		c := ConfigMap{Name: "n/m", Found: true, Data: map[string]string{pairsKey: pairs, httpKey: http, httpsKey: https}}
		ports, problems := ReadPorts(c, []uint16{10264})
		if !slices.Contains(ports.Secure, 10250) || !slices.Contains(ports.Insecure, 10255) {
			t.Errorf("the kubelet's ports: %v", ports)
		}
		all := slices.Concat(ports.Secure, ports.Insecure)
		slices.Sort(all)
		if all[0] == 0 || len(slices.Compact(slices.Clone(all))) != len(all) || !slices.IsSorted(ports.Secure) || !slices.IsSorted(ports.Insecure) {
			t.Errorf("ports: %v", ports)
		}
		if entries := strings.Count(pairs+","+http+","+https, ",") + 1; len(problems) > min(entries, mostProblems+1) {
			t.Errorf("%d entries, %d problems", entries, len(problems))
		}
		for _, p := range problems {
			if len(p.Message) > 400 || p.ConfigMap != "n/m" {
				t.Errorf("problem %v", p)
			}
		}
	})
}
