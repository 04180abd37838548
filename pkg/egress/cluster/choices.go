package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Where a Service has several egress IPs, the node of each of its pods chooses one of them when it first sees the pod, says so in its
// Lease, and abides by it as long as the Service has the address. The nodes that hold the addresses follow what it says.

// choices are which egress IPs pods leave from whose Services have several.
type choices struct {
	// told are those that nodes tell, as far as they are known, and this node's own.
	told plan.Choices
	// leased are the nodes whose Leases tell any.
	leased map[string]bool
	// assumed are what pods of other nodes keep that had it when it was their Service's only egress IP, until their nodes tell.
	assumed map[types.NamespacedName]map[podOn]*assumption
	// holders are the nodes that have egress IPs of such Services, by these.
	holders map[v1.IPFamily]map[netip.Addr]string
	// open are this node's choices that are not final.
	open map[openPod]openChoice
	// own counts this node's choices of each pod and egress IP, and unused are those that no endpoint needs, since when.
	own    map[netip.Addr]map[netip.Addr]int
	unused map[openPod]time.Time
	// room is what this node's take, and waiting are the pods for which there was none, with the egress IP that each was to have.
	room    room
	waiting map[openPod]netip.Addr
	// published: this node has told its own, so what its Lease says is no news.
	published bool
}

// podOn is a pod's address on a node.
type podOn struct {
	node string
	pod  netip.Addr
}

// assumption is an egress IP, as long as so many endpoints of EndpointSlices need it.
type assumption struct {
	ip        netip.Addr
	endpoints int
}

// openPod is a pod of a Service.
type openPod struct {
	service plan.Service
	pod     netip.Addr
}

// openChoice is one that was made when no node held any of these: it is made again when all are held, or some time later. Or, if it is
// zonal, when one of them was held in another zone, and some were not held: it is made again as soon as one is held in the pod's zone.
type openChoice struct {
	among []netip.Addr
	zonal bool
	made  time.Time
}

const (
	// openFor is how long a choice is open.
	openFor = 10 * time.Second
	// unusedFor is how long one is kept that no endpoint needs: an EndpointSlice may be gone for a moment.
	unusedFor = 30 * time.Second
)

// roomForAll is how many bytes the choices may have, and roomForNamespace those for the pods of one namespace. An API server takes 256 KiB of
// annotations.
const roomForAll, roomForNamespace = 128 << 10, 32 << 10

// room counts the bytes of this node's choices in its Lease. It has a bound, as a tenant may write any number of EndpointSlices that name
// this node.
type room struct {
	all         int
	ofNamespace map[string]int
}

// has tells whether there is room for a choice.
func (r *room) has(service plan.Service, pod, ip netip.Addr) bool {
	size := sizeOf(service, pod, ip)
	return r.all+size <= roomForAll && r.ofNamespace[service.Namespace]+size <= roomForNamespace
}

// count takes note when a choice comes (by is 1) or goes (-1).
func (r *room) count(service plan.Service, pod, ip netip.Addr, by int) {
	size := by * sizeOf(service, pod, ip)
	r.all += size
	if r.ofNamespace[service.Namespace] += size; r.ofNamespace[service.Namespace] == 0 {
		delete(r.ofNamespace, service.Namespace)
	}
}

// sizeOf is how many bytes a choice has at most.
func sizeOf(service plan.Service, pod, ip netip.Addr) int {
	return len(`"/":{"":""},`) + len(service.Namespace) + len(service.Name) + len(pod.String()) + len(ip.String())
}

func newChoices() choices {
	return choices{
		told: plan.Choices{}, leased: map[string]bool{}, assumed: map[types.NamespacedName]map[podOn]*assumption{},
		holders: map[v1.IPFamily]map[netip.Addr]string{}, open: map[openPod]openChoice{},
		own: map[netip.Addr]map[netip.Addr]int{}, unused: map[openPod]time.Time{},
		room: room{ofNamespace: map[string]int{}}, waiting: map[openPod]netip.Addr{},
	}
}

// of returns which of some egress IPs of a Service an endpoint leaves from, as far as that is known.
func (c *choices) of(service plan.Service, e plan.Endpoint, among []netip.Addr) (ip netip.Addr, chosen bool) {
	if ip, chosen = c.assumedOf(service, e); chosen {
		return ip, slices.Contains(among, ip)
	}
	return c.told.Of(service, e, among)
}

