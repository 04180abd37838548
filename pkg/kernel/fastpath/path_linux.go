package fastpath

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Path is the fast path of the network namespace of those threads that call its methods. These may be called by several goroutines.
// What they cannot do is logged, and told by [Path.Status]: packets take the slow path then.
type Path struct {
	logger klog.Logger
	all    bool

	mu       sync.Mutex
	objects  programsObjects
	tables   tables
	hooks    hooks
	families map[kernel.Family]*family
	// places are the interfaces behind which pods are, and ways what is in the kernel, by the pods' addresses.
	places map[netip.Addr]int
	ways   map[netip.Addr]way
	// failed are the addresses whose ways could not be written.
	failed map[netip.Addr]bool
	// given are the addresses of this node that have been egress IPs here: nobody shares one before the flows that got it have gone.
	given  map[netip.Addr]bool
	around around
	fault  failure.Streak
}

// around is what the kernel says of this node.
type around struct {
	// local are the node's own addresses; none before they have been read.
	local []netip.Prefix
	// at are the interfaces that addresses are on, and shared those of the addresses that masquerading may give.
	at     map[netip.Addr]int
	shared map[netip.Addr]bool
	// ethernet are the interfaces whose packets have an Ethernet header.
	ethernet map[int]bool
	// ipsec: it has policies of IPsec.
	ipsec bool
}

// loopback is the index of every network namespace's loopback interface (LOOPBACK_IFINDEX): answers to its addresses come by another one.
const loopback = 1

// family is what is known of one.
type family struct {
	name kernel.Family
	ways map[Pod]int
	// limited are the pods whose ways have been limited and not extended since.
	limited map[Pod]bool
	Surroundings
	// told is why no packet takes the fast path, as the log says.
	told string
	// routes are those to nodes, as they were when these were first told of, or when all was written.
	routes map[netip.Addr]route
}

// Status is the current state.
type Status struct {
	// Fault is what went wrong last; nil if nothing did since the last look.
	Fault error
	// Unusable says why no packet of an IP family takes the fast path.
	Unusable map[kernel.Family]string
	// Refused are the names of interfaces that have a tc filter of somebody else, sorted: what comes by them takes the slow path.
	Refused []string
	// Pods counts the addresses of pods whose packets take the fast path.
	Pods map[kernel.Family]int
}

// Load loads the programs. With all they are for bound pods' packets that leave from the pods' own node, too. The error says why this
// kernel cannot.
func Load(logger klog.Logger, all bool) (*Path, error) {
	p := &Path{logger: logger, all: all, families: map[kernel.Family]*family{}, ways: map[netip.Addr]way{}, failed: map[netip.Addr]bool{}, given: map[netip.Addr]bool{}}
	if err := load(&p.objects); err != nil {
		return nil, err
	}
	p.tables, p.hooks = tablesOf(&p.objects), newHooks()
	return p, nil
}

// All tells whether bound pods' packets that leave from the pods' own node are to take the fast path, too.
func (p *Path) All() bool { return p.all }

// Close takes everything out of the kernel.
func (p *Path) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.hooks.leave(), p.objects.Close())
}

// Status may be called at any time.
func (p *Path) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Fault: p.fault.Err(), Unusable: map[kernel.Family]string{}, Refused: slices.Sorted(maps.Values(p.hooks.refused)), Pods: map[kernel.Family]int{}}
	for name, f := range p.families {
		if why := p.unusable(f); why != "" {
			s.Unusable[name] = why
		}
	}
	for address, w := range p.ways {
		if p.hooks.at(w.at) && s.Unusable[kernel.FamilyOf(address)] == "" {
			s.Pods[kernel.FamilyOf(address)]++
		}
	}
	return s
}

// Taken returns by which protocols the established flows of pods take the fast path, by the pods' addresses.
func (p *Path) Taken() map[netip.Addr][]kernel.Protocol {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := map[netip.Addr][]kernel.Protocol{}
	for address, w := range p.ways {
		if f := p.families[kernel.FamilyOf(address)]; p.hooks.at(w.at) && p.unusable(f) == "" {
			taken[address] = w.protocols()
		}
	}
	return taken
}

