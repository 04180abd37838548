package cmd

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/egress/status"
)

func TestPrintPool_Table(t *testing.T) {
	ip := netip.MustParseAddr
	subnet := status.PoolNetwork{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Up: true}
	down := status.PoolNetwork{Prefix: netip.MustParsePrefix("2001:db8::/64")}
	pool := status.Pool{
		Node: "a", Votes: 2, Of: 4,
		Members: []status.PoolMember{
			{Name: "a", State: "live", Networks: []status.PoolNetwork{subnet, down}, Held: []netip.Addr{ip("203.0.113.1"), ip("203.0.113.2")}},
			{Name: "b", State: "dead", Networks: []status.PoolNetwork{subnet}},
			{Name: "c", State: "draining"},
			{Name: "d", State: "unknown"},
		},
		Unheld: []status.UnheldAddress{
			{IP: ip("203.0.113.3"), Since: time.Now(), UsedBy: "02:00:00:00:00:01"},
			{IP: ip("203.0.113.4"), Since: time.Now(), UsedBy: "02:00:00:00:00:02", Lost: "b"},
			{IP: ip("198.51.100.1"), Since: time.Now(), Why: map[string]string{"c": "it is drained", "a": "no interface"}},
			{IP: ip("203.0.113.5"), Since: time.Now()},
		},
	}
	var out bytes.Buffer
	if err := (&egressOptions{output: asTable}).printPool(&out, pool); err != nil {
		t.Fatal(err)
	}
	const want = `NODE   STATE      ADDRESSES   NETWORKS
a      live       2           203.0.113.0/24,(2001:db8::/64)
b      dead       0           203.0.113.0/24
c      draining   0           <none>
d      unknown    0           <none>

2 of 4 nodes are live, no majority: egress IPs of failed nodes are not moved.
203.0.113.3 has been on no live node for 0s: another host has it, 02:00:00:00:00:01.
203.0.113.4 has been on no live node for 0s: the process on b is dead, and a host answers for it, probably that node: 02:00:00:00:00:02.
198.51.100.1 has been on no live node for 0s (a: no interface; c: it is drained).
203.0.113.5 has been on no live node for 0s.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPrintPool_TextOfOthersIsHarmless: what another node says of itself does not reach the terminal as it is.
func TestPrintPool_TextOfOthersIsHarmless(t *testing.T) {
	const evil = "x\x1b[2J\x1b]0;owned\a\r\n\u009b31m\u202e"
	ip := netip.MustParseAddr("203.0.113.3")
	for name, u := range map[string]status.UnheldAddress{
		"MAC": {IP: ip, UsedBy: evil}, "lost": {IP: ip, UsedBy: "02:00", Lost: evil}, "reason": {IP: ip, Why: map[string]string{evil: evil}},
		"zone": {IP: netip.MustParseAddr("fe80::1").WithZone(evil)},
	} {
		for _, fromAPI := range []bool{false, true} {
			for _, output := range []string{asTable, asJSON, asYAML} {
				pool := status.Pool{Node: "a", Problem: evil, Members: []status.PoolMember{{Name: evil, State: evil}}, Unheld: []status.UnheldAddress{u}, FromAPI: fromAPI}
				var out bytes.Buffer
				if err := (&egressOptions{output: output}).printPool(&out, pool); err != nil {
					t.Fatal(err)
				}
				for _, r := range out.String() {
					if r != '\n' && !unicode.IsPrint(r) {
						t.Errorf("%s, %s, from the API %v: %q is printed", name, output, fromAPI, r)
					}
				}
			}
		}
	}
}

func TestGaveAllAway_LeavingNodeToo(t *testing.T) {
	held := []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	for state, want := range map[string]bool{"draining": true, "leaving": true, "live": false} {
		if got := gaveAllAway(status.PoolMember{State: state}); got != want {
			t.Errorf("a node that is %s and has no address has given all away: %v, want %v", state, got, want)
		}
		if gaveAllAway(status.PoolMember{State: state, Held: held}) {
			t.Errorf("a node that is %s has given all away although it has an address", state)
		}
	}
}

func TestEgressOptions_SocketOfTheConfiguration(t *testing.T) {
	for arguments, want := range map[string]string{
		"": status.DefaultSocket, "proxyArguments: {egress-snat-socket: [/run/other.sock]}": "/run/other.sock",
		"proxyArguments: {egress_snat_socket: [/run/other.sock]}": "/run/other.sock",
	} {
		file := filepath.Join(t.TempDir(), "node-config.yaml")
		if err := os.WriteFile(file, []byte("kind: NodeConfig\napiVersion: v1\nmasterKubeConfig: node.kubeconfig\n"+arguments+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := egressOptions{config: file}
		if err := o.readConfig(); err != nil || o.socket != want {
			t.Errorf("%q: socket %q, %v; want %q", arguments, o.socket, err, want)
		}
	}
}
