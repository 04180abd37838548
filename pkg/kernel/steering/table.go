package steering

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Table is the name of the nftables table, in either family. Changing it orphans what earlier versions
// have written.
const Table = "openshift-egress-steering"

// SourceNATPriority is that of the chain which gives flows their egress IPs: the lowest that the kernel allows, right behind conntrack.
const SourceNATPriority = -199

// The sets of the table. Those of pods are for bindings of all protocols.
const (
	clusterSet    = "cluster"
	exclusionsSet = "exclusions"
	nodesSet      = "nodes"       // the other nodes of the cluster
	speakersMap   = "speakers"    // node : goto the node's chain, with a tunnel
	homesSet      = "homes"       // pod . hardware address of its node
	homedSet      = "homed"       // pod whose node is known
	awaySet       = "away"        // pod whose node is known, and another one
	sendersSet    = "senders"     // the hardware addresses of the other nodes, without a tunnel
	egressIPsSet  = "egress-ips"  // of all bindings
	claimedSet    = "claimed"     // the egress IPs that Services claim
	heldSet       = "held"        // those that this node holds
	ownSet        = "own"         // pod . protocol . its egress IP
	ownPodsSet    = "own-pods"    // pod . its egress IP
	boundSet      = "bound"       // pod . protocol
	boundPodsSet  = "bound-pods"  // pod
	sourcesMap    = "sources"     // pod . protocol : goto the chain that gives the egress IP
	podSourcesMap = "pod-sources" // pod : goto the chain that gives the egress IP
	waysMap       = "ways"        // pod . protocol : where its packets go, if not from this node
	podWaysMap    = "pod-ways"    // pod : the same
	flowsSet      = "flows"       // far side . protocol . pod . the far side's port . the pod's, of what was steered
	hostsSet      = "hosts"       // far side . protocol . pod, of what was steered and has no ports
	removedSet    = "removed"     // pod . protocol . egress IP, of bindings that were removed: the journal
)

// remembered is how long a steered flow is remembered after the pod's last packet, unless it is one of TCP: more than twice
// as long as conntrack remembers one of UDP. So nothing comes by the holder any more when it is forgotten, unless the far side
// goes on by itself for as long. The kernel adds no flow to a full set.
const remembered, rememberedFlows = 5 * time.Minute, 1 << 18

// sourcesByWays are the sets of egress IPs by those of ways, of which each pod has an element if its egress IP has a way.
var sourcesByWays = map[string]string{waysMap: sourcesMap, podWaysMap: podSourcesMap}

// nodeChains begins the names of the chains that look at what a node sends into the tunnel.
const nodeChains = "node-"

// sourceChains begins the names of the chains that give an egress IP.
const sourceChains = "from-"

var sets = []nft.Set{
	{Name: clusterSet, Ranges: true},
	{Name: exclusionsSet, Ranges: true},
	{Name: nodesSet},
	{Name: speakersMap, Map: true, Chains: nodeChains},
	{Name: sendersSet, Hardware: true},
	{Name: homesSet, From: true},
	{Name: homedSet},
	{Name: awaySet},
	{Name: egressIPsSet},
	{Name: claimedSet},
	{Name: heldSet},
	{Name: ownSet, Protocol: true, Other: true},
	{Name: ownPodsSet, Other: true},
	{Name: boundSet, Protocol: true},
	{Name: boundPodsSet},
	{Name: sourcesMap, Protocol: true, Map: true, Chains: sourceChains},
	{Name: podSourcesMap, Map: true, Chains: sourceChains},
	{Name: waysMap, Protocol: true, Map: true, ClassIDs: true},
	{Name: podWaysMap, Map: true, ClassIDs: true},
	{Name: flowsSet, Protocol: true, Other: true, Ports: true, Timeout: remembered, Size: rememberedFlows},
	{Name: hostsSet, Protocol: true, Other: true, Timeout: remembered, Size: rememberedFlows},
	{Name: removedSet, Protocol: true, Other: true, Journal: true}, // the protocol of all is in the journal alone
}

