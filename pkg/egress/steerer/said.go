package steerer

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// Synced notes that a sync of an IP family is over. Other nodes are told for the first time when each served family has had a sync.
// Earlier, not all objects may be known, so no address would count as an egress IP. And if a version that does not steer ran here before,
// nothing would stop packets that others send here from being masqueraded as this node.
func (s *Steerer) Synced(family v1.IPFamily, served []v1.IPFamily) {
	if s == nil {
		return
	}
	said := s.speak(family, served)
	s.tell(said)
	s.tellPorts(said)
}

// speak returns what other nodes are told from now on if they were told nothing before; zero otherwise, or as long as a family that is
// served has had no sync.
func (s *Steerer) speak(family v1.IPFamily, served []v1.IPFamily) (said holders.Statement) {
	objects := s.state.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeObjects(objects)
	s.guarded[family] = true
	if slices.ContainsFunc(served, func(f v1.IPFamily) bool { return !s.guarded[f] }) || !s.node.Speak() {
		return holders.Statement{}
	}
	s.noteClaims(time.Now())
	return s.node.Say()
}

// tell tells other nodes which egress IPs are here: directly, and by this node's Lease. Nothing is told if the statement's revision is 0.
func (s *Steerer) tell(said holders.Statement) {
	if said.Revision == 0 {
		return
	}
	if s.announcer != nil {
		s.announcer.SetAnnounced(said)
	}
	s.publisher.Changed()
}

// saysNone tells whether other nodes are told that no egress IP is here. Such a node does not renew its Lease.
func (s *Steerer) saysNone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.node.Said()
	return said.Revision > 0 && len(said.Addresses) == 0
}

// tellPorts tells other nodes directly which source ports this node's pods have, if they are told which egress IPs are here.
func (s *Steerer) tellPorts(said holders.Statement) {
	if said.Revision == 0 || s.announcer == nil {
		return
	}
	if blocks, _, revision := s.config.Ports.Stated(); revision > 0 {
		s.announcer.SetAssigned(revision, blocks)
	}
}

// published is what this node's Lease is to say.
func (s *Steerer) published() holders.Published {
	s.mu.Lock()
	p := holders.Published{Statement: s.node.Said(), NodeUID: s.uid}
	s.mu.Unlock()
	if p.Revision > 0 {
		p.Choices = s.state.PublishChoices()
		_, p.Assigned, p.AssignedRevision = s.config.Ports.Stated()
	}
	return p
}
