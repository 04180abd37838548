package plan

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Planner keeps the plan of one IP family while what it depends on changes, each time at a cost
// that follows from what changes, not from how much else there is. After an Update its plan is
// the one that Build makes of all that was set. It is for one goroutine at a time.
type Planner struct {
	podAt  func(namespace string, addr netip.Addr) Pod
	choose chooser

	surroundings *surroundings
	networks     kernel.Networks
	// updated are those of the last Update.
	updated kernel.Networks

	services map[Service]*service
	// namespaces has them by namespace.
	namespaces map[string]map[*service]bool
	// addresses are those that Services have.
	addresses map[netip.Addr]*address
	// egressIPs are those of addresses that their owners claim, sorted those as a list; nil if it has to be made anew.
	egressIPs map[netip.Addr]bool
	sorted    []netip.Addr
	pods      map[netip.Addr]*pod
	// uses counts the bindings of each egress IP.
	uses    map[netip.Addr]int
	numbers Numbers

	// What the next Update has to judge.
	dirtyAddresses []*address
	dirtyClaims    map[*service]bool
	dirtyPods      map[netip.Addr]bool
	dirtyNetworks  bool
	// revision grows with each Update that judges a pod or a claim.
	revision uint64
	// change is what the next Update returns, as far as it is known.
	change Change
}

// Numbers counts what a plan has.
type Numbers struct {
	Claims, Bindings, EgressIPs int
	// Refusals are counted by reason; a reason without one may be missing.
	Refusals map[Reason]int
}

// Change is what an Update has changed. Slices are sorted as in a Plan.
type Change struct {
	// Added and Removed are bindings. One whose egress IP or Service changed is in both.
	Added, Removed []Binding
	// Refused are the refusals that are new, Lifted those that hold no longer.
	Refused, Lifted []Refusal
	// Services are those that were set or deleted, whether or not anything follows from it.
	Services map[Service]bool
	// Networks are the plan's now; NetworksChanged tells whether they were others before.
	Networks        kernel.Networks
	NetworksChanged bool
}

// InKernel returns what c means for the kernel. A binding that another Service gives is none there.
func (c Change) InKernel() kernel.Change {
	change := kernel.Change{Networks: c.Networks, NetworksChanged: c.NetworksChanged}
	change.Added, change.Removed = kernel.Diff(InKernel(c.Removed), InKernel(c.Added))
	return change
}

// service is what a Service takes part with.
type service struct {
	name    Service
	created time.Time
	// holds has it as the holder of each of its addresses, whose lists point to these.
	holds []holder
	// claim has no endpoints; nil if there is none. granted has a claim on each of its egress IPs that is granted, refused why the
	// others are refused.
	claim   *Claim
	granted []Claim
	refused []Refusal
	// endpoints are those of its EndpointSlices and those that are predicted, by address.
	endpoints map[netip.Addr][]counted
}

// counted is an endpoint with the number of EndpointSlices that have it. A prediction counts as one.
type counted struct {
	Endpoint
	slices int
}

func (s *service) compare(o *service) int {
	if c := s.created.Compare(o.created); c != 0 {
		return c
	}
	return compareServices(s.name, o.name)
}

// pod is an address that endpoints of Services have.
type pod struct {
	services []*service
	bindings []Binding
	refusals []Refusal
	// picked are the egress IPs that were chosen, of Services with several.
	picked map[picked]bool
}

// NewPlanner returns a Planner with nothing to plan. For an endpoint that names no pod it calls podAt, which returns the pod that other
// EndpointSlices of the namespace name at the address. For a Service with several granted egress IPs it calls choose, which returns the
// one that an endpoint leaves from, as [Choices.Of] does.
func NewPlanner(podAt func(namespace string, addr netip.Addr) Pod, choose func(Service, Endpoint, []netip.Addr) (netip.Addr, bool)) *Planner {
	p := &Planner{
		podAt: podAt, choose: choose,
		surroundings: newSurroundings(Input{}),
		services:     map[Service]*service{},
		namespaces:   map[string]map[*service]bool{},
		addresses:    map[netip.Addr]*address{},
		egressIPs:    map[netip.Addr]bool{},
		pods:         map[netip.Addr]*pod{}, uses: map[netip.Addr]int{},
		numbers: Numbers{Refusals: map[Reason]int{}},
	}
	p.forgetDirt()
	return p
}