// assumedOf returns what is assumed, if anything is.
func (c *choices) assumedOf(service plan.Service, e plan.Endpoint) (ip netip.Addr, assumed bool) {
	if len(c.assumed) == 0 {
		return netip.Addr{}, false // as mostly
	}
	a := c.assumed[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}][podOn{e.Node, e.Addr}]
	if a == nil {
		return netip.Addr{}, false
	}
	return a.ip, true
}

// may tells whether an endpoint of a Service with several egress IPs may leave from this one.
func (c *choices) may(service plan.Service, e plan.Endpoint, ip netip.Addr) bool {
	if has, assumed := c.assumedOf(service, e); assumed {
		return has == ip
	}
	return c.told.May(service, e, ip)
}

// choose returns which of some egress IPs of a Service an endpoint leaves from. For one on this node it chooses. A planner calls it, so
// the lock is held.
func (s *State) choose(service plan.Service, e plan.Endpoint, among []netip.Addr) (ip netip.Addr, chosen bool) {
	if open, is := s.choices.open[openPod{service, e.Addr}]; is {
		open.among = slices.Clone(among) // the Service may have got another one since
		s.choices.open[openPod{service, e.Addr}] = open
	}
	if ip, chosen = s.choices.of(service, e, among); chosen || e.Node != s.Config.NodeName || len(among) == 0 {
		return ip, chosen
	}
	held := s.choices.holders[FamilyOf(e.Addr)]
	ip = plan.Choose(cmp.Or(e.UID, e.Addr.String()), among, func(ip netip.Addr) int {
		if s.choices.own[e.Addr][ip] > 0 { // for another Service
			return another
		}
		return s.rank(held[ip])
	})
	some, all := s.choices.held(among)
	zonal := s.rank(held[ip]) == elsewhere && s.zone(s.Config.NodeName) != "" && s.choices.own[e.Addr][ip] == 0 && !all
	if !s.choices.put(e.Node, service, e.Addr, ip) {
		s.choices.waiting[openPod{service, e.Addr}] = ip
		return ip, false
	}
	delete(s.choices.waiting, openPod{service, e.Addr})
	if zonal || !some {
		s.choices.open[openPod{service, e.Addr}] = openChoice{slices.Clone(among), zonal, time.Now()}
	}
	return ip, true
}

// put notes what this node has chosen, and tells whether there was room.
func (c *choices) put(node string, service plan.Service, pod, ip netip.Addr) bool {
	c.drop(node, service, pod)
	if !c.room.has(service, pod, ip) {
		return false
	}
	c.count(service, pod, ip)
	if c.told[node] == nil {
		c.told[node] = plan.NodeChoices{}
	}
	kernel.Put(c.told[node], service.String(), pod, ip)
	return true
}

// held tells whether nodes hold some of these egress IPs, and all of them.
func (c *choices) held(among []netip.Addr) (some, all bool) {
	all = true
	for _, ip := range among {
		held := c.holders[FamilyOf(ip)][ip] != ""
		some, all = some || held, all && held
	}
	return some, all
}

// drop forgets what this node has chosen.
func (c *choices) drop(node string, service plan.Service, pod netip.Addr) {
	of := c.told[node][service.String()]
	ip, known := of[pod]
	if !known {
		return
	}
	c.room.count(service, pod, ip, -1)
	if c.own[pod][ip]--; c.own[pod][ip] == 0 {
		delete(c.own[pod], ip)
	}
	if len(c.own[pod]) == 0 {
		delete(c.own, pod)
	}
	delete(c.open, openPod{service, pod})
	delete(c.unused, openPod{service, pod})
	if delete(of, pod); len(of) == 0 {
		delete(c.told[node], service.String())
	}
}

// count counts one that this node has chosen.
func (c *choices) count(service plan.Service, pod, ip netip.Addr) {
	c.room.count(service, pod, ip, 1)
	kernel.Put(c.own, pod, ip, c.own[pod][ip]+1)
}

// LabelKeys are those of Nodes' labels that count.
func (c Config) LabelKeys() []string { return append(c.Pool.LabelKeys(), v1.LabelTopologyZone) }

