package cmd

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// without returns f of a node that does not write the rules of a pod, as if it had not written any yet.
func without(f status.Family, pod string) status.Family {
	f.Plan.Bindings = slices.DeleteFunc(f.Plan.Bindings, func(b plan.Binding) bool { return b.Pod == addr(pod) })
	f.Since = nil
	return f
}

// TestEgressList_Via: on a node that steers, with a pod of its own, pods of another node, one of them bound
// to an address here, and one that may be anywhere.
func TestEgressList_Via(t *testing.T) {
	in := clusterInput()
	in.Claims[1].Endpoints = append(in.Claims[1].Endpoints, at("10.128.0.13", "shop/db-1", "node-1"))
	in.Claims = append(in.Claims, claimOf("shop", "held", 1, "203.0.113.12", []plan.Protocol{plan.TCP}, at("10.128.0.22", "shop/h", "node-2")))
	s := status.Snapshot{Node: "node-1", Time: now, Ready: true, Steering: "vxlan", Addresses: []status.Address{
		{IP: addr("203.0.113.10"), Owner: web, State: "remote", Holder: "node-2", Way: "to node"},
		{IP: addr("203.0.113.11"), Owner: db, State: "lost", Holder: "node-3", Way: "prohibit"},
		{IP: addr("203.0.113.12"), State: "local", Holder: "node-1", Way: "here"},
	}}
	s.Families = []status.Family{without(family("IPv4", in), "10.128.0.12")}
	socket := serveNode(t, &fakeNode{snapshot: s})
	stdout, _, err := openshift(t, "egress", "list", "--all", "--socket="+socket)
	want := `POD IP        PROTOCOLS   EGRESS IP      VIA         SERVICE     NODE     AGE
10.128.0.9    tcp         203.0.113.11   <dropped>   shop/db     <none>   <pending>
10.128.0.11   tcp,udp     203.0.113.10   node-2      shop/web    node-1   <pending>
10.128.0.12   tcp,udp     203.0.113.10   -           shop/web    node-2   <elsewhere>
10.128.0.13   tcp         203.0.113.11   <dropped>   shop/db     node-1   <pending>
10.128.0.22   tcp         203.0.113.12   here        shop/held   node-2   <pending>
`
	if diff := cmp.Diff(want, stdout); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}

	stdout, _, err = openshift(t, "egress", "list", "--all", "-o", "json", "--socket="+socket)
	if err != nil {
		t.Fatal(err)
	}
	var list bindingList
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	var ways []via
	for _, b := range list.Bindings {
		ways = append(ways, b.Via)
	}
	if diff := cmp.Diff([]via{{Way: "prohibit"}, {"to node", "node-2"}, {}, {Way: "prohibit"}, {Way: "here"}}, ways); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if want := `"egressIP": "203.0.113.10",
      "via": {
        "way": "to node",
        "node": "node-2"
      },
`; !strings.Contains(stdout, want) || strings.Count(stdout, `"via"`) != 4 {
		t.Errorf("got %s; want %s, and via of 4 rows", stdout, want)
	}
}

const (
	boundWeb = "  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop\n"
	snatWeb  = "-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 ! -d 203.0.113.10/32 -p tcp -j SNAT --to-source 203.0.113.10 --random-fully\n"
)

