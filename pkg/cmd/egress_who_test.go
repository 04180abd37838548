package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// serveWho serves a node whose tracked flows are those of users, and returns the socket.
func serveWho(t *testing.T, s status.Snapshot, users ...status.PortUser) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "egress.sock")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(_ context.Context, query url.Values) (any, error) {
		if _, err := status.AskedPort(query); err != nil {
			return nil, err
		}
		return users, nil
	}
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx, status.Handler(&fakeNode{snapshot: s}, status.Resource{Path: status.PortUsersPath, Ask: ask}), nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path
}

func blockOf(pod, ip string, first uint16) portblocks.Assignment {
	return portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: "shop", Name: pod, UID: "uid-" + pod, IP: addr(ip)}, Service: "shop/web", EgressIP: addr("203.0.113.10"),
		Ports: kernel.Ports{First: first, Last: first + 511}, Node: "node-1", Since: now.Add(-time.Hour),
	}
}

func sharedOf(pod, ip string) portblocks.Assignment {
	a := blockOf(pod, ip, 61440)
	a.Ports.Last, a.Shared = 65535, true
	return a
}

// withBlocks is a node whose pods have ports, and that knows those of another node's pod.
func withBlocks() status.Snapshot {
	s := wholeCluster()
	s.PortBlocks = []portblocks.Assignment{blockOf("web-0", "10.128.0.11", 32256), sharedOf("web-8", "10.128.0.18"), sharedOf("web-9", "10.128.0.19")}
	s.PortMap = []kernel.Block{
		{Pod: addr("10.128.0.11"), EgressIP: addr("203.0.113.10"), Ports: kernel.Ports{First: 32256, Last: 32767}},
		{Pod: addr("10.128.0.12"), EgressIP: addr("203.0.113.10"), Ports: kernel.Ports{First: 2048, Last: 2559}},
	}
	return s
}

const (
	whoOwn = `Pod:         shop/web-0
UID:         uid-web-0
Pod IP:      10.128.0.11
Service:     shop/web
Node:        node-1
Egress IP:   203.0.113.10
Ports:       32256-32767
Since:       2026-11-20T11:00:00.000Z
Until:       <open>
Seen:        2026-11-20T12:00:00.000Z
`
	whoOther = `Pod:         shop/web-1
UID:         <none>
Pod IP:      10.128.0.12
Service:     shop/web
Node:        node-2
Egress IP:   203.0.113.10
Ports:       2048-2559
Since:       <unknown>
Until:       <open>
Seen:        2026-11-20T12:00:00.000Z
`
	whoShared = `no pod has this port alone: 2 candidates for 203.0.113.10:61500 at 2026-11-20T12:00:00Z
POD          UID         POD IP        SERVICE    NODE     SINCE                      UNTIL    FLOW TO
shop/web-8   uid-web-8   10.128.0.18   shop/web   node-1   2026-11-20T11:00:00.000Z   <open>   <none>
shop/web-9   uid-web-9   10.128.0.19   shop/web   node-1   2026-11-20T11:00:00.000Z   <open>   <none>
`
	whoFlow9 = `no pod has this port alone: 1 candidate for 203.0.113.10:61500 at 2026-11-20T12:00:00Z
POD          UID         POD IP        SERVICE    NODE     SINCE                      UNTIL    FLOW TO
shop/web-9   uid-web-9   10.128.0.19   shop/web   node-1   2026-11-20T11:00:00.000Z   <open>   tcp 198.51.100.7:443
`
	whoFlows = `no pod has this port alone: 2 candidates for 203.0.113.10:61500 at 2026-11-20T12:00:00Z
POD          UID         POD IP        SERVICE    NODE     SINCE                      UNTIL    FLOW TO
shop/web-9   uid-web-9   10.128.0.19   shop/web   node-1   2026-11-20T11:00:00.000Z   <open>   tcp 198.51.100.7:443
<none>       <none>      10.129.0.7    <none>     <none>   <unknown>                  <open>   udp 198.51.100.8:53
`
)

