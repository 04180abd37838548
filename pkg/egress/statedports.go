package egress

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// ownPorts are the blocks of this node's pods, and what its Lease has of them, and what that follows from: mostly a sync is about something
// else.
type ownPorts struct {
	known      bool
	generation uint64
	revisions  [2]uint64
	blocks     []portblocks.Stated
	stated     []kernel.Block
	assigned   string
	// revision is that of stated and assigned, which grows each time that they are something else; 0: there was never anything.
	revision uint64
}

// blocksOf are the blocks of pods of other nodes, and what that follows from.
type blocksOf struct {
	generation uint64
	revision   uint64 // of the plan
	held       map[netip.Addr]bool
	own        []portblocks.Stated
	blocks     []kernel.Block
}

// mayDiffer notes that blocks may count otherwise than before, and tells whether they do for what the kernel holds.
func (s *sourcePorts) mayDiffer() (differs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.wake.Send()
	return s.differs()
}

// differs tells whether the last answers of steer are not what they would be now. Mostly a node's claims, and what it says of its pods, are
// about egress IPs that are not here. The lock must be held.
func (s *sourcePorts) differs() bool {
	for family, known := range s.blocks {
		if blocks, _ := s.blocksOf(family, known.held); !slices.Equal(blocks, known.blocks) {
			return true
		}
	}
	return false
}

// blocksOf returns the blocks of this node's pods of a family, and of others' of the egress IPs that are held. The lock must be held.
func (s *sourcePorts) blocksOf(family v1.IPFamily, held map[netip.Addr]bool) (blocks []kernel.Block, clashes []portblocks.Clash) {
	homes := s.state.Homes(family)
	return s.others.Of(s.ownOf(family), func(ip netip.Addr) bool { return held[ip] }, func(node string, block kernel.Block) bool {
		if home, known := homes[block.Pod]; known && home != node {
			return false // its address was another pod's, or somebody lies
		}
		return s.keeper.Believes(node, block.EgressIP, block.Ports)
	})
}

// ownOf returns the blocks of this node's pods of a family. The lock must be held.
func (s *sourcePorts) ownOf(family v1.IPFamily) []portblocks.Stated {
	return slices.DeleteFunc(slices.Clone(s.own().blocks), func(one portblocks.Stated) bool { return cluster.FamilyOf(one.EgressIP) != family })
}

// apply takes what is said of source ports, and of nodes, and tells whether something counts otherwise.
func (s *sourcePorts) apply(event holders.Event) (changed bool) {
	if s == nil {
		return false
	}
	switch event.(type) {
	case holders.Assigned, holders.LeaseDeleted, holders.NodeSeen, holders.NodeDeleted, holders.LeasesKnown, holders.Hearing:
	default:
		return false // what addresses do need not wait for a plan that is being made
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event := event.(type) {
	case holders.Assigned:
		if event.Node != s.state.Config.NodeName {
			changed = s.others.Tell(event.Node, event.Source == holders.Announcement, event.Revision, event.Blocks, time.Now())
		}
	case holders.LeaseDeleted:
		changed = s.others.ForgetLease(event.Node)
	case holders.NodeSeen:
		s.keeper.SetNode(event.Name, true)
	case holders.NodeDeleted:
		changed = s.others.Forget(event.Name)
		s.keeper.SetNode(event.Name, false)
	case holders.LeasesKnown:
		s.keeper.Listed()
	case holders.Hearing:
		s.keeper.SetReachable(event.Now)
	}
	if !changed {
		return false
	}
	s.generation++
	return s.differs()
}

// takeLease takes what the Lease of a node says of its pods' ports, which may be this node: where no process runs, nobody else says it.
func (s *sourcePorts) takeLease(node string, revision uint64, blocks []kernel.Block, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others.Tell(node, false, revision, blocks, now)
}

// assignments returns what this node's pods have: those of attachments, sorted, and then those that started without the CNI plugin. Of the
// latter neither the UID is known nor since when, and perhaps not the name.
func (s *sourcePorts) assignments() (list []portblocks.Assignment) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list = s.ownAssignments()
	for _, a := range s.unattached() {
		for _, p := range a.Ports {
			list = append(list, s.assignment(a, p))
		}
	}
	return list
}

// ownAssignments returns what the pods of attachments have, sorted. The lock must be held.
func (s *sourcePorts) ownAssignments() (list []portblocks.Assignment) {
	for _, id := range slices.Sorted(maps.Keys(s.pods)) {
		for _, p := range s.pods[id].Ports {
			list = append(list, s.assignment(s.pods[id], p))
		}
	}
	return list
}

// own returns what pods of this node have. The lock must be held.
func (s *sourcePorts) own() ownPorts {
	revisions := [2]uint64{s.state.Revision(v1.IPv4Protocol), s.state.Revision(v1.IPv6Protocol)}
	if s.mine.known && s.mine.generation == s.generation && s.mine.revisions == revisions {
		return s.mine
	}
	before := s.mine
	s.mine = ownPorts{known: true, generation: s.generation, revisions: revisions, blocks: s.ownBlocks(), revision: before.revision}
	for _, one := range s.mine.blocks {
		s.mine.stated = append(s.mine.stated, one.Block)
	}
	if list := s.ownAssignments(); len(list) > 0 {
		s.mine.assigned = portblocks.FormatAssigned(list)
	}
	if !slices.Equal(s.mine.stated, before.stated) || s.mine.assigned != before.assigned {
		s.mine.revision = portblocks.NextRevision(before.revision, time.Now())
	}
	tooMany := s.mine.assigned == portblocks.TooManyAssigned
	if pods := len(s.pods); tooMany && !s.tooMany {
		s.sayLater(func() {
			s.config.Logger.Error(nil, "This node has too many pods with source ports of their own to say in its Lease which; other nodes learn it directly alone", "pods", pods)
		})
	}
	s.tooMany = tooMany
	return s.mine
}