// TestEgressExplain_Ways: what is said of a pod's packets for each way that they take. The pod 10.128.0.11
// runs on this node, 10.128.0.12 on node-2: its rules are here only if the address is.
func TestEgressExplain_Ways(t *testing.T) {
	since := now.Add(-time.Minute)
	const (
		here  = "10.128.0.11 --protocol=tcp"
		there = "10.128.0.12 --protocol=udp"
	)
	for _, test := range []struct {
		name, args string
		steering   string
		address    status.Address
		want       []string
	}{
		{"local", here, "vxlan", status.Address{State: "local", Holder: "node-1", Epoch: 3, Known: "interface", Way: "here"}, []string{
			boundWeb + "  Egress IP:    on this node (epoch 3, known by interface)\n  Rules:        " + snatWeb + "  This packet would leave as 203.0.113.10.\n"}},
		{"remote", here, "vxlan", status.Address{State: "remote", Holder: "node-3", Epoch: 3, Known: "lease", Way: "to node"}, []string{
			boundWeb + "  Egress IP:    on node-3 (epoch 3, known by lease)\n  If not sent:  " + snatWeb +
				"  This packet would leave this node by steer0 to node-3, which SNATs it to 203.0.113.10.\n"}},
		{"direct", here, "direct", status.Address{State: "remote", Holder: "node-3", Way: "to node"}, []string{
			"  Egress IP:    on node-3\n", "  This packet would leave this node directly to node-3, which SNATs it to 203.0.113.10.\n"}},
		{"conflict", here, "vxlan", status.Address{State: "local", Holder: "node-1", Conflict: []string{"node-2", "node-3"}, Way: "here"}, []string{
			"  Egress IP:    on this node; conflict: it is also on node-2, node-3, so answers may go there; remove it from all nodes but one\n", "  This packet would leave as 203.0.113.10.\n"}},
		{"blackhole", here, "vxlan", status.Address{State: "lost", Holder: "node-3", Why: "node is silent", Since: since, Epoch: 3, Known: "lease", Way: "blackhole"}, []string{
			boundWeb + "  Egress IP:    lost with node-3 (epoch 3, known by lease)\n  If not sent:  " + snatWeb +
				"  This packet would be dropped in silence for five seconds, and be refused after that, because 203.0.113.10, which node-3 had, has been lost since 2026-11-20T11:59:00Z (node is silent). Bring that node back, or put the address on another one.\n"}},
		{"lost for longer", here, "vxlan", status.Address{State: "lost", Holder: "node-3", Since: since, Way: "prohibit"}, []string{
			"  This packet would be refused, because 203.0.113.10, which node-3 had, has been lost since 2026-11-20T11:59:00Z. Bring that node back, or put the address on another one.\n"}},
		{"required", here, "vxlan", status.Address{State: "unclaimed", Way: "prohibit"}, []string{
			boundWeb + "  Egress IP:    no node has 203.0.113.10 on an interface\n  If not sent:  " + snatWeb +
				"  This packet would be refused, because no node has 203.0.113.10 and egress-snat-steering is required. Put the address on an interface of a node.\n"}},
		{"unclaimed", here, "vxlan", status.Address{State: "unclaimed", Way: "here"}, []string{
			boundWeb + "  Egress IP:    no node has 203.0.113.10 on an interface, so it is used where its pods run\n  Rules:        " + snatWeb +
				"  This packet would leave as 203.0.113.10.\n"}},
		{"to a Service", here + " 172.30.0.1", "vxlan", status.Address{State: "remote", Holder: "node-3", Way: "to node"}, []string{
			"Otherwise it would leave this node by steer0 to node-3, which SNATs it to 203.0.113.10.\n"}},
		{"to another Service's external IP", here + " 203.0.113.11", "vxlan", status.Address{State: "lost", Holder: "node-3", Since: since, Way: "prohibit"}, []string{
			"unchanged if that endpoint is inside the cluster. Otherwise it would be refused, because 203.0.113.10, which node-3 had, has"}},
		{"inside the cluster", here + " 10.128.0.9", "vxlan", status.Address{State: "remote", Holder: "node-3", Way: "to node"}, []string{
			"so never SNATed\n  Rules:        -A OPENSHIFT-EGRESS-SNAT -d 10.128.0.0/14 -j RETURN\n" +
				"  This packet would be unchanged by egress SNAT, and usually keep the pod's own address.\n"}},
		{"not bound", "10.128.0.11 --protocol=icmp", "vxlan", status.Address{State: "remote", Holder: "node-3", Way: "to node"}, []string{
			"for tcp,udp only\n  This packet would leave as the network plugin decides, usually as the node's address.\n"}},
		{"a pod and a holder elsewhere", there, "vxlan", status.Address{State: "remote", Holder: "node-3", Way: "to node"}, []string{
			"  Egress IP:    on node-3\n  Rules:        none on this node; the node that the pod runs on has them\n" +
				"  This packet would leave node-2 by steer0 to node-3, which SNATs it to 203.0.113.10.\n"}},
		{"a pod of the holder", there, "vxlan", status.Address{State: "remote", Holder: "node-2", Way: "to node"}, []string{
			"  Egress IP:    on node-2\n", "  This packet would leave as 203.0.113.10.\n"}},
		{"a pod elsewhere, held here", there, "vxlan", status.Address{State: "local", Holder: "node-1", Way: "here"}, []string{
			"  Egress IP:    on this node\n", "  This packet would leave node-2 by steer0 to this node, which SNATs it to 203.0.113.10.\n"}},
		{"a Service's claim", "shop/web", "vxlan", status.Address{State: "remote", Holder: "node-3", Epoch: 3, Known: "lease", Way: "to node"}, []string{
			"is the oldest that has it\n  Egress IP: on node-3 (epoch 3, known by lease)\n  POD IP "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.address.IP = addr("203.0.113.10")
			s := steered(test.address)
			s.Steering = test.steering
			if test.address.State != "local" {
				s.Families[0] = without(s.Families[0], "10.128.0.12")
			}
			socket := serveNode(t, &fakeNode{snapshot: s})
			stdout, stderr, err := openshift(t, append([]string{"egress", "explain", "--socket=" + socket}, strings.Fields(test.args)...)...)
			if err != nil || stderr != "" {
				t.Errorf("error %v, stderr %q", err, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("got:\n%s\nwant:\n%s", stdout, want)
				}
			}
			if strings.Contains(stdout, "Egress IP:") && (test.name == "inside the cluster" || test.name == "not bound") {
				t.Errorf("says where an address is that the packet does not get:\n%s", stdout)
			}
		})
	}
}

