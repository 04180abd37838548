package steering

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// The sets for port blocks, which are there if [Config].PortBlocks is set. Those of pods are for bindings of all protocols.
const (
	blocksMap        = "blocks"          // pod . protocol : its egress IP . the ports that it gets
	podBlocksMap     = "pod-blocks"      // pod : the same
	fullBlocksMap    = "full-blocks"     // pod . protocol . ports : its egress IP . the same ports, which it keeps
	podFullBlocksMap = "pod-full-blocks" // pod . ports : the same
	inwardMap        = "inward"          // egress IP . ports : the pod that has them
	ownPortsSet      = "own-ports"       // pod . its ports
	freshSet         = "fresh"           // egress IPs that have come here
)

// freshTime is how long after an egress IP has come here this node passes on datagrams of flows that it does not know: as long as the
// former holder would have remembered one that only the far side uses (nf_conntrack_udp_timeout_stream, by default).
const freshTime = 2 * time.Minute

var blockSets = []nft.Set{
	{Name: blocksMap, Protocol: true, Map: true, GivesPorts: true},
	{Name: podBlocksMap, Map: true, GivesPorts: true},
	{Name: fullBlocksMap, Protocol: true, PortRange: true, Map: true, GivesPorts: true},
	{Name: podFullBlocksMap, PortRange: true, Map: true, GivesPorts: true},
	{Name: inwardMap, PortRange: true, Map: true},
	{Name: ownPortsSet, PortRange: true},
	{Name: freshSet, Timeout: freshTime, Passing: true},
}

// setsOf are the sets of the table.
func setsOf(c Config) []nft.Set {
	if !c.PortBlocks {
		return sets
	}
	return slices.Concat(sets, blockSets)
}

// blockOf is what a pod has ports of.
type blockOf struct{ pod, egressIP netip.Addr }

// twoPorts are the ports that a pod has of an egress IP: those of its first block, and of its second one, which is zero if it has none.
type twoPorts struct{ first, second kernel.Ports }

// with returns the ports with those of a block more. Of several first ones, or second ones, which nobody gives, the lowest counts. A block
// that is alone is the first, whatever it was.
func (p twoPorts) with(b kernel.Block) twoPorts {
	none := kernel.Ports{}
	switch {
	case p.first == none:
		p.first = b.Ports
	case p.second != none:
	case b.Second:
		p.second = b.Ports
	}
	return p
}

// two tells whether there is a second block.
func (p twoPorts) two() bool { return p.second != kernel.Ports{} }

// last are the ports that new flows get.
func (p twoPorts) last() kernel.Ports {
	if p.two() {
		return p.second
	}
	return p.first
}

// blocks are what a content knows of port blocks.
type blocks struct {
	// ports are those that source NAT gives.
	ports map[blockOf]twoPorts
	// given are the ports in the maps blocks and pod-blocks, by map and by the key without ports. full counts the bindings that have
	// two blocks.
	given map[string]map[nft.Key]twoPorts
	full  int
	// counting are the blocks, and bound how many bindings there are of a pod to an egress IP: without one the block leads nowhere.
	counting []kernel.Block
	bound    map[blockOf]int
	// closed are bindings that are leaving, and not among bound any more.
	closed map[kernel.Binding]bool
	// fresh are egress IPs that have come here, and until when they count as fresh.
	fresh map[nft.Key]nft.Passing
}

func newBlocks() blocks {
	return blocks{
		ports: map[blockOf]twoPorts{}, bound: map[blockOf]int{}, closed: map[kernel.Binding]bool{},
		given: map[string]map[nft.Key]twoPorts{blocksMap: {}, podBlocksMap: {}},
	}
}

// replaceBlocks has c be about the blocks that the steering has. Of two that have a port in common the first counts.
func (c *content) replaceBlocks(edit nft.Edit) {
	if !c.config.PortBlocks {
		return
	}
	before := c.blocks.ports
	c.blocks.counting = withoutOverlaps(c.steering.Blocks)
	c.blocks.ports = make(map[blockOf]twoPorts, len(c.blocks.counting))
	inward := make(nft.Elements, len(c.blocks.counting))
	for _, b := range c.blocks.counting {
		if c.blocks.bound[blockOf{b.Pod, b.EgressIP}] > 0 {
			inward[nft.Key{Pod: b.EgressIP, Ports: b.Ports}] = b.Pod
		}
	}
	for _, second := range []bool{false, true} {
		for _, b := range c.blocks.counting {
			if of := (blockOf{b.Pod, b.EgressIP}); b.Second == second {
				c.blocks.ports[of] = c.blocks.ports[of].with(b)
			}
		}
	}
	edit.Replace(inwardMap, inward)
	edit.Replace(ownPortsSet, ownPorts(c.steering))
	for of := range before {
		if _, stays := c.blocks.ports[of]; !stays {
			c.giveAll(edit, of.pod)
		}
	}
	for of, ports := range c.blocks.ports {
		if before[of] != ports {
			c.giveAll(edit, of.pod)
		}
	}
}

