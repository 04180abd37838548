package cmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// fakeNode is a status.Source whose snapshot the test sets.
type fakeNode struct {
	mu       sync.Mutex
	snapshot status.Snapshot
	changed  chan struct{}

	differences map[string][]string
	err         error
}

func (n *fakeNode) Snapshot() status.Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.snapshot
}

func (n *fakeNode) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *fakeNode) Verify(context.Context) (map[string][]string, error) { return n.differences, n.err }

func (n *fakeNode) set(s status.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.snapshot = s
	close(n.changed)
	n.changed = make(chan struct{})
}

// serveNode serves n until the test's end and returns the socket.
func serveNode(t testing.TB, n *fakeNode) string {
	t.Helper()
	n.changed = make(chan struct{})
	path := filepath.Join(t.TempDir(), "egress.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // after who asks it
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, status.Handler(n), nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path
}

// openshift runs the command line.
func openshift(t testing.TB, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	err = openshiftTo(t.Context(), &out, &errOut, args...)
	return out.String(), errOut.String(), err
}

func openshiftTo(ctx context.Context, out, errOut io.Writer, args ...string) error {
	root := commandFor(append([]string{"openshift"}, args...))
	root.SetOut(out)
	root.SetErr(errOut)
	return root.ExecuteContext(ctx)
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func claimOf(namespace, name string, days int, egressIP string, protocols []plan.Protocol, endpoints ...plan.Endpoint) plan.Claim {
	return plan.Claim{
		Service: plan.Service{Namespace: namespace, Name: name}, Created: now.AddDate(0, 0, -days), EgressIP: addr(egressIP),
		Field: "spec.externalIPs[0]", Protocols: protocols, Endpoints: endpoints,
	}
}

func at(ip, pod, node string) plan.Endpoint {
	e := plan.Endpoint{Addr: addr(ip), Node: node}
	e.Pod.Namespace, e.Pod.Name, _ = strings.Cut(pod, "/")
	return e
}

// family plans in and dates its bindings: the first is pending, the second an hour old,
// the third a day older than that, and so on.
func family(name string, in plan.Input) status.Family {
	f := status.Family{Family: name, Input: in, Plan: plan.Build(in), Written: true, LastSync: now}
	for i := range f.Plan.Bindings {
		var since time.Time
		if i > 0 {
			since = now.Add(-time.Hour).AddDate(0, 0, 1-i)
		}
		f.Since = append(f.Since, since)
	}
	return f
}

func clusterInput() plan.Input {
	tcp, both := []plan.Protocol{plan.TCP}, []plan.Protocol{plan.TCP, plan.UDP}
	return plan.Input{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")},
		Nodes:        []plan.Node{{Name: "node-1", InternalIPs: []netip.Addr{addr("192.0.2.2")}}},
		ExcludeNodes: true,
		Claims: []plan.Claim{
			claimOf("shop", "web", 9, "203.0.113.10", both, at("10.128.0.11", "shop/web-0", "node-1"), at("10.128.0.12", "shop/web-1", "node-2")),
			claimOf("shop", "db", 8, "203.0.113.11", tcp, at("10.128.0.12", "shop/web-1", "node-2"), plan.Endpoint{Addr: addr("10.128.0.9")}),
			claimOf("thief", "web", 1, "203.0.113.10", tcp, at("10.128.0.66", "thief/t", "node-1")),
			{Service: plan.Service{Namespace: "shop", Name: "typo"}, Field: "spec.externalIPs[1]", Refused: plan.InvalidAddress, RefusedBecause: `external IP "x" is not an IP address`},
		},
	}
}

// wholeCluster has a bit of everything.
func wholeCluster() status.Snapshot {
	v6 := plan.Input{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00:10::/48")},
		Claims:       []plan.Claim{claimOf("shop", "web", 9, "2001:db8::10", []plan.Protocol{plan.TCP}, at("fd00:10::11", "shop/web-0", "node-1"))},
	}
	six := family("IPv6", v6)
	six.Since[0] = now.Add(-90 * time.Second)
	return status.Snapshot{Node: "node-1", Version: "v1", Time: now, Ready: true, Families: []status.Family{family("IPv4", clusterInput()), six}}
}

const (
	listTable = `POD IP        PROTOCOLS   EGRESS IP      VIA    SERVICE    NODE     AGE
10.128.0.9    tcp         203.0.113.11   here   shop/db    <none>   <pending>
10.128.0.11   tcp,udp     203.0.113.10   here   shop/web   node-1   60m
10.128.0.12   tcp,udp     203.0.113.10   here   shop/web   node-2   2d1h
fd00:10::11   tcp         2001:db8::10   here   shop/web   node-1   90s
`
	listWide = `POD IP        PROTOCOLS   EGRESS IP      VIA    SERVICE    NODE     AGE         POD          FIELD                 OWNER      KNOWN BY        PORTS
10.128.0.9    tcp         203.0.113.11   here   shop/db    <none>   <pending>   <none>       spec.externalIPs[0]   shop/db    endpointslice   <none>
10.128.0.11   tcp,udp     203.0.113.10   here   shop/web   node-1   60m         shop/web-0   spec.externalIPs[0]   shop/web   endpointslice   <none>
10.128.0.12   tcp,udp     203.0.113.10   here   shop/web   node-2   2d1h        shop/web-1   spec.externalIPs[0]   shop/web   endpointslice   <none>
fd00:10::11   tcp         2001:db8::10   here   shop/web   node-1   90s         shop/web-0   spec.externalIPs[0]   shop/web   endpointslice   <none>
`
	refusedTable = `SERVICE     EGRESS IP      POD IP        PROTOCOL   REASON                  MESSAGE
shop/db     203.0.113.11   10.128.0.12   tcp        BoundByOlderService     pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
shop/typo   <unreadable>   <all>         <all>      InvalidAddress          external IP "x" is not an IP address
thief/web   203.0.113.10   <all>         <all>      OwnedByOtherNamespace   egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older
`
	refusedWide = `SERVICE     EGRESS IP      POD IP        PROTOCOL   FIELD                 OWNER      POD          NODE     REASON                  MESSAGE
shop/db     203.0.113.11   10.128.0.12   tcp        spec.externalIPs[0]   shop/db    shop/web-1   node-2   BoundByOlderService     pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
shop/typo   <unreadable>   <all>         <all>      spec.externalIPs[1]   <none>     <none>       <none>   InvalidAddress          external IP "x" is not an IP address
thief/web   203.0.113.10   <all>         <all>      spec.externalIPs[0]   shop/web   <none>       <none>   OwnedByOtherNamespace   egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older
`
)

const (
	listYAML = `bindings:
- egressIP: 203.0.113.11
  field: spec.externalIPs[0]
  here: true
  owner:
    name: db
    namespace: shop
  podIP: 10.128.0.9
  protocols:
  - tcp
  service:
    name: db
    namespace: shop
  via:
    way: here
- egressIP: 203.0.113.10
  field: spec.externalIPs[0]
  here: true
  node: node-1
  owner:
    name: web
    namespace: shop
  pod:
    name: web-0
    namespace: shop
  podIP: 10.128.0.11
  protocols:
  - tcp
  - udp
  service:
    name: web
    namespace: shop
  since: "2026-11-20T11:00:00Z"
  via:
    way: here
- egressIP: 203.0.113.10
  field: spec.externalIPs[0]
  here: true
  node: node-2
  owner:
    name: web
    namespace: shop
  pod:
    name: web-1
    namespace: shop
  podIP: 10.128.0.12
  protocols:
  - tcp
  - udp
  service:
    name: web
    namespace: shop
  since: "2026-11-18T11:00:00Z"
  via:
    way: here
- egressIP: 2001:db8::10
  field: spec.externalIPs[0]
  here: true
  node: node-1
  owner:
    name: web
    namespace: shop
  pod:
    name: web-0
    namespace: shop
  podIP: fd00:10::11
  protocols:
  - tcp
  service:
    name: web
    namespace: shop
  since: "2026-11-20T11:58:30Z"
  via:
    way: here
node: node-1
problems: []
ready: true
`
	refusedJSON = `{
  "node": "node-1",
  "ready": true,
  "problems": [],
  "refusals": [
    {
      "service": {
        "namespace": "thief",
        "name": "web"
      },
      "egressIP": "203.0.113.10",
      "field": "spec.externalIPs[0]",
      "owner": {
        "namespace": "shop",
        "name": "web"
      },
      "reason": "OwnedByOtherNamespace",
      "message": "egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older"
    }
  ]
}
`
	explainPod = `Pod 10.128.0.11 (shop/web-0 on node-1)

tcp
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop
  Rules:        -A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 ! -d 203.0.113.10/32 -p tcp -j SNAT --to-source 203.0.113.10 --random-fully
  This packet would leave as 203.0.113.10.

udp
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for udp, an address that belongs to the namespace shop
  Rules:        -A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 ! -d 203.0.113.10/32 -p udp -j SNAT --to-source 203.0.113.10 --random-fully
  This packet would leave as 203.0.113.10.

others
  Not bound:    the Service shop/web claims 203.0.113.10 for tcp,udp only
  This packet would leave as the network plugin decides, usually as the node's address.
`
	explainInside = `Pod 10.128.0.12 (shop/web-1 on node-2)

tcp to 10.128.0.9
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop
  Refused:      the claim of the Service shop/db (BoundByOlderService): pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
  Destination:  in the cluster CIDR 10.128.0.0/14, so never SNATed
  Rules:        -A OPENSHIFT-EGRESS-SNAT -d 10.128.0.0/14 -j RETURN
  This packet would be unchanged by egress SNAT, and usually keep the pod's own address.
`
	explainExternalIP = `Pod 10.128.0.12 (shop/web-1 on node-2)

tcp to 203.0.113.11
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop
  Refused:      the claim of the Service shop/db (BoundByOlderService): pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
  Destination:  an address of the Service shop/db: the proxier sends packets for its ports to an endpoint, whose address decides
  If not sent:  -A OPENSHIFT-EGRESS-SNAT -s 10.128.0.12/32 ! -d 203.0.113.10/32 -p tcp -j SNAT --to-source 203.0.113.10 --random-fully
  This packet would go to an endpoint if it is for a port of the Service, unchanged if that endpoint is inside the cluster. Otherwise it would leave as 203.0.113.10.
`
	explainClusterIP = `Pod 10.128.0.12 (shop/web-1 on node-2)

tcp to 172.30.0.1
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop
  Refused:      the claim of the Service shop/db (BoundByOlderService): pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
  Destination:  in the service CIDR 172.30.0.0/16: the proxier sends it to an endpoint, whose address decides
  If not sent:  -A OPENSHIFT-EGRESS-SNAT -s 10.128.0.12/32 ! -d 203.0.113.10/32 -p tcp -j SNAT --to-source 203.0.113.10 --random-fully
  This packet would go to an endpoint, unchanged if that is inside the cluster. Otherwise it would leave as 203.0.113.10.
`
	explainThief = `Pod 10.128.0.66 (thief/t on node-1)

tcp to 192.0.2.2
  Not bound:    the claim of the Service thief/web is refused (OwnedByOtherNamespace): egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older
  Destination:  an address of the node node-1, and nodes are excluded, so never SNATed
  Rules:        -A OPENSHIFT-EGRESS-SNAT -d 192.0.2.2/32 -j RETURN
  This packet would be unchanged by egress SNAT.
`
	explainNobody = `Pod 10.128.0.77

ipv6
  Not bound:    no Service that claims an egress IP has the endpoint 10.128.0.77
  This packet would leave as the network plugin decides, usually as the node's address.
`
	explainJSON = `{
  "node": "node-1",
  "ready": true,
  "problems": [],
  "pod": {
    "ip": "10.128.0.9",
    "family": "IPv4",
    "endpoints": [
      {
        "addr": "10.128.0.9"
      }
    ]
  },
  "decisions": [
    {
      "pod": "10.128.0.9",
      "protocol": "tcp",
      "destination": "192.0.2.2",
      "outcome": "Unchanged",
      "binding": {
        "pod": "10.128.0.9",
        "protocol": "tcp",
        "egressIP": "203.0.113.11",
        "service": {
          "namespace": "shop",
          "name": "db"
        }
      },
      "field": "spec.externalIPs[0]",
      "owner": {
        "namespace": "shop",
        "name": "db"
      },
      "because": "the Service shop/db gives it 203.0.113.11 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop",
      "to": {
        "addr": "192.0.2.2",
        "kind": "OfNode",
        "cidr": "192.0.2.2/32",
        "node": "node-1",
        "excluded": true
      },
      "here": true,
      "rules": [
        {
          "chain": "OPENSHIFT-EGRESS-SNAT",
          "rule": "-d 192.0.2.2/32 -j RETURN"
        }
      ]
    }
  ]
}
`
	explainDB = `Service shop/db

IPv4: 203.0.113.11 (spec.externalIPs[0]) for tcp
  Granted: the address belongs to the namespace shop, because its Service shop/db is the oldest that has it
  POD IP        PROTOCOL   LEAVES AS      GIVEN BY   POD          NODE     REFUSED
  10.128.0.9    tcp        203.0.113.11   shop/db    <none>       <none>   <none>
  10.128.0.12   tcp        203.0.113.10   shop/web   shop/web-1   node-2   BoundByOlderService
`
	explainDBWide = `Service shop/db

IPv4: 203.0.113.11 (spec.externalIPs[0]) for tcp
  Granted: the address belongs to the namespace shop, because its Service shop/db is the oldest that has it
  The destination 172.30.0.1 is in the service CIDR 172.30.0.0/16: the proxier sends it to an endpoint, whose address decides.
  POD IP        PROTOCOL   LEAVES AS            GIVEN BY   POD          NODE     REFUSED               MESSAGE
  10.128.0.9    tcp        <endpoint decides>   shop/db    <none>       <none>   <none>                <none>
  10.128.0.12   tcp        <endpoint decides>   shop/web   shop/web-1   node-2   BoundByOlderService   pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web
`
	explainThiefs = `Service thief/web

IPv4: 203.0.113.10 (spec.externalIPs[0]) for tcp
  Refused (OwnedByOtherNamespace): egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older
  POD IP        PROTOCOL   LEAVES AS     GIVEN BY   POD       NODE     REFUSED
  10.128.0.66   tcp        <unchanged>   <none>     thief/t   node-1   OwnedByOtherNamespace
`
	explainTypo = `claims:
- created: "0001-01-01T00:00:00Z"
  endpoints: []
  family: IPv4
  field: spec.externalIPs[1]
  protocols: []
  refusal:
    message: external IP "x" is not an IP address
    reason: InvalidAddress
    service:
      name: typo
      namespace: shop
  service:
    name: typo
    namespace: shop
node: node-1
problems: []
ready: true
service:
  name: typo
  namespace: shop
`
)

// TestEgress_Output compares the whole output of each command.
func TestEgress_Output(t *testing.T) {
	socket := serveNode(t, &fakeNode{snapshot: wholeCluster(), differences: map[string][]string{"IPv4": nil, "IPv6": {}}})
	tests := []struct {
		args string
		want string
	}{
		{"list", listTable},
		{"list -o wide", listWide},
		{"list --no-headers -n shop -o table", `10.128.0.9    tcp       203.0.113.11   here   shop/db    <none>   <pending>
10.128.0.11   tcp,udp   203.0.113.10   here   shop/web   node-1   60m
10.128.0.12   tcp,udp   203.0.113.10   here   shop/web   node-2   2d1h
fd00:10::11   tcp       2001:db8::10   here   shop/web   node-1   90s
`},
		{"refused", refusedTable},
		{"refused -o wide", refusedWide},
		{"refused -n thief --no-headers", "thief/web   203.0.113.10   <all>   <all>   OwnedByOtherNamespace   egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older\n"},
		{"list -o json -n nobody", `{
  "node": "node-1",
  "ready": true,
  "problems": [],
  "bindings": []
}
`},
		{"list -o yaml -n shop", listYAML},
		{"refused -o json -n thief", refusedJSON},
		{"explain 10.128.0.11", explainPod},
		{"explain 10.128.0.12 10.128.0.9 --protocol=TCP", explainInside},
		{"explain 10.128.0.12 203.0.113.11 --protocol=6", explainExternalIP},
		{"explain 10.128.0.12 172.30.0.1 --protocol=tcp", explainClusterIP},
		{"explain 10.128.0.66 ::ffff:192.0.2.2 --protocol=tcp", explainThief},
		{"explain 10.128.0.77 --protocol=41", explainNobody},
		{"explain 10.128.0.9 192.0.2.2 --protocol=tcp -o json", explainJSON},
		{"explain shop/db", explainDB},
		{"explain shop/db 172.30.0.1 --protocol=tcp -o wide", explainDBWide},
		{"explain thief/web", explainThiefs},
		{"explain shop/typo -o yaml", explainTypo},
		{"explain shop/db --protocol=udp", "Service shop/db\n\nIPv4: 203.0.113.11 (spec.externalIPs[0]) for tcp\n" +
			"  Granted: the address belongs to the namespace shop, because its Service shop/db is the oldest that has it\n  It is not for the protocol that was asked for: ask for an endpoint's address to see how it leaves.\n"},
		{"explain shop/typo --protocol=udp", "Service shop/typo\n\nIPv4: unreadable address (spec.externalIPs[1])\n" +
			"  Refused (InvalidAddress): external IP \"x\" is not an IP address\n  No endpoints.\n"},
		{"verify", "IPv4: in agreement\nIPv6: in agreement\n"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			stdout, stderr, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(test.args)...)...)
			if err != nil || stderr != "" {
				t.Errorf("error %v, stderr %q", err, stderr)
			}
			if diff := cmp.Diff(test.want, stdout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEgress_PodsElsewhere: without --all there is what this node writes. A pod of another node is explained
// by the cluster's plan.
func TestEgress_PodsElsewhere(t *testing.T) {
	place := placement.Placement{Scope: placement.Node, NodeName: "node-1"}
	f := family("IPv4", clusterInput())
	f.Plan, f.Scope = plan.Build(place.Of(f.Input)), string(place.Scope)
	f.Since = []time.Time{{}, now.Add(-time.Hour), now.Add(-time.Hour)}
	socket := serveNode(t, &fakeNode{snapshot: status.Snapshot{Node: "node-1", Time: now, Ready: true, Families: []status.Family{f}}})
	for _, test := range []struct{ args, want string }{
		{"list", `POD IP        PROTOCOLS   EGRESS IP      VIA    SERVICE    NODE     AGE
10.128.0.9    tcp         203.0.113.11   here   shop/db    <none>   <pending>
10.128.0.11   tcp,udp     203.0.113.10   here   shop/web   node-1   60m
`},
		{"list --all", `POD IP        PROTOCOLS   EGRESS IP      VIA    SERVICE    NODE     AGE
10.128.0.9    tcp         203.0.113.11   here   shop/db    <none>   <pending>
10.128.0.11   tcp,udp     203.0.113.10   here   shop/web   node-1   60m
10.128.0.12   tcp,udp     203.0.113.10   -      shop/web   node-2   <elsewhere>
`},
		{"refused -n shop --no-headers", "shop/typo   <unreadable>   <all>   <all>   InvalidAddress   external IP \"x\" is not an IP address\n"},
		{"refused -n shop --no-headers --all", "shop/db     203.0.113.11   10.128.0.12   tcp     BoundByOlderService   pod 10.128.0.12 already leaves from 203.0.113.10 for tcp, given by the older Service shop/web\n" +
			"shop/typo   <unreadable>   <all>         <all>   InvalidAddress        external IP \"x\" is not an IP address\n"},
		{"explain 10.128.0.12 --protocol=udp", `Pod 10.128.0.12 (shop/web-1 on node-2)

udp
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for udp, an address that belongs to the namespace shop
  Rules:        none on this node; the node that the pod runs on has them
  This packet would leave as 203.0.113.10.
`},
	} {
		t.Run(test.args, func(t *testing.T) {
			stdout, stderr, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(test.args)...)...)
			if err != nil || stderr != "" {
				t.Errorf("error %v, stderr %q", err, stderr)
			}
			if diff := cmp.Diff(test.want, stdout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEgress_OutputIsPrintable: the API server does not validate the names of pods in EndpointSlices.
func TestEgress_OutputIsPrintable(t *testing.T) {
	name := "x\x1b[2J\u009b31m\u202e\u2028\n\x7f\U000e0001\"\\ é"
	in := clusterInput()
	in.Claims = append(in.Claims, claimOf("shop", "odd", 1, "203.0.113.12", []plan.Protocol{plan.TCP}, plan.Endpoint{
		Addr: addr("10.128.0.99"), Pod: plan.Pod{Namespace: "shop", Name: name}, Node: "\u009b31m"}))
	lost := status.Address{IP: addr("203.0.113.12"), State: "lost", Holder: name, Why: name, Known: name, Conflict: []string{name}, Way: "prohibit"}
	socket := serveNode(t, &fakeNode{snapshot: status.Snapshot{Node: "node-1", Ready: true, Families: []status.Family{family("IPv4", in)}, Steering: "vxlan", Addresses: []status.Address{lost}}})
	for _, command := range []string{"list", "addresses", "refused", "explain 10.128.0.99", "explain shop/odd"} {
		for _, output := range outputs {
			out, errs, err := openshift(t, append([]string{"egress", "--socket=" + socket, "-o", output}, strings.Fields(command)...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out + errs {
				if !unicode.IsPrint(r) && r != '\n' {
					t.Errorf("%s -o %s prints %q", command, output, r)
				}
			}
			if output == asJSON && command == "list" {
				var list bindingList
				if err := json.Unmarshal([]byte(out), &list); err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(list.Bindings, func(b listedBinding) bool { return b.Pod.Name == name }) {
					t.Errorf("JSON does not say the name: %s", out)
				}
			}
		}
	}
}

func TestEgress_Errors(t *testing.T) {
	socket := serveNode(t, &fakeNode{snapshot: wholeCluster()})
	for args, want := range map[string]string{
		"list -o xml":                       `--output: invalid value "xml": expected table, wide, json or yaml`,
		"addresses --all":                   "unknown flag: --all",
		"list something":                    `unknown command "something" for "openshift egress list"`,
		"frobnicate":                        `unknown command "frobnicate" for "openshift egress"`,
		"explain":                           "expected the IP address of a pod or NAMESPACE/SERVICE, and optionally the IP address of the destination",
		"explain web":                       `"web" is neither a pod's IP address nor NAMESPACE/SERVICE: not an IP address`,
		"explain /web":                      `"/web" is neither a pod's IP address nor NAMESPACE/SERVICE`,
		"explain a/b/c":                     `"a/b/c" is neither a pod's IP address nor NAMESPACE/SERVICE`,
		"explain fe80::1%eth0":              `"fe80::1%eth0" is neither a pod's IP address nor NAMESPACE/SERVICE: an address with a zone is valid on one link only; remove the zone`,
		"explain 10.128.0.9 example.com":    `the destination "example.com": not an IP address`,
		"explain 10.128.0.9 ::1":            "10.128.0.9 and ::1 are of different IP families",
		"explain 10.128.0.9 --protocol=x":   `--protocol: invalid value "x": expected the name of an IP protocol, such as tcp, udp, sctp or icmp, or a number from 0 to 255`,
		"explain 10.128.0.9 --protocol=256": `--protocol: invalid value "256": expected the name of an IP protocol, such as tcp, udp, sctp or icmp, or a number from 0 to 255`,
		"explain shop/db ::1":               "the Service shop/db claims an egress IP for IPv4 only, and ::1 is of the other IP family",
		"explain shop/none": "the node has no claim of the Service shop/none: it does not exist, or it has no external IPs and no annotation network.openshift.io/egress-ip, or its annotation network.openshift.io/egress-snat is \"false\", " +
			"or it is headless without the annotation egress-ip, or of type ExternalName, or it has the label service.kubernetes.io/service-proxy-name",
	} {
		stdout, _, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(args)...)...)
		if err == nil || err.Error() != want || stdout != "" {
			t.Errorf("%s:\ngot  %v, %q\nwant %s", args, err, stdout, want)
		}
	}
}

func TestEgress_NoNode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "egress.sock")
	for _, args := range []string{"list", "list -w", "addresses", "refused -o json", "explain 10.128.0.9", "verify"} {
		_, _, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(args)...)...)
		if want := "nothing listens on " + socket + ": no node runs here"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", args, err, want)
		}
	}
}

func TestEgressVerify_Differences(t *testing.T) {
	n := &fakeNode{differences: map[string][]string{"IPv6": {"not there: -A X"}, "IPv4": nil}}
	socket := serveNode(t, n)
	verify := func(wantOut, wantErr string) {
		t.Helper()
		stdout, _, err := openshift(t, "egress", "verify", "--socket="+socket)
		if stdout != wantOut || err == nil || !strings.HasPrefix(err.Error(), wantErr) {
			t.Errorf("got %q, %v; want %q, %s", stdout, err, wantOut, wantErr)
		}
	}
	verify("IPv4: in agreement\nIPv6: not there: -A X\n", "1 difference between the plan and the kernel; ")
	n.differences["IPv4"] = []string{status.Warning + "a firewall"} // is told, and does not count
	verify("IPv4: in agreement\nIPv4: warning: a firewall\nIPv6: not there: -A X\n", "1 difference between the plan and the kernel; ")
	n.differences["IPv4"] = []string{"a", "b\x1b[2J"}
	verify("IPv4: a\nIPv4: b?[2J\nIPv6: not there: -A X\n", "3 differences between the plan and the kernel; ")
	n.err = errors.New("iptables-save: exit status 4")
	verify("", "asking the node at "+socket+": iptables-save: exit status 4")
}

// TestEgress_Warnings: the problems of a node are printed on stderr.
func TestEgress_Warnings(t *testing.T) {
	s := wholeCluster()
	s.Ready = false
	s.Families[0].Error = "exit status 4"
	n := &fakeNode{snapshot: s}
	socket := serveNode(t, n)
	want := "warning: the node has not written all of its rules since it started\n" +
		"warning: IPv4: the last sync failed, the kernel last matched the plan at 2026-11-20T12:00:00Z: exit status 4\n"
	for _, args := range []string{"list", "refused", "explain 10.128.0.11"} {
		if _, stderr, err := openshift(t, append([]string{"egress", "--socket=" + socket}, strings.Fields(args)...)...); stderr != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", args, stderr, err, want)
		}
	}
	stdout, _, err := openshift(t, "egress", "list", "-o", "json", "--socket="+socket)
	var list bindingList
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &list)); err != nil || list.Ready == nil || *list.Ready || len(list.Problems) != 2 {
		t.Errorf("%v, %+v", err, list)
	}

	s = wholeCluster()
	s.Families[0].Written = false
	n.set(s)
	if _, stderr, _ := openshift(t, "egress", "explain", "10.128.0.11", "--socket="+socket); stderr != "warning: IPv4: the latest changes are not in effect yet\n" {
		t.Errorf("got %q", stderr)
	}
	n.set(status.Snapshot{Missing: []string{"Nodes"}, Ready: true})
	if _, _, err := openshift(t, "egress", "explain", "10.128.0.11", "--socket="+socket); err == nil || !strings.Contains(err.Error(), "it waits for Nodes") {
		t.Errorf("got %v", err)
	}
	stdout, stderr, err := openshift(t, "egress", "list", "--socket="+socket)
	if stdout != "" || !strings.HasSuffix(stderr, "it waits for Nodes\nno pod is bound to an egress IP on this node\n") || err != nil {
		t.Errorf("got %q, %q, %v", stdout, stderr, err)
	}
}