// TestEgressExplain_SteeringFaults: what keeps packets from other nodes is said of those that need one, in their IP
// family.
func TestEgressExplain_SteeringFaults(t *testing.T) {
	const path, lease = "IPv4: packets whose egress IP is on another node are dropped: the port is taken", "other nodes do not hear which egress IPs this node has: forbidden"
	const off = "this node does not send packets to the nodes that hold their egress IPs; its pods use their egress IPs on this node instead: the kernel has no VXLAN"
	remote := status.Address{State: "remote", Holder: "node-3", Way: "to node"}
	for _, test := range []struct {
		name, args string
		steering   string
		address    status.Address
		faults     []string
		want       string
	}{
		{"path", "10.128.0.11", "vxlan", remote, []string{path, "IPv6: something"}, "  Egress IP:    on node-3\n  Steering:     " + path + "\n  If not sent:  " + snatWeb +
			"  This packet would leave this node by steer0 to node-3, which SNATs it to 203.0.113.10, or be dropped: see Steering.\n"},
		{"nothing is dropped", "10.128.0.11", "vxlan", remote, []string{lease}, "  Steering:     " + lease + "\n  If not sent:  " + snatWeb +
			"  This packet would leave this node by steer0 to node-3, which SNATs it to 203.0.113.10.\n"},
		{"of this node", "10.128.0.11", "vxlan", status.Address{State: "local", Holder: "node-1", Way: "here"}, []string{lease},
			"  Egress IP:    on this node\n  Steering:     " + lease + "\n  Rules:        " + snatWeb + "  This packet would leave as 203.0.113.10.\n"},
		{"unavailable", "10.128.0.11", "off", status.Address{}, []string{off}, boundWeb + "  Steering:     " + off + "\n  Rules:        " + snatWeb + "  This packet would leave as 203.0.113.10.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.address.IP = addr("203.0.113.10")
			s := steered(test.address)
			if s.Steering, s.SteeringProblems = test.steering, test.faults; test.steering == "off" {
				s.Addresses = nil
			}
			s.Undelivered = slices.DeleteFunc(slices.Clone(test.faults), func(fault string) bool { return fault == lease })
			socket := serveNode(t, &fakeNode{snapshot: s})
			stdout, stderr, err := openshift(t, "egress", "explain", "--socket="+socket, test.args, "--protocol=tcp")
			if err != nil || strings.Count(stderr, "warning: ") != len(test.faults) {
				t.Errorf("error %v, stderr %q", err, stderr)
			}
			if !strings.Contains(stdout, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", stdout, test.want)
			}
		})
	}
}

