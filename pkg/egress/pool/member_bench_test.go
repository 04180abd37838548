package pool

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// BenchmarkMember_Heard: another member tells its state, a new one, or that which it has told before.
func BenchmarkMember_Heard(b *testing.B) {
	for _, size := range []struct{ nodes, addresses int }{{3, 250}, {10, 1000}, {100, 10000}, {1000, 10000}} {
		for _, isNew := range []bool{true, false} {
			b.Run(fmt.Sprintf("nodes=%d/addresses=%d/new=%v", size.nodes, size.addresses, isNew), func(b *testing.B) {
				m, told := newLargePool(size.nodes, size.addresses, true)
				m.Next(Tick{}, moment(time.Minute))
				b.ResetTimer()
				for range b.N {
					if isNew {
						told.Version++
					}
					m.Next(Heard{told}, moment(time.Minute))
				}
			})
		}
	}
}

// BenchmarkMember_Vacant: no address is on a node. A round decides, and says how things stand: both together have to take much less than an answer
// to a probe is good for (validity).
func BenchmarkMember_Vacant(b *testing.B) {
	for _, size := range []struct{ nodes, addresses int }{{3, 250}, {10, 1000}, {100, 10000}, {1000, 10000}} {
		for _, what := range []string{"decides", "status"} {
			b.Run(fmt.Sprintf("nodes=%d/addresses=%d/%s", size.nodes, size.addresses, what), func(b *testing.B) {
				m, _ := newLargePool(size.nodes, size.addresses, false)
				m.Next(Tick{}, moment(time.Minute))
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					if what == "decides" {
						m.Next(Tick{}, moment(time.Minute))
					} else {
						m.Status()
					}
				}
			})
		}
	}
}

// newLargePool is a member of a pool in which each address is on a node, or none is. told is what another one has said last.
func newLargePool(nodes, addrs int, on bool) (m *Member, told State) {
	m = newMember("node-0")
	network := Network{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Up: true}
	m.Next(Networks{[]Network{network}}, moment(0))
	pool := Pool{}
	held := make([]map[netip.Addr]uint64, nodes)
	for i := range nodes {
		pool.Nodes = append(pool.Nodes, fmt.Sprintf("node-%d", i))
		held[i] = map[netip.Addr]uint64{}
	}
	all := addresses(addrs)
	for i, ip := range all {
		if on {
			held[i%nodes][ip] = 1
		}
	}
	m.Next(pool, moment(0))
	for ip := range held[0] {
		m.book.Find(ip)
	}
	for i, name := range pool.Nodes[1:] {
		m.peer(name).alive = true
		told = State{Name: name, Run: 1, Version: 1, Networks: []Network{network}, Held: held[i+1]}
		Heard{told}.apply(m, moment(0))
	}
	m.Next(Wanted{Addresses: all}, moment(0))
	return m, told
}
