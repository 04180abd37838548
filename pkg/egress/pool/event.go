package pool

import (
	"iter"
	"maps"
	"net/netip"
	"time"
)

// Event is something that a [Member] has to know: one of the types below. What follows from it is its method apply, in claims.go,
// member.go, peers.go or view.go, and for what only a Runner tells in runner_linux.go.
type Event interface {
	apply(m *Member, now time.Time) []Action
}

// Tick says that time has passed.
type Tick struct{}

// Wanted says which addresses the pool is to hold, all of them. Siblings are those that are to be on different nodes and in different
// zones, if possible: of each address the others of the same Services. None is changed any more.
type Wanted struct {
	Addresses []netip.Addr
	Siblings  map[netip.Addr][]netip.Addr
}

// Pool says which nodes are in the pool, all of them, and in which zones, as far as that is known.
type Pool struct {
	Nodes []string
	Zones map[string]string
}

// Networks says which subnets this member has, all of them.
type Networks struct{ Networks []Network }

// Found says which addresses of the pool the kernel had when the process started.
type Found struct{ Addresses []netip.Addr }

// Removed says that this node serves addresses no more, although nobody here removed them: they are not in the kernel, or on an interface
// without a link while another one could have them.
type Removed struct{ Addresses []netip.Addr }

// TakeFailed says that addresses could not be taken; Late are those for which it was too late, which may be tried again.
type TakeFailed struct{ Addresses, Late []netip.Addr }

// RenewFailed says that addresses could not be renewed.
type RenewFailed struct{}

// Liveness says that memberlist has found a member alive, or dead.
type Liveness struct {
	Name  string
	Alive bool
}

// Heard is a member's state.
type Heard struct{ State State }

// Reminded is what a member tells those that it does not find alive, over and over: some of its addresses with their epochs. One
// that has come back to the network learns from it at once what others have taken over. All of what a member says may be too long
// for a datagram, and a connection would take too long.
type Reminded struct{ State State }

// merge adds another part of the same state, which is not newer. An older one is out of date.
func (e Reminded) merge(part Reminded) {
	if e.State.Version == part.State.Version && len(e.State.Held)+len(part.State.Held) <= mostAddresses && e.State.Held != nil {
		maps.Copy(e.State.Held, part.State.Held)
	}
}

// Answer is what a [Probe] has found out of an address.
type Answer struct {
	// By is the MAC of the host that has it; empty if nobody answered.
	By string
	// Failed: it could not be asked for. Cut: nobody on its network answered at all, although other nodes or a gateway should be there. In
	// both cases it is not known that nobody has it.
	Failed, Cut bool
}

// Probed is the result of the [Probe] of this number, of each of its addresses.
type Probed struct {
	Number  int
	Answers map[netip.Addr]Answer
	// Silent are the nodes of the pool on those networks that did not answer: their members may be as dead, and not found so yet.
	Silent []string
	// At is when the questions were asked.
	At time.Time
}

// Looked is the result of a [LookAround].
type Looked struct {
	// At is when the questions were asked.
	At time.Time
	// Peers: any other node of the pool answered. Gateway: the default gateway did.
	Peers, Gateway bool
}

// Answered says that other hosts answer for addresses of this member. It comes before the [Looked] of the [LookAround] that
// has asked: two hosts must not have an address for as long as answers of others are waited for.
type Answered struct {
	// At is when that began.
	At        time.Time
	Addresses []netip.Addr
}

// Drain says that this member is to give its addresses to others, or is not any more.
type Drain struct{ Now bool }

// Action is something to do: one of the types below.
type Action interface{ action() }

// Probe asks whether any host has these addresses. [Probed] is the answer.
type Probe struct {
	Number    int
	Addresses []netip.Addr
}

// LookAround asks the pool's other nodes, the default gateway, and for this member's own addresses, if there are any in it.
// [Answered] is what others answer for these, [Looked] the result.
type LookAround struct{ Own []netip.Addr }

// Take puts an address on this node and advertises it. [TakeFailed] is the answer if that fails.
type Take struct {
	Address netip.Addr
	Epoch   uint64
	// From is who had it last; empty if nobody is known.
	From string
	Why  Reason
	// PassOn: that member goes on with its connections for a moment; what comes here for them is to be passed on to it.
	PassOn bool
	// Since is when it was known that the address has to move, Until when it may still be put on this node: later,
	// another one may have it.
	Since, Until time.Time
}

// Release removes an address from this node.
type Release struct {
	Address netip.Addr
	Why     Reason
	// To is who has it now; empty if nobody is known.
	To string
	// GoOn: that member passes on what comes there for this node's connections, so this node goes on with them for a moment.
	GoOn bool
}

// Renew has the kernel keep these addresses for longer. [RenewFailed] is the answer if that fails, [Removed] if it has them no more.
type Renew struct{ Addresses []netip.Addr }

// Advertise tells the network again that these addresses are here.
type Advertise struct{ Addresses []netip.Addr }

// Publish tells the other members this state.
type Publish struct{ State State }

func (Probe) action()      {}
func (LookAround) action() {}
func (Take) action()       {}
func (Release) action()    {}
func (Renew) action()      {}
func (Advertise) action()  {}
func (Publish) action()    {}

// Reason is why an address is taken or released. It is the value of a label; the table reasons says what follows from it.
type Reason string

// The reasons to take.
const (
	Unheld   Reason = "unheld"
	Dead     Reason = "dead"
	Drained  Reason = "drained"
	Detached Reason = "detached"
)

// The reasons to release.
const (
	HandedOver  Reason = "handed_over"
	TakenOver   Reason = "taken_over"
	Unwanted    Reason = "unwanted"
	CutOff      Reason = "cut_off"
	AnsweredFor Reason = "answered"
	Gone        Reason = "gone"
)

// reasons is what each of them means. One that is missing here has no text, and its first move is no increase of its series.
var reasons = map[Reason]struct {
	because           string
	givenAway, served bool
}{
	Unheld:      {because: "no node had it"},
	Dead:        {because: "its node gave no sign of life and does not answer"},
	Drained:     {because: "its node is drained, or not in the pool any more", givenAway: true, served: true},
	Detached:    {because: "its node cannot hold it any more", givenAway: true},
	HandedOver:  {because: "this node gave it away, and another node has it", served: true},
	TakenOver:   {because: "another node took it over while this one was out of reach"},
	Unwanted:    {because: "no granted Service has it any more"},
	CutOff:      {because: "this node sees no majority of the pool, and neither another node of it nor the default gateway answers"},
	AnsweredFor: {because: "another host answers for it"},
	Gone:        {because: "no interface with a link has it any more"},
}

// Reasons are all of them, in no order.
func Reasons() iter.Seq[Reason] { return maps.Keys(reasons) }

// Because is what people are told after "because".
func (r Reason) Because() string { return reasons[r].because }

// GivenAway tells whether a live node gives the address away. Then nobody asks whether a host has it: an answer of that node would say
// nothing.
func (r Reason) GivenAway() bool { return reasons[r].givenAway }

// Served tells whether the former holder serves the address until the next one has it: another node for a reason to take, this one for a
// reason to release.
func (r Reason) Served() bool { return reasons[r].served }