// TestEgressExplain_ViaJSON: the way is said of packets that this node gives an egress IP, or sends on.
func TestEgressExplain_ViaJSON(t *testing.T) {
	s := steered(status.Address{IP: addr("203.0.113.10"), State: "remote", Holder: "node-3", Way: "to node"})
	s.Families[0] = without(s.Families[0], "10.128.0.12")
	socket := serveNode(t, &fakeNode{snapshot: s})
	for args, want := range map[string]via{
		"10.128.0.11":              {"to node", "node-3"},
		"10.128.0.11 172.30.0.1":   {"to node", "node-3"},
		"10.128.0.11 10.128.0.9":   {},
		"10.128.0.12":              {}, // node-2 decides
		"10.128.0.9 198.51.100.77": {Way: "here"},
	} {
		stdout, _, err := openshift(t, append([]string{"egress", "explain", "-o", "json", "--protocol=tcp", "--socket=" + socket}, strings.Fields(args)...)...)
		if err != nil {
			t.Fatal(err)
		}
		var pod struct {
			Steering  string
			Decisions []struct{ Via *via }
		}
		if err := json.Unmarshal([]byte(stdout), &pod); err != nil || len(pod.Decisions) != 1 || pod.Steering != "vxlan" {
			t.Fatalf("%s: %v: %s", args, err, stdout)
		}
		switch got := pod.Decisions[0].Via; {
		case got == nil && want != via{}, got != nil && *got != want:
			t.Errorf("%s: got %v; want %v", args, got, want)
		}
	}
}

// TestEgress_NodeOfOlderVersion: of a node that does not know of steering, everything is said as ever.
func TestEgress_NodeOfOlderVersion(t *testing.T) {
	text, err := json.Marshal(wholeCluster())
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if _, known := document["steering"]; !known {
		t.Fatal("a snapshot does not have the field steering")
	}
	delete(document, "steering")
	socket := filepath.Join(t.TempDir(), "egress.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Error(err)
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	for args, want := range map[string]string{
		"list":                     listTable,
		"list -o yaml -n shop":     listYAML,
		"refused -o json -n thief": refusedJSON,
		"explain 10.128.0.11":      explainPod,
		"explain shop/db":          explainDB,
		"addresses --no-headers":   "",
		"addresses -o yaml":        "addresses: []\nnode: node-1\nproblems: []\nready: true\n",
		"explain 10.128.0.9 192.0.2.2 -o json --protocol=tcp": explainJSON,
	} {
		stdout, _, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, stdout); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", args, err, diff)
		}
	}
}

// TestEgressExplain_FastPath: whether the flow of a bound pod takes it, and why not.
func TestEgressExplain_FastPath(t *testing.T) {
	in := clusterInput()
	in.Claims = append(in.Claims, claimOf("shop", "held", 1, "203.0.113.12", []plan.Protocol{plan.TCP}, at("10.128.0.13", "shop/h", "node-1")))
	s := status.Snapshot{Node: "node-1", Time: now, Ready: true, Steering: "vxlan", Addresses: []status.Address{
		{IP: addr("203.0.113.10"), Owner: web, State: "remote", Holder: "node-2", Way: "to node"},
		{IP: addr("203.0.113.11"), Owner: db, State: "lost", Holder: "node-3", Way: "prohibit"},
		{IP: addr("203.0.113.12"), State: "local", Holder: "node-1", Way: "here"},
	}}
	s.Families = []status.Family{family("IPv4", in)}
	explain := func(arguments ...string) string {
		stdout, _, err := openshift(t, append([]string{"egress", "explain", "--socket=" + serveNode(t, &fakeNode{snapshot: s})}, arguments...)...)
		if err != nil {
			t.Fatal(err)
		}
		return stdout
	}
	if text := explain("10.128.0.11", "--protocol=tcp"); strings.Contains(text, "Fast path") {
		t.Errorf("without a fast path it says:\n%s", text)
	}
	s.FastPath = &status.FastPath{Pods: map[netip.Addr][]kernel.Protocol{addr("10.128.0.11"): {kernel.TCP}, addr("10.128.0.9"): {kernel.TCP}}}
	for arguments, want := range map[string]string{
		"10.128.0.11 --protocol=tcp": "taken, from",
		"10.128.0.11 --protocol=udp": "not taken; 'openshift egress verify'",
		"10.128.0.9 --protocol=tcp":  "not taken: the packet goes nowhere",
		"10.128.0.13 --protocol=tcp": "not taken: bound pods' flows take it only if they leave by another node",
	} {
		if text := explain(strings.Fields(arguments)...); !strings.Contains(text, "  Fast path:    "+want) {
			t.Errorf("%s: want %q in:\n%s", arguments, want, text)
		}
	}
	if text := explain("10.128.0.11", "--protocol=tcp", "-o", "json"); !strings.Contains(text, `"fastPath": true`) {
		t.Errorf("the document does not say that it is taken:\n%s", text)
	}
}
