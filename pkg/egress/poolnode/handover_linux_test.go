package poolnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestPart_WithoutANode: a node whose Node object is gone, or has no address, lets go of what an earlier process has put there, and nothing
// keeps it.
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
		} {
			run(command)
		}
		has := func() bool { return strings.Contains(run("ip address show dev eth0"), "203.0.113.10/32") }
		for name, then := range map[string]func(*poolTest){
			"there is no Node":        func(p *poolTest) { p.state.DeleteNode("node-a") },
			"the Node has no address": func(p *poolTest) { p.state.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}) },
		} {
			run("ip address add 203.0.113.10/32 dev eth0 noprefixroute preferred_lft 0 valid_lft 30")
			p := newPoolTest(t)
			p.Keep()
			p.follow()
			if !has() {
				t.Error("the address goes although the Node is there")
			}
			then(p)
			p.follow()
			p.config.Running.Wait() // nothing keeps it
			if has() {
				t.Errorf("the address stays although %s", name)
			}
		}
	})
}

// TestPart_Refused: the API server says that there is no Node of this name, or that the node has no rights; nothing else ends anything.
func TestPart_Refused(t *testing.T) {
	lab.InNamespace(t, testRefused)
}

func testRefused(t *testing.T) {
	nodes := v1.Resource("nodes")
	for name, test := range map[string]struct {
		err   error
		keeps bool
	}{
		"nobody answers":            {context.DeadlineExceeded, true},
		"a load balancer's page":    {apierrors.NewGenericServerResponse(404, "list", nodes, "", "404 page not found", 0, true), true},
		"too many requests":         {apierrors.NewTooManyRequests("later", 1), true},
		"there is no Node":          {fmt.Errorf("this node: %w", apierrors.NewNotFound(nodes, "node-a")), false},
		"the certificate has ended": {apierrors.NewUnauthorized("who is it?"), false},
		"a right is missing":        {apierrors.NewForbidden(nodes, "", errors.New("not bound")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p, stopped := newPoolTest(t), false
			p.stopKeeping = func() { stopped = true }
			p.Refused(test.err)
			if apierrors.IsForbidden(test.err) && stopped {
				t.Error("keeping has ended with the first answer")
			}
			if p.Refused(test.err); stopped == test.keeps {
				t.Errorf("keeping has ended: %v", stopped)
			}
		})
	}
}