// watchLines runs a watching command and returns a function that reads its next lines.
func watchLines(t *testing.T, args ...string) (next func(n int) string) {
	t.Helper()
	return linesOf(t, func(ctx context.Context, w io.Writer) error { return openshiftTo(ctx, w, io.Discard, args...) })
}

// linesOf runs a command until the test's end and returns a function that reads the next lines that
// it writes.
func linesOf(t *testing.T, command func(context.Context, io.Writer) error) (next func(n int) string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- command(ctx, w) }()
	t.Cleanup(func() {
		cancel()
		_ = r.Close()
		if err := <-ended; err != nil {
			t.Errorf("the interrupted command returned %v", err)
		}
	})
	lines := bufio.NewReader(r)
	return func(n int) string {
		t.Helper()
		var result strings.Builder
		for range n {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			result.WriteString(line)
		}
		return result.String()
	}
}

// changed is the cluster after some time: the pending binding is written, db has no second
// endpoint, and web has another address, so that its former one may be another's.
func changed() status.Snapshot {
	in := clusterInput()
	in.Claims[0].EgressIP = addr("203.0.113.99")
	in.Claims[1].Endpoints = in.Claims[1].Endpoints[1:]
	s := wholeCluster()
	s.Time = now.Add(time.Minute)
	s.Families[0] = family("IPv4", in)
	s.Families[0].Since[0] = now
	return s
}