// Ranks of an egress IP for a pod, the lowest first: nobody holds it; a node elsewhere does; one in the pod's zone does; the pod leaves from it
// by another Service already.
const (
	unheld = iota
	elsewhere
	inZone
	another
)

// rank says how much this node prefers the egress IPs of a holder, which is empty if there is none.
func (s *State) rank(holder string) int {
	switch zone := s.zone(s.Config.NodeName); {
	case holder == "":
		return unheld
	case zone != "" && s.zone(holder) == zone:
		return inZone
	}
	return elsewhere
}

// zone returns that of a node; empty if it is not known.
func (s *State) zone(node string) string {
	for _, n := range s.nodes[node] {
		return n.Zone
	}
	return ""
}

// SetHolders takes which nodes hold egress IPs of a family whose Services have several.
func (s *State) SetHolders(family v1.IPFamily, held map[netip.Addr]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.holders[family] = held
}

// NextChoice returns when a choice of a family is to be made again if nothing happens; zero for never.
func (s *State) NextChoice(family v1.IPFamily) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, open := range s.choices.open {
		if FamilyOf(of.pod) == family {
			next = holders.Earlier(next, open.made.Add(openFor))
		}
	}
	return next
}

// closeChoices makes choices of a family again that are open no longer. If no node holds any of the egress IPs, they stay: pods use them
// where they run, unless a holder is required.
func (s *State) closeChoices(family v1.IPFamily, now time.Time) {
	held := s.choices.holders[family]
	isInZone := func(ip netip.Addr) bool { return s.rank(held[ip]) == inZone }
	for of, open := range s.choices.open {
		near := open.zonal && slices.ContainsFunc(open.among, isInZone)
		some, all := s.choices.held(open.among)
		switch late := now.Sub(open.made) >= openFor; {
		case FamilyOf(of.pod) != family || !all && !late && !near:
		case near || !open.zonal && some:
			s.choices.drop(s.Config.NodeName, of.service, of.pod)
			s.planners[family].Chosen(of.pod)
		case !open.zonal && s.Config.Steering.Mode == holders.Required:
			s.choices.open[of] = openChoice{open.among, false, now}
		default:
			delete(s.choices.open, of)
		}
	}
}

// SetChoices takes what a node's Lease says that it has chosen, and tells whether plans may change. Of this node's own, only what an
// earlier process has told counts.
func (s *State) SetChoices(node string, told plan.NodeChoices) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.leased[node] = true
	if node == s.Config.NodeName && s.choices.published {
		return false
	}
	return s.replaceChoices(node, told)
}

// TellsOther tells whether a Lease of this node says something else than this node has told.
func (s *State) TellsOther(told plan.NodeChoices) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choices.published && !maps.EqualFunc(told, s.choices.told[s.Config.NodeName], maps.Equal)
}

// replaceChoices is SetChoices with the lock held.
func (s *State) replaceChoices(node string, told plan.NodeChoices) (changed bool) {
	before, now := s.choices.told[node], cloned(told)
	concerned := map[netip.Addr]bool{}
	differs(concerned, before, now)
	differs(concerned, now, before)
	for name, assumed := range s.choices.assumed {
		for pod := range told[PlanName(name).String()] {
			if assumed[podOn{node, pod}] != nil {
				concerned[pod] = true
			}
		}
	}
	changed = s.replanSteered(slices.Collect(maps.Keys(concerned)), func() {
		if s.choices.told[node] = now; len(now) == 0 {
			delete(s.choices.told, node)
		}
		if node == s.Config.NodeName {
			s.choices.recount(now)
		}
		s.dropTold(node, now)
	})
	for pod := range concerned {
		changed = s.planners[FamilyOf(pod)].Chosen(pod) || changed
	}
	return changed
}

// serviceOf reads what Service.String returns.
func serviceOf(name string) plan.Service {
	namespace, name, _ := strings.Cut(name, "/")
	return plan.Service{Namespace: namespace, Name: name}
}

// differs notes the pods with choices in before that are others in after, or not there.
func differs(concerned map[netip.Addr]bool, before, after plan.NodeChoices) {
	for service, chosen := range before {
		for pod, ip := range chosen {
			if after[service][pod] != ip {
				concerned[pod] = true
			}
		}
	}
}

