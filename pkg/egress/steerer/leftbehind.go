package steerer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

// Other software that puts egress IPs on nodes may leave one behind when it dies: kube-vip does, and its next leader has the address on
// another node. Answers go there, so this node's pods must leave from there, too.

const (
	// askForRivals is the pause between two times that the network is asked for addresses that are here, and that another node has got later.
	askForRivals = time.Second
	// silentRounds is how many times in a row nobody answers for an address that is not elsewhere any more.
	silentRounds = 3
)

// followRivals asks the network for addresses that are here, and that another node has got later, until the context ends.
func (s *Steerer) followRivals(ctx context.Context) {
	elsewhere, failed := rivals{}, failure.Streak{}
	for wake.Sleep(ctx.Done(), askForRivals) {
		open := s.outranked()
		if len(open) == 0 && len(elsewhere) == 0 {
			continue
		}
		answered, err := askForAddresses(ctx, open)
		if failed.Turns(err) && err != nil {
			s.logger.Error(err, "Cannot ask the network for egress IPs that are on several nodes; will retry, further failures are not logged", "addresses", tell.Listed(open))
		}
		if !elsewhere.note(open, answered, err == nil) {
			continue
		}
		s.Apply(holders.Elsewhere{Addresses: elsewhere.addresses()})
		if len(elsewhere) > 0 {
			s.logger.Info("Egress IPs are on this node, but another node got them later and answers for them, so packets of this node's pods are sent to that node", "addresses", tell.Listed(elsewhere.addresses()))
		} else {
			s.logger.Info("No egress IP of this node is on another node any more")
		}
	}
}

// outranked returns the addresses on this node's interfaces that another node has got later, but for those that the pool sees to.
func (s *Steerer) outranked() []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.node.Outranked(time.Now()), func(ip netip.Addr) bool {
		return s.state.Config.Pool.Has(ip)
	})
}

// rivals are the addresses that other hosts answer for, and how many times in a row they have not.
type rivals map[netip.Addr]int

// note notes which of the open addresses were answered for, and tells whether others are elsewhere than before. Unless all were asked
// for, silence means nothing.
func (r rivals) note(open []netip.Addr, answered map[netip.Addr]bool, asked bool) (changed bool) {
	for ip := range r {
		switch {
		case answered[ip]:
			r[ip] = 0
		case asked:
			r[ip]++
		}
		if r[ip] >= silentRounds || !slices.Contains(open, ip) {
			delete(r, ip)
			changed = true
		}
	}
	for ip := range answered {
		if _, known := r[ip]; !known {
			r[ip], changed = 0, true
		}
	}
	return changed
}

// addresses are sorted.
func (r rivals) addresses() []netip.Addr { return slices.SortedFunc(maps.Keys(r), netip.Addr.Compare) }

// askForAddresses returns which of these addresses, on this node's interfaces, another host on the same network answers for.
func askForAddresses(ctx context.Context, addresses []netip.Addr) (answered map[netip.Addr]bool, err error) {
	answered = map[netip.Addr]bool{}
	links, err := net.Interfaces()
	if err != nil {
		return answered, fmt.Errorf("list interfaces: %w", err)
	}
	var own []net.HardwareAddr
	for _, link := range links {
		own = append(own, link.HardwareAddr)
	}
	var errs []error
	for _, link := range links {
		if link.Flags&net.FlagUp == 0 || link.Flags&net.FlagLoopback != 0 || len(link.HardwareAddr) == 0 {
			continue // nobody answers there
		}
		has, err := addressesOn(&link)
		errs = append(errs, err)
		open := slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool { return !slices.Contains(has, ip) })
		if len(open) == 0 {
			continue
		}
		macs, _, err := neighbor.Ask(ctx, &link, open, own, nil)
		errs = append(errs, err)
		for ip := range macs {
			answered[ip] = true
		}
	}
	return answered, errors.Join(errs...)
}

func addressesOn(link *net.Interface) (addresses []netip.Addr, err error) {
	list, err := link.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", link.Name, err)
	}
	for _, address := range list {
		if network, is := address.(*net.IPNet); is {
			addresses = append(addresses, kernel.AddrOf(network.IP))
		}
	}
	return addresses, nil
}
