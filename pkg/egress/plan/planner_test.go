package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// cluster is what a Planner was told, as plain data: Build's input.
type cluster struct {
	surroundings Input
	holdings     map[Service]Holding
	claims       map[Service]Claim
	// slices are the endpoints of EndpointSlices, by Service and number.
	slices map[Service]map[int][]Endpoint
	pods   map[netip.Addr]Pod
	// attachments are by address.
	attachments map[netip.Addr]Attachment
	choices     Choices
}

func newCluster() *cluster {
	return &cluster{
		surroundings: Input{ClusterCIDRs: prefixes("10.128.0.0/14")},
		holdings:     map[Service]Holding{}, claims: map[Service]Claim{},
		slices: map[Service]map[int][]Endpoint{}, pods: map[netip.Addr]Pod{},
		attachments: map[netip.Addr]Attachment{}, choices: Choices{},
	}
}

func (c *cluster) podAt(_ string, ip netip.Addr) Pod { return c.pods[ip] }

func (c *cluster) input() Input {
	in := c.surroundings
	in.Attachments, in.Choices = slices.Collect(maps.Values(c.attachments)), c.choices
	for name, holding := range c.holdings {
		in.Holdings = append(in.Holdings, holding)
		claim, claims := c.claims[name]
		if !claims {
			continue
		}
		for _, endpoints := range c.slices[name] {
			for _, e := range endpoints {
				if e = c.attachments[e.Addr].named(e); e.Pod.Namespace == "" {
					e.Pod = c.podAt(name.Namespace, e.Addr)
				}
				claim.Endpoints = append(claim.Endpoints, e)
			}
		}
		in.Claims = append(in.Claims, claim)
	}
	return in
}

// change makes one random change to c and tells p of it. There are few names and addresses, so
// that everything meets everything.
func (c *cluster) change(r *rand.Rand, p *Planner) {
	name := Service{fmt.Sprintf("ns%d", r.IntN(2)), fmt.Sprintf("s%d", r.IntN(4))}
	ip := func() netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(4))}) }
	pod := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 128 + 4*byte(r.IntN(8)/7), 0, byte(r.IntN(6))}) }
	switch r.IntN(10) {
	case 9:
		node, addr := []string{"here", "there", "yonder"}[r.IntN(3)], pod()
		if c.choices[node] == nil {
			c.choices[node] = NodeChoices{}
		}
		if c.choices[node][name.String()] == nil {
			c.choices[node][name.String()] = map[netip.Addr]netip.Addr{}
		}
		c.choices[node][name.String()][addr] = ip()
		p.Chosen(addr)
	case 0, 1:
		holding := Holding{Service: name, Created: time.Unix(int64(r.IntN(3)), 0), Addresses: []Address{{IP: ip()}, {IP: ip(), LoadBalancer: r.IntN(2) > 0}, {IP: ip(), Annotated: r.IntN(2) > 0}}}
		c.holdings[name] = holding
		delete(c.claims, name)
		if r.IntN(4) > 0 {
			c.claims[name] = c.claim(r, holding)
		}
		c.tell(p, name)
	case 2:
		delete(c.holdings, name)
		delete(c.claims, name)
		delete(c.slices, name)
		p.DeleteService(name)
	case 3, 4, 5:
		if _, known := c.holdings[name]; !known {
			return
		}
		var endpoints []Endpoint
		for range r.IntN(4) {
			endpoints = append(endpoints, Endpoint{
				Addr: pod(), Node: []string{"", "here", "there", "yonder"}[r.IntN(4)],
				Pod: []Pod{{}, {"ns0", "a"}, {"ns1", "b"}}[r.IntN(3)], UID: []string{"", "1", "2"}[r.IntN(3)],
			})
		}
		slices.SortFunc(endpoints, Endpoint.Compare)
		endpoints = slices.Compact(endpoints)
		n := r.IntN(2)
		if c.slices[name] == nil {
			c.slices[name] = map[int][]Endpoint{}
		}
		p.ReplaceEndpoints(name, c.slices[name][n], endpoints)
		c.slices[name][n] = endpoints
	case 6:
		if r.IntN(2) > 0 {
			addr := pod()
			c.pods[addr] = Pod{fmt.Sprintf("ns%d", r.IntN(2)), "c"}
			p.Renamed(addr)
			return
		}
		c.surround(r, p)
	case 7, 8:
		c.attach(r, p, pod())
	}
}

