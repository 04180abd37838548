package fastpath

import (
	"fmt"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Count is what took the fast path of one IP family.
type Count struct {
	// Sent is what was sent to other nodes, and Left what other nodes had sent and left from here.
	Sent, Left Traffic
}

// Traffic is an amount of packets, as they are on the wire, and their bytes.
type Traffic struct{ Packets, Bytes uint64 }

// Counts returns what has taken the fast path since it was loaded.
func (p *Path) Counts() (map[kernel.Family]Count, error) {
	read := func(key uint32) (sum Traffic, err error) {
		var each []programsCounter // of each CPU
		if err := p.objects.Counters.Lookup(key, &each); err != nil {
			return Traffic{}, fmt.Errorf("read the counters of the fast path: %w", err)
		}
		for _, c := range each {
			sum.Packets, sum.Bytes = sum.Packets+c.Packets, sum.Bytes+c.Bytes
		}
		return sum, nil
	}
	const sent, left = 0, 2 // as in the program
	counts := map[kernel.Family]Count{}
	for i, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		s, err := read(sent + uint32(i))
		if err != nil {
			return nil, err
		}
		l, err := read(left + uint32(i))
		if err != nil {
			return nil, err
		}
		counts[family] = Count{Sent: s, Left: l}
	}
	return counts, nil
}
