package cmd

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// The Services of wholeCluster() that own addresses.
var (
	web = plan.Service{Namespace: "shop", Name: "web"}
	db  = plan.Service{Namespace: "shop", Name: "db"}
)

// egressIPsInAllStates are addresses, one in each state and way.
func egressIPsInAllStates() []status.Address {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return []status.Address{
		{IP: addr("203.0.113.10"), Owner: web, State: "remote", Holder: "node-2", Since: ago(time.Hour), Epoch: 3, Known: "lease", Way: "to node", Pods: 2},
		{IP: addr("203.0.113.11"), Owner: db, State: "local", Holder: "node-1", Since: ago(3 * time.Minute), Epoch: 12, Known: "interface", Conflict: []string{"node-2", "node-3"}, Way: "here", Pods: 1,
			Pool: &status.AddressPool{Votes: 2, Of: 3, Moved: ago(3 * time.Minute), LastMove: "taken from node-2: its node is drained"}},
		{IP: addr("203.0.113.12"), Owner: web, State: "lost", Holder: "node-3", Why: "node is silent", Since: ago(2 * time.Second), Epoch: 4, Known: "announcement", Way: "blackhole"},
		{IP: addr("203.0.113.13"), Owner: plan.Service{Namespace: "bank", Name: "x"}, State: "lost", Holder: "node-3", Why: "withdrawn", Since: ago(time.Minute), Epoch: 4, Known: "lease", Conflict: []string{"node-4"}, Way: "prohibit"},
		{IP: addr("203.0.113.14"), State: "unclaimed", Way: "prohibit"},
		{IP: addr("2001:db8::10"), Owner: web, State: "unclaimed", Way: "here", Pods: 1},
	}
}

// steered is wholeCluster() on a node that steers.
func steered(addresses ...status.Address) status.Snapshot {
	s := wholeCluster()
	s.Steering, s.Addresses = "vxlan", addresses
	return s
}

const (
	addressTable = `ADDRESS        NAMESPACE   HOLDER                    EPOCH    KNOWN BY       PODS   VIA         AGE
203.0.113.10   shop        node-2                    3        lease          2      node-2      60m
203.0.113.11   shop        node-1 (conflict)         12       interface      1      here        3m
203.0.113.12   shop        node-3 (lost)             4        announcement   0      <dropped>   2s
203.0.113.13   bank        node-3 (lost, conflict)   4        lease          0      <dropped>   60s
203.0.113.14   <none>      <none>                    <none>   <none>         0      <dropped>   <none>
2001:db8::10   shop        <none>                    <none>   <none>         1      here        <none>
`
	addressWide = `ADDRESS        NAMESPACE   HOLDER                    EPOCH    KNOWN BY       PODS   VIA         AGE      OWNER      CONFLICT        VOTES    LAST MOVE
203.0.113.10   shop        node-2                    3        lease          2      node-2      60m      shop/web   <none>          <none>   <none>
203.0.113.11   shop        node-1 (conflict)         12       interface      1      here        3m       shop/db    node-2,node-3   2/3      3m ago, taken from node-2: its node is drained
203.0.113.12   shop        node-3 (lost)             4        announcement   0      <dropped>   2s       shop/web   <none>          <none>   <none>
203.0.113.13   bank        node-3 (lost, conflict)   4        lease          0      <dropped>   60s      bank/x     node-4          <none>   <none>
203.0.113.14   <none>      <none>                    <none>   <none>         0      <dropped>   <none>   <none>     <none>          <none>   <none>
2001:db8::10   shop        <none>                    <none>   <none>         1      here        <none>   shop/web   <none>          <none>   <none>
`
	addressJSON = `{
  "node": "node-1",
  "ready": true,
  "problems": [],
  "steering": "vxlan",
  "addresses": [
    {
      "egressIP": "203.0.113.13",
      "owner": {
        "namespace": "bank",
        "name": "x"
      },
      "state": "lost",
      "holder": "node-3",
      "why": "withdrawn",
      "conflict": [
        "node-4"
      ],
      "epoch": 4,
      "known": "lease",
      "since": "2026-11-20T11:59:00Z",
      "pods": 0,
      "via": {
        "way": "prohibit"
      }
    }
  ]
}
`
	addressYAML = `addresses:
- egressIP: 203.0.113.10
  epoch: 3
  holder: node-2
  known: lease
  owner:
    name: web
    namespace: shop
  pods: 2
  since: "2026-11-20T11:00:00Z"
  state: remote
  via:
    node: node-2
    way: to node
- egressIP: 203.0.113.14
  pods: 0
  state: unclaimed
  via:
    way: prohibit
node: node-1
problems: []
ready: true
steering: vxlan
`
)