// Place says behind which interfaces pods are, by the interfaces' numbers. It looks at this node's own addresses, at its policies of IPsec and
// at others' tc filters, too.
func (p *Path) Place(places map[netip.Addr]int) {
	now, err := look()
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.places
	p.places = places
	for address, at := range before {
		if places[address] != at {
			err = errors.Join(err, p.lead(address))
		}
	}
	err = errors.Join(err, p.surround(now))
	for address, at := range places {
		if before[address] != at {
			err = errors.Join(err, p.lead(address))
		}
	}
	for address := range maps.Clone(p.failed) {
		err = errors.Join(err, p.lead(address))
	}
	p.tell(errors.Join(err, p.attach(true)))
	for _, f := range p.families {
		p.tellUnusable(f)
	}
}

// Limit takes from the fast path what a change does not leave as it is. It comes before the rest of the kernel follows the change.
func (p *Path) Limit(name kernel.Family, c Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.families[name]
	if f == nil {
		return // nothing has been let in
	}
	var err error
	for _, pod := range c.changed(f.ways) {
		delete(f.ways, pod)
		f.limited[pod] = true
		err = errors.Join(err, p.lead(pod.Address))
	}
	if c.Surroundings != nil && !f.Equal(*c.Surroundings) {
		f.Surroundings = f.narrowed(*c.Surroundings)
		err = errors.Join(err, p.write())
	}
	if err != nil {
		p.tell(errors.Join(err, p.tables.settings.shrink(nil))) // nothing takes the fast path until all could be written
	}
}

