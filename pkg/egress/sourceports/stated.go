package sourceports

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/attachments"
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
	heard      uint64
	generation uint64
	revision   uint64 // of the plan
	held       map[netip.Addr]bool
	own        []portblocks.Stated
	blocks     []kernel.Block
}

// mayDiffer notes that blocks may count otherwise than before, and tells whether the last answers of AddPorts are not what they would be now.
// Mostly a node's claims are about egress IPs that are not here.
func (al *Allocator) mayDiffer() (differs bool) {
	al.mu.Lock()
	al.generation++
	noted, stated := maps.Clone(al.blocks), al.mine.revision
	al.mu.Unlock()
	al.wake.Send()
	for family, known := range noted {
		differs = differs || al.isOver(family, known)
	}
	return differs || al.own().revision != stated
}

// isOver tells whether blocks that were noted are not those that there are now.
func (al *Allocator) isOver(family v1.IPFamily, noted *blocksOf) bool {
	now, _ := al.blocksNow(family, noted.held)
	return !slices.Equal(now.blocks, noted.blocks)
}

// believed returns what tells whether a block counts that a node says to be of a pod.
func (al *Allocator) believed(family v1.IPFamily) func(node string, block kernel.Block) bool {
	homes := sync.OnceValue(func() map[netip.Addr]string { return al.state.Homes(family) })
	return func(node string, block kernel.Block) bool {
		home, known := homes()[block.Pod]
		if known && home != node || !known && !leadTo(al.state.BindingsOf(block.Pod), block.EgressIP) {
			return false // its address was another pod's, or there is no such pod, or somebody lies
		}
		return al.keeper.Believes(node, block.EgressIP, block.Ports)
	}
}

// Apply takes what is said of source ports, and of nodes, and tells whether the kernel is to have something else. It ignores other events.
func (al *Allocator) Apply(event holders.Event) (changed bool) {
	if al == nil {
		return false
	}
	switch event.(type) {
	case holders.Assigned, holders.LeaseDeleted, holders.NodeSeen, holders.NodeDeleted, holders.LeasesKnown, holders.Hearing:
	default:
		return false // what addresses do need not wait for a plan that is being made
	}
	node, came, went := al.hear(event)
	switch event := event.(type) {
	case holders.NodeSeen:
		al.keeper.SetNode(event.Name, true)
	case holders.NodeDeleted:
		al.keeper.SetNode(event.Name, false)
	case holders.LeasesKnown:
		al.keeper.Listed()
	case holders.Hearing:
		al.keeper.SetReachable(event.Now)
	}
	return len(came)+len(went) > 0 && al.matter(node, came, went)
}

// hear takes what is said of a node's source ports, and returns which blocks it has now, and has not any more.
func (al *Allocator) hear(event holders.Event) (node string, came, went []kernel.Block) {
	al.mu.Lock()
	defer al.mu.Unlock()
	switch event := event.(type) {
	case holders.Assigned:
		if node = event.Node; node != al.state.Config.NodeName {
			came, went = al.others.Tell(node, event.Source == holders.Announcement, event.Revision, event.Blocks, time.Now())
		}
	case holders.LeaseDeleted:
		node = event.Node
		came, went = al.others.ForgetLease(node)
	case holders.NodeDeleted:
		went = al.others.Forget(event.Name)
	}
	if len(came)+len(went) > 0 {
		al.heard++
	}
	return node, came, went
}

// matter tells whether the kernel is to have something else because of blocks of a node that came or went. Mostly they are of egress IPs that
// are not here, which costs no more than there are of them.
func (al *Allocator) matter(node string, came, went []kernel.Block) bool {
	al.mu.Lock()
	noted := maps.Clone(al.blocks)
	al.mu.Unlock()
	for family, known := range noted {
		is := func(b kernel.Block) bool { return known.held[b.EgressIP] && cluster.FamilyOf(b.EgressIP) == family }
		has := func(b kernel.Block) bool { return is(b) && slices.Contains(known.blocks, b) }
		if slices.ContainsFunc(went, has) {
			return true
		}
		if came := slices.DeleteFunc(slices.Clone(came), func(b kernel.Block) bool { return !is(b) }); len(came) > 0 {
			believed := al.believed(family)
			if slices.ContainsFunc(came, func(b kernel.Block) bool { return believed(node, b) }) {
				return true
			}
		}
	}
	return false
}

// TakeLease takes what the Lease of a node says of its pods' ports. It is for plans of a node on which no process follows what happens: what
// the node's own Lease says counts, too.
func (al *Allocator) TakeLease(node string, revision uint64, blocks []kernel.Block, now time.Time) {
	al.mu.Lock()
	defer al.mu.Unlock()
	al.others.Tell(node, false, revision, blocks, now)
}

