package portblocks

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

func blockAt(pod string, first uint16) kernel.Block {
	return kernel.Block{Pod: netip.MustParseAddr(pod), EgressIP: egressIP, Ports: kernel.Ports{First: first, Last: first + 511}}
}

// all are the egress IPs of these tests.
var all = map[netip.Addr]bool{egressIP: true}

// expect expects which blocks there are.
func (m *Map) expect(t *testing.T, when string, want ...kernel.Block) {
	t.Helper()
	if got, _ := Settle(m.Of(all)); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

func TestMap_TheLaterStatementCounts(t *testing.T) {
	m, now := NewMap(), time.Unix(1e9, 0)
	one, two := blockAt("10.128.0.5", 1024), blockAt("10.128.0.6", 1536)
	for _, step := range []struct {
		when     string
		direct   bool
		revision uint64
		blocks   []kernel.Block
		changed  bool
		want     []kernel.Block
	}{
		{"the Lease", false, 5, []kernel.Block{one}, true, []kernel.Block{one}},
		{"the same directly", true, 5, []kernel.Block{one}, false, []kernel.Block{one}},
		{"heard again", true, 5, []kernel.Block{one}, false, []kernel.Block{one}},
		{"something new directly", true, 6, []kernel.Block{one, two}, true, []kernel.Block{one, two}},
		{"then in the Lease", false, 6, []kernel.Block{one, two}, false, []kernel.Block{one, two}},
		{"later in the Lease", false, 7, []kernel.Block{two}, true, []kernel.Block{two}},
		{"a new process, which goes on from the Lease", true, 8, nil, true, nil},
		{"it has blocks", true, 9, []kernel.Block{one}, true, []kernel.Block{one}},
		{"then in the Lease", false, 9, []kernel.Block{one}, false, []kernel.Block{one}},
		{"a new process, which has nothing to say", false, 0, nil, true, nil},
	} {
		if came, went := m.Tell("node-b", step.direct, step.revision, step.blocks, now); len(came)+len(went) > 0 != step.changed {
			t.Errorf("%s: came %v, went %v", step.when, came, went)
		}
		m.expect(t, step.when, step.want...)
	}
	m.Tell("node-b", false, 9, []kernel.Block{one}, now)
	for _, want := range [][]kernel.Block{{one}, nil} {
		if came, went := m.ForgetLease("node-b"); len(came) > 0 || !slices.Equal(went, want) {
			t.Errorf("without the Lease: came %v, went %v, want %v to go", came, went, want)
		}
		m.expect(t, "without the Lease")
	}
	m.Tell("node-b", true, 9, []kernel.Block{two}, now)
	for _, want := range [][]kernel.Block{{two}, nil} {
		if went := m.Forget("node-b"); !slices.Equal(went, want) || len(m.nodes) > 0 {
			t.Errorf("without the Node: went %v, want %v; %d nodes are kept", went, want, len(m.nodes))
		}
	}
}

// TestMap_Clash: of two that say to have a port the older one counts, then the name of the node; own ones are among them.
func TestMap_Clash(t *testing.T) {
	now := time.Unix(1e9, 0)
	older, younger, mine := blockAt("10.128.1.5", 1024), blockAt("10.128.2.5", 1024), blockAt("10.128.0.5", 1024)
	for _, test := range []struct {
		name            string
		b, c, own       time.Duration // after which it was first said; not at all if negative
		want            kernel.Block
		clashes         int
		counts, another string
	}{
		{"c is older", 2, 1, -1, younger, 1, "node-c", "node-b"},
		{"same age", 1, 1, -1, older, 1, "node-b", "node-c"},
		{"this node's is the oldest", 2, 3, 1, mine, 2, "node-a", "node-b"},
		{"this node's is the youngest", 1, -1, 2, older, 1, "node-b", "node-a"},
	} {
		m := NewMap()
		if m.Tell("node-b", true, 1, []kernel.Block{older}, now.Add(test.b)); test.c >= 0 {
			m.Tell("node-c", true, 1, []kernel.Block{younger}, now.Add(test.c))
		}
		m.Tell("node-b", false, 2, []kernel.Block{older}, now.Add(time.Hour)) // said again
		var own []Stated
		if test.own >= 0 {
			own = []Stated{{mine, "node-a", now.Add(test.own)}}
		}
		blocks, clashes := Settle(append(own, m.Of(all)...))
		if len(blocks) != 1 || blocks[0] != test.want || len(clashes) != test.clashes || clashes[0].Counts.Node != test.counts || clashes[0].Other.Node != test.another {
			t.Errorf("%s: %v, %v", test.name, blocks, clashes)
		}
	}
}

// TestMap_Filters: of others' egress IPs nothing is said.
func TestMap_Filters(t *testing.T) {
	m, now := NewMap(), time.Unix(1e9, 0)
	other := blockAt("10.128.1.6", 1536)
	other.EgressIP = netip.MustParseAddr("203.0.113.11")
	m.Tell("node-b", true, 1, []kernel.Block{blockAt("10.128.1.5", 1024), other}, now)
	if got := m.Of(all); len(got) != 1 || got[0].Block != blockAt("10.128.1.5", 1024) {
		t.Error(got)
	}
}

func TestNextRevision_Grows(t *testing.T) {
	now := beginning.Add(time.Hour)
	first := NextRevision(0, now)
	if second, after := NextRevision(first, now.Add(-time.Minute)), NextRevision(0, now.Add(time.Minute)); second <= first || after <= second || first == 0 {
		t.Errorf("%d, %d, %d", first, second, after)
	}
	for years, bound := range map[int]uint64{17: 1 << 39, 69: 1 << 41, 100: 1 << 41, 1000: 1 << 41} {
		if far := NextRevision(0, beginning.AddDate(years, 0, 0)); far >= bound {
			t.Errorf("in %d years %d is too large for the bound of revisions", years, far)
		}
	}
}