// attach attaches a pod at an address, or has it end, give the address back, or be forgotten.
func (c *cluster) attach(r *rand.Rand, p *Planner, ip netip.Addr) {
	if r.IntN(4) == 0 {
		delete(c.attachments, ip)
		p.DeleteAttachment(ip)
		return
	}
	c.attachments[ip] = Attachment{
		Addr: ip, Node: "here", Pod: []Pod{{"ns0", "a"}, {"ns1", "b"}}[r.IntN(2)], UID: []string{"1", "2"}[r.IntN(2)],
		Labels: []map[string]string{nil, {"app": "web"}, {"app": "web", "tier": "front"}, {"app": "db"}}[r.IntN(4)],
		Ended:  r.IntN(6) == 0, Released: r.IntN(4) == 0,
	}
	p.SetAttachment(c.attachments[ip])
}

func (c *cluster) claim(r *rand.Rand, holding Holding) Claim {
	address := holding.Addresses[r.IntN(2)]
	claim := Claim{Service: holding.Service, Created: holding.Created, EgressIP: address.IP, LoadBalancer: address.LoadBalancer, Annotated: r.IntN(6) == 0, Protocols: []Protocol{TCP, UDP}[r.IntN(2):]}
	if r.IntN(3) == 0 {
		claim.Others = slices.DeleteFunc(slices.Clone(holding.Addresses), func(a Address) bool { return a.IP == claim.EgressIP })
		slices.SortFunc(claim.Others, func(a, b Address) int { return a.IP.Compare(b.IP) })
		claim.Others = slices.CompactFunc(claim.Others, func(a, b Address) bool { return a.IP == b.IP })
	}
	claim.Selector = []map[string]string{nil, {"app": "web"}, {"app": "web", "tier": "front"}}[r.IntN(3)]
	if r.IntN(6) == 0 {
		claim.Refused, claim.RefusedBecause = InvalidAnnotation, "a word of no meaning"
	}
	return claim
}

func (c *cluster) tell(p *Planner, name Service) {
	claim, claims := c.claims[name]
	if !claims {
		p.SetService(c.holdings[name], nil)
		return
	}
	p.SetService(c.holdings[name], &claim)
}

func (c *cluster) surround(r *rand.Rand, p *Planner) {
	in := Input{ClusterCIDRs: prefixes("10.128.0.0/14"), ExcludeNodes: r.IntN(2) > 0, NoProxier: r.IntN(8) == 0}
	if r.IntN(8) == 0 {
		in.ClusterCIDRs = nil
	}
	if r.IntN(3) == 0 {
		in.Nodes = []Node{{Name: "here", InternalIPs: addrs("10.128.0.2", "203.0.113.1")}}
	}
	if r.IntN(3) == 0 {
		in.AssignCIDRs = prefixes("203.0.113.0/31")
	}
	if r.IntN(3) == 0 {
		in.Policies = []Policy{{Source: "policy", Allowed: prefixes("203.0.113.0/31"), ExternalIPsOnly: true}}
	}
	if r.IntN(3) == 0 {
		in.NamespaceCIDRs = map[string][]netip.Prefix{"ns0": prefixes("203.0.113.0/31")}
	}
	if r.IntN(3) == 0 {
		in.NamespaceCIDRs = map[string][]netip.Prefix{"ns1": prefixes("203.0.113.2/32"), EveryOther: prefixes("203.0.113.2/31")}
	}
	c.surroundings = in
	p.SetSurroundings(in)
}

// TestPlanner_PlansAsBuildDoes: after any sequence of changes, in any portions.
func TestPlanner_PlansAsBuildDoes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := newCluster()
		p := NewPlanner(c.podAt, c.choices.Of)
		p.SetSurroundings(c.surroundings)
		var before Plan
		for step := range 60 {
			for range 1 + r.IntN(3) {
				c.change(r, p)
				if r.IntN(3) == 0 {
					p.Judge()
					checkDesired(t, p, before) // what a sync that is under way asks for
				}
			}
			in := c.input()
			want := Build(in)
			if r.IntN(2) == 0 {
				checkEgressIPs(t, p, in.Claims, want) // what a sync of the other IP family asks for
			}
			change := p.Update()
			got := p.Plan()
			if !got.Equal(want) {
				t.Fatalf("seed %d, step %d (-want +got):\n%s", seed, step, cmp.Diff(want, got, compareNetip))
			}
			checkChange(t, before, want, change)
			checkViews(t, p, want, len(c.claims))
			checkEgressIPs(t, p, in.Claims, want)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
			before = want
		}
	}
}

// checkChange: a Change is what differs between two plans, no more and no less.
func checkChange(t *testing.T, before, after Plan, change Change) {
	t.Helper()
	added, removed := diff(nil, nil, before.Bindings, after.Bindings, CompareBindings)
	refused, lifted := diff(nil, nil, before.Refusals, after.Refusals, CompareRefusals)
	want := Change{
		Added: added, Removed: removed, Refused: refused, Lifted: lifted, Services: change.Services,
		Networks: after.Networks, NetworksChanged: !before.Networks.Equal(after.Networks),
	}
	if diff := cmp.Diff(want, change, compareNetip); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	inKernel := kernel.Change{Networks: want.Networks, NetworksChanged: want.NetworksChanged}
	inKernel.Added, inKernel.Removed = kernel.Diff(InKernel(before.Bindings), InKernel(after.Bindings))
	if diff := cmp.Diff(inKernel, change.InKernel(), compareNetip); diff != "" {
		t.Errorf("change of the kernel (-want +got):\n%s", diff)
	}
}