// recount counts what this node has chosen, all of which is final.
func (c *choices) recount(own plan.NodeChoices) {
	c.room, c.own = room{ofNamespace: map[string]int{}}, map[netip.Addr]map[netip.Addr]int{}
	clear(c.open)
	clear(c.unused)
	for name, of := range own {
		for pod, ip := range of {
			c.count(serviceOf(name), pod, ip)
		}
	}
}

// dropTold forgets what is assumed of pods for which their node tells what it chose.
func (s *State) dropTold(node string, told plan.NodeChoices) {
	for name, assumed := range s.choices.assumed {
		for pod := range told[PlanName(name).String()] {
			delete(assumed, podOn{node, pod})
		}
	}
}

// Unlease notes that a node's Lease is gone, or its Node. What the node has chosen counts as long as one of them is there.
func (s *State) Unlease(node string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.choices.leased, node)
	return s.forgetChoices(node)
}

// forgetChoices forgets those of a node that has neither a Node nor a Lease, and tells whether plans may change.
func (s *State) forgetChoices(node string) (changed bool) {
	if _, exists := s.nodes[node]; exists || s.choices.leased[node] || node == s.Config.NodeName {
		return false
	}
	return s.replaceChoices(node, nil)
}

// keepChoices has the pods of a Service, which had one egress IP and has several now, keep it. Where it has one alone now, nothing is assumed of
// its pods any more.
func (s *State) keepChoices(name types.NamespacedName, before, after service) {
	for _, family := range Families {
		had, has := before.parts[family].soleClaim(), after.parts[family]
		if had == nil || has == nil || has.claim == nil || !has.claim.Several() {
			continue
		}
		if among := has.claim.EgressIPs(); slices.Contains(among, had.EgressIP) {
			s.keepChoice(family, name, had.EgressIP, among, before.headless)
		}
	}
	s.dropAssumed(name, after)
}

func (s *State) keepChoice(family v1.IPFamily, name types.NamespacedName, had netip.Addr, among []netip.Addr, headless bool) {
	keep := func(e plan.Endpoint) {
		// This node may have chosen another one lately, which it keeps for a moment; what other nodes say of their pods counts.
		if ip, chosen := s.choices.of(PlanName(name), e, among); chosen && (ip == had || e.Node != s.Config.NodeName) {
			return
		}
		if e.Node == s.Config.NodeName {
			s.choices.put(e.Node, PlanName(name), e.Addr, had)
			return
		}
		kernel.Put(s.choices.assumed, name, podOn{e.Node, e.Addr}, &assumption{ip: had})
	}
	for endpoints := range s.endpointsOfKind(name, headless) {
		endpoints = ofFamily(family, endpoints, endpointAddr)
		for _, e := range endpoints {
			keep(e)
		}
		s.countAssumed(name, endpoints, 1)
	}
	for addr, a := range s.attachments { // no EndpointSlice may name it yet
		given := func(b plan.Binding) bool { return b.Service == PlanName(name) && b.EgressIP == had }
		if FamilyOf(addr) == family && slices.ContainsFunc(s.planners[family].BindingsOf(addr), given) {
			keep(plan.Endpoint{Addr: addr, Node: a.Node})
		}
	}
}

// soleClaim returns a claim on a single egress IP that is not refused by itself; nil if there is none.
func (p *part) soleClaim() *plan.Claim {
	if p == nil || p.claim == nil || p.claim.Several() || p.claim.Refused != "" {
		return nil
	}
	return p.claim
}

// countAssumed takes note when endpoints of a Service's EndpointSlice come (by is 1) or go (-1).
func (s *State) countAssumed(name types.NamespacedName, endpoints []plan.Endpoint, by int) {
	assumed := s.choices.assumed[name]
	if len(assumed) == 0 {
		return // as mostly
	}
	for _, e := range endpoints {
		if a := assumed[podOn{e.Node, e.Addr}]; a != nil {
			a.endpoints += by
		}
	}
}

// recountAssumed forgets what is assumed of endpoints that went with a change of an EndpointSlice. Nothing follows for plans.
func (s *State) recountAssumed(name types.NamespacedName, before, after []plan.Endpoint) {
	s.countAssumed(name, before, -1)
	s.countAssumed(name, after, 1)
	assumed := s.choices.assumed[name]
	for _, e := range before {
		if a := assumed[podOn{e.Node, e.Addr}]; a != nil && a.endpoints <= 0 {
			delete(assumed, podOn{e.Node, e.Addr})
		}
	}
	if len(assumed) == 0 {
		delete(s.choices.assumed, name)
	}
}

