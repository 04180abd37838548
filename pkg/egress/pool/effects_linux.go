package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
)

// do does what the member says. It returns what the member is to hear before anything else; nil if there is nothing.
func (r *Runner) do(ctx context.Context, logger klog.Logger, actions []Action) (first Event) {
	var takes []Take
	var releases []Release
	var renewed []netip.Addr
	var publish []Publish
	for _, a := range actions {
		switch a := a.(type) {
		case Probe:
			r.running.Go(func() { r.probe(ctx, logger, a) })
		case LookAround:
			r.running.Go(func() { r.look(ctx, logger, a) })
		case Take:
			takes = append(takes, a)
		case Release:
			releases = append(releases, a)
		case Renew:
			renewed = append(renewed, a.Addresses...)
		case Advertise:
			r.advertiseAndRepeat(logger, a.Addresses)
		case Publish:
			publish = append(publish, a)
		}
	}
	r.release(logger, releases)
	if first = r.takeAddresses(logger, takes); first != nil {
		publish = nil // the state says that this node has them
	}
	for _, p := range publish { // the previous holder of an address removes it when it hears this
		r.publish(p.State)
	}
	r.renew(logger, renewed) // what was just taken is among these
	return first
}

// answers are what the hosts of this node's networks have answered.
type answers struct {
	at   time.Time
	macs map[netip.Addr]net.HardwareAddr
	// asked are the addresses that were asked for. err is why others were not, if their interface is known. cut are those on whose network
	// nobody answered although somebody should be there.
	asked map[netip.Addr]bool
	cut   []netip.Addr
	err   error
}

// ask returns who has addresses, by their interfaces, and tells answered of each answer at once. Witnesses are asked on the same
// interfaces: their answers show that a network carries frames.
func (r *Runner) ask(ctx context.Context, l *links, addresses, witnesses map[*net.Interface][]netip.Addr, answered func(netip.Addr)) answers {
	all := answers{at: time.Now(), macs: map[netip.Addr]net.HardwareAddr{}, asked: map[netip.Addr]bool{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	own := l.hardware()
	for link, group := range addresses {
		asking.Go(func() {
			macs, unasked, err := neighbor.Ask(ctx, link, slices.Concat(group, witnesses[link]), own, answered)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all.macs, macs)
			for _, ip := range group {
				all.asked[ip] = true
			}
			for _, ip := range unasked {
				delete(all.asked, ip)
			}
			if err != nil {
				all.err = err
			}
			isUnasked := func(ip netip.Addr) bool { return slices.Contains(unasked, ip) }
			if len(macs) == 0 && len(slices.DeleteFunc(slices.Clone(witnesses[link]), isUnasked)) > 0 {
				all.cut = append(all.cut, group...)
			}
		})
	}
	asking.Wait()
	return all
}

// probe asks whether anybody has addresses.
func (r *Runner) probe(ctx context.Context, logger klog.Logger, p Probe) {
	l, err := r.kernel.read()
	result := Probed{Number: p.Number, At: time.Now(), Answers: map[netip.Addr]Answer{}}
	var all answers
	if err != nil {
		l = &links{}
	} else {
		names := r.peers()
		asked, peers := l.byLink(p.Addresses), l.byLink(slices.Collect(maps.Keys(names)))
		all = r.ask(ctx, l, asked, merge(peers, l.defaultGateways()), nil)
		result.At, err = all.at, all.err
		for link := range asked {
			for _, ip := range peers[link] {
				if _, answered := all.macs[ip]; !answered {
					result.Silent = append(result.Silent, names[ip])
				}
			}
		}
	}
	var failed []netip.Addr
	for _, ip := range p.Addresses {
		answer := Answer{Failed: !all.asked[ip], Cut: slices.Contains(all.cut, ip)}
		if mac, answered := all.macs[ip]; answered {
			answer = Answer{By: mac.String()}
		}
		if index, foreign := l.foreign[ip]; foreign {
			answer = Answer{By: fmt.Sprintf("this node, where other software has put it on interface %d", index)}
		}
		if result.Answers[ip] = answer; answer.Failed {
			failed = append(failed, ip)
		}
	}
	if len(failed) > 0 {
		if err == nil {
			err = errors.New("no interface has a subnet with it")
		}
		logger.V(2).Info("Cannot ask whether another host has an egress IP, so it is not taken", "addresses", failed, "err", err)
	}
	r.Tell(result)
}

// look asks who is there. If nobody can be asked, nobody is there.
func (r *Runner) look(ctx context.Context, logger klog.Logger, a LookAround) {
	result := Looked{At: time.Now()}
	defer func() { r.Tell(result) }()
	l, err := r.kernel.read()
	if err != nil {
		return
	}
	peers := slices.Collect(maps.Keys(r.peers()))
	gateways := l.defaultGateways()
	result.At = time.Now()
	all := r.ask(ctx, l, merge(merge(l.byLink(peers), l.byOwn(a.Own)), gateways), nil, func(ip netip.Addr) {
		if slices.Contains(a.Own, ip) {
			r.Tell(Answered{At: result.At, Addresses: []netip.Addr{ip}})
		}
	})
	if all.err != nil {
		logger.V(2).Info("Cannot ask whether the other nodes of the pool are there", "err", all.err)
	}
	for ip := range all.macs {
		result.Peers = result.Peers || slices.Contains(peers, ip)
		for _, those := range gateways {
			result.Gateway = result.Gateway || slices.Contains(those, ip)
		}
	}
}

func merge(a, b map[*net.Interface][]netip.Addr) map[*net.Interface][]netip.Addr {
	both := maps.Clone(a)
	for link, list := range b {
		both[link] = slices.Concat(both[link], list)
	}
	return both
}

// peers are the pool's other nodes, by their addresses.
func (r *Runner) peers() map[netip.Addr]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	peers := map[netip.Addr]string{}
	for _, name := range r.pool {
		if address, known := r.nodes[name]; known && name != r.config.NodeName {
			peers[address] = name
		}
	}
	return peers
}