// The counters of what is dropped.
const (
	unsnattedCounter = "unsnatted" // a bound pod's packet that does not leave from its egress IP
	staleCounter     = "stale"     // one that another node sent here, and that no binding here is for
	flippedCounter   = "flipped"   // an answer to a bound pod whose flow is forgotten
	nostateCounter   = "nostate"   // to a held egress IP, of a connection that this node does not know
	foreignCounter   = "foreign"   // one to a port of the nodes that no node has sent, or not to this node's own address
	forgedCounter    = "forged"    // one into a tunnel by a pod or a process of this node, by a process from an egress IP elsewhere, or of a pod of yet another node
)

var counters = []string{unsnattedCounter, staleCounter, flippedCounter, nostateCounter, foreignCounter, forgedCounter}

// content is what the sets hold for a [kernel.Desired], and the ways of its egress IPs. It follows changes.
type content struct {
	config Config
	sets   nft.Content
	// uses counts the bindings of an egress IP, pods those of all protocols.
	uses map[netip.Addr]int
	pods int
	// steering is that of the last change. Its Senders count without a tunnel alone.
	steering kernel.Steering
	// leads are the values that the sets of ways have for an egress IP; none for one that leaves from this node.
	leads map[netip.Addr]netip.Addr
	// before are the settings that have changed for steering.
	before settings
	// leaving are bindings that give no egress IP any more, and whose pods' packets are dropped.
	leaving map[kernel.Binding]bool
	blocks  blocks
}

func newContent(config Config, d kernel.Desired, leaving []kernel.Binding) *content {
	c := &content{config: config, sets: nft.Content{}, uses: map[netip.Addr]int{}, blocks: newBlocks()}
	for _, set := range setsOf(config) {
		c.sets[set.Name] = nft.Elements{}
	}
	for _, set := range []string{ownSet, boundSet, sourcesMap} {
		c.sets[set] = make(nft.Elements, len(d.Bindings)) // few bindings are of all protocols
	}
	fill := nft.NewFill(c.sets)
	c.apply(fill, kernel.Change{Added: leaving}, nil)
	c.apply(fill, kernel.Change{
		Added: d.Bindings, Removed: leaving, Networks: d.Networks, NetworksChanged: true, Steering: d.Steering, SteeringChanged: true,
	}, leaving)
	return c
}

// follow turns c into what change leads to, and returns the edit of its sets. What was removed by this
// change or by former ones, and is among leaving, is still guarded. The sets of ways lead where they did before, until point.
func (c *content) follow(change kernel.Change, leaving []kernel.Binding) nft.Edit {
	edit := nft.NewEdit(c.sets)
	c.apply(edit, change, leaving)
	return edit
}

// apply is follow with an edit that there is already.
func (c *content) apply(edit nft.Edit, change kernel.Change, leaving []kernel.Binding) {
	before, stays := c.leaving, kernel.SetOf(leaving)
	c.leaving = map[kernel.Binding]bool{}
	leave := func(b kernel.Binding) {
		if stays[b] {
			c.take(edit, b)
			c.leaving[b] = true
		} else {
			c.unbind(edit, b)
		}
	}
	for _, b := range change.Removed {
		leave(b)
	}
	for _, b := range change.Added {
		if before[b] {
			c.unbind(edit, b) // it comes back
			delete(before, b)
		}
		c.bind(edit, b)
	}
	for b := range before {
		leave(b)
	}
	if change.NetworksChanged {
		edit.Replace(clusterSet, nft.Ranges(change.Networks.ClusterCIDRs))
		edit.Replace(exclusionsSet, nft.Ranges(slices.Concat(change.Networks.ClusterCIDRs, change.Networks.Exclusions)))
	}
	if change.SteeringChanged {
		former := c.steering
		c.steering = change.Steering
		held, claimed := nft.Elements{}, nft.Elements{}
		for egressIP := range c.steering.Held {
			held[nft.Key{Pod: egressIP}] = netip.Addr{}
		}
		for _, egressIP := range c.steering.Claimed {
			claimed[nft.Key{Pod: egressIP}] = netip.Addr{}
		}
		edit.Replace(heldSet, held)
		edit.Replace(claimedSet, claimed)
		c.replaceNodes(edit)
		c.replaceHomes(edit, former)
		c.replaceBlocks(edit)
	}
}

