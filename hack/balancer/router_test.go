//go:build linux

package balancer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const port = 8080

var vips = addrs("198.19.0.1", "2001:db8:0:4::1")

// routed is a lab whose nodes all have the addresses of a Service, and serve at them.
type routed struct {
	*testing.T
	*lab.Lab
	router *router
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	l := lab.ForTest(t, lab.Config{Nodes: 3, IPv6: true, Far: true, AnswersByARP: true})
	r, err := newRouter(l.Router(), Ranges)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	for _, node := range l.Nodes() {
		for _, vip := range vips {
			if err := l.AddAddr(node, vip); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.ServeAsked(port); err != nil {
			t.Fatal(err)
		}
	}
	return &routed{t, l, r}
}

// hold has the router send what is for both addresses to these nodes.
func (r *routed) hold(nodes ...*lab.Host) {
	r.Helper()
	wanted := map[netip.Addr][]netip.Addr{}
	for _, node := range nodes {
		wanted[vips[0]] = append(wanted[vips[0]], node.V4)
		wanted[vips[1]] = append(wanted[vips[1]], node.V6)
	}
	if err := r.router.hold(wanted); err != nil {
		r.Fatal(err)
	}
}

// reached returns which hosts answer a client of 40 connections to an address.
func (r *routed) reached(vip netip.Addr) map[string]bool {
	r.Helper()
	by := map[string]bool{}
	for range 40 {
		conn, asked, err := r.Far().DialAsked(r.Context(), netip.AddrPortFrom(vip, port))
		if err != nil {
			r.Fatal(err)
		}
		by[asked.By] = true
		_ = conn.Close()
	}
	return by
}

func TestRouter_SendsToAllNodesOfARoute(t *testing.T) {
	r := newRouted(t)
	all := r.Nodes()
	for _, nodes := range [][]*lab.Host{all, all[:1], all[1:], all} {
		r.hold(nodes...)
		for _, vip := range vips {
			by := r.reached(vip)
			if len(by) != len(nodes) {
				t.Errorf("%s is answered by %v, want %d nodes", vip, by, len(nodes))
			}
			for _, node := range nodes {
				if !by[node.Name] {
					t.Errorf("%s is not answered by %s", vip, node.Name)
				}
			}
		}
	}
}

func TestRouter_DropsInSilence(t *testing.T) {
	r := newRouted(t)
	r.hold(r.Nodes()...)
	r.hold()
	for _, vip := range vips {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := r.Far().DialContext(ctx, "tcp", netip.AddrPortFrom(vip, port).String())
		cancel()
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %v, want no answer at all", vip, err)
		}
	}
}
