package egress

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
	assumed map[types.NamespacedName]map[podOn]netip.Addr
	// holders are the nodes that have egress IPs of such Services, by these.
	holders map[v1.IPFamily]map[netip.Addr]string
	// open are this node's choices that are not final.
	open map[openPod]openChoice
	// room is what is left for this node's, and waiting are the pods for which there was none.
	room    room
	waiting map[netip.Addr]bool
	// published: this node has told its own, so what its Lease says is no news.
	published bool
}

// podOn is a pod's address on a node.
type podOn struct {
	node string
	pod  netip.Addr
}

// openPod is a pod of a Service.
type openPod struct {
	service plan.Service
	pod     netip.Addr
}

// openChoice is one that was made when no node held any of these. It is made again when all are held, or some time later.
type openChoice struct {
	among []netip.Addr
	made  time.Time
}

// openFor is how long a choice is open.
const openFor = 10 * time.Second

// most is how many bytes the choices may have, and mostOfNamespace those for the pods of one namespace. An API server takes 256 KiB of
// annotations.
const most, mostOfNamespace = 128 << 10, 64 << 10

// room counts the bytes of this node's choices in its Lease. It has a bound, as a tenant may write any number of EndpointSlices that name
// this node.
type room struct {
	all         int
	ofNamespace map[string]int
}

// take takes room for a choice, and tells whether there was any.
func (r *room) take(service plan.Service, pod, ip netip.Addr) bool {
	size := sizeOf(service, pod, ip)
	if r.all+size > most || r.ofNamespace[service.Namespace]+size > mostOfNamespace {
		return false
	}
	r.all += size
	r.ofNamespace[service.Namespace] += size
	return true
}

func (r *room) give(service plan.Service, pod, ip netip.Addr) {
	size := sizeOf(service, pod, ip)
	r.all -= size
	if r.ofNamespace[service.Namespace] -= size; r.ofNamespace[service.Namespace] == 0 {
		delete(r.ofNamespace, service.Namespace)
	}
}

// sizeOf is how many bytes a choice has at most.
func sizeOf(service plan.Service, pod, ip netip.Addr) int {
	return len(`"/":{"":""},`) + len(service.Namespace) + len(service.Name) + len(pod.String()) + len(ip.String())
}

func newChoices() choices {
	return choices{
		told: plan.Choices{}, leased: map[string]bool{}, assumed: map[types.NamespacedName]map[podOn]netip.Addr{},
		holders: map[v1.IPFamily]map[netip.Addr]string{}, open: map[openPod]openChoice{},
		room: room{ofNamespace: map[string]int{}}, waiting: map[netip.Addr]bool{},
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
	ip, assumed = c.assumed[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}][podOn{e.Node, e.Addr}]
	return ip, assumed
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
func (s *state) choose(service plan.Service, e plan.Endpoint, among []netip.Addr) (ip netip.Addr, chosen bool) {
	if ip, chosen = s.choices.of(service, e, among); chosen || e.Node != s.config.NodeName || len(among) == 0 {
		return ip, chosen
	}
	held := s.choices.holders[familyOf(e.Addr)]
	ip = plan.Choose(cmp.Or(e.UID, e.Addr.String()), among, func(ip netip.Addr) int {
		if s.isChosenFor(e.Addr, ip) {
			return 3
		}
		return s.rank(held[ip])
	})
	if !s.choices.put(e.Node, service, e.Addr, ip) {
		s.choices.waiting[e.Addr] = true
		return ip, false
	}
	if !slices.ContainsFunc(among, func(ip netip.Addr) bool { return held[ip] != "" }) {
		s.choices.open[openPod{service, e.Addr}] = openChoice{slices.Clone(among), time.Now()}
	}
	return ip, true
}

// put notes what this node has chosen, and tells whether there was room.
func (c *choices) put(node string, service plan.Service, pod, ip netip.Addr) bool {
	c.drop(node, service, pod)
	if !c.room.take(service, pod, ip) {
		return false
	}
	if c.told[node] == nil {
		c.told[node] = plan.NodeChoices{}
	}
	of := c.told[node][service.String()]
	if of == nil {
		of = map[netip.Addr]netip.Addr{}
		c.told[node][service.String()] = of
	}
	of[pod] = ip
	return true
}

// drop forgets what this node has chosen.
func (c *choices) drop(node string, service plan.Service, pod netip.Addr) {
	of := c.told[node][service.String()]
	ip, known := of[pod]
	if !known {
		return
	}
	c.room.give(service, pod, ip)
	delete(c.open, openPod{service, pod})
	if delete(of, pod); len(of) == 0 {
		delete(c.told[node], service.String())
	}
}

// isChosenFor tells whether this node has chosen an egress IP for a pod, for any Service.
func (s *state) isChosenFor(pod, ip netip.Addr) bool {
	for _, of := range s.choices.told[s.config.NodeName] {
		if of[pod] == ip {
			return true
		}
	}
	return false
}

// LabelKeys are those of Nodes' labels that count.
func (c Config) LabelKeys() []string { return append(c.Pool.LabelKeys(), v1.LabelTopologyZone) }

// rank says how much this node prefers the egress IPs of a holder, which is empty if there is none: those in its own zone to others, and
// these to those without a holder.
func (s *state) rank(holder string) int {
	switch zone := s.zone(s.config.NodeName); {
	case holder == "":
		return 0
	case zone != "" && s.zone(holder) == zone:
		return 2
	}
	return 1
}

// zone returns that of a node; empty if it is not known.
func (s *state) zone(node string) string {
	for _, n := range s.nodes[node] {
		return n.Zone
	}
	return ""
}

// setHolders takes which nodes hold egress IPs of a family whose Services have several.
func (s *state) setHolders(family v1.IPFamily, held map[netip.Addr]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.holders[family] = held
}

// nextChoice returns when a choice of a family is to be made again if nothing happens; zero for never.
func (s *state) nextChoice(family v1.IPFamily) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, open := range s.choices.open {
		if familyOf(of.pod) == family {
			next = holders.Earlier(next, open.made.Add(openFor))
		}
	}
	return next
}

