package steering

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// Table is the name of the nftables table, in either family. Changing it orphans what earlier versions
// have written.
const Table = "openshift-egress-steering"

// The sets of the table. Those of pods are for bindings of all protocols.
const (
	clusterSet    = "cluster" // without a tunnel
	exclusionsSet = "exclusions"
	nodesSet      = "nodes"      // the other nodes of the cluster
	speakersMap   = "speakers"   // node : goto the node's chain, with a tunnel
	homesSet      = "homes"      // pod . hardware address of its node
	homedSet      = "homed"      // pod whose node is known
	sendersSet    = "senders"    // the hardware addresses of the other nodes, without a tunnel
	egressIPsSet  = "egress-ips" // of all bindings
	ownSet        = "own"        // pod . protocol . its egress IP
	ownPodsSet    = "own-pods"   // pod . its egress IP
	boundSet      = "bound"      // pod . protocol
	boundPodsSet  = "bound-pods" // pod
	bindingsMap   = "bindings"   // pod . protocol : egress IP
	podsMap       = "pods"       // pod : egress IP
	waysMap       = "ways"       // pod . protocol : goto the egress IP's chain
	podWaysMap    = "pod-ways"   // pod : goto the egress IP's chain
)

// nodeChains begins the names of the chains that look at what a node sends into the tunnel.
const nodeChains = "node-"

// wayChains begins the names of the chains that say which way packets of an egress IP take.
const wayChains = "egress-"

var sets = []table.Set{
	{Name: clusterSet, Ranges: true},
	{Name: exclusionsSet, Ranges: true},
	{Name: nodesSet},
	{Name: speakersMap, Map: true, Chains: nodeChains},
	{Name: sendersSet, Hardware: true},
	{Name: homesSet, From: true},
	{Name: homedSet},
	{Name: egressIPsSet},
	{Name: ownSet, Protocol: true, Other: true},
	{Name: ownPodsSet, Other: true},
	{Name: boundSet, Protocol: true},
	{Name: boundPodsSet},
	{Name: bindingsMap, Protocol: true, Map: true},
	{Name: podsMap, Map: true},
	{Name: waysMap, Protocol: true, Map: true, Chains: wayChains},
	{Name: podWaysMap, Map: true, Chains: wayChains},
}

// The counters of what is dropped.
const (
	unsnattedCounter = "unsnatted" // a bound pod's packet that does not leave from its egress IP
	staleCounter     = "stale"     // one that another node sent here, and that no binding here is for
	flippedCounter   = "flipped"   // an answer to a bound pod whose flow is forgotten
	foreignCounter   = "foreign"   // one that is as if another node had sent it here, or an announcement, and comes from none
	forgedCounter    = "forged"    // a forwarded packet into the tunnel of another node, or one of a pod of yet another node
)

var counters = []string{unsnattedCounter, staleCounter, flippedCounter, foreignCounter, forgedCounter}

// content is what the sets hold for a [kernel.Desired], and the ways of its egress IPs. It follows changes.
type content struct {
	family    kernel.Family
	transport Transport
	hasTunnel bool
	sets      table.Content
	// uses counts the bindings of an egress IP, pods those of all protocols.
	uses map[netip.Addr]int
	pods int
	ways map[netip.Addr]kernel.Way
}

func newContent(config Config, d kernel.Desired) *content {
	c := &content{family: config.Family, transport: config.Transport, hasTunnel: config.hasTunnel(), sets: table.Content{}, uses: map[netip.Addr]int{}}
	for _, set := range sets {
		c.sets[set.Name] = table.Elements{}
	}
	c.follow(kernel.Change{
		Added: d.Bindings, Networks: d.Networks, NetworksChanged: true, Steering: d.Steering, SteeringChanged: true,
	})
	return c
}

// follow turns c into what change leads to, and returns what that changes in the sets.
func (c *content) follow(change kernel.Change) table.Change {
	edit := table.NewEdit(c.sets)
	for _, b := range change.Removed {
		c.unbind(edit, b)
	}
	for _, b := range change.Added {
		c.bind(edit, b)
	}
	if change.NetworksChanged {
		edit.Replace(clusterSet, table.Ranges(change.Networks.ClusterCIDRs))
		edit.Replace(exclusionsSet, table.Ranges(slices.Concat(change.Networks.ClusterCIDRs, change.Networks.Exclusions)))
	}
	if change.SteeringChanged {
		c.ways = change.Steering.Ways
		c.replaceNodes(edit, change.Steering)
		c.replaceHomes(edit, change.Steering)
	}
	return edit.Change()
}