// checkViews: what a Planner says of parts of its plan is what the plan says.
func checkViews(t *testing.T, p *Planner, want Plan, claims int) {
	t.Helper()
	numbers := Numbers{Claims: claims, Bindings: len(want.Bindings), EgressIPs: len(want.EgressIPs()), Refusals: map[Reason]int{}}
	byService := map[Service][]Refusal{}
	for _, r := range want.Refusals {
		numbers.Refusals[r.Reason]++
		byService[r.Service] = append(byService[r.Service], r)
	}
	got := p.Numbers()
	for reason, n := range got.Refusals {
		if n == 0 {
			delete(got.Refusals, reason)
		}
	}
	if diff := cmp.Diff(numbers, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	for name, refusals := range byService {
		if diff := cmp.Diff(refusals, p.RefusalsOf(name), compareNetip); diff != "" {
			t.Errorf("refusals of %s (-want +got):\n%s", name, diff)
		}
	}
	checkDesired(t, p, want)
}

// checkEgressIPs: they are the addresses with a claim that is not refused for the address.
func checkEgressIPs(t *testing.T, p *Planner, claims []Claim, want Plan) {
	t.Helper()
	type claimed struct {
		by Service
		ip netip.Addr
	}
	notTheirs := map[claimed]bool{}
	for _, r := range want.Refusals {
		if !r.Pod.IsValid() && slices.Contains([]Reason{InvalidAddress, AddressInCluster, NodeAddress, APIServerAddress, NotAllowed, OwnedByOtherNamespace}, r.Reason) {
			notTheirs[claimed{r.Service, r.EgressIP}] = true
		}
	}
	egressIPs := map[netip.Addr]bool{}
	for _, claim := range claims {
		for _, ip := range claim.EgressIPs() {
			if !notTheirs[claimed{claim.Service, ip}] {
				egressIPs[ip] = true
			}
		}
	}
	if got, want := p.EgressIPs(), slices.SortedFunc(maps.Keys(egressIPs), netip.Addr.Compare); !slices.Equal(got, want) {
		t.Errorf("egress IPs %v, want %v", got, want)
	}
}

// checkDesired: the kernel is to hold what the plan of the last Update says, whatever was judged since.
func checkDesired(t *testing.T, p *Planner, want Plan) {
	t.Helper()
	pods := map[netip.Addr]bool{}
	for _, b := range want.Bindings {
		pods[b.Pod] = true
	}
	if diff := cmp.Diff(want.Desired(), p.Desired(pods), compareNetip); diff != "" {
		t.Errorf("of the bound pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Desired(), p.Desired(nil), compareNetip); diff != "" {
		t.Errorf("of all pods (-want +got):\n%s", diff)
	}
}

// TestPlanner_ManyExternalIPs: Services of two namespaces have thousands of addresses, most in common,
// some twice in one Service; the owners are those that Build finds, whoever comes, grows older or goes.
func TestPlanner_ManyExternalIPs(t *testing.T) {
	c := newCluster()
	c.surroundings.Policies = []Policy{{Source: "policy", Allowed: prefixes("198.18.0.0/15"), Rejected: prefixes("198.18.1.0/24"), ExternalIPsOnly: true}}
	p := NewPlanner(c.podAt, c.choices.Of)
	p.SetSurroundings(c.surroundings)
	service := func(namespace string, number int) Service { return Service{namespace, fmt.Sprint("s", number)} }
	set := func(name Service, created, from, to int) {
		holding := manyAddresses(name, created, to)
		holding.Addresses = holding.Addresses[from:]
		for i := 0; i < len(holding.Addresses); i += 3 { // a load balancer gave it, too
			holding.Addresses = append(holding.Addresses, Address{IP: holding.Addresses[i].IP, LoadBalancer: true})
		}
		claimed := holding.Addresses[len(name.Name)*100%len(holding.Addresses)]
		c.holdings[name] = holding
		c.claims[name] = Claim{Service: name, Created: holding.Created, EgressIP: claimed.IP, LoadBalancer: claimed.LoadBalancer, Protocols: []Protocol{TCP}}
		c.tell(p, name)
	}
	for n := range 200 { // all want the same address
		set(service("many", n), 5+n%7, 300, 301)
	}
	for step, change := range []func(){
		func() { set(service("a", 0), 3, 0, 3000); set(service("b", 0), 2, 200, 2500) },
		func() { set(service("a", 0), 1, 0, 3000) },
		func() { set(service("b", 0), 0, 299, 302) },
		func() { p.DeleteService(service("a", 0)); delete(c.holdings, service("a", 0)) },
		func() { p.DeleteService(service("b", 0)); delete(c.holdings, service("b", 0)) },
		func() { c.surroundings.Policies = nil; p.SetSurroundings(c.surroundings) },
	} {
		change()
		p.Update()
		in := c.input()
		owners := map[netip.Addr]Service{}
		for ip, a := range p.addresses {
			if a.owner != nil {
				owners[ip] = a.owner.name
			}
		}
		if diff := cmp.Diff(findOwners(newSurroundings(in), in), owners, compareNetip); diff != "" {
			t.Fatalf("step %d, owners (-want +got):\n%s", step, diff)
		}
		want := Build(in)
		if got := p.Plan(); !got.Equal(want) {
			t.Fatalf("step %d (-want +got):\n%s", step, cmp.Diff(want, got, compareNetip))
		}
		checkEgressIPs(t, p, in.Claims, want)
	}
}

// TestPlanner_ForgetsWhatIsDeleted: when everything is deleted nothing is kept.
func TestPlanner_ForgetsWhatIsDeleted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	c := newCluster()
	p := NewPlanner(c.podAt, c.choices.Of)
	for range 1000 {
		c.change(r, p)
	}
	p.Update()
	for name := range c.holdings {
		p.DeleteService(name)
	}
	p.Update()
	if n := len(p.services) + len(p.addresses) + len(p.pods) + len(p.uses) + len(p.EgressIPs()); n != 0 || p.numbers.Bindings != 0 || p.numbers.Claims != 0 {
		t.Errorf("kept: %+v", p)
	}
}

// TestPlanner_HomesOfAnotherNamespace: a tenant that lists another one's bound pod, for a protocol that nobody binds, says nothing of where
// it runs. If that counted, packets of any node would pass for the pod's.
func TestPlanner_HomesOfAnotherNamespace(t *testing.T) {
	pod := addr("10.128.0.5")
	for _, node := range []string{"", "node-2"} {
		p := NewPlanner(func(string, netip.Addr) Pod { return Pod{} }, Choices{}.Of)
		p.SetSurroundings(Input{ClusterCIDRs: prefixes("10.128.0.0/14")})
		for i, s := range []struct {
			name     Service
			protocol Protocol
			egressIP netip.Addr
			node     string
		}{{Service{"ns", "web"}, TCP, addr("203.0.113.1"), "node-1"}, {Service{"other", "x"}, SCTP, addr("203.0.113.2"), node}} {
			holding := Holding{Service: s.name, Created: time.Unix(int64(i), 0), Addresses: []Address{{IP: s.egressIP}}}
			p.SetService(holding, &Claim{Service: s.name, Created: holding.Created, EgressIP: s.egressIP, Protocols: []Protocol{s.protocol}})
			p.ReplaceEndpoints(s.name, nil, []Endpoint{{Addr: pod, Pod: Pod{s.name.Namespace, "p"}, Node: s.node}})
		}
		p.Update()
		if diff := cmp.Diff(map[netip.Addr]string{pod: "node-1"}, p.Homes(), compareNetip); diff != "" {
			t.Errorf("another namespace says node %q (-want +got):\n%s", node, diff)
		}
	}
}

// TestPlanner_HomesOfADeletedService: the status asks for homes at any time, when bindings may still be those of a Service
// that was deleted since the last Update.
func TestPlanner_HomesOfADeletedService(t *testing.T) {
	p := NewPlanner(func(string, netip.Addr) Pod { return Pod{} }, Choices{}.Of)
	p.SetSurroundings(Input{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}})
	name, pod, egressIP := Service{"ns", "s"}, netip.MustParseAddr("10.128.0.5"), netip.MustParseAddr("203.0.113.1")
	p.SetService(Holding{Service: name, Addresses: []Address{{IP: egressIP}}}, &Claim{Service: name, EgressIP: egressIP, Protocols: []Protocol{TCP}})
	p.ReplaceEndpoints(name, nil, []Endpoint{{Addr: pod, Pod: Pod{"ns", "p"}, Node: "node-1"}})
	p.Update()
	if diff := cmp.Diff(map[netip.Addr]string{pod: "node-1"}, p.Homes(), compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.PodOf(name, pod); got != (Pod{"ns", "p"}) {
		t.Errorf("the pod is %v", got)
	}
	p.DeleteService(name)
	if homes := p.Homes(); len(homes) > 0 {
		t.Errorf("pods of a deleted Service run on %v", homes)
	}
	if got := p.PodOf(name, pod); got != (Pod{}) {
		t.Errorf("the pod of a deleted Service is %v", got)
	}
}