// withoutOverlaps returns the blocks but those that have a port of an egress IP that one before has. They are sorted by egress IP and port.
func withoutOverlaps(sorted []kernel.Block) (counting []kernel.Block) {
	for _, b := range sorted {
		last := len(counting) - 1
		if last >= 0 && counting[last].EgressIP == b.EgressIP && b.Ports.First <= counting[last].Ports.Last {
			continue
		}
		counting = append(counting, b)
	}
	return counting
}

// ownPorts are the elements of the set of pods' own ports, without pods that are known to run on other nodes: the kernel takes 60 ms to
// remove one element of 5,000. The same ports of several egress IPs are one; of blocks that lie in each other the larger one stays, for
// the kernel takes none that overlap.
func ownPorts(steering kernel.Steering) nft.Elements {
	byPod := slices.DeleteFunc(slices.Clone(steering.Blocks), func(b kernel.Block) bool { return steering.Elsewhere(b.Pod) })
	slices.SortFunc(byPod, func(a, b kernel.Block) int {
		return cmp.Or(a.Pod.Compare(b.Pod), cmp.Compare(a.Ports.First, b.Ports.First), cmp.Compare(b.Ports.Last, a.Ports.Last))
	})
	own := make(nft.Elements, len(byPod))
	var last kernel.Block
	for _, b := range byPod {
		if b.Pod == last.Pod && b.Ports.First <= last.Ports.Last {
			continue
		}
		own[nft.Key{Pod: b.Pod, Ports: b.Ports}] = netip.Addr{}
		last = b
	}
	return own
}

// giveAll has the bindings of a pod leave from the ports that it has of their egress IPs.
func (c *content) giveAll(edit nft.Edit, pod netip.Addr) {
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.All} {
		p := placesOf(kernel.Binding{Pod: pod, Protocol: protocol})
		if egressIP, bound := c.sets[p.sources][p.key]; bound {
			c.give(edit, p, egressIP)
		}
	}
}

// give has the binding in some places leave from the ports that its pod has of an egress IP: none if the egress IP is invalid, or
// the pod has none of it.
func (c *content) give(edit nft.Edit, p places, egressIP netip.Addr) {
	if !c.config.PortBlocks {
		return
	}
	given := c.blocks.given[p.blocks]
	had, has := given[p.key]
	ports, wanted := c.blocks.ports[blockOf{p.key.Pod, egressIP}]
	if has && (!wanted || had != ports) {
		edit.Remove(p.blocks, keyWith(p.key, had.last()))
		if had.two() {
			edit.Remove(p.fullBlocks, keyWith(p.key, had.first))
			c.blocks.full--
		}
		delete(given, p.key)
	}
	if !wanted {
		return
	}
	if ports.two() && given[p.key] != ports {
		c.blocks.full++
	}
	given[p.key] = ports
	edit.Set(p.blocks, keyWith(p.key, ports.last()), egressIP)
	if ports.two() {
		edit.Set(p.fullBlocks, keyWith(p.key, ports.first), egressIP)
	}
}

// bindBlock takes note that a pod has a binding more to an egress IP, or less. With the first one its ports lead to it, with the last
// one they do not any more.
func (c *content) bindBlock(edit nft.Edit, of blockOf, by int) {
	if !c.config.PortBlocks {
		return
	}
	was := c.blocks.bound[of] > 0
	if c.blocks.bound[of] += by; c.blocks.bound[of] == 0 {
		delete(c.blocks.bound, of)
	}
	is := c.blocks.bound[of] > 0
	if was == is || c.blocks.ports[of] == (twoPorts{}) {
		return
	}
	from, _ := slices.BinarySearchFunc(c.blocks.counting, of.egressIP, func(b kernel.Block, ip netip.Addr) int { return b.EgressIP.Compare(ip) })
	for _, b := range c.blocks.counting[from:] {
		key := nft.Key{Pod: b.EgressIP, Ports: b.Ports}
		switch {
		case b.EgressIP != of.egressIP:
			return
		case b.Pod != of.pod:
		case is:
			edit.Set(inwardMap, key, b.Pod)
		default:
			edit.Remove(inwardMap, key)
		}
	}
}

// closeBlock is bindBlock for a binding that leaves.
func (c *content) closeBlock(edit nft.Edit, b kernel.Binding) {
	if c.config.PortBlocks && !c.blocks.closed[b] {
		c.blocks.closed[b] = true
		c.bindBlock(edit, blockOf{b.Pod, b.EgressIP}, -1)
	}
}

func keyWith(key nft.Key, ports kernel.Ports) nft.Key {
	key.Ports = ports
	return key
}
