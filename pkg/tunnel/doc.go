// Package tunnel is the extension that sends connections to nodes behind a tunnel to the tunnel server, as
// OpenYurt's iptables manager does: a node on which the API server or the monitoring runs cannot reach the
// kubelets of an edge site behind NAT by itself.
//
//	API server ── 192.0.2.50:10250, an edge node ──► nat OUTPUT ── DNAT ──► tunnel server ═══► agent on 192.0.2.50
//	           ── 192.0.2.3:10250, a direct node ──► untouched ───────────► kubelet
//
// It follows the Nodes and one ConfigMap, and is another user of what egress SNAT is made of: the host,
// the gate and the loop of package extension, the drivers of package kernel, the judgement of tracked connections.
//
//	Nodes, ConfigMap ─► pkg/tunnel/plan ─► kernel.Redirects ─► pkg/kernel/redirect
//
// The plan is made anew for each change: there are a thousand nodes, not a hundred thousand pods. A sync
// reads what the kernel holds, which costs no program and little else as long as nobody else has changed it, and
// writes what differs. Then the connections that go the wrong way are ended: those to a node behind the tunnel that go
// directly, and those to any other that go to the tunnel server because rules once said so. All others go on. A process
// that dies in between leaves a record in the kernel, by which the next one goes on.
//
// Stop leaves the rules. If the API server is away, they stay as they are.
package tunnel