// closeChoices makes choices of a family again that are open no longer. If no node holds any of the egress IPs, they stay: pods use them
// where they run, unless a holder is required.
func (s *state) closeChoices(family v1.IPFamily, now time.Time) {
	held := s.choices.holders[family]
	isHeld := func(ip netip.Addr) bool { return held[ip] != "" }
	for of, open := range s.choices.open {
		unheld := slices.ContainsFunc(open.among, func(ip netip.Addr) bool { return !isHeld(ip) })
		switch late := now.Sub(open.made) >= openFor; {
		case familyOf(of.pod) != family || unheld && !late:
		case slices.ContainsFunc(open.among, isHeld):
			s.choices.drop(s.config.NodeName, of.service, of.pod)
			s.planners[family].Chosen(of.pod)
		case s.config.Steering.Mode == holders.Required:
			s.choices.open[of] = openChoice{open.among, now}
		default:
			delete(s.choices.open, of)
		}
	}
}

// setChoices takes what a node's Lease says that it has chosen, and tells whether plans may change. Of this node's own, only what an
// earlier process has told counts.
func (s *state) setChoices(node string, told plan.NodeChoices) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.leased[node] = true
	if node == s.config.NodeName && s.choices.published {
		return false
	}
	return s.replaceChoices(node, told)
}

// tellsOther tells whether a Lease of this node says something else than this node has told.
func (s *state) tellsOther(told plan.NodeChoices) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choices.published && !maps.EqualFunc(told, s.choices.told[s.config.NodeName], maps.Equal)
}

// replaceChoices is setChoices with the lock held.
func (s *state) replaceChoices(node string, told plan.NodeChoices) (changed bool) {
	before, now := s.choices.told[node], plan.NodeChoices{}
	for service, of := range told {
		now[service] = maps.Clone(of)
	}
	concerned := map[netip.Addr]bool{}
	for service := range now {
		differs(concerned, before[service], now[service])
	}
	for service := range before {
		differs(concerned, before[service], now[service])
	}
	changed = s.steer(slices.Collect(maps.Keys(concerned)), func() {
		if s.choices.told[node] = now; len(now) == 0 {
			delete(s.choices.told, node)
		}
		if node == s.config.NodeName {
			s.choices.recount(now)
		}
		s.dropTold(node, now)
	})
	for pod := range concerned {
		changed = s.planners[familyOf(pod)].Chosen(pod) || changed
	}
	return changed
}

// serviceOf reads what Service.String returns.
func serviceOf(name string) plan.Service {
	namespace, name, _ := strings.Cut(name, "/")
	return plan.Service{Namespace: namespace, Name: name}
}

// differs notes the pods that have another choice.
func differs(concerned map[netip.Addr]bool, before, after map[netip.Addr]netip.Addr) {
	for pod, ip := range before {
		if after[pod] != ip {
			concerned[pod] = true
		}
	}
	for pod, ip := range after {
		if before[pod] != ip {
			concerned[pod] = true
		}
	}
}

// recount counts the room that this node's choices take.
func (c *choices) recount(own plan.NodeChoices) {
	c.room = room{ofNamespace: map[string]int{}}
	for name, of := range own {
		service := serviceOf(name)
		for pod, ip := range of {
			size := sizeOf(service, pod, ip)
			c.room.all += size
			c.room.ofNamespace[service.Namespace] += size
		}
	}
}

// dropTold forgets what is assumed of pods for which their node tells what it chose.
func (s *state) dropTold(node string, told plan.NodeChoices) {
	for name, assumed := range s.choices.assumed {
		for pod := range told[planName(name).String()] {
			delete(assumed, podOn{node, pod})
		}
	}
}

// unlease notes that a node's Lease is gone, or its Node. What the node has chosen counts as long as one of them is there.
func (s *state) unlease(node string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.choices.leased, node)
	return s.forgetChoices(node)
}