// ownBlocks returns the blocks that pods of this node have, of the egress IPs that they leave from, sorted. The lock must be held.
func (s *sourcePorts) ownBlocks() (list []portblocks.Stated) {
	for id, a := range s.pods {
		first, _ := s.keeper.Of(id)
		second, _ := s.keeper.Of(portblocks.Second(id))
		for _, p := range a.Ports {
			given := first
			if p.Second {
				given = second
			}
			if p.Shared || !slices.Contains(given.Of, p.EgressIP) || !leadTo(s.state.BindingsOf(p.IP), p.EgressIP) {
				continue
			}
			list = append(list, portblocks.Stated{
				Block: kernel.Block{Pod: p.IP, EgressIP: p.EgressIP, Ports: kernel.Ports{First: p.First, Last: p.Last}, Second: p.Second}, Node: s.state.Config.NodeName, Since: p.Since,
			})
		}
	}
	slices.SortFunc(list, func(a, b portblocks.Stated) int { return kernel.CompareBlocks(a.Block, b.Block) })
	return list
}

// stated returns the blocks that this node says its pods to have, what its Lease has of them, which is nothing if that is too much, and the
// revision of both. The list must not be changed.
func (s *sourcePorts) stated() (blocks []kernel.Block, assigned string, revision uint64) {
	if s == nil {
		return nil, "", 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own()
	return own.stated, own.assigned, own.revision
}

// steer adds to the ways of an IP family which ports pods have: this node's, and others' of the egress IPs that are here or may come here.
func (s *sourcePorts) steer(family v1.IPFamily, egressIPs []netip.Addr, result *kernel.Steering) {
	if s == nil {
		return
	}
	s.mu.Lock()
	now, _ := s.blocksNow(family, result.Held)
	s.mu.Unlock()
	result.Blocks = now.blocks
	if s.config.BlockSize > 0 && len(egressIPs) > 0 || len(now.blocks) > 0 {
		result.Shared = map[netip.Addr]kernel.Ports{}
	}
	for _, block := range now.blocks {
		result.Shared[block.EgressIP] = portblocks.Shared
	}
	if s.config.BlockSize > 0 {
		for _, ip := range egressIPs {
			result.Shared[ip] = portblocks.Shared
		}
	}
}

// note notes what steer answers when these egress IPs are here or may come here: a sync brings that into the kernel.
func (s *sourcePorts) note(family v1.IPFamily, held map[netip.Addr]bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, clashes := s.blocksNow(family, held); now != s.blocks[family] {
		s.blocks[family] = now
		s.logClashes(family, clashes)
	}
}

// blocksNow returns the blocks of pods, which are those that note noted last if nothing has changed. The lock must be held.
func (s *sourcePorts) blocksNow(family v1.IPFamily, held map[netip.Addr]bool) (*blocksOf, []portblocks.Clash) {
	own, known, revision := s.ownOf(family), s.blocks[family], s.state.Revision(family)
	if known != nil && known.generation == s.generation && known.revision == revision && maps.Equal(known.held, held) && slices.Equal(known.own, own) {
		return known, nil
	}
	blocks, clashes := s.blocksOf(family, held)
	return &blocksOf{s.generation, revision, maps.Clone(held), own, blocks}, clashes
}

// logClashes tells of pods that nodes say to have the same port. That should not be.
func (s *sourcePorts) logClashes(family v1.IPFamily, clashes []portblocks.Clash) {
	before, now := s.clashing[family], map[string]bool{}
	if before == nil || len(clashes) != len(before) {
		s.sayLater(func() { portClashes.WithLabelValues(string(family)).Set(float64(len(clashes))) })
	}
	for _, c := range clashes {
		text := fmt.Sprintf("the pods %s on %s and %s on %s are said to have the same ports of %s (%s, %s). The first counts, the second one shares. The Lease %s says which node has claimed them; restart the other one, and report this",
			c.Counts.Pod, c.Counts.Node, c.Other.Pod, c.Other.Node, c.Counts.EgressIP, c.Counts.Ports, c.Other.Ports, portblocks.LeaseName(c.Counts.EgressIP))
		if now[text] = true; !before[text] {
			s.sayLater(func() {
				s.config.Logger.Error(nil, "Two pods have the same source ports", "reason", text)
				s.config.TellNode(portBlockClash, text)
			})
		}
	}
	s.clashing[family] = now
}

// portMap returns the blocks of other nodes' pods of which this node has the egress IP, or may have it.
func (s *sourcePorts) portMap() (list []kernel.Block) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, family := range cluster.Families {
		of := s.blocks[family]
		if of == nil {
			continue
		}
		for _, block := range of.blocks {
			isOwn := func(own portblocks.Stated) bool { return own.Block == block }
			if !slices.ContainsFunc(of.own, isOwn) {
				list = append(list, block)
			}
		}
	}
	return list
}