func TestEgressList_Watch(t *testing.T) {
	n := &fakeNode{snapshot: wholeCluster()}
	next := watchLines(t, "egress", "list", "-w", "--socket="+serveNode(t, n))
	want := `EVENT      POD IP        PROTOCOLS   EGRESS IP      VIA    SERVICE    NODE     AGE
ADDED      10.128.0.9    tcp         203.0.113.11   here   shop/db    <none>   <pending>
ADDED      10.128.0.11   tcp,udp     203.0.113.10   here   shop/web   node-1   60m
ADDED      10.128.0.12   tcp,udp     203.0.113.10   here   shop/web   node-2   2d1h
ADDED      fd00:10::11   tcp         2001:db8::10   here   shop/web   node-1   90s
`
	if diff := cmp.Diff(want, next(5)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	n.set(n.Snapshot()) // which is no change
	n.set(changed())
	want = `MODIFIED   10.128.0.9    tcp         203.0.113.11   here   shop/db     <none>   60s
ADDED      10.128.0.11   tcp,udp     203.0.113.99   here   shop/web    node-1   61m
ADDED      10.128.0.12   tcp,udp     203.0.113.99   here   shop/web    node-2   2d1h
ADDED      10.128.0.66   tcp         203.0.113.10   here   thief/web   node-1   4d1h
DELETED    10.128.0.11   tcp,udp     203.0.113.10   here   shop/web    node-1   61m
DELETED    10.128.0.12   tcp,udp     203.0.113.10   here   shop/web    node-2   2d1h
`
	if diff := cmp.Diff(want, next(6)); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
}

func TestEgressRefused_WatchJSON(t *testing.T) {
	n := &fakeNode{snapshot: wholeCluster()}
	next := watchLines(t, "egress", "refused", "-w", "-o", "json", "--socket="+serveNode(t, n))
	services := func() (result []string) {
		var list refusalList
		if err := json.Unmarshal([]byte(next(1)), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Refusals {
			result = append(result, r.Service.String())
		}
		return result
	}
	if diff := cmp.Diff([]string{"shop/db", "shop/typo", "thief/web"}, services()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	n.set(n.Snapshot()) // which is no change
	n.set(changed())
	if diff := cmp.Diff([]string{"shop/typo"}, services()); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
}

func TestEgressList_WatchYAML(t *testing.T) {
	n := &fakeNode{snapshot: status.Snapshot{Node: "a"}}
	next := watchLines(t, "egress", "list", "-w", "-o", "yaml", "--socket="+serveNode(t, n))
	problem := "problems:\n- the node has not written all of its rules since it started\nready: false\n"
	if got, want := next(5), "bindings: []\nnode: a\n"+problem; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	n.set(status.Snapshot{Node: "b", Ready: true})
	if got, want := next(5), "---\nbindings: []\nnode: b\nproblems: []\nready: true\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestEgress_Completion(t *testing.T) {
	socket := serveNode(t, &fakeNode{snapshot: wholeCluster()})
	for args, want := range map[string]string{
		"explain ":             "shop/db\nshop/typo\nshop/web\nthief/web\n10.128.0.9\n10.128.0.11\tshop/web-0\n10.128.0.12\tshop/web-1\n10.128.0.66\tthief/t\nfd00:10::11\tshop/web-0\n:4\n",
		"explain shop/web ":    ":4\n",
		"explain --protocol ":  "tcp\nudp\nsctp\nicmp\nipv6-icmp\n:4\n",
		"list -o ":             "table\nwide\njson\nyaml\n:4\n",
		"refused --namespace ": "shop\nthief\n:4\n",
		"list ":                ":4\n",
		"addresses -n ":        "shop\nthief\n:4\n",
		"addresses ":           ":4\n",
		"verify ":              ":4\n",
	} {
		stdout, _, err := openshift(t, append([]string{"__complete", "egress", "--socket=" + socket}, strings.Split(args, " ")...)...)
		if diff := cmp.Diff(want, stdout); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", args, err, diff)
		}
	}
	// Without a node there is nothing to offer, and no error in the line that is typed.
	if stdout, _, err := openshift(t, "__complete", "egress", "explain", "--socket="+socket+".none", ""); stdout != ":4\n" || err != nil {
		t.Errorf("without a node: %q, %v", stdout, err)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if stdout, _, err := openshift(t, "completion", shell); err != nil || !strings.Contains(stdout, "__complete") {
			t.Errorf("completion %s: %v, %d bytes", shell, err, len(stdout))
		}
	}
}

func TestAge_LikeKubectl(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1500 * time.Millisecond: "1s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 9*time.Minute + 59*time.Second: "9m59s",
		10*time.Minute + time.Second: "10m", 3 * time.Hour: "3h", 7*time.Hour + 59*time.Minute: "7h59m", 47 * time.Hour: "47h", 49 * time.Hour: "2d1h",
		8 * 24 * time.Hour: "8d", 729 * 24 * time.Hour: "729d", 731 * 24 * time.Hour: "2y1d", 9 * 365 * 24 * time.Hour: "9y",
	} {
		if got := age(now.Add(-d), now); got != want {
			t.Errorf("%v: got %s; want %s", d, got, want)
		}
	}
}

// TestEgressExplain_AgreesWithTheRules compares explanations with the path of the packet through
// the rules, in random clusters.
func TestEgressExplain_AgreesWithTheRules(t *testing.T) {
	seen := map[plan.Outcome]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := randomCluster(r)
		p := plan.Build(in)
		e := plan.NewExplainer(in, p)
		traced := func(table string) func(iptables.Packet) []rule {
			return tracer(status.Snapshot{}, status.Family{Family: "IPv4", Plan: p, NFTable: table})
		}
		rules, table, steered := traced(""), traced(steering.LocalTable), traced(steering.Table)
		for range 200 {
			packet := plan.Packet{
				Pod:      netip.AddrFrom4([4]byte{10, byte(128 + r.IntN(5)), 0, byte(r.IntN(40))}),
				Protocol: []plan.Protocol{plan.TCP, plan.UDP, "icmp", plan.OtherProtocols}[r.IntN(4)],
			}
			if r.IntN(5) > 0 {
				packet.Destination = []netip.Addr{addr("198.51.100.1"), addr("172.30.0.1"), addr("10.129.0.1"), addr("192.0.2.2"), addr("169.254.0.1"), addr("203.0.113.1"), addr("203.0.113.3")}[r.IntN(7)]
			}
			d := e.Explain(packet)
			way := matched(rules, packet)
			var snat string
			if len(way) > 0 {
				_, after, _ := strings.Cut(way[len(way)-1].Rule, "--to-source ")
				snat, _, _ = strings.Cut(after, " ")
			}
			seen[d.Outcome]++
			if want := addrOr(d.LeavesAs, ""); snat != want {
				t.Fatalf("seed %d: %+v leaves as %q by the rules %v; said %+v", seed, packet, snat, way, d)
			}
			snat = ""
			if way := matched(table, packet); len(way) > 0 {
				_, snat, _ = strings.Cut(way[0].Element, " : ")
			}
			if want := addrOr(d.LeavesAs, ""); snat != want {
				t.Fatalf("seed %d: %+v leaves as %q by the table %v; said %+v", seed, packet, snat, matched(table, packet), d)
			}
			snat = ""
			if way := matched(steered, packet); len(way) > 0 && !strings.HasSuffix(way[0].Rule, " accept") {
				_, snat, _ = strings.Cut(way[0].Element, " : goto from-")
			}
			if want := addrOr(d.LeavesAs, ""); snat != want {
				t.Fatalf("seed %d: %+v leaves as %q by the table of the steering %v; said %+v", seed, packet, snat, matched(steered, packet), d)
			}
		}
	}
	for _, outcome := range []plan.Outcome{plan.EgressIP, plan.Unchanged, plan.EndpointDecides} {
		if seen[outcome] < 1000 {
			t.Errorf("%s came %d times only", outcome, seen[outcome])
		}
	}
}

