package fastpath

import (
	"fmt"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Count is what took the fast path of one IP family.
type Count struct {
	// Sent is what was sent to other nodes, and Left what other nodes had sent and left from here.
	Sent, Left Traffic
	// Own is what pods of this node have sent that left from here.
	Own Traffic
	// Answers are those to pods' flows: here and on the pod's node, if that is another one.
	Answers Traffic
}

// Traffic is an amount of packets, each segment of an aggregate counted, and of bytes, as the program had them: an aggregate has its
// headers once, what is sent those of the tunnel, and what left not.
type Traffic struct{ Packets, Bytes uint64 }

// Counts returns what has taken the fast path since it was loaded.
func (p *Path) Counts() (_ map[kernel.Family]Count, err error) {
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
	counts := map[kernel.Family]Count{}
	for i, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		var c Count
		for j, traffic := range []*Traffic{&c.Sent, &c.Left, &c.Own, &c.Answers} { // as in the program
			if *traffic, err = read(uint32(2*j + i)); err != nil {
				return nil, err
			}
		}
		counts[family] = c
	}
	return counts, nil
}
