package cmd

import (
	"bytes"
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/tunnel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// tunnelNode serves the status of a node on a socket, whose path it returns. Egress SNAT is off.
func tunnelNode(t *testing.T, differences map[string][]string, change ...func(*tunnel.Snapshot)) string {
	t.Helper()
	node := func(name, addr string, way plan.Way, why string) tunnel.NodeStatus {
		return tunnel.NodeStatus{Node: plan.Node{Name: name, Addresses: []netip.Addr{netip.MustParseAddr(addr)}}, Way: way, Why: why}
	}
	s := tunnel.Snapshot{
		Node:  "control",
		Nodes: []tunnel.NodeStatus{node("control", "192.0.2.1", plan.Direct, "this node"), node("edge", "192.0.2.50", plan.Tunnel, "it is not Ready")},
		Families: []tunnel.FamilyStatus{{Family: kernel.IPv4, Redirects: kernel.Redirects{
			Nodes: []netip.Addr{netip.MustParseAddr("192.0.2.50")}, Secure: kernel.Target{To: netip.MustParseAddrPort("192.0.2.1:10263"), Ports: []uint16{9443, 10250}},
		}}},
		Problems: []plan.Problem{{Reason: plan.InvalidPort, ConfigMap: "kube-system/ports", Message: "invalid\nport"}},
	}
	for _, f := range change {
		f(&s)
	}
	path := filepath.Join(t.TempDir(), "node.sock")
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- l.Serve(ctx, status.Handler(nil,
			status.Resource{Path: tunnel.SnapshotPath, Get: func(context.Context) (any, error) { return s, nil }},
			status.Resource{Path: tunnel.VerifyPath, Get: func(context.Context) (any, error) { return differences, nil }}), nil)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
	})
	return path
}

func runTunnel(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	c := newTunnelCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTunnel_Commands(t *testing.T) {
	socket := "--socket=" + tunnelNode(t, map[string][]string{"IPv4": {}})
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"list"}, []string{"NODE      ADDRESSES    WAY      REASON\n", "edge      192.0.2.50   tunnel   it is not Ready\n", "9443,10250   192.0.2.1:10263\n", "warning: ConfigMap kube-system/ports: InvalidPort: invalid?port\n"}},
		{[]string{"list", "-o", "json"}, []string{`"way": "tunnel"`}},
		{[]string{"explain", "edge"}, []string{"Node edge: 192.0.2.50\n  tunnel: it is not Ready\n  192.0.2.50:9443 goes to the tunnel server, 192.0.2.1:10263\n"}},
		{[]string{"explain", "192.0.2.50:22"}, []string{"Node edge", "192.0.2.50:22 goes directly\n"}},
		{[]string{"explain", "control:10250"}, []string{"192.0.2.1:10250 goes directly\n"}},
		{[]string{"explain", "198.51.100.1:10250"}, []string{"198.51.100.1 is not an address of a node\n", "goes directly"}},
		{[]string{"verify"}, []string{"IPv4: in agreement\n"}},
	} {
		out, err := runTunnel(t, append(test.args, socket)...)
		for _, want := range test.want {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%q: no %q in, or %v:\n%s", test.args, want, err, out)
			}
		}
	}
}

// TestTunnel_ExplainOfRulesThatAreNotThere: what is explained is the plan, which the kernel may not have.
func TestTunnel_ExplainOfRulesThatAreNotThere(t *testing.T) {
	for want, change := range map[string]func(*tunnel.Snapshot){
		"warning: IPv4: the last sync failed: locked\n":           func(s *tunnel.Snapshot) { s.Families[0].Error = "locked" },
		"warning: the node has no plan yet, it waits for Nodes\n": func(s *tunnel.Snapshot) { s.Missing = []string{"Nodes"} },
	} {
		out, err := runTunnel(t, "explain", "edge", "--socket="+tunnelNode(t, nil, change))
		if err != nil || !strings.Contains(out, want) || strings.Contains(out, "InvalidPort") {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
	}
}

func TestTunnel_Errors(t *testing.T) {
	socket := "--socket=" + tunnelNode(t, map[string][]string{"IPv4": {"the set lacks an element"}})
	for words, args := range map[string][]string{
		"1 difference":       {"verify"},
		`no Node "nobody"`:   {"explain", "nobody"},
		"invalid port":       {"explain", "edge:70000"},
		"invalid value":      {"list", "-o", "xml"},
		"nothing listens on": {"list", "--socket=/nowhere"},
	} {
		if words != "nothing listens on" {
			args = append(args, socket)
		}
		if _, err := runTunnel(t, args...); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want an error with %q", args, err, words)
		}
	}
}