// randomCluster returns one in which claims collide often, all of them for all protocols
// or none.
func randomCluster(r *rand.Rand) plan.Input {
	in := clusterInput()
	in.Claims = nil
	in.Exclusions = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}
	in.ExcludeNodes, in.AllowNodeIPs = r.IntN(2) == 0, true
	all := r.IntN(2) == 0
	for i := range 2 + r.IntN(8) {
		protocols := []plan.Protocol{plan.All}
		if !all {
			protocols = []plan.Protocol{plan.TCP, plan.UDP}[:1+r.IntN(2)]
		}
		ip := []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "192.0.2.2"}[r.IntN(4)]
		c := claimOf([]string{"a", "b"}[r.IntN(2)], fmt.Sprint("s", i), r.IntN(3), ip, protocols)
		for range r.IntN(100) {
			c.Endpoints = append(c.Endpoints, plan.Endpoint{Addr: netip.AddrFrom4([4]byte{10, byte(128 + r.IntN(5)), 0, byte(r.IntN(40))})})
		}
		in.Claims = append(in.Claims, c)
	}
	return in
}

// BenchmarkEgressList is the whole way of a table with 20,000 bindings, and of one answer.
func BenchmarkEgressList(b *testing.B) {
	in := clusterInput()
	for i := range 1000 {
		c := claimOf("ns", fmt.Sprint("s", i), 1, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String(), []plan.Protocol{plan.TCP})
		for j := range 20 {
			c.Endpoints = append(c.Endpoints, plan.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 129, byte((20*i + j) >> 8), byte(20*i + j)}), Node: "node-1"})
		}
		in.Claims = append(in.Claims, c)
	}
	socket := serveNode(b, &fakeNode{snapshot: status.Snapshot{Node: "node-1", Time: now, Ready: true, Families: []status.Family{family("IPv4", in)}}})
	for _, args := range []string{"list", "list -o json", "explain 10.129.0.7"} {
		b.Run(args, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := openshift(b, append([]string{"egress", "--socket=" + socket}, strings.Fields(args)...)...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestEgressRefused_OnceForBothFamilies: what cannot be read of a Service is refused in both IP families, in one row.
func TestEgressRefused_OnceForBothFamilies(t *testing.T) {
	s := wholeCluster()
	for i := range s.Families {
		s.Families[i].Plan.Refusals = []plan.Refusal{{Service: plan.Service{Namespace: "shop", Name: "typo"}, Reason: plan.InvalidAnnotation, Message: "not-an-ip is no address"}}
	}
	if rows := refusalsOf(s, s); len(s.Families) != 2 || len(rows) != 1 {
		t.Errorf("%d families, rows %+v", len(s.Families), rows)
	}
}