// dropAssumed forgets what is assumed of a Service's endpoints where it has one egress IP alone now. Nothing follows for plans.
func (s *State) dropAssumed(name types.NamespacedName, now service) {
	assumed := s.choices.assumed[name]
	maps.DeleteFunc(assumed, func(on podOn, _ *assumption) bool {
		part := now.parts[FamilyOf(on.pod)]
		return part == nil || part.claim == nil || !part.claim.Several()
	})
	if len(assumed) == 0 {
		delete(s.choices.assumed, name)
	}
}

// pruneChoices forgets this node's choices that no endpoint needs any more, after an update. Pods that wait for the room are judged with the
// next one.
func (s *State) pruneChoices(family v1.IPFamily, now time.Time) {
	maps.DeleteFunc(s.choices.waiting, func(w openPod, _ netip.Addr) bool { return !s.planners[FamilyOf(w.pod)].Has(w.pod) })
	before, missed := s.choices.room.all, s.choices.missed()
	for name, of := range s.choices.told[s.Config.NodeName] {
		service := serviceOf(name)
		for pod, ip := range of {
			if FamilyOf(pod) != family {
				continue
			}
			this := openPod{service, pod}
			if s.planners[family].Picked(service, pod, ip) {
				delete(s.choices.unused, this)
				continue
			}
			since, known := s.choices.unused[this]
			if !known {
				s.choices.unused[this] = now
			}
			if known && now.Sub(since) >= unusedFor || missed[""] || missed[service.Namespace] {
				s.choices.drop(s.Config.NodeName, service, pod)
			}
		}
	}
	if before > s.choices.room.all {
		s.chooseWaiting()
	}
}

// missed are the namespaces in which dropping a choice makes room for a pod that waits; "" for all.
func (c *choices) missed() map[string]bool {
	missed := map[string]bool{}
	for w, ip := range c.waiting {
		missed[w.service.Namespace] = true
		if missed[""] {
			continue
		}
		size := sizeOf(w.service, w.pod, ip)
		missed[""] = c.room.all+size > roomForAll && c.room.ofNamespace[w.service.Namespace]+size <= roomForNamespace
	}
	return missed
}

// chooseWaiting has the pods judged that wait, as far as there is room for them: a tenant may have any number wait.
func (s *State) chooseWaiting() {
	left := room{s.choices.room.all, maps.Clone(s.choices.room.ofNamespace)}
	for w, ip := range s.choices.waiting {
		if left.has(w.service, w.pod, ip) {
			left.count(w.service, w.pod, ip, 1)
			delete(s.choices.waiting, w)
			s.planners[FamilyOf(w.pod)].Chosen(w.pod)
		}
	}
}

// PublishChoices returns what this node has chosen, to be told. From now on what its own Lease says does not count.
func (s *State) PublishChoices() plan.NodeChoices {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.published = true
	return cloned(s.choices.told[s.Config.NodeName])
}

func cloned(choices plan.NodeChoices) plan.NodeChoices {
	if len(choices) == 0 {
		return nil // as mostly
	}
	result := make(plan.NodeChoices, len(choices))
	for service, of := range choices {
		result[service] = maps.Clone(of)
	}
	return result
}

// choicesOf returns all that are known for pods of a family. The lock must be held.
func (s *State) choicesOf(family v1.IPFamily) plan.Choices {
	result := plan.Choices{}
	add := func(node string, service plan.Service, pod, ip netip.Addr) {
		if FamilyOf(pod) != family {
			return
		}
		if result[node] == nil {
			result[node] = plan.NodeChoices{}
		}
		kernel.Put(result[node], service.String(), pod, ip)
	}
	for node, told := range s.choices.told {
		for name, of := range told {
			for pod, ip := range of {
				add(node, serviceOf(name), pod, ip)
			}
		}
	}
	for name, assumed := range s.choices.assumed {
		for on, a := range assumed {
			add(on.node, PlanName(name), on.pod, a.ip)
		}
	}
	return result
}