// forgetDirt makes the maps anew: one that was large once would cost that much to clear.
func (p *Planner) forgetDirt() {
	p.dirtyAddresses, p.dirtyClaims, p.dirtyPods = nil, map[*service]bool{}, map[netip.Addr]bool{}
}

// SetSurroundings takes all of in but for its Attachments, Holdings and Claims. Everything is judged anew.
func (p *Planner) SetSurroundings(in Input) {
	attachments := p.surroundings.attachments
	p.surroundings = newSurroundings(in)
	p.surroundings.attachments = attachments
	p.dirtyNetworks = true
	for _, a := range p.addresses {
		p.judgeLater(a)
	}
	for _, s := range p.services {
		p.dirtyClaims[s] = true
	}
	for pod := range p.pods {
		p.dirtyPods[pod] = true
	}
}

// SetService takes what a Service holds and claims; claim is nil if it claims nothing, and its
// Endpoints do not count. The endpoints that were set for the Service stay.
func (p *Planner) SetService(holding Holding, claim *Claim) {
	s := p.services[holding.Service]
	if s == nil {
		s = &service{name: holding.Service, endpoints: map[netip.Addr][]counted{}}
		p.services[holding.Service] = s
		p.inNamespace(s.name.Namespace)[s] = true
	}
	p.countClaims(s, claim)
	p.withdraw(s)
	p.predictAll(s, s.claim, claim)
	s.created, s.claim = holding.Created, claim
	p.hold(s, holding.Addresses)
	p.touch(s)
}

// hold makes a Service a holder of these addresses and of its egress IP.
func (p *Planner) hold(s *service, addresses []Address) {
	has := len(addresses)
	s.holds = make([]holder, 0, has+1)
	if s.claim != nil && s.claim.EgressIP.IsValid() {
		addresses = slices.Concat(addresses, s.claim.Addresses())
	}
	for i, held := range addresses {
		s.holds = append(s.holds, holder{service: s, address: p.addressOf(held.IP), held: held, claims: i >= has})
	}
	for i := range s.holds {
		s.holds[i].link()
		p.judgeLater(s.holds[i].address)
	}
}

func (p *Planner) addressOf(ip netip.Addr) *address {
	a := p.addresses[ip]
	if a == nil {
		a = &address{ip: ip}
		p.addresses[ip] = a
	}
	return a
}

// judgeLater has the next Update judge an address.
func (p *Planner) judgeLater(a *address) {
	if !a.dirty {
		a.dirty, p.dirtyAddresses = true, append(p.dirtyAddresses, a)
	}
}

func (p *Planner) countClaims(s *service, claim *Claim) {
	if s.claim != nil {
		p.numbers.Claims--
	}
	if claim != nil {
		p.numbers.Claims++
	}
}

// withdraw takes a Service from the addresses that it holds.
func (p *Planner) withdraw(s *service) {
	for i := range s.holds {
		s.holds[i].unlink()
		p.judgeLater(s.holds[i].address)
	}
	s.holds = nil
}

// without returns list, changed, without s.
func without(list []*service, s *service) []*service {
	return slices.DeleteFunc(list, func(other *service) bool { return other == s })
}

// touch notes a Service, and has its claim and all of its pods judged anew.
func (p *Planner) touch(s *service) {
	p.dirtyClaims[s] = true
	if p.change.Services == nil {
		p.change.Services = map[Service]bool{}
	}
	p.change.Services[s.name] = true
	for pod := range s.endpoints {
		p.dirtyPods[pod] = true
	}
}

// DeleteService forgets a Service and its endpoints.
func (p *Planner) DeleteService(name Service) {
	s := p.services[name]
	if s == nil {
		return
	}
	p.countClaims(s, nil)
	p.withdraw(s)
	p.touch(s)
	for addr := range s.endpoints {
		p.pods[addr].services = without(p.pods[addr].services, s)
	}
	s.claim, s.granted, s.endpoints = nil, nil, nil
	delete(p.services, name)
	if delete(p.namespaces[name.Namespace], s); len(p.namespaces[name.Namespace]) == 0 {
		delete(p.namespaces, name.Namespace)
	}
}