// Assignments returns what this node's pods have: those of attachments, sorted, and then those that started without the CNI plugin. Of the
// latter neither the UID is known nor since when, and perhaps not the name.
func (al *Allocator) Assignments() (list []portblocks.Assignment) {
	if al == nil {
		return nil
	}
	return al.assignments(slices.Concat(al.attached(), al.unattached()))
}

// attached returns the pods of attachments that have ports, sorted.
func (al *Allocator) attached() []attachments.Attachment {
	al.mu.Lock()
	defer al.mu.Unlock()
	return inOrder(al.pods)
}

// inOrder returns pods, sorted by the IDs of their containers.
func inOrder(pods map[string]attachments.Attachment) (list []attachments.Attachment) {
	for _, id := range slices.Sorted(maps.Keys(pods)) {
		list = append(list, pods[id])
	}
	return list
}

// assignments returns what pods have.
func (al *Allocator) assignments(pods []attachments.Attachment) (list []portblocks.Assignment) {
	for _, a := range pods {
		for _, p := range a.Ports {
			list = append(list, al.assignment(a, p))
		}
	}
	return list
}

// own returns what pods of this node have. What changes while it is found out is part of it.
func (al *Allocator) own() ownPorts {
	for {
		al.mu.Lock()
		known, generation, pods := al.mine, al.generation, al.pods
		al.mu.Unlock()
		revisions := [2]uint64{al.state.Revision(v1.IPv4Protocol), al.state.Revision(v1.IPv6Protocol)}
		if known.known && known.generation == generation && known.revisions == revisions {
			return known
		}
		now := ownPorts{known: true, generation: generation, revisions: revisions, blocks: al.ownBlocks(pods)}
		for _, one := range now.blocks {
			now.stated = append(now.stated, one.Block)
		}
		if len(pods) > 0 {
			now.assigned = portblocks.FormatAssigned(al.assignments(inOrder(pods)))
		}
		if al.noteOwn(&now, len(pods)) {
			return now
		}
	}
}

// noteOwn notes what pods of this node have, and sets its revision, unless there is something newer.
func (al *Allocator) noteOwn(now *ownPorts, pods int) bool {
	al.mu.Lock()
	defer al.mu.Unlock()
	before := al.mine
	if now.generation != al.generation || now.revisions[0] < before.revisions[0] || now.revisions[1] < before.revisions[1] {
		return false
	}
	if now.revision = before.revision; !slices.Equal(now.stated, before.stated) || now.assigned != before.assigned {
		now.revision = portblocks.NextRevision(before.revision, time.Now())
	}
	tooMany := now.assigned == portblocks.TooManyAssigned
	if tooMany && !al.tooMany {
		al.sayLater(func() {
			al.config.Logger.Error(nil, "This node has too many pods with source ports of their own to list them in its Lease; other nodes learn of the ports only from direct announcements", "pods", pods)
		})
	}
	al.mine, al.tooMany = *now, tooMany
	return true
}

// ownBlocks returns the blocks that these pods of this node have, of the egress IPs that they leave from, sorted.
func (al *Allocator) ownBlocks(pods map[string]attachments.Attachment) (list []portblocks.Stated) {
	for id, a := range pods {
		first, _ := al.keeper.Of(id)
		second, _ := al.keeper.Of(portblocks.Second(id))
		for _, p := range a.Ports {
			given := first
			if p.Second {
				given = second
			}
			if p.Shared || !slices.Contains(given.Of, p.EgressIP) || !leadTo(al.state.BindingsOf(p.IP), p.EgressIP) {
				continue
			}
			list = append(list, portblocks.Stated{
				Block: kernel.Block{Pod: p.IP, EgressIP: p.EgressIP, Ports: kernel.Ports{First: p.First, Last: p.Last}, Second: p.Second}, Node: al.state.Config.NodeName, Since: p.Since,
			})
		}
	}
	slices.SortFunc(list, func(a, b portblocks.Stated) int { return kernel.CompareBlocks(a.Block, b.Block) })
	return list
}

// Stated returns the blocks that this node says its pods have, the list of them for its Lease ([portblocks.TooManyAssigned] if that is
// too long), and the revision of both; 0 if there was never anything to say. The blocks must not be changed.
func (al *Allocator) Stated() (blocks []kernel.Block, assigned string, revision uint64) {
	if al == nil {
		return nil, "", 0
	}
	own := al.own()
	return own.stated, own.assigned, own.revision
}