// replaceNodes turns the sets of other nodes into what steering has.
func (c *content) replaceNodes(edit table.Edit, steering kernel.Steering) {
	nodes, speakers, senders := table.Elements{}, table.Elements{}, table.Elements{}
	for _, node := range steering.Nodes {
		if node.Is4() != (c.family == kernel.IPv4) {
			continue
		}
		nodes[table.Key{Pod: node}] = netip.Addr{}
		if c.hasTunnel {
			speakers[table.Key{Pod: node}] = node
		}
	}
	for _, sender := range steering.Senders {
		senders[table.Key{Hardware: sender}] = netip.Addr{}
	}
	edit.Replace(nodesSet, nodes)
	edit.Replace(speakersMap, speakers)
	edit.Replace(sendersSet, senders)
}

// replaceHomes turns the sets of pods whose nodes are known into what steering has. Those of a node whose hardware address
// is not known are left out. No other node sends packets of this node's own pods.
func (c *content) replaceHomes(edit table.Edit, steering kernel.Steering) {
	homes, homed := table.Elements{}, table.Elements{}
	for pod, node := range steering.Homes {
		at, known := steering.Senders[node]
		if c.transport == VXLAN {
			at, known = kernel.HardwareAddr(hardwareAddrOf(node)), true
		}
		if !known && node != steering.Self {
			continue
		}
		homes[table.Key{Pod: pod, Hardware: at}] = netip.Addr{}
		homed[table.Key{Pod: pod}] = netip.Addr{}
	}
	edit.Replace(homesSet, homes)
	edit.Replace(homedSet, homed)
}

func (c *content) bind(edit table.Edit, b kernel.Binding) {
	if c.uses[b.EgressIP]++; b.Protocol == kernel.All {
		c.pods++
	}
	edit.Set(egressIPsSet, table.Key{Pod: b.EgressIP}, netip.Addr{})
	for _, p := range places(b) {
		edit.Set(p.set, p.key, p.value)
	}
}

func (c *content) unbind(edit table.Edit, b kernel.Binding) {
	if b.Protocol == kernel.All {
		c.pods--
	}
	if c.uses[b.EgressIP]--; c.uses[b.EgressIP] == 0 {
		delete(c.uses, b.EgressIP)
		edit.Remove(egressIPsSet, table.Key{Pod: b.EgressIP})
	}
	own, others := places(b)[0], places(b)[1:]
	edit.Remove(own.set, own.key)
	if !c.gives(b) {
		return
	}
	for _, p := range others {
		edit.Remove(p.set, p.key)
	}
}

// gives tells whether a binding is what the maps have for its pod: another one may have come before this one goes.
func (c *content) gives(b kernel.Binding) bool {
	set, key := bindingsMap, table.Key{Pod: b.Pod, Protocol: b.Protocol}
	if b.Protocol == kernel.All {
		set, key = podsMap, table.Key{Pod: b.Pod}
	}
	return c.sets[set][key] == b.EgressIP
}

// place is an element that a binding has in a set.
type place struct {
	set   string
	key   table.Key
	value netip.Addr
}

// places returns the elements of a binding, that of its egress IP first, which other bindings of the pod do not have.
func places(b kernel.Binding) []place {
	if b.Protocol == kernel.All {
		key := table.Key{Pod: b.Pod}
		return []place{
			{ownPodsSet, table.Key{Pod: b.Pod, Other: b.EgressIP}, netip.Addr{}},
			{boundPodsSet, key, netip.Addr{}}, {podsMap, key, b.EgressIP}, {podWaysMap, key, b.EgressIP},
		}
	}
	key := table.Key{Pod: b.Pod, Protocol: b.Protocol}
	return []place{
		{ownSet, table.Key{Pod: b.Pod, Protocol: b.Protocol, Other: b.EgressIP}, netip.Addr{}},
		{boundSet, key, netip.Addr{}}, {bindingsMap, key, b.EgressIP}, {waysMap, key, b.EgressIP},
	}
}

// holders returns the nodes that packets are steered to, sorted: those that hold the egress IP of a binding.
func (c *content) holders() []netip.Addr {
	nodes := map[netip.Addr]bool{}
	for egressIP, way := range c.ways {
		if way.Kind == kernel.ToNode && c.uses[egressIP] > 0 {
			nodes[way.Node] = true
		}
	}
	return slices.SortedFunc(maps.Keys(nodes), netip.Addr.Compare)
}