// ReplaceEndpoints takes what an EndpointSlice of a Service has and what it had before, both
// sorted and without duplicates. It has no meaning for a Service that is not set.
func (p *Planner) ReplaceEndpoints(name Service, before, after []Endpoint) {
	s := p.services[name]
	if s == nil {
		return
	}
	added, removed := diff(nil, nil, before, after, Endpoint.Compare)
	for _, e := range added {
		p.countEndpoint(s, e, 1)
	}
	for _, e := range removed {
		p.countEndpoint(s, e, -1)
	}
}

func (p *Planner) countEndpoint(s *service, e Endpoint, by int) {
	list := s.endpoints[e.Addr]
	i := slices.IndexFunc(list, func(c counted) bool { return c.Endpoint == e })
	if i < 0 {
		i, list = len(list), append(list, counted{Endpoint: e})
	}
	if list[i].slices += by; list[i].slices == 0 {
		list = slices.Delete(list, i, i+1)
	}
	p.dirtyPods[e.Addr] = true
	if len(list) == 0 {
		delete(s.endpoints, e.Addr)
		p.pods[e.Addr].services = without(p.pods[e.Addr].services, s)
		return
	}
	s.endpoints[e.Addr] = list
	known := p.pods[e.Addr]
	if known == nil {
		known = &pod{}
		p.pods[e.Addr] = known
	}
	if !slices.Contains(known.services, s) {
		known.services = append(known.services, s)
	}
}

// Renamed says that podAt may give another pod for an address, and tells whether that matters.
func (p *Planner) Renamed(addr netip.Addr) (matters bool) {
	known := p.pods[addr]
	if known == nil {
		return false
	}
	for _, s := range known.services {
		if slices.ContainsFunc(s.endpoints[addr], func(e counted) bool { return e.Pod.Namespace == "" }) {
			p.dirtyPods[addr] = true
			return true
		}
	}
	return false
}

// EgressIPs returns the addresses that Services claim and may have, whether or not the claims have faults of their own, sorted: see "Who owns an
// address". It is up to date without an Update, at a cost that follows from what has changed. The list must not be changed.
func (p *Planner) EgressIPs() []netip.Addr {
	p.judgeAddresses()
	if p.sorted == nil {
		p.sorted = slices.SortedFunc(maps.Keys(p.egressIPs), netip.Addr.Compare)
	}
	return p.sorted
}

// Has tells whether an endpoint has an address.
func (p *Planner) Has(addr netip.Addr) bool { return p.pods[addr] != nil }

// Chosen says that choose may give other egress IPs for an address, and tells whether that matters.
func (p *Planner) Chosen(addr netip.Addr) (matters bool) {
	if !p.Has(addr) {
		return false
	}
	p.dirtyPods[addr] = true
	return true
}

// Picked tells whether choose gave an egress IP of a Service for an address at the last Update.
func (p *Planner) Picked(service Service, addr, egressIP netip.Addr) bool {
	known := p.pods[addr]
	return known != nil && known.picked[picked{service, egressIP}]
}

// Update brings the plan up to date and returns what that changed.
func (p *Planner) Update() Change {
	p.Judge()
	change := p.change
	change.Networks, p.updated = p.networks, p.networks
	p.change = Change{}
	slices.SortFunc(change.Added, CompareBindings)
	slices.SortFunc(change.Removed, CompareBindings)
	slices.SortFunc(change.Refused, CompareRefusals)
	slices.SortFunc(change.Lifted, CompareRefusals)
	// What was judged several times may have come and gone, and a Service that was deleted and made anew may be refused as before.
	change.Added, change.Removed = diff(nil, nil, change.Removed, change.Added, CompareBindings)
	change.Refused, change.Lifted = diff(nil, nil, change.Lifted, change.Refused, CompareRefusals)
	return change
}

