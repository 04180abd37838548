//go:build linux

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	l := lab.ForTest(t, lab.Config{Nodes: 3, IPv6: true, Far: true, AnswersByARP: true})
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
	return &routed{t, l}
}

// reached returns an error unless these nodes, all of them and nobody else, answer a client of many connections to an address.
func (r *routed) reached(vip netip.Addr, nodes ...*lab.Host) error {
	by, want := map[string]bool{}, map[string]bool{}
	for _, node := range nodes {
		want[node.Name] = true
	}
	for range 40 {
		conn, asked, err := r.Far().DialAsked(r.Context(), netip.AddrPortFrom(vip, port))
		if err != nil {
			return err
		}
		by[asked.By] = true
		_ = conn.Close()
	}
	if !maps.Equal(by, want) {
		return fmt.Errorf("%s is answered by %v, want %v", vip, by, want)
	}
	return nil
}

// silent returns an error if anybody says anything to a client of an address.
func (r *routed) silent(vip netip.Addr) error {
	ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
	defer cancel()
	c, err := r.Far().DialContext(ctx, "tcp", netip.AddrPortFrom(vip, port).String())
	if err == nil {
		c.Close()
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		return fmt.Errorf("%s: %w, want no answer at all", vip, err)
	}
	return nil
}
