package portblocks

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Map has the blocks that nodes say that their pods have. It is pure, and for one goroutine at a time.
type Map struct{ nodes map[string]*saying }

// saying is what a node says: in its Lease, and directly.
type saying struct {
	lease, direct *said
	// since has when each block was first heard of.
	since map[kernel.Block]time.Time
}

type said struct {
	revision uint64
	blocks   []kernel.Block
}

// beginning is when revisions begin: so they fit where nodes bound them until 2095, and where those of older releases do until 2043.
var beginning = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// latest is the largest revision that is taken from a clock, which may be far ahead. Nodes doubt larger ones, or do not read them.
const latest = 1<<41 - 1<<20

// NextRevision returns the revision of what a node says after another one; 0 if its process has said nothing. It is the time, so that what
// a process says that starts is later than what the one before has said. If the clock was set back, that is so as soon as its Lease says it.
func NextRevision(last uint64, now time.Time) uint64 {
	return max(last+1, uint64(min(max(now.Sub(beginning).Milliseconds(), 0), latest)))
}

// NewMap returns a Map of which nobody has said anything.
func NewMap() *Map { return &Map{map[string]*saying{}} }

// Tell takes what a node says, in its Lease or directly, all of it. It returns which blocks the node says now, and did not before, and which it
// does not say any more.
func (m *Map) Tell(node string, direct bool, revision uint64, blocks []kernel.Block, now time.Time) (came, went []kernel.Block) {
	s := m.nodes[node]
	if s == nil {
		s = &saying{since: map[kernel.Block]time.Time{}}
		m.nodes[node] = s
	}
	where := &s.lease
	if direct {
		where = &s.direct
	}
	before := s.counts()
	if *where != nil && (*where).revision == revision && slices.Equal((*where).blocks, blocks) {
		return nil, nil
	}
	if !direct && revision == 0 && s.lease != nil && s.lease.revision > 0 {
		s.direct = nil // a new process has nothing to say; what an earlier one said directly is over
	}
	*where = &said{revision, blocks}
	after := s.counts()
	since := make(map[kernel.Block]time.Time, len(after))
	for _, block := range after {
		if since[block] = now; !s.since[block].IsZero() {
			since[block] = s.since[block]
		}
	}
	s.since = since
	return kernel.Without(after, before), kernel.Without(before, after)
}

// counts returns the later one of what a node says.
func (s *saying) counts() []kernel.Block {
	switch {
	case s.direct != nil && (s.lease == nil || s.direct.revision >= s.lease.revision):
		return s.direct.blocks
	case s.lease != nil:
		return s.lease.blocks
	}
	return nil
}

// ForgetLease says that a node has no Lease any more, Forget that it has no Node. Both return what Tell does.
func (m *Map) ForgetLease(node string) (came, went []kernel.Block) {
	s := m.nodes[node]
	if s == nil || s.lease == nil {
		return nil, nil
	}
	if s.direct == nil {
		return nil, m.Forget(node)
	}
	before := s.counts()
	s.lease = nil
	return kernel.Without(s.counts(), before), kernel.Without(before, s.counts())
}

// Forget is as ForgetLease says.
func (m *Map) Forget(node string) (went []kernel.Block) {
	if s := m.nodes[node]; s != nil {
		went = s.counts()
	}
	delete(m.nodes, node)
	return went
}

// Stated is a block that a node says that one of its pods has, since a time as far as is known.
type Stated struct {
	kernel.Block
	Node  string
	Since time.Time
}

// Clash is two pods that nodes say to have the same port of an egress IP. The first one counts.
type Clash struct{ Counts, Other Stated }

// Of returns the blocks that nodes say to have of these egress IPs, in no order.
func (m *Map) Of(egressIPs map[netip.Addr]bool) (all []Stated) {
	for node, s := range m.nodes {
		for _, block := range s.counts() {
			if egressIPs[block.EgressIP] {
				all = append(all, Stated{block, node, s.since[block]})
			}
		}
	}
	return all
}

// Settle returns which of some blocks count, sorted by [kernel.CompareBlocks]. If two have a port in common, which should not be, the older
// one counts, and of the same age that of the node whose name sorts first; clashes has both. It sorts all.
func Settle(all []Stated) (blocks []kernel.Block, clashes []Clash) {
	slices.SortFunc(all, func(a, b Stated) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Node, b.Node), kernel.CompareBlocks(a.Block, b.Block))
	})
	taken := map[netip.Addr]*units{}
	var counts []Stated
	for _, one := range all {
		u := taken[one.EgressIP]
		if u == nil {
			u = &units{}
			taken[one.EgressIP] = u
		}
		if u.overlap(one.Ports) {
			i := slices.IndexFunc(counts, func(other Stated) bool { return other.EgressIP == one.EgressIP && overlaps(other.Ports, one.Ports) })
			clashes = append(clashes, Clash{counts[i], one})
			continue
		}
		u.mark(one.Ports)
		counts = append(counts, one)
		blocks = append(blocks, one.Block)
	}
	slices.SortFunc(blocks, kernel.CompareBlocks)
	return blocks, clashes
}