// point has the sets of ways lead to nodes by these numbers. Where nothing has changed it costs nothing for each pod.
func (c *content) point(edit nft.Edit, given numbers) {
	before := c.leads
	c.leads = make(map[netip.Addr]netip.Addr, len(c.uses))
	for egressIP := range c.uses {
		if number := given.of(c.steering.Ways[egressIP]); number > 0 {
			c.leads[egressIP] = nft.ClassID(uint8(number))
		}
	}
	if maps.Equal(before, c.leads) {
		return
	}
	for ways, sources := range sourcesByWays {
		for key, egressIP := range c.sets[sources] {
			if before[egressIP] != c.leads[egressIP] {
				c.lead(edit, ways, key, egressIP)
			}
		}
	}
}

// lead has a pod's way in a set be that of an egress IP.
func (c *content) lead(edit nft.Edit, ways string, key nft.Key, egressIP netip.Addr) {
	if id, leads := c.leads[egressIP]; leads {
		edit.Set(ways, key, id)
	} else {
		edit.Remove(ways, key)
	}
}

// replaceNodes turns the sets of other nodes into what the steering has.
func (c *content) replaceNodes(edit nft.Edit) {
	nodes, speakers, senders := nft.Elements{}, nft.Elements{}, nft.Elements{}
	for _, node := range c.steering.Nodes {
		if node.Is4() != (c.config.Family == kernel.IPv4) {
			continue
		}
		nodes[nft.Key{Pod: node}] = netip.Addr{}
		if c.config.hasTunnel() {
			speakers[nft.Key{Pod: node}] = node
		}
	}
	for _, sender := range c.steering.Senders {
		senders[nft.Key{Hardware: sender}] = netip.Addr{}
	}
	edit.Replace(nodesSet, nodes)
	edit.Replace(speakersMap, speakers)
	edit.Replace(sendersSet, senders)
}

// replaceHomes turns the sets of pods whose nodes are known into what the steering has. There may be a hundred thousand, of which few change.
func (c *content) replaceHomes(edit nft.Edit, before kernel.Steering) {
	now := c.steering
	same := before.Self == now.Self && before.Roaming == now.Roaming && (c.config.Transport == VXLAN || maps.Equal(before.Senders, now.Senders))
	for pod, node := range before.Homes {
		if !same || now.Homes[pod] != node {
			c.place(&before, pod, node, edit.Remove)
		}
	}
	for pod, node := range now.Homes {
		if !same || before.Homes[pod] != node {
			c.place(&now, pod, node, func(set string, key nft.Key) { edit.Set(set, key, netip.Addr{}) })
		}
	}
}

// place tells which elements there are of a pod that runs on a node: none if pods roam. One of a node whose hardware address is not known is
// left out of homes. No other node sends packets of this node's own pods.
func (c *content) place(s *kernel.Steering, pod, node netip.Addr, tell func(set string, key nft.Key)) {
	if s.Roaming {
		return // any node may send them
	}
	if node != s.Self {
		tell(awaySet, nft.Key{Pod: pod})
	}
	at, known := s.Senders[node]
	if c.config.Transport == VXLAN {
		at, known = HardwareAddrOf(node), true
	}
	if known || node == s.Self {
		tell(homesSet, nft.Key{Pod: pod, Hardware: at})
		tell(homedSet, nft.Key{Pod: pod})
	}
}