// Judge brings the plan up to date. What that changes, the next Update returns as well.
func (p *Planner) Judge() {
	p.sortNetworks()
	p.judgeAddresses()
	for s := range p.dirtyClaims {
		p.judgeClaim(s)
	}
	if len(p.dirtyPods)+len(p.dirtyClaims) > 0 {
		p.revision++
	}
	for addr := range p.dirtyPods {
		p.judgePod(addr)
	}
	p.forgetDirt()
}

func (p *Planner) sortNetworks() {
	if !p.dirtyNetworks {
		return
	}
	p.dirtyNetworks = false
	networks := p.surroundings.networks()
	p.change.NetworksChanged = !networks.Equal(p.updated)
	p.networks = networks
}

func (p *Planner) judgeAddresses() {
	for _, a := range p.dirtyAddresses {
		p.judgeAddress(a)
	}
	p.dirtyAddresses = nil
}

// judgeAddress finds the owner of an address, and has the claims on it judged if it is another. An
// address that no Service has is forgotten.
func (p *Planner) judgeAddress(a *address) {
	a.dirty = false
	if a.first == nil {
		delete(p.addresses, a.ip)
	}
	owner := a.oldest(p.surroundings)
	if claimed := owner != nil && a.claimedBy(owner.name.Namespace, p.surroundings); claimed != p.egressIPs[a.ip] {
		if p.sorted = nil; claimed {
			p.egressIPs[a.ip] = true
		} else {
			delete(p.egressIPs, a.ip)
		}
	}
	if owner == a.owner {
		return
	}
	a.owner = owner
	for h := a.first; h != nil; h = h.next {
		if claim := h.service.claim; claim != nil && claim.Claims(func(ip netip.Addr) bool { return ip == a.ip }) {
			p.dirtyClaims[h.service] = true
		}
	}
}

// owner returns the Service that makes its namespace the owner of an address; zero if nobody owns it.
func (p *Planner) owner(ip netip.Addr) Service {
	if a := p.addresses[ip]; a != nil && a.owner != nil {
		return a.owner.name
	}
	return Service{}
}

// judgeClaim has the pods of a Service judged if other egress IPs of its are granted than before.
func (p *Planner) judgeClaim(s *service) {
	var granted []Claim
	var refused []Refusal
	if s.claim != nil {
		granted, refused = p.surroundings.judgeAll(s.claim, p.owner)
	}
	p.replaceRefusals(s.refused, refused)
	before := s.granted
	s.granted, s.refused = granted, refused
	if !slices.EqualFunc(before, granted, func(a, b Claim) bool { return a.EgressIP == b.EgressIP }) {
		for addr := range s.endpoints {
			p.dirtyPods[addr] = true
		}
	}
}

// judgePod finds who binds the pod at an address, by the same rules as Build.
func (p *Planner) judgePod(addr netip.Addr) {
	known := p.pods[addr]
	if known == nil {
		return
	}
	var g grants
	slices.SortFunc(known.services, (*service).compare)
	for _, s := range known.services {
		if len(s.granted) == 0 {
			continue
		}
		var endpoints []Endpoint
		for _, e := range s.endpoints[addr] {
			if endpoint := p.named(s.name.Namespace, e.Endpoint); s.claim.Several() {
				endpoints = append(endpoints, endpoint)
			} else {
				g.give(p.surroundings, &s.granted[0], endpoint)
			}
		}
		if len(endpoints) > 0 {
			g.giveChosen(p.surroundings, offer{s.claim, s.granted}, p.choose, endpoints)
		}
	}
	slices.SortFunc(g.bindings, CompareBindings)
	refusals := sortedRefusals(g.refusals)
	p.replaceBindings(known.bindings, g.bindings)
	p.replaceRefusals(known.refusals, refusals)
	known.bindings, known.refusals, known.picked = g.bindings, refusals, g.picked
	if len(known.services) == 0 {
		delete(p.pods, addr)
	}
}

// named returns an endpoint of a namespace with the pod that is attached there, or else the one that other
// EndpointSlices name for it, if it names none.
func (p *Planner) named(namespace string, e Endpoint) Endpoint {
	if e = p.surroundings.attachments[e.Addr].named(e); e.Pod.Namespace == "" {
		e.Pod = p.podAt(namespace, e.Addr)
	}
	return e
}

