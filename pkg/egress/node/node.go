package node

import (
	"maps"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
)

// Node is what one node knows of egress IPs, and what it does about them.
type Node struct {
	// Directory is the book. Whoever has a Node only asks it: its events go through Next.
	*holders.Directory
	// member is this node's part in the pool; nil if it has none.
	member *pool.Member
	// speaks: other nodes may be told. said is what they were told last.
	speaks bool
	said   holders.Statement
}

// New returns a Node that knows of nobody, and has no part in a pool.
func New(config holders.Config) *Node { return &Node{Directory: holders.NewDirectory(config)} }

// Join has this node take part in the pool, as [pool.NewMember] says.
func (n *Node) Join(run uint64, handover bool) { n.member = pool.NewMember(n.Directory, run, handover) }

// Member is this node's part in the pool; nil if it has none. Its events go through Next.
func (n *Node) Member() *pool.Member { return n.member }

// Event is one of package holders, or of package pool. The latter are for a node that has joined.
type Event any

// Next takes note of an event. It returns what is to be done about addresses, and whether answers of the directory have
// changed: packets may take other ways, [Node.Say] may say something else, and the member wants a [pool.Tick]. Of an event of the pool
// they seldom do: a decision alone changes none.
func (n *Node) Next(event Event, now time.Time) (actions []pool.Action, changed bool) {
	switch event := event.(type) {
	case holders.Event:
		changed = n.Apply(event, now)
	case pool.Event:
		actions = n.member.Next(event, now)
		changed = n.Changed()
	default:
		panic("unknown event") // a mistake of the caller
	}
	if changed && n.member != nil {
		n.member.BookChanged(now)
	}
	return actions, changed
}

// Speak lets other nodes be told from now on, and tells whether they could not before.
func (n *Node) Speak() (first bool) {
	first, n.speaks = !n.speaks, true
	return first
}

// Said is what this node has told all others last; its revision is 0 if that was nothing.
func (n *Node) Said() holders.Statement { return n.said }

// Say returns what this node tells all others from now on: which addresses that Services claim are here. It has another revision each time
// that it says something else; 0 as long as nothing is to be told.
func (n *Node) Say() holders.Statement {
	own := n.Announces()
	if !n.speaks || own == nil {
		return n.said
	}
	if n.said.Revision == 0 || !maps.Equal(own, n.said.Addresses) {
		n.said = holders.Statement{Addresses: own, Revision: n.NextRevision(n.said.Revision)}
	}
	return n.said
}

// MayCome tells whether the pool may put an address on this node at any moment.
func (n *Node) MayCome(ip netip.Addr) bool { return n.member != nil && n.member.Wants(ip) }

// MayAllCome are the addresses of which MayCome says so.
func (n *Node) MayAllCome() map[netip.Addr]bool {
	if n.member == nil {
		return nil
	}
	return n.member.AllWanted()
}