// AddPorts adds to the ways of an IP family which ports pods have: this node's, and others' of the egress IPs that are here or may come here
// (result.Held). egressIPs are all of the family.
func (al *Allocator) AddPorts(family v1.IPFamily, egressIPs []netip.Addr, result *kernel.Steering) {
	if al == nil {
		return
	}
	now, _ := al.blocksNow(family, result.Held)
	al.add(now, egressIPs, result)
}

// NotePorts is AddPorts for a sync, which brings the answer into the kernel: it is noted. If something has changed meanwhile that makes it
// another one, there is another sync.
func (al *Allocator) NotePorts(family v1.IPFamily, egressIPs []netip.Addr, result *kernel.Steering) {
	if al == nil {
		return
	}
	now, clashes := al.blocksNow(family, result.Held)
	al.add(now, egressIPs, result)
	if changing := al.note(family, now, clashes); changing && al.isOver(family, now) {
		al.config.RequestSync()
	}
}

// add adds blocks, and the ports that pods without one share.
func (al *Allocator) add(now *blocksOf, egressIPs []netip.Addr, result *kernel.Steering) {
	result.Blocks = now.blocks
	if al.config.BlockSize > 0 && len(egressIPs) > 0 || len(now.blocks) > 0 {
		result.Shared = map[netip.Addr]kernel.Ports{}
	}
	for _, block := range now.blocks {
		result.Shared[block.EgressIP] = portblocks.Shared
	}
	if al.config.BlockSize > 0 {
		for _, ip := range egressIPs {
			result.Shared[ip] = portblocks.Shared
		}
	}
}

// note notes the blocks of a family. It tells whether something has changed since they were found out: who has told of that has compared it
// with what was noted before.
func (al *Allocator) note(family v1.IPFamily, now *blocksOf, clashes []portblocks.Clash) (changing bool) {
	al.mu.Lock()
	defer al.mu.Unlock()
	if now != al.blocks[family] {
		al.blocks[family] = now
		al.logClashes(family, clashes)
	}
	return now.generation != al.generation || now.heard != al.heard
}

// blocksNow returns the blocks of pods, which are those that NotePorts noted last if nothing has changed: of this node's pods, and of others'
// of the egress IPs that are held.
func (al *Allocator) blocksNow(family v1.IPFamily, held map[netip.Addr]bool) (*blocksOf, []portblocks.Clash) {
	revision, mine := al.state.Revision(family), al.own()
	own := slices.DeleteFunc(slices.Clone(mine.blocks), func(one portblocks.Stated) bool { return cluster.FamilyOf(one.EgressIP) != family })
	al.mu.Lock()
	known := al.blocks[family]
	if known != nil && known.heard == al.heard && known.generation == mine.generation && known.revision == revision && maps.Equal(known.held, held) && slices.Equal(known.own, own) {
		al.mu.Unlock()
		return known, nil
	}
	heard, others := al.heard, al.others.Of(held)
	al.mu.Unlock()
	believed := al.believed(family)
	others = slices.DeleteFunc(others, func(one portblocks.Stated) bool { return !believed(one.Node, one.Block) })
	blocks, clashes := portblocks.Settle(slices.Concat(own, others))
	return &blocksOf{heard, mine.generation, revision, maps.Clone(held), own, blocks}, clashes
}

// logClashes tells of pods that nodes say to have the same port. That should not be. The lock must be held.
func (al *Allocator) logClashes(family v1.IPFamily, clashes []portblocks.Clash) {
	before, now := al.clashing[family], map[string]bool{}
	al.sayLater(func() { portClashes.WithLabelValues(string(family)).Set(float64(len(clashes))) })
	for _, c := range clashes {
		text := fmt.Sprintf("the pods %s on %s and %s on %s are reported to have the same ports of %s (%s, %s). The first pod keeps its ports, the second one shares ports. The Lease %s names the node that has claimed the ports; restart the other node's process, and report this",
			c.Counts.Pod, c.Counts.Node, c.Other.Pod, c.Other.Node, c.Counts.EgressIP, c.Counts.Ports, c.Other.Ports, portblocks.LeaseName(c.Counts.EgressIP))
		if !before[text] && !al.lines.TryAccept() {
			continue // a node may say anything, and again something else; what lasts is told with the next change
		}
		if now[text] = true; !before[text] {
			al.sayLater(func() {
				al.config.Logger.Error(nil, "Two pods have the same source ports", "reason", text)
				al.config.WarnNode(portBlockClash, text)
			})
		}
	}
	al.clashing[family] = now
}

// PortMap returns the blocks of other nodes' pods of which this node has the egress IP, or may have it, as of the last syncs.
func (al *Allocator) PortMap() (list []kernel.Block) {
	if al == nil {
		return nil
	}
	al.mu.Lock()
	defer al.mu.Unlock()
	for _, family := range cluster.Families {
		of := al.blocks[family]
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
