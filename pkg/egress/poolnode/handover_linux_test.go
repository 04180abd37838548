package poolnode

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestPart_HandoversOfThePoolsFamilies: what the kernel lacks in another family does not count.
func TestPart_HandoversOfThePoolsFamilies(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		for name, networks := range map[v1.IPFamily][]netip.Prefix{
			v1.IPv4Protocol: {netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("198.51.100.0/28")},
			v1.IPv6Protocol: {netip.MustParsePrefix("2001:db8::/120")},
		} {
			ctx, stop := context.WithCancel(t.Context())
			p := newPoolTest(t)
			p.state.Config.Pool.Networks, p.ctx = networks, ctx
			h, err := p.startHandovers()
			if len(h) != 1 || h[name] == nil || err != nil {
				t.Errorf("a pool of %s: %v, %v", name, h, err)
			}
			stop()
			p.config.Running.Wait()
		}
	})
}

// TestPart_WithoutANode: a node whose Node object is gone lets go of what an earlier process has put there, and nothing keeps it.
func TestPart_WithoutANode(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		run := func(command string) string {
			t.Helper()
			words := strings.Fields(command)
			out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
			return string(out)
		}
		for _, command := range []string{
			"ip link add eth0 type veth peer name eth1", "ip link set eth0 up", "ip link set eth1 up", "ip address add 203.0.113.2/28 dev eth0",
			"ip address add 203.0.113.10/32 dev eth0 noprefixroute preferred_lft 0 valid_lft 30",
		} {
			run(command)
		}
		has := func() bool { return strings.Contains(run("ip address show dev eth0"), "203.0.113.10/32") }
		p := newPoolTest(t)
		p.Keep()
		p.follow()
		if !has() {
			t.Error("the address goes although the Node is there")
		}
		p.state.DeleteNode("node-a")
		p.follow()
		p.config.Running.Wait() // nothing keeps it
		if has() {
			t.Error("the address stays although there is no Node")
		}
	})
}