// Extend lets into the fast path what a change brings. It comes when the rest of the kernel has followed the change.
func (p *Path) Extend(name kernel.Family, c Change) {
	var now around
	var err error
	if c.Whole {
		now, err = look()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.families[name]
	if f == nil && c.Surroundings == nil {
		return // the whole has not been let in yet
	}
	if f == nil {
		f = &family{name: name, ways: map[Pod]int{}, limited: map[Pod]bool{}}
		p.families[name] = f
	}
	same := c.Surroundings == nil || f.Equal(*c.Surroundings)
	if !same {
		f.Surroundings = *c.Surroundings
	}
	if !same || c.Whole {
		f.findRoutes(c.Whole)
	}
	switch {
	case c.Whole:
		err = errors.Join(err, p.surround(now))
	case !same:
		err = p.write()
	}
	for address := range f.extend(c, p.places) {
		err = errors.Join(err, p.lead(address))
	}
	p.tellUnusable(f)
	if err = errors.Join(err, p.attach(false)); err != nil {
		p.tell(err)
	}
}

// extend takes the ways of a change, and returns the addresses of pods whose ways may be others now.
func (f *family) extend(c Change, places map[netip.Addr]int) map[netip.Addr]bool {
	pods := slices.Concat(c.Gone, slices.Collect(maps.Keys(c.Ways)))
	if c.Whole {
		pods = slices.AppendSeq(pods, maps.Keys(f.limited))
	}
	addresses := map[netip.Addr]bool{}
	for _, pod := range pods {
		addresses[pod.Address] = true
		delete(f.limited, pod)
	}
	maps.Copy(f.ways, c.Ways)
	if c.Whole {
		for address := range places {
			addresses[address] = true
		}
	}
	return addresses
}

// look reads what the kernel says of this node.
func look() (now around, err error) {
	if now.ipsec, err = hasIPsec(); err != nil {
		return around{}, err
	}
	err = now.readInterfaces()
	return now, err
}

// surround has the kernel hold what follows from what it says of this node. If that could not be read, nothing takes the fast path.
func (p *Path) surround(now around) error {
	p.around = now
	if len(now.local) > 0 {
		maps.DeleteFunc(p.given, func(egressIP netip.Addr, _ bool) bool { return now.at[egressIP] == 0 })
	}
	return p.write()
}

// tell notes what went wrong last, and logs it unless it is the same again.
func (p *Path) tell(err error) {
	if p.fault.Changes(err) && err != nil {
		p.logger.Error(err, "Packets may take the slow path, because the fast path cannot be kept up to date")
	}
}

// tellUnusable logs why no packet of a family takes the fast path, unless that is the same as before.
func (p *Path) tellUnusable(f *family) {
	why := p.unusable(f)
	if why != f.told && why != "" {
		p.logger.Info("Packets take the slow path", "ipFamily", f.name, "reason", why)
	}
	f.told = why
}

// unusable says why no packet of a family takes the fast path; "" if they do.
func (p *Path) unusable(f *family) string {
	if len(p.around.local) == 0 {
		return "this node's own addresses are not known"
	}
	if p.around.ipsec {
		return "this node has policies of IPsec, which a packet on the fast path would not meet (ip xfrm policy)"
	}
	if other := p.families[kernel.IPv4]; f.name == kernel.IPv6 && other != nil && (other.Uplink.Index != f.Uplink.Index || other.Uplink.Tunnel != f.Uplink.Tunnel) {
		return "IPv4 leads to the other nodes by another interface"
	}
	if f.Uplink.Index == 0 {
		return "the interface that leads to the other nodes is not known"
	}
	if !p.around.ethernet[f.Uplink.Index] {
		return "the interface that leads to the other nodes has no Ethernet headers"
	}
	return ""
}

// usable are the families whose packets take the fast path.
func (p *Path) usable() (usable []*family) {
	for _, f := range p.families {
		if p.unusable(f) == "" {
			usable = append(usable, f)
		}
	}
	return usable
}

// lead writes the way of a pod's address.
func (p *Path) lead(address netip.Addr) (err error) {
	var want way
	if f := p.families[kernel.FamilyOf(address)]; f != nil {
		want = wayOf(f.ways, f.limited, p.places, address)
	}
	if p.failed[address] {
		err = p.forget(address)
	}
	held := p.ways[address]
	if held == want && err == nil {
		delete(p.failed, address)
		return nil
	}
	for protocol, place := range map[uint32]int{unix.IPPROTO_TCP: want.tcp, unix.IPPROTO_UDP: want.udp} {
		pod := func(at int) programsPod {
			return programsPod{Interface: uint32(at), Protocol: protocol, Address: addressOf(address)}
		}
		err = errors.Join(err, p.tables.pods.set(pod(held.at), 0, false))
		for _, at := range []int{want.at, 0} {
			err = errors.Join(err, p.tables.pods.set(pod(at), uint32(max(place, 1)-1), place > 0))
		}
	}
	if err != nil {
		p.failed[address] = true
		return fmt.Errorf("write the way of the packets of pod %s: %w", address, errors.Join(err, p.forget(address)))
	}
	delete(p.failed, address)
	p.ways[address] = want
	if want == (way{}) {
		delete(p.ways, address)
	}
	p.hooks.use(held.at, -1)
	p.hooks.use(want.at, 1)
	return nil
}

// forget takes all that there is of a pod's address.
func (p *Path) forget(address netip.Addr) (err error) {
	p.hooks.use(p.ways[address].at, -1)
	delete(p.ways, address)
	for pod := range maps.Clone(p.tables.pods.held) {
		if pod.Address == addressOf(address) {
			err = errors.Join(err, p.tables.pods.set(pod, 0, false))
		}
	}
	return err
}

// write has the kernel hold the surroundings: what keeps packets from the fast path first.
func (p *Path) write() error {
	w := wantedTables{
		excluded: map[programsAddress]uint32{}, exclusions: map[programsNetwork]uint32{}, outsides: map[programsAddress]uint32{}, senders: map[programsSender]programsHardware{},
		holders: map[uint32]programsHolder{}, settings: map[uint32]programsSettings{},
	}
	for _, prefix := range p.around.local {
		w.exclude(prefix)
	}
	var err error
	for _, f := range p.usable() {
		err = errors.Join(err, w.add(f, p.all))
		maps.Copy(p.given, f.EgressIPs)
		maps.Copy(p.given, f.Elsewhere)
	}
	for _, f := range p.usable() {
		w.share(f.name, p.around, p.given)
	}
	return errors.Join(err, p.tables.write(w))
}

// attach has the programs be where packets are for them. With again it looks whether somebody else's tc filters have come or gone.
func (p *Path) attach(again bool) error {
	uplinks := map[int]*ebpf.Program{}
	for _, f := range p.usable() {
		for egressIP := range f.EgressIPs {
			if at := p.around.at[egressIP]; at > loopback && p.around.ethernet[at] {
				uplinks[at] = p.objects.FromOutside
			}
		}
		uplinks[f.Uplink.Index] = p.objects.FromNeighbour
		if f.Uplink.Tunnel > 0 {
			uplinks[f.Uplink.Index] = p.objects.FromNode
		}
		if f.Uplink.Tunnel > 0 && len(f.EgressIPs) > 0 && len(f.Senders) > 0 {
			uplinks[f.Uplink.Tunnel] = p.objects.FromTunnel
		}
	}
	return p.hooks.follow(uplinks, p.objects.FromPod, again)
}