// renew has the kernel keep addresses for longer that it still has: one that is gone may be another node's now, and is released. A process
// that is stopped on the way looks again.
func (r *Runner) renew(logger klog.Logger, addresses []netip.Addr) {
	var l *links
	var gone []netip.Addr
	for _, ip := range addresses {
		if l == nil || time.Since(l.at) > rereadAfter {
			var err error
			if l, err = r.kernel.read(); err != nil {
				logger.Error(err, "Cannot renew the egress IPs of this node; if that goes on, the kernel withdraws them")
				r.Tell(RenewFailed{})
				return
			}
		}
		index, there := l.ours[ip]
		if !there || r.isAstray(l, ip) {
			gone = append(gone, ip)
			continue
		}
		if err := r.kernel.put(ip, index); err != nil {
			logger.Error(err, "Cannot renew an egress IP of this node; if that goes on, the kernel withdraws it", "address", ip)
			r.Tell(RenewFailed{})
		}
	}
	if len(gone) > 0 {
		r.Tell(Removed{gone}) // which nobody has noticed
	}
}

// displacedFor is how long an address stays on an interface that has lost its subnet: DHCP may take it away for a moment.
const displacedFor = 10 * time.Second

// isAstray tells whether an address has been for so long on an interface that has lost its subnet, while another one with a link has it.
func (r *Runner) isAstray(l *links, ip netip.Addr) bool {
	maps.DeleteFunc(r.displaced, func(ip netip.Addr, _ time.Time) bool { return !l.isDisplaced(ip) })
	if !l.isDisplaced(ip) {
		return false
	}
	if r.displaced[ip].IsZero() {
		r.displaced[ip] = l.at
	}
	return l.at.Sub(r.displaced[ip]) >= displacedFor
}

// takeAddresses puts addresses on this node, advertises them, and returns what the member is to hear if some could not be taken. One whose
// former holder serves it meanwhile is advertised when this node passes on what comes here for that one's connections.
func (r *Runner) takeAddresses(logger klog.Logger, takes []Take) (failure Event) {
	if len(takes) == 0 {
		return nil
	}
	l, readErr := r.kernel.read()
	var failed, late, unserved, served []netip.Addr
	var moves []Move
	for _, t := range takes {
		err := readErr
		if err == nil {
			err = r.takeAddress(l, t)
		}
		switch {
		case errors.Is(err, errLate):
			late = append(late, t.Address)
			continue
		case err != nil:
			logger.Error(err, "Cannot take an egress IP; another node should take it", "address", t.Address)
			failed = append(failed, t.Address)
			continue
		}
		delete(r.removing, t.Address)
		if t.Why.Served() {
			served = append(served, t.Address)
		} else {
			unserved = append(unserved, t.Address)
		}
		moves = append(moves, Move{Address: t.Address, Taken: true, Epoch: t.Epoch, Other: t.From, Why: t.Why, PassOn: t.PassOn, Since: t.Since})
	}
	r.awaitGroups(logger, slices.Concat(unserved, served))
	r.advertiseAndRepeat(logger, unserved)
	for i := range moves {
		moves[i].At = time.Now()
	}
	r.moved(moves)
	r.advertiseAndRepeat(logger, served)
	if len(late) > 0 {
		logger.Info("Egress IPs were not taken, because this process was stopped or starved and another node may have them; will ask again", "addresses", late)
	}
	if len(failed)+len(late) == 0 {
		return nil
	}
	return TakeFailed{Addresses: failed, Late: late}
}