func (c *content) bind(edit nft.Edit, b kernel.Binding) {
	if c.uses[b.EgressIP]++; b.Protocol == kernel.All {
		c.pods++
	}
	edit.Set(egressIPsSet, nft.Key{Pod: b.EgressIP}, netip.Addr{})
	p := placesOf(b)
	edit.Set(p.own, p.ownKey, netip.Addr{})
	edit.Set(p.bound, p.key, netip.Addr{})
	edit.Set(p.sources, p.key, b.EgressIP)
	c.bindBlock(edit, blockOf{b.Pod, b.EgressIP}, 1)
	c.give(edit, p, b.EgressIP)
	c.lead(edit, p.ways, p.key, b.EgressIP)
}

func (c *content) unbind(edit nft.Edit, b kernel.Binding) {
	if b.Protocol == kernel.All {
		c.pods--
	}
	if c.uses[b.EgressIP]--; c.uses[b.EgressIP] == 0 {
		delete(c.uses, b.EgressIP)
		edit.Remove(egressIPsSet, nft.Key{Pod: b.EgressIP})
	}
	c.closeBlock(edit, b)
	delete(c.blocks.closed, b)
	p := placesOf(b)
	edit.Remove(p.own, p.ownKey)
	if egressIP, there := c.sets[p.sources][p.key]; there && egressIP != b.EgressIP {
		return // another one of the pod has come before this one goes
	}
	for _, set := range []string{p.bound, p.sources, p.ways} {
		edit.Remove(set, p.key)
	}
	c.give(edit, p, netip.Addr{})
}

// take has a binding neither give its egress IP nor lead to it any more. What its pod sends is dropped then: a flow that
// began now would have been judged already, and go on under the pod's own address.
func (c *content) take(edit nft.Edit, b kernel.Binding) {
	c.closeBlock(edit, b)
	if p := placesOf(b); c.sets[p.sources][p.key] == b.EgressIP {
		edit.Remove(p.sources, p.key)
		edit.Remove(p.ways, p.key)
		c.give(edit, p, netip.Addr{})
	}
}

// places are the sets that a binding has an element in: one by the pod and its egress IP, which other bindings of the pod do
// not have, and the others by the pod.
type places struct {
	own, bound, sources, ways, blocks, fullBlocks string
	ownKey, key                                   nft.Key
}

func placesOf(b kernel.Binding) places {
	if b.Protocol == kernel.All {
		return places{ownPodsSet, boundPodsSet, podSourcesMap, podWaysMap, podBlocksMap, podFullBlocksMap, nft.Key{Pod: b.Pod, Other: b.EgressIP}, nft.Key{Pod: b.Pod}}
	}
	own, key := nft.Key{Pod: b.Pod, Protocol: b.Protocol, Other: b.EgressIP}, nft.Key{Pod: b.Pod, Protocol: b.Protocol}
	return places{ownSet, boundSet, sourcesMap, waysMap, blocksMap, fullBlocksMap, own, key}
}

// here returns the egress IPs that are here, of those that may come: their packets take no other way, and some node has them.
func (c *content) here() map[netip.Addr]bool {
	here := map[netip.Addr]bool{}
	for egressIP := range c.steering.Held {
		if !c.steering.HasWay(egressIP) && !c.steering.Absent[egressIP] {
			here[egressIP] = true
		}
	}
	return here
}

// steers tells whether packets of some binding do not leave from this node.
func (c *content) steers() bool {
	for egressIP, way := range c.steering.Ways {
		if way.Kind != "" && c.uses[egressIP] > 0 {
			return true
		}
	}
	return false
}

// holders returns the nodes that packets are steered to, sorted: those that hold the egress IP of a binding.
func (c *content) holders() []netip.Addr {
	nodes := map[netip.Addr]bool{}
	for egressIP, way := range c.steering.Ways {
		if way.Kind == kernel.ToNode && c.uses[egressIP] > 0 {
			nodes[way.Node] = true
		}
	}
	return slices.SortedFunc(maps.Keys(nodes), netip.Addr.Compare)
}