func TestEgressAddresses_Output(t *testing.T) {
	all := egressIPsInAllStates()
	for _, test := range []struct {
		args      string
		addresses []status.Address
		want      string
	}{
		{"-o table", all, addressTable},
		{"-o wide", all, addressWide},
		{"-o json -n bank", all, addressJSON},
		{"-o yaml", []status.Address{all[0], all[4]}, addressYAML},
		{"-n bank --no-headers", all, "203.0.113.13   bank   node-3 (lost, conflict)   4   lease   0   <dropped>   60s\n"},
	} {
		t.Run(test.args, func(t *testing.T) {
			socket := serveNode(t, &fakeNode{snapshot: steered(test.addresses...)})
			stdout, stderr, err := openshift(t, append([]string{"egress", "addresses", "--socket=" + socket}, strings.Fields(test.args)...)...)
			if err != nil || stderr != "" {
				t.Errorf("error %v, stderr %q", err, stderr)
			}
			if diff := cmp.Diff(test.want, stdout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEgressAddresses_None: an empty listing says why it is empty, also before it is watched.
func TestEgressAddresses_None(t *testing.T) {
	for steering, want := range map[string]string{
		"":       "the running node's version does not know which nodes have the egress IPs\n",
		"off":    "steering is off on this node: its pods use their egress IPs here, and it does not know which nodes have them\n",
		"direct": "no Service claims an egress IP in any namespace\n",
	} {
		s := status.Snapshot{Node: "node-1", Ready: true, Steering: steering}
		socket := serveNode(t, &fakeNode{snapshot: s})
		if stdout, stderr, err := openshift(t, "egress", "addresses", "--socket="+socket); stdout != "" || stderr != want || err != nil {
			t.Errorf("steering %q: got %q, %q, %v; want %q", steering, stdout, stderr, err, want)
		}
		next := watchErrors(t, "egress", "addresses", "-w", "--socket="+socket)
		if got := next(1); got != want {
			t.Errorf("steering %q, watched: got %q; want %q", steering, got, want)
		}
	}
}

// TestEgressAddresses_Watch: a holder is lost, another node takes the address, and the Service goes.
func TestEgressAddresses_Watch(t *testing.T) {
	a := egressIPsInAllStates()[0]
	n := &fakeNode{snapshot: steered(a)}
	next := watchLines(t, "egress", "addresses", "-w", "--socket="+serveNode(t, n))
	want := `EVENT      ADDRESS        NAMESPACE   HOLDER   EPOCH   KNOWN BY   PODS   VIA      AGE
ADDED      203.0.113.10   shop        node-2   3       lease      2      node-2   60m
`
	if diff := cmp.Diff(want, next(2)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		what   string
		change func(*status.Snapshot)
		want   string
	}{
		{"lost", func(s *status.Snapshot) {
			a.State, a.Why, a.Way, a.Since = "lost", "node is silent", "blackhole", now
			s.Addresses = []status.Address{a}
		}, "MODIFIED   203.0.113.10   shop        node-2 (lost)   3       lease      2      <dropped>   0s\n"},
		{"taken", func(s *status.Snapshot) {
			a.State, a.Why, a.Way, a.Holder, a.Epoch = "remote", "", "to node", "node-3", 4
			s.Addresses = []status.Address{a}
		}, "MODIFIED   203.0.113.10   shop        node-3          4       lease      2      node-3      0s\n"},
		{"unclaimed", func(s *status.Snapshot) { s.Addresses = nil },
			"DELETED    203.0.113.10   shop        node-3          4       lease      2      node-3      0s\n"},
	} {
		s := steered()
		step.change(&s)
		n.set(s)
		if diff := cmp.Diff(step.want, next(1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// watchErrors is watchLines for what a command prints as errors.
func watchErrors(t *testing.T, args ...string) (next func(n int) string) {
	t.Helper()
	return linesOf(t, func(ctx context.Context, w io.Writer) error { return openshiftTo(ctx, io.Discard, w, args...) })
}