// replaceBindings notes how those of a pod changed.
func (p *Planner) replaceBindings(before, after []Binding) {
	had, lost := len(p.change.Added), len(p.change.Removed)
	p.change.Added, p.change.Removed = diff(p.change.Added, p.change.Removed, before, after, CompareBindings)
	added, removed := p.change.Added[had:], p.change.Removed[lost:]
	for _, b := range removed {
		if p.uses[b.EgressIP]--; p.uses[b.EgressIP] == 0 {
			delete(p.uses, b.EgressIP)
		}
	}
	for _, b := range added {
		p.uses[b.EgressIP]++
	}
	p.numbers.Bindings += len(added) - len(removed)
}

// replaceRefusals notes how those of a pod or a claim changed. Both are sorted.
func (p *Planner) replaceRefusals(before, after []Refusal) {
	refused, lifted := diff(nil, nil, before, after, CompareRefusals)
	for _, r := range lifted {
		p.numbers.Refusals[r.Reason]--
	}
	for _, r := range refused {
		p.numbers.Refusals[r.Reason]++
	}
	p.change.Refused, p.change.Lifted = append(p.change.Refused, refused...), append(p.change.Lifted, lifted...)
}

// Plan returns the plan of the last Update, at a cost that follows from its size. Refusals are those that were judged last.
func (p *Planner) Plan() Plan {
	plan := Plan{Networks: p.updated, Bindings: make([]Binding, 0, p.numbers.Bindings)}
	var refusals []Refusal
	for _, pod := range p.pods {
		plan.Bindings = append(plan.Bindings, pod.bindings...)
		refusals = append(refusals, pod.refusals...)
	}
	for _, s := range p.services {
		refusals = append(refusals, s.refused...)
	}
	plan.Bindings = p.asUpdated(plan.Bindings, func(Binding) bool { return true })
	plan.Refusals = sortedRefusals(refusals)
	return plan
}

// asUpdated returns what bindings, as they were judged last, were at the last Update, sorted; counts tells which ones the caller asks for. What
// the next Update returns as a change must not have been in the plan before.
func (p *Planner) asUpdated(bindings []Binding, counts func(Binding) bool) []Binding {
	slices.SortFunc(bindings, CompareBindings)
	if len(p.change.Added)+len(p.change.Removed) == 0 { // but for a Judge since then
		return bindings
	}
	changed := func(list []Binding) []Binding {
		list = slices.DeleteFunc(slices.Clone(list), func(b Binding) bool { return !counts(b) })
		slices.SortFunc(list, CompareBindings)
		return list
	}
	added, removed := diff(nil, nil, changed(p.change.Removed), changed(p.change.Added), CompareBindings)
	_, rest := diff(nil, nil, bindings, added, CompareBindings)
	rest = append(rest, removed...)
	slices.SortFunc(rest, CompareBindings)
	return rest
}

// Desired returns what the kernel should hold by the last Update, for these pods alone if pods is
// not nil. It costs what it returns, and what was judged since.
func (p *Planner) Desired(pods map[netip.Addr]bool) kernel.Desired {
	if pods == nil {
		return p.Plan().Desired()
	}
	var bindings []Binding
	for addr := range pods {
		if known := p.pods[addr]; known != nil {
			bindings = append(bindings, known.bindings...)
		}
	}
	bindings = p.asUpdated(bindings, func(b Binding) bool { return pods[b.Pod] })
	return Plan{Networks: p.updated, Bindings: bindings}.Desired()
}

