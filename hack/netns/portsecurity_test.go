package netns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// TestPortSecurity_KernelCannotCheck: a kernel that refuses one more hook at the ingress of an interface cannot check the sources of what
// pods send. The node serves its pods all the same, and its log, verify and a metric say that sources are not checked. A node that starts
// when there is room says nothing of it, and its verify finds, and repairs, what somebody has done to the check.
func TestPortSecurity_KernelCannotCheck(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{IPv6: true, Pods: 1, Masquerade: true})
	n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
	n.putWeb([]string{egressV4.String(), egressV6.String()})
	const (
		most   = 1024 // hooks at one interface (MAX_HOOK_COUNT in the kernel's net/netfilter/core.c)
		told   = "Other pods can use the addresses of this node's bound pods, because the sources of their packets cannot be checked"
		reason = "argument list too long" // E2BIG
	)
	var chains strings.Builder
	fmt.Fprintln(&chains, "add table netdev others")
	for i := range most {
		fmt.Fprintf(&chains, "add chain netdev others c%d { type filter hook ingress device lo priority 0; }\n", i)
	}
	file := filepath.Join(t.TempDir(), "chains")
	if err := os.WriteFile(file, []byte(chains.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	nft := func(args ...string) {
		t.Helper()
		if _, err := n.Node().Run(t.Context(), "nft", args...); err != nil {
			t.Fatal(err)
		}
	}
	nft("-f", file)
	n.checksSources(told, reason, false)
	n.Stop()
	nft("delete", "table", "netdev", "others")
	n.Printed.Reset()
	n.checksSources(told, reason, true)
}

// checksSources starts the node, and fails unless it checks the sources of what pods send, or tells everywhere that it does not, and why.
func (n *node) checksSources(told, reason string, checks bool) {
	n.Helper()
	n.start()
	n.Ready()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	n.Sees("tcp6", n.Pod(1), n.outside("tcp6"), egressV6)
	logged := false
	for line := range strings.Lines(n.Printed.String()) {
		logged = logged || strings.Contains(line, told) && strings.Contains(line, reason)
	}
	out, stderr, status := n.Openshift("egress", "verify", "--socket="+n.Socket())
	if status != 0 {
		n.Fatalf("verify: status %d, %s%s", status, out, stderr)
	}
	verified := strings.Contains(out, "port security: warning: other pods can use the addresses of this node's bound pods") && strings.Contains(out, reason)
	if logged == checks || verified == checks {
		n.Errorf("the log tells of it: %v, verify does: %v; want %v:\n%s", logged, verified, !checks, out)
	}
	n.metric(fmt.Sprintf(`egress_snat_port_security_fault{reason="unavailable"} %d`, map[bool]int{false: 1}[checks]))
	if !checks {
		return
	}
	n.nft("flush set netdev " + portsecurity.Table + " bound-ipv4")
	for _, want := range []int{1, 0} { // it repairs what it has found
		out, stderr, status := n.Openshift("egress", "verify", "--socket="+n.Socket())
		if told := strings.Contains(out, "port security: set bound-ipv4 of table "+portsecurity.Table+" lacks the element"); status != want || told != (want == 1) {
			n.Errorf("verify: status %d, want %d: %s%s", status, want, out, stderr)
		}
	}
}
