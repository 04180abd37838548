package redirects

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
)

// size is how many nodes and ports there are.
type size struct{ nodes, ports int }

// Figure is that of this package.
func Figure() figure.Figure { return figure.Figure{Name: "tunnel/change", Run: change} }

// change compares one node more or less, of a thousand with 20 ports.
func change(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	n := size{nodes: 1000, ports: 20}
	if s.Smoke {
		n = size{nodes: 10, ports: 3}
	}
	var labs []*lab.Lab
	defer func() {
		for _, l := range labs {
			err = errors.Join(err, l.Close())
		}
	}()
	var cases []figure.Case
	add := func(name string, backend lab.Backend, prepare func(context.Context, *lab.Lab, size) (changer, error)) error {
		l, err := lab.New(ctx, lab.Config{Backend: backend})
		if err != nil {
			return err
		}
		labs = append(labs, l)
		c, err := prepare(ctx, l, n)
		if err != nil {
			return err
		}
		cases = append(cases, figure.One("method="+name, figure.Quantity{Name: "TunnelChange", Unit: "ms/op", N: 1}, func(ctx context.Context) (float64, error) {
			began := time.Now()
			share, err := c(ctx)
			return figure.Milliseconds(time.Since(began)) * float64(share), err
		}))
		return nil
	}
	for _, backend := range lab.Backends() {
		err = errors.Join(err, add("openyurt-"+string(backend), backend, prepareOpenYurt), add("iptables-"+string(backend), backend, ours(reconcile.IPTables)))
	}
	if err = errors.Join(err, add("nftables", lab.NFT, ours(reconcile.NFTables))); err != nil {
		return nil, err
	}
	values, err := s.AtMost(5).Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	row := func(name string, dividend, divisor int) figure.Result {
		return figure.Result{
			Name: "a node changes, OpenYurt's method ÷ " + name, At: fmt.Sprintf("%d nodes, %d ports", n.nodes, n.ports),
			Measured: figure.Ratio(values[dividend][0], values[divisor][0]), Target: figure.AtLeast(100),
		}
	}
	first, second := string(lab.Backends()[0]), string(lab.Backends()[1])
	return []figure.Result{
		row("IP sets, both by iptables-"+first, 0, 1),
		row("IP sets, both by iptables-"+second, 2, 3),
		row("nftables, OpenYurt's by iptables-nft", 2*slices.Index(lab.Backends(), lab.NFT), 4),
	}, nil
}

// changer makes a change, or one of so many equal shares of it.
type changer func(ctx context.Context) (shares int, err error)

// ours prepares changes by this project's writer: a node comes, or goes.
func ours(backend reconcile.Backend) func(context.Context, *lab.Lab, size) (changer, error) {
	return func(ctx context.Context, l *lab.Lab, n size) (changer, error) {
		w := redirect.NewWriter(backend, kernel.IPv4)
		all, nodes := redirects(n), nodeAddresses(n.nodes)
		write := func(ctx context.Context, nodes []netip.Addr) error {
			want := all
			want.Nodes = nodes
			return tables.As(l, func() error {
				_, err := w.Sync(ctx, want)
				return err
			})
		}
		count := 0
		return func(ctx context.Context) (int, error) {
			count++
			return 1, write(ctx, nodes[:len(nodes)-count%2])
		}, write(ctx, nodes)
	}
}

func redirects(n size) kernel.Redirects {
	r := kernel.Redirects{
		Secure:   kernel.Target{To: netip.MustParseAddrPort("192.0.2.2:10263"), Ports: []uint16{10250}},
		Insecure: kernel.Target{To: netip.MustParseAddrPort("192.0.2.2:10264")},
	}
	for i := range n.ports - 1 {
		r.Insecure.Ports = append(r.Insecure.Ports, uint16(9100+i))
	}
	return r
}

func nodeAddresses(n int) (addrs []netip.Addr) {
	for i := range n {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i%250 + 1)}))
	}
	return addrs
}