// Places are the nodes that endpoints of a Service at an address name; empty for those that name none.
func (p *Planner) Places(name Service, addr netip.Addr) (nodes []string) {
	if s := p.services[name]; s != nil {
		for _, e := range s.endpoints[addr] {
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}

// Revision returns a number that is another one when an Update may have changed bindings, homes, or what is granted. It is
// never 0 then.
func (p *Planner) Revision() uint64 { return p.revision }

// Homes returns the names of the nodes on which bound pods run. It leaves out those of which the endpoints do not say it, or
// say several. It costs as much as there are pods.
func (p *Planner) Homes() map[netip.Addr]string {
	homes := make(map[netip.Addr]string, len(p.pods))
	for addr, pod := range p.pods {
		if len(pod.bindings) == 0 {
			continue
		}
		if home := p.home(addr, pod.bindings); home != "" {
			homes[addr] = home
		}
	}
	return homes
}

// Home returns the name of the node on which a bound pod runs; empty if the endpoints do not say it, or say several.
func (p *Planner) Home(addr netip.Addr) string {
	if pod := p.pods[addr]; pod != nil {
		return p.home(addr, pod.bindings)
	}
	return ""
}

// home returns the only node that endpoints of the Services of bindings name; empty if there are several, or an endpoint
// without.
func (p *Planner) home(addr netip.Addr, bindings []Binding) (home string) {
	for i, b := range bindings {
		if i > 0 && b.Service == bindings[i-1].Service {
			continue
		}
		s := p.services[b.Service]
		if s == nil {
			continue // it was deleted since the last Update
		}
		for _, e := range s.endpoints[addr] {
			if e.Node == "" || home != "" && e.Node != home {
				return ""
			}
			home = e.Node
		}
	}
	return home
}

// PodOf returns the pod at an address to which a Service gives an egress IP; zero if nothing names it.
func (p *Planner) PodOf(name Service, addr netip.Addr) Pod {
	s := p.services[name]
	if s == nil {
		return Pod{}
	}
	for _, e := range s.endpoints[addr] {
		if pod := p.named(name.Namespace, e.Endpoint).Pod; pod.Namespace == name.Namespace {
			return pod
		}
	}
	return Pod{}
}

// RefusalsOf returns what a Service was refused at the last Update, sorted.
func (p *Planner) RefusalsOf(name Service) []Refusal {
	s := p.services[name]
	if s == nil {
		return nil
	}
	refusals := slices.Clone(s.refused)
	for addr := range s.endpoints { // thousands of Services may have the same pods
		ofPod := p.pods[addr].refusals
		from, _ := slices.BinarySearchFunc(ofPod, name, func(r Refusal, name Service) int { return compareServices(r.Service, name) })
		for ; from < len(ofPod) && ofPod[from].Service == name; from++ {
			refusals = append(refusals, ofPod[from])
		}
	}
	return sortedRefusals(refusals)
}

// GrantsSome tells whether an egress IP of a Service is granted.
func (p *Planner) GrantsSome(name Service) bool {
	s := p.services[name]
	return s != nil && len(s.granted) > 0
}

// Granted returns the egress IPs in these networks that claims are granted. It costs as much as there
// are Services. Siblings are, of each of them, the others that a Service has with it, sorted.
func (p *Planner) Granted(networks []netip.Prefix) (granted map[netip.Addr]bool, siblings map[netip.Addr][]netip.Addr) {
	granted, siblings = map[netip.Addr]bool{}, map[netip.Addr][]netip.Addr{}
	for _, s := range p.services {
		var ips []netip.Addr
		for _, claim := range s.granted {
			if ip := claim.EgressIP; slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) }) {
				granted[ip], ips = true, append(ips, ip)
			}
		}
		for _, ip := range ips {
			for _, other := range ips {
				if ip != other {
					siblings[ip] = append(siblings[ip], other)
				}
			}
		}
	}
	for ip, others := range siblings {
		slices.SortFunc(others, netip.Addr.Compare)
		siblings[ip] = slices.Compact(others)
	}
	return granted, siblings
}

// BindingsOf returns those of an address as of the last Update, or Judge. The list must not be changed.
func (p *Planner) BindingsOf(addr netip.Addr) []Binding {
	if known := p.pods[addr]; known != nil {
		return known.bindings
	}
	return nil
}

// Numbers returns those of the last Update.
func (p *Planner) Numbers() Numbers {
	numbers := p.numbers
	numbers.EgressIPs, numbers.Refusals = len(p.uses), maps.Clone(p.numbers.Refusals)
	return numbers
}