// forgetChoices forgets those of a node that has neither a Node nor a Lease, and tells whether plans may change.
func (s *state) forgetChoices(node string) (changed bool) {
	if _, exists := s.nodes[node]; exists || s.choices.leased[node] || node == s.config.NodeName {
		return false
	}
	return s.replaceChoices(node, nil)
}

// keepChoices has the pods of a Service, which had one egress IP and has several now, keep it.
func (s *state) keepChoices(name types.NamespacedName, before, after service) {
	for _, family := range families {
		had, has := before.parts[family].soleClaim(), after.parts[family]
		if had == nil || has == nil || has.claim == nil || !has.claim.Several() {
			continue
		}
		var among []netip.Addr
		for _, address := range has.claim.Addresses() {
			among = append(among, address.IP)
		}
		if slices.Contains(among, had.EgressIP) {
			s.keepChoice(family, name, had.EgressIP, among, before.headless)
		}
	}
}

func (s *state) keepChoice(family v1.IPFamily, name types.NamespacedName, had netip.Addr, among []netip.Addr, headless bool) {
	keep := func(e plan.Endpoint) {
		if _, chosen := s.choices.of(planName(name), e, among); chosen {
			return
		}
		if e.Node == s.config.NodeName {
			s.choices.put(e.Node, planName(name), e.Addr, had)
			return
		}
		if s.choices.assumed[name] == nil {
			s.choices.assumed[name] = map[podOn]netip.Addr{}
		}
		s.choices.assumed[name][podOn{e.Node, e.Addr}] = had
	}
	for endpoints := range s.endpointsOfKind(name, headless) {
		for _, e := range ofFamily(family, endpoints, endpointAddr) {
			keep(e)
		}
	}
	for addr, a := range s.attachments { // no EndpointSlice may name it yet
		given := func(b plan.Binding) bool { return b.Service == planName(name) && b.EgressIP == had }
		if familyOf(addr) == family && slices.ContainsFunc(s.planners[family].BindingsOf(addr), given) {
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

// dropAssumed forgets what is assumed of endpoints that a Service has no longer, or if it has one egress IP alone. Nothing follows for
// plans.
func (s *state) dropAssumed(name types.NamespacedName) {
	assumed := s.choices.assumed[name]
	if len(assumed) == 0 {
		delete(s.choices.assumed, name)
		return
	}
	has := map[podOn]bool{}
	for endpoints := range s.endpointsOf(name) {
		for _, e := range endpoints {
			if part := s.services[name].parts[familyOf(e.Addr)]; part != nil && part.claim != nil && part.claim.Several() {
				has[podOn{e.Node, e.Addr}] = true
			}
		}
	}
	maps.DeleteFunc(assumed, func(on podOn, _ netip.Addr) bool { return !has[on] })
}

// pruneChoices forgets this node's choices that no endpoint needs any more, after an update. If that makes room, pods that wait for it are
// judged again with the next one.
func (s *state) pruneChoices(family v1.IPFamily) {
	before := s.choices.room.all
	for name, of := range s.choices.told[s.config.NodeName] {
		service := serviceOf(name)
		for pod, ip := range of {
			if familyOf(pod) == family && !s.planners[family].Picked(service, pod, ip) {
				s.choices.drop(s.config.NodeName, service, pod)
			}
		}
	}
	if s.choices.room.all == before {
		return
	}
	for pod := range s.choices.waiting {
		s.planners[familyOf(pod)].Chosen(pod)
	}
	clear(s.choices.waiting)
}

// publishedChoices returns what this node has chosen, to be told.
func (s *state) publishedChoices() plan.NodeChoices {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices.published = true
	return cloned(s.choices.told[s.config.NodeName])
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
func (s *state) choicesOf(family v1.IPFamily) plan.Choices {
	result := plan.Choices{}
	add := func(node string, service plan.Service, pod, ip netip.Addr) {
		if familyOf(pod) != family {
			return
		}
		if result[node] == nil {
			result[node] = plan.NodeChoices{}
		}
		if result[node][service.String()] == nil {
			result[node][service.String()] = map[netip.Addr]netip.Addr{}
		}
		result[node][service.String()][pod] = ip
	}
	for node, told := range s.choices.told {
		for name, of := range told {
			for pod, ip := range of {
				add(node, serviceOf(name), pod, ip)
			}
		}
	}
	for name, assumed := range s.choices.assumed {
		for on, ip := range assumed {
			add(on.node, planName(name), on.pod, ip)
		}
	}
	return result
}

// holders returns the nodes that hold the egress IPs of a family whose Services have several, by these.
func (s *steerer) holders(family v1.IPFamily) map[netip.Addr]string {
	if s == nil {
		return nil
	}
	ips := s.state.alternatives(family)
	if len(ips) == 0 {
		return nil
	}
	held := map[netip.Addr]string{}
	s.mu.Lock()
	defer s.mu.Unlock()
	holder := s.holder(family, time.Now())
	for _, ip := range ips {
		if h := holder(ip); h.State == holders.Local || h.State == holders.Remote {
			held[ip] = h.Node
		}
	}
	return held
}
