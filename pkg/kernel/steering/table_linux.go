package steering

import (
	"maps"
	"net/netip"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// The base chains, and the one for marked packets. doc.go says why each is where it is.
const (
	tunnelInputChain  = "tunnel-input"
	portsInputChain   = "ports-input"
	portChains        = "port-" // begins the names of chains, as do the next two
	deliverChains     = "deliver-"
	speakChains       = "speak-"
	tunnelOutputChain = "tunnel-output"
	outputChain       = "output"
	processChain      = "by-process"
	preroutingChain   = "prerouting"
	arrivalsChain     = "arrivals"
	answersChain      = "answers"
	beginsChain       = "begins"
	boundChain        = "bound-pod"
	astrayChain       = "astray"
	wayChain          = "way"
	postroutingChain  = "postrouting"
	leavesChain       = "leaves"
	onwardChain       = "onward"
	guardChain        = "guard"
	markedChain       = "marked"
	steeredChain      = "steered"
	nostateChain      = "nostate"
	lateChain         = "late"
	rememberChain     = "remember"
	inputChain        = "input"
	forwardChain      = "forward"
	unsnattedChain    = "unsnatted"
	beforeChain       = "before" // no packet comes there
)

// Priorities: ways are behind everybody's DNAT. The kernel runs all chains of source NAT at 100, and the priority is their order among
// themselves: postrouting has the lowest that the kernel allows, so of other chains only a newer one with the same priority comes before.
// guard is behind all of them.
var (
	waysPriority  = *nftables.ChainPriorityNATDest + 5
	natPriority   = nftables.ChainPriority(SourceNATPriority)
	guardPriority = *nftables.ChainPriorityNATSource + 1
)

// layout makes the rules of the table.
type layout struct {
	config Config
	spec   nft.Spec
	rules  *generations
	// speakers has the rules of the nodes' chains, which are many and never change.
	speakers map[netip.Addr][]nft.Rule
	// sources are the rules that give egress IPs. There may be a thousand, and few of them change.
	sources map[giver][]nft.Rule
}

// generations are the rules of the last state, and of the one that is made.
type generations struct{ last, now map[string]nft.Rule }

// giver is what the rules that give an egress IP depend on.
type giver struct {
	egressIP netip.Addr
	held     bool
	shared   kernel.Ports
}

func newLayout(c Config) layout {
	return layout{c, specOf(c), &generations{now: map[string]nft.Rule{}}, map[netip.Addr][]nft.Rule{}, map[giver][]nft.Rule{}}
}

// specOf returns what never changes of the table.
func specOf(c Config) nft.Spec {
	filter := func(name string, hook *nftables.ChainHook, priority nftables.ChainPriority) nft.Chain {
		return nft.Chain{Name: name, Type: nftables.ChainTypeFilter, Hook: hook, Priority: priority}
	}
	chains := []nft.Chain{
		filter(preroutingChain, nftables.ChainHookPrerouting, waysPriority),
		{Name: postroutingChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPostrouting, Priority: natPriority},
		filter(guardChain, nftables.ChainHookPostrouting, guardPriority),
		filter(inputChain, nftables.ChainHookInput, guardPriority),
		filter(forwardChain, nftables.ChainHookForward, guardPriority),
	}
	if len(c.ports()) > 0 {
		chains = append(chains, filter(portsInputChain, nftables.ChainHookInput, *nftables.ChainPriorityRaw))
	}
	if c.spoken() && len(c.ports()) > 0 {
		chains = append(chains,
			filter(tunnelInputChain, nftables.ChainHookPrerouting, *nftables.ChainPriorityRaw),
			filter(tunnelOutputChain, nftables.ChainHookOutput, *nftables.ChainPriorityRaw))
	}
	if c.judgesProcesses() {
		chains = append(chains, filter(outputChain, nftables.ChainHookOutput, waysPriority))
	}
	if c.PortBlocks {
		chains = append(chains, nft.Chain{Name: inwardChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPrerouting, Priority: inwardPriority})
	}
	return nft.Spec{Name: Table, Family: c.Family, Sets: setsOf(c), Counters: counters, Chains: chains}
}

// links are what the table depends on of interfaces.
type links struct {
	// uplink is the interface by which packets of other nodes come without a tunnel.
	uplink string
	// mss is the largest segment that fits the tunnel; 0 if there is none.
	mss uint16
}

// stateOf returns what the table should hold for a content, whose ways it points to nodes by these numbers.
func (l layout) stateOf(c *content, n numbers, at links) nft.State {
	l.rules.last, l.rules.now = l.rules.now, make(map[string]nft.Rule, len(l.rules.now))
	c.point(nft.NewFill(c.sets), n)
	chains := map[string][]nft.Rule{
		preroutingChain:  l.prerouting(c.pods > 0, c.steers(), at),
		arrivalsChain:    l.arrivals(c.pods > 0),
		beginsChain:      l.begins(c.pods > 0, c.steers()),
		astrayChain:      l.astray(),
		postroutingChain: l.postrouting(c.pods > 0),
		leavesChain:      l.leaves(c.pods > 0),
		onwardChain:      l.onward(),
		guardChain:       l.guard(c.pods > 0),
		markedChain:      l.marked(),
		steeredChain:     l.steered(),
		nostateChain:     l.nostate(),
		lateChain:        l.late(),
		rememberChain:    l.remember(),
		inputChain:       l.input(),
		forwardChain:     l.forward(),
	}
	if c.pods > 0 {
		chains[unsnattedChain] = l.unsnatted()
	}
	if c.steers() {
		chains[boundChain], chains[wayChain] = l.bound(c.pods > 0), l.way(n, c.holders())
	}
	if c.steers() && at.mss > 0 {
		chains[answersChain] = l.answers(c.pods > 0, at.mss)
	}
	maps.Copy(chains, l.portsChains())
	if l.config.judgesProcesses() {
		chains[outputChain], chains[processChain] = l.output(), l.byProcess(c.pods > 0)
	}
	speakers := c.sets[speakersMap]
	if len(l.speakers) > 2*len(speakers)+10 { // nodes come and go
		maps.DeleteFunc(l.speakers, func(at netip.Addr, _ []nft.Rule) bool {
			_, is := speakers[nft.Key{Pod: at}]
			return !is
		})
	}
	for speaker := range speakers {
		chains[nft.ChainOf(nodeChains, speaker.Pod)] = l.speaker(speaker.Pod)
	}
	if len(c.before) > 0 {
		chains[beforeChain] = l.before(c.before)
	}
	state := nft.State{Sets: c.sets, Chains: chains}
	if l.config.PortBlocks {
		chains[inwardChain], chains[blockChain], chains[portsChain] = l.inward(), l.block(), l.givePorts(&c.blocks)
		state.Passing = map[string]map[nft.Key]nft.Passing{freshSet: c.blocks.fresh}
	}
	for egressIP := range c.uses {
		g := giver{egressIP: egressIP, held: c.steering.Held[egressIP]}
		if l.config.PortBlocks {
			g.shared = c.steering.Shared[egressIP]
		}
		if l.sources[g] == nil {
			l.sources[g] = l.source(g)
		}
		chains[nft.ChainOf(sourceChains, egressIP)] = l.sources[g]
	}
	maps.DeleteFunc(l.sources, func(g giver, _ []nft.Rule) bool { return c.uses[g.egressIP] == 0 })
	return state
}

// rule is one with this text, and with what it is for. Most are the same in one state as in the next.
func (l layout) rule(purpose, text string) nft.Rule {
	key := purpose + ": " + text
	r, read := l.rules.last[key]
	if !read {
		r = l.spec.Commented(purpose, text)
	}
	l.rules.now[key] = r
	return r
}