// TestWho_Now asks a running node.
func TestWho_Now(t *testing.T) {
	flows := []status.PortUser{
		{Pod: addr("10.128.0.19"), Protocol: "tcp", Destination: netip.MustParseAddrPort("198.51.100.7:443")},
		{Pod: addr("10.129.0.7"), Protocol: "udp", Destination: netip.MustParseAddrPort("198.51.100.8:53")},
	}
	quiet, busy := serveWho(t, withBlocks()), serveWho(t, withBlocks(), flows...)
	for name, tt := range map[string]struct {
		socket, args, out, errOut string
	}{
		"a pod of this node":        {quiet, "203.0.113.10:32300", whoOwn, ""},
		"a pod of another node":     {quiet, "203.0.113.10:2048", whoOther, "warning: this node knows the pod of another node by its address"},
		"shared":                    {quiet, "203.0.113.10:61500", whoShared, "warning: pods of other nodes share these ports, too"},
		"shared, with flows":        {busy, "203.0.113.10:61500", whoFlows, ""},
		"shared, with a TCP flow":   {busy, "203.0.113.10:61500 --protocol=TCP", whoFlow9, ""},
		"IPv4, written as in IPv6":  {quiet, "[::ffff:203.0.113.10]:32300", whoOwn, ""},
		"its own, whatever flows":   {busy, "203.0.113.10:32300 --protocol=udp", whoOwn, ""},
		"shared, without such flow": {busy, "203.0.113.10:61500 --protocol=sctp", whoShared, "warning: pods of other nodes share these ports, too"},
	} {
		out, errOut, err := openshift(t, append([]string{"egress", "who", "--socket=" + tt.socket}, strings.Fields(tt.args)...)...)
		if diff := cmp.Diff(tt.out, out); diff != "" || err != nil || !strings.HasPrefix(errOut, tt.errOut) || tt.errOut == "" && errOut != "" {
			t.Errorf("%s: %v, %q (-want +got):\n%s", name, err, errOut, diff)
		}
	}
	for name, tt := range map[string]struct{ socket, args, want string }{
		"nobody":                {quiet, "203.0.113.10:1024", "nobody has 203.0.113.10:1024 at 2026-11-20T12:00:00Z, as far as the node node-1 knows"},
		"nobody of that":        {quiet, "203.0.113.77:32300", "nobody has 203.0.113.77:32300"},
		"without any blocks":    {serveWho(t, wholeCluster()), "203.0.113.10:1024", "which needs proxyArguments.egress-snat-port-blocks"},
		"no node":               {"/nowhere/egress.sock", "203.0.113.10:1024", "use --at=TIME"},
		"no port":               {quiet, "203.0.113.10", "expected an egress IP and a port"},
		"port 0":                {quiet, "203.0.113.10:0", "expected an egress IP and a port"},
		"a zone":                {quiet, "[fe80::1%eth0]:5", "expected an egress IP and a port"},
		"ICMP":                  {quiet, "203.0.113.10:1024 --protocol=icmp", "expected tcp, udp or sctp"},
		"a wrong time":          {quiet, "203.0.113.10:1024 --at=yesterday", "--at: invalid value \"yesterday\": expected a time such as"},
		"the future":            {quiet, "203.0.113.10:1024 --at=2999-01-01T00:00:00Z", "has not come yet"},
		"too many":              {quiet, "203.0.113.10:1024 203.0.113.10:1025", "expected an egress IP and a port"},
		"another output":        {quiet, "203.0.113.10:1024 -o xml", "--output: invalid value"},
		"nothing that is asked": {quiet, "", "expected an egress IP and a port"},
	} {
		out, _, err := openshift(t, append([]string{"egress", "who", "--socket=" + tt.socket}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: %v, want %q; %s", name, err, tt.want, out)
		}
	}
}

func TestWho_JSON(t *testing.T) {
	flow := status.PortUser{Pod: addr("10.128.0.19"), Protocol: "tcp", Destination: netip.MustParseAddrPort("198.51.100.7:443")}
	out, _, err := openshift(t, "egress", "who", "--socket="+serveWho(t, withBlocks(), flow), "203.0.113.10:61500", "--protocol=tcp", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"node": "node-1", "ready": true, "problems": []any{}, "egressIP": "203.0.113.10", "port": 61500.0, "protocol": "tcp", "at": "2026-11-20T12:00:00Z", "shared": true,
		"assignments": []any{map[string]any{
			"pod":     map[string]any{"namespace": "shop", "name": "web-9", "uid": "uid-web-9", "ip": "10.128.0.19"},
			"service": "shop/web", "egressIP": "203.0.113.10", "ports": map[string]any{"first": 61440.0, "last": 65535.0}, "shared": true, "node": "node-1",
			"since": "2026-11-20T11:00:00Z", "seen": "2026-11-20T12:00:00Z", "flows": []any{map[string]any{"protocol": "tcp", "destination": "198.51.100.7:443"}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// journalOf writes a journal of a node, whose lines are of 2026-11-20.
func journalOf(t *testing.T, path, node string, lines ...string) string {
	t.Helper()
	text := "origin-node-journal 1 " + node + " 2026-11-20T02:00:00.000Z -\n"
	for _, l := range lines {
		text += "2026-11-20T" + l + "\n"
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// ofNodeOne are lines of a journal.
var ofNodeOne = []string{
	"03:00:00.000Z + 1 shop/web-0 uid-web-0 10.128.0.11 web 203.0.113.10 32256-32767",
	"03:00:00.000Z + 2 shop/web-8 uid-web-8 10.128.0.18 web 203.0.113.10 ~61440-65535",
	"04:00:00.000Z - 1",
	"05:00:00.000Z + 3 shop/web-5 uid-web-5 10.128.0.15 web 203.0.113.10 32256-32767",
	"11:50:00.000Z alive",
}

const whoThen = `Pod:         shop/web-0
UID:         uid-web-0
Pod IP:      10.128.0.11
Service:     shop/web
Node:        node-1
Egress IP:   203.0.113.10
Ports:       32256-32767
Since:       2026-11-20T03:00:00.000Z
Until:       2026-11-20T04:00:00.000Z
`

// TestWho_ByJournals asks collected files, and no node.
func TestWho_ByJournals(t *testing.T) {
	folder := t.TempDir()
	one := journalOf(t, filepath.Join(folder, "node-1", "00000001.journal"), "node-1", ofNodeOne...)
	two := journalOf(t, filepath.Join(folder, "node-2", "00000001.journal"), "node-2",
		"03:30:00.000Z + 1 shop/web-9 uid-web-9 10.129.0.19 web 203.0.113.10 ~61440-65535", "11:00:00.000Z alive")
	damaged := journalOf(t, filepath.Join(t.TempDir(), "00000001.journal"), "node-3", "02:30:00.000Z alive", "something")
	for name, tt := range map[string]struct{ args, out, errOut string }{
		"a folder":                {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=" + folder, whoThen, ""},
		"a file":                  {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=" + one, whoThen, ""},
		"files":                   {"203.0.113.10:32300 --at=2026-11-20T04:59:59+01:00 --journal " + two + " " + one, whoThen, ""},
		"one that is damaged":     {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=" + one + "," + damaged, whoThen, "warning: " + damaged + ":3: it does not begin with a time\n"},
		"one that is not there":   {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=/nowhere --journal=" + one, whoThen, "warning: open /nowhere: no such file"},
		"candidates of two nodes": {"203.0.113.10:61500 --at=2026-11-20T03:45:00Z --journal=" + folder, "no pod has this port alone: 2 candidates for 203.0.113.10:61500 at 2026-11-20T03:45:00Z\n", "warning: " + portblocks.Unlisted},
		"candidates, and a node that does not tell": {"203.0.113.10:61500 --at=2026-11-20T11:30:00Z --journal=" + folder, "no pod has this port alone: 1 candidate for",
			"warning: the pod shop/web-9 (uid-web-9) on node-2 had it since 2026-11-20T03:30:00.000Z, and the journal goes until 2026-11-20T11:00:00.000Z\nwarning: the journal of node-2 has 2026-11-20T02:00:00.000Z to 2026-11-20T11:00:00.000Z"},
	} {
		out, errOut, err := openshift(t, append([]string{"egress", "who", "--socket=/nowhere"}, strings.Fields(tt.args)...)...)
		if err != nil || !strings.HasPrefix(out, tt.out) || !strings.HasPrefix(errOut, tt.errOut) || tt.errOut == "" && errOut != "" {
			t.Errorf("%s: %v, %q\n%s\nwant %s", name, err, errOut, out, tt.out)
		}
	}
	for name, tt := range map[string]struct{ args, want string }{
		"nobody": {"203.0.113.10:32300 --at=2026-11-20T04:30:00Z --journal=" + folder,
			"nobody had 203.0.113.10:32300 at 2026-11-20T04:30:00.000Z: no pod of node-1, node-2. Before, the pod shop/web-0 (uid-web-0) on node-1 had it until 2026-11-20T04:00:00.000Z. " +
				"After, the pod shop/web-5 (uid-web-5) on node-1 had it from 2026-11-20T05:00:00.000Z on"},
		"before the files": {"203.0.113.10:32300 --at=2026-11-20T01:00:00Z --journal=" + one, "it is not certain who had 203.0.113.10:32300 at 2026-11-20T01:00:00.000Z: the journal of node-1 has 2026-11-20T02:00:00.000Z to 2026-11-20T11:50:00.000Z"},
		"after the files":  {"203.0.113.10:32300 --at=2026-11-20T11:55:00Z --journal=" + one, "had it since 2026-11-20T05:00:00.000Z, and the journal goes until 2026-11-20T11:50:00.000Z"},
		"now":              {"203.0.113.10:32300 --journal=" + one, "Give the time with --at=TIME"},
		"one node of two":  {"203.0.113.10:2000 --at=2026-11-20T11:30:00Z --journal=" + folder, "it is not certain who had 203.0.113.10:2000 at 2026-11-20T11:30:00.000Z: the journal of node-2 has"},
		"no journal":       {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=" + t.TempDir(), "there is no journal in "},
		"something else":   {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --journal=/etc/passwd", "/etc/passwd: it does not begin like a journal"},
	} {
		out, _, err := openshift(t, append([]string{"egress", "who"}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: %v, want %q\n%s", name, err, tt.want, out)
		}
	}
}

// TestWho_ByTheNodesJournal: --at on a node reads its journal, and what has gone on since from the running node.
func TestWho_ByTheNodesJournal(t *testing.T) {
	s := withBlocks()
	s.PortBlocks = append(s.PortBlocks, blockOf("web-7", "10.128.0.17", 4096))
	s.PortBlocks[3].Since = now.Add(-5 * time.Minute)
	socket := serveWho(t, s)
	journalOf(t, filepath.Join(socket+".journal", "00000001.journal"), "node-1", ofNodeOne...)
	other := journalOf(t, filepath.Join(t.TempDir(), "kept", "00000001.journal"), "node-1", ofNodeOne...)
	config := filepath.Join(t.TempDir(), "node-config.yaml")
	if err := os.WriteFile(config, []byte("kind: NodeConfig\napiVersion: v1\nmasterKubeConfig: k\nproxyArguments:\n  egress-snat-journal: ["+filepath.Dir(other)+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ args, out, errOut string }{
		"beside the socket":    {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --socket=" + socket, whoThen, ""},
		"by the configuration": {"203.0.113.10:32300 --at=2026-11-20T03:12:00Z --config=" + config, whoThen, ""},
		"shared":               {"203.0.113.10:61500 --at=2026-11-20T03:12:00Z --socket=" + socket, "no pod has this port alone: 1 candidate", "warning: " + portblocks.Unlisted + "\nwarning: pods of other nodes share these ports"},
		"since the last line":  {"203.0.113.10:4100 --at=2026-11-20T11:58:00Z --socket=" + socket, "Pod:         shop/web-7\n", ""},
	} {
		out, errOut, err := openshift(t, append([]string{"egress", "who"}, strings.Fields(tt.args)...)...)
		if err != nil || !strings.HasPrefix(out, tt.out) || !strings.HasPrefix(errOut, tt.errOut) || tt.errOut == "" && errOut != "" {
			t.Errorf("%s: %v, %q\n%s\nwant %s", name, err, errOut, out, tt.out)
		}
	}
	twice := serveWho(t, s)
	journalOf(t, filepath.Join(twice+".journal", "00000001.journal"), "node-1", append(slices.Clone(ofNodeOne),
		"11:51:00.000Z + 4 shop/web-9 uid-web-9 10.128.0.19 web 203.0.113.10 4096-4607", "11:56:00.000Z + 5 shop/web-7 uid-web-7 10.128.0.17 web 203.0.113.10 4096-4607", "11:59:00.000Z alive")...)
	for name, tt := range map[string]struct{ args, want string }{
		"two had it, and one has it": {"203.0.113.10:4100 --at=2026-11-20T11:58:00Z --socket=" + twice, "contradict each other: shop/web-9 (uid-web-9)"},
		"nobody of this node":        {"203.0.113.10:2000 --at=2026-11-20T03:12:00Z --socket=" + socket, "For pods of other nodes, see those nodes' journals"},
		"not yet then":               {"203.0.113.10:4100 --at=2026-11-20T11:53:00Z --socket=" + socket, "it is not certain who had 203.0.113.10:4100 at 2026-11-20T11:53:00.000Z: the journal of node-1 has"},
		"no journal":                 {"203.0.113.10:4100 --at=2026-11-20T11:53:00Z --socket=/nowhere/a.sock", "proxyArguments.egress-snat-port-blocks was never set on this node"},
	} {
		out, _, err := openshift(t, append([]string{"egress", "who"}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: %v, want %q\n%s", name, err, tt.want, out)
		}
	}
}

// assigning is the Lease of a node that tells which ports its pods have.
func assigning(node string, assignments ...portblocks.Assignment) coordinationv1.Lease {
	lease := announcing(node, `{}`, "")
	lease.Annotations[portblocks.AssignedAnnotation] = portblocks.FormatAssigned(assignments)
	return lease
}

// TestDesk_Who asks the API server.
func TestDesk_Who(t *testing.T) {
	api := smallCluster()
	one := assigning("node-1", blockOf("web-0", "10.128.0.11", 32256), sharedOf("web-8", "10.128.0.18"))
	two := announcing("node-2", `{"203.0.113.10":{"epoch":1}}`, "")
	two.Annotations[portblocks.AssignedAnnotation] = portblocks.FormatAssigned([]portblocks.Assignment{blockOf("web-1", "10.129.0.12", 2048), sharedOf("web-9", "10.129.0.19")})
	two.Spec.RenewTime = &metav1.MicroTime{Time: now}
	api.setLeases(one, two)
	// An earlier version does not say since when.
	two.Annotations[portblocks.AssignedAnnotation] = strings.ReplaceAll(two.Annotations[portblocks.AssignedAnnotation], `,"since":"2026-11-20T11:00:00Z"`, `,"node":"node-2"`)
	old := "warning: Lease origin-node/node-2 was renewed last at 2026-11-20T12:00:00Z: its pods' ports may have changed since\n"
	for _, tt := range []struct{ asked, out string }{
		{"203.0.113.10:32300", "Pod:         shop/web-0\nUID:         uid-web-0\nPod IP:      10.128.0.11\nService:     shop/web\nNode:        node-1\n" +
			"Egress IP:   203.0.113.10\nPorts:       32256-32767\nSince:       2026-11-20T11:00:00.000Z\n"},
		{"203.0.113.10:2048", "Pod:         shop/web-1\nUID:         uid-web-1\nPod IP:      10.129.0.12\nService:     shop/web\nNode:        node-2\n" +
			"Egress IP:   203.0.113.10\nPorts:       2048-2559\nSince:       <unknown>\n"},
		{"203.0.113.10:61500", "no pod has this port alone: 2 candidates for 203.0.113.10:61500 at "},
	} {
		out, errOut, err := kubectl(t, api, "who", tt.asked)
		if err != nil || !strings.HasPrefix(out, tt.out) || errOut != old && errOut != old+"warning: "+portblocks.Unlisted+"\n" {
			t.Errorf("%s: %v, %q\n%s\nwant %s", tt.asked, err, errOut, out, tt.out)
		}
	}
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:5000"); err == nil || !strings.Contains(err.Error(), "it is not certain who has 203.0.113.10:5000: Lease origin-node/node-2 was renewed last at") {
		t.Errorf("nobody: %v", err)
	}
	one.Spec.RenewTime = &metav1.MicroTime{Time: now} // which a node without egress IPs does only when it says something else
	api.setLeases(one)
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:5000"); err == nil || !strings.Contains(err.Error(), "nobody has 203.0.113.10:5000 now, according to the Leases of 1 nodes") {
		t.Errorf("nobody, by a Lease that nobody renews: %v", err)
	}
	three := assigning("node-3", blockOf("thief", "10.130.0.1", 32256))
	api.setLeases(one, three)
	if out, _, err := kubectl(t, api, "who", "203.0.113.10:32300"); err == nil || out != "" || !strings.Contains(err.Error(), "it is not certain who has 203.0.113.10:32300: the Leases of node-1 and node-3 both say") {
		t.Errorf("two of them: %v\n%s", err, out)
	}
	three.Annotations[portblocks.AssignedAnnotation] = `[{"pod": {"name": "x"}}]`
	api.setLeases(one, three)
	if out, errOut, err := kubectl(t, api, "who", "203.0.113.10:32300"); err != nil || !strings.HasPrefix(out, "Pod:         shop/web-0\n") || !strings.Contains(errOut, "Lease origin-node/node-3: metadata.annotations["+portblocks.AssignedAnnotation+"]: [0]") {
		t.Errorf("a Lease with something else: %v, %q\n%s", err, errOut, out)
	}
	api.setLeases(announcing("node-1", `{}`, ""))
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:32300"); err == nil || !strings.Contains(err.Error(), "egress-snat-port-blocks") {
		t.Errorf("no blocks: %v", err)
	}
	api.forbidden[leasesPath] = true
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:32300"); err == nil || !strings.Contains(err.Error(), "no right to list leases.coordination.k8s.io in the namespace origin-node") {
		t.Errorf("no right: %v", err)
	}
	delete(api.forbidden, leasesPath)
	delete(api.lists, leasesPath)
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:32300"); err == nil || !strings.HasPrefix(err.Error(), "list leases.coordination.k8s.io: ") {
		t.Errorf("the API server has no Leases: %v", err)
	}
	if _, _, err := kubectl(t, api, "who", "203.0.113.10:32300", "--at=2026-11-20T03:12:00Z"); err == nil || !strings.Contains(err.Error(), "unknown flag: --at") {
		t.Errorf("in the past: %v", err)
	}
}

// TestPortBlocks_WithoutPlugin: of a pod that started without the CNI plugin its node knows that it shares, but neither its UID nor since when.
func TestPortBlocks_WithoutPlugin(t *testing.T) {
	s := withBlocks()
	pod := sharedOf("web-1", "10.128.0.12")
	pod.Pod.UID, pod.Since = "", time.Time{}
	s.PortBlocks, s.PortMap = []portblocks.Assignment{pod}, nil
	socket := serveWho(t, s)
	out, _, err := openshift(t, "egress", "list", "--socket="+socket, "-o", "wide")
	if err != nil || strings.Count(out, "endpointslice   shared\n") != 1 {
		t.Errorf("list: %v\n%s", err, out)
	}
	out, errOut, err := openshift(t, "egress", "who", "203.0.113.10:61500", "--socket="+socket)
	want := `no pod has this port alone: 1 candidate for 203.0.113.10:61500 at 2026-11-20T12:00:00Z
POD          UID      POD IP        SERVICE    NODE     SINCE       UNTIL    FLOW TO
shop/web-1   <none>   10.128.0.12   shop/web   node-1   <unknown>   <open>   <none>
`
	missing := "warning: pods of other nodes share these ports, too: their nodes know, and 'kubectl egress who' shows those that started with the CNI plugin\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil || errOut != missing {
		t.Errorf("who: %v, %q (-want +got):\n%s", err, errOut, diff)
	}
	out, _, err = openshift(t, "egress", "who", "203.0.113.10:61500", "--socket="+socket, "-o", "json")
	if err != nil || strings.Contains(out, "since") {
		t.Errorf("who -o json: %v\n%s", err, out)
	}
}

// TestPortBlocks_AreInTheOtherCommands.
func TestPortBlocks_AreInTheOtherCommands(t *testing.T) {
	socket := serveWho(t, withBlocks())
	out, _, err := openshift(t, "egress", "list", "--socket="+socket, "-o", "wide")
	for _, want := range []string{"KNOWN BY        PORTS\n", "endpointslice   32256-32767\n", "endpointslice   2048-2559\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("list: %v, want %q in\n%s", err, want, out)
		}
	}
	out, _, err = openshift(t, "egress", "list", "--socket="+socket, "-o", "json")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), ""), `"ports":[{"first":32256,"last":32767}]`) {
		t.Errorf("list -o json: %v\n%s", err, out)
	}
	out, _, err = openshift(t, "egress", "explain", "10.128.0.11", "--socket="+socket, "--protocol=tcp")
	if err != nil || !strings.Contains(out, "  Source ports: 32256-32767, which it alone has; 'openshift egress who' names the pod by one of them\n") {
		t.Errorf("explain: %v\n%s", err, out)
	}
	usage := someUsage()
	usage.CountPorts(withBlocks().PortBlocks)
	out, _, err = openshift(t, "egress", "top", "--batch", "--count=1", "--socket="+serveUsage(t, func() (status.Usage, error) { return usage, nil }))
	if err != nil || !strings.Contains(out, "SENT   BLOCKS   SHARING   PORTS") || !strings.Contains(out, "203.0.113.10   12      1.5     4          0      1        2         9/4096 (0.2%)") {
		t.Errorf("top: %v\n%s", err, out)
	}
}