// awaitGroups waits until neighbours can find addresses that were put here, for a moment at most.
func (r *Runner) awaitGroups(logger klog.Logger, put []netip.Addr) {
	switch late, err := r.kernel.join(put); {
	case err != nil:
		logger.Error(err, "Cannot read which multicast groups the kernel has joined; neighbours may find egress IPs late", "addresses", put)
	case len(late) > 0:
		logger.Info("The kernel is slow to join the multicast groups of egress IPs. Neighbours may find these late, and if they are removed at once, "+
			"may lose other addresses of this node with the same last 24 bits", "addresses", late)
	}
}

var errLate = errors.New("it is too late")

func (r *Runner) takeAddress(l *links, t Take) error {
	if index, foreign := l.foreign[t.Address]; foreign {
		return fmt.Errorf("other software has put %s on interface %d", t.Address, index)
	}
	link, found := l.link(t.Address)
	if !found {
		return fmt.Errorf("no interface has a subnet with %s", t.Address)
	}
	if time.Now().After(t.Until) {
		return errLate
	}
	return r.kernel.put(t.Address, link.Index)
}

// release removes addresses, when those who send packets to them have been told.
func (r *Runner) release(logger klog.Logger, releases []Release) {
	if len(releases) == 0 {
		return
	}
	var moves []Move
	for _, a := range releases {
		moves = append(moves, Move{Address: a.Address, Other: a.To, Why: a.Why, GoOn: a.GoOn, At: time.Now()})
		r.removing[a.Address] = true
	}
	r.moved(moves)
	r.again = time.Time{}
	r.remove(logger)
}

// remove removes the addresses that were released, also those that could not be removed before.
func (r *Runner) remove(logger klog.Logger) {
	if len(r.removing) == 0 || time.Now().Before(r.again) {
		return
	}
	l, err := r.kernel.read()
	if err == nil {
		for _, ip := range sorted(r.removing) {
			if index, there := l.ours[ip]; there {
				if failed := r.kernel.remove(ip, index); failed != nil {
					err = failed
					continue
				}
			}
			delete(r.removing, ip)
		}
	}
	if err == nil {
		return
	}
	if r.again.IsZero() {
		logger.Error(err, "Cannot remove egress IPs that this node must not have any more; will retry, further failures are not logged", "addresses", sorted(r.removing))
	}
	r.again = time.Now().Add(removeAgain)
}

func (r *Runner) moved(moves []Move) {
	if len(moves) == 0 {
		return
	}
	for _, m := range moves {
		r.last[m.Address] = m
	}
	if r.config.Moved != nil {
		r.config.Moved(moves)
	}
}

// advertiseAndRepeat tells the network that addresses are here, now and again: what is told may be lost, also because a port
// of a switch that has just come up forwards nothing yet.
func (r *Runner) advertiseAndRepeat(logger klog.Logger, addresses []netip.Addr) {
	if len(addresses) == 0 {
		return
	}
	r.advertiseNow(logger, addresses)
	for _, after := range repeats {
		r.repeats = append(r.repeats, repeat{time.Now().Add(after), addresses})
	}
}

// advertiseNow tells the network that addresses are here.
func (r *Runner) advertiseNow(logger klog.Logger, addresses []netip.Addr) {
	if len(addresses) == 0 {
		return
	}
	l, err := r.kernel.read()
	if err != nil {
		logger.Error(err, "Cannot advertise egress IPs on the network; will retry", "addresses", addresses)
		return
	}
	for link, group := range l.byOwn(addresses) {
		if err := neighbor.Advertise(link, group); err != nil {
			logger.V(2).Info("Cannot advertise egress IPs on the network; will retry", "addresses", group, "err", err)
		}
	}
}

// advertiseAgain repeats the advertisements that are due.
func (r *Runner) advertiseAgain(logger klog.Logger) {
	now := time.Now()
	var due []netip.Addr
	r.repeats = slices.DeleteFunc(r.repeats, func(one repeat) bool {
		if one.at.After(now) {
			return false
		}
		due = append(due, one.addresses...)
		return true
	})
	if !now.Before(r.advertise) {
		r.advertise = now.Add(advertiseAgain)
		due = sorted(r.member.State().Held)
	}
	slices.SortFunc(due, netip.Addr.Compare)
	r.advertiseNow(logger, slices.Compact(due))
}
