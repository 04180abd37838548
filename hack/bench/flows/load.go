package flows

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

var (
	// singleIP is the source address that the single rule gives to all flows.
	singleIP = netip.MustParseAddr("198.19.255.1")
	// exitIP is the address of the interface that leads there.
	exitIP = netip.MustParseAddr("172.31.0.1")
	// toOutside is routed to the sink. It and the next /16 are for benchmarks, by RFC 2544.
	toOutside = netip.MustParsePrefix("198.18.0.0/16")
)

const (
	// podsPerNode have the first addresses of a /23, as on a node of OpenShift. Every fifth is unbound.
	podsPerNode  = 250
	nodeNetwork  = 512
	firstPod     = 3
	destinations = 64
	firstPort    = 1024
)

// podAddr returns the address of a pod, bound or not.
func podAddr(i int) netip.Addr {
	base := binary.BigEndian.Uint32(lab.ClusterV4.Addr().AsSlice())
	// The first /23 is the lab's own.
	return fromUint(base + uint32((1+i/podsPerNode)*nodeNetwork+firstPod+i%podsPerNode))
}

func boundPod(i int) netip.Addr   { return podAddr(i/4*5 + i%4) }
func unboundPod(i int) netip.Addr { return podAddr(i*5 + 4) }

func egressIP(i int) netip.Addr { return fromUint(0xC6130000 + uint32(i)) } // 198.19.0.0

func fromUint(ip uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, ip)))
}

// planOf binds so many pods for TCP, a hundred to each egress IP, and excludes what the default configuration
// excludes in a cluster of so many nodes.
func planOf(bindings, nodes int) kernel.Desired {
	p := kernel.Desired{Networks: kernel.Networks{
		ClusterCIDRs: []netip.Prefix{lab.ClusterV4}, Exclusions: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")},
	}}
	node := netip.MustParseAddr("192.0.2.2")
	for range nodes {
		p.Exclusions = append(p.Exclusions, netip.PrefixFrom(node, 32))
		node = node.Next()
	}
	p.Exclusions = append(p.Exclusions, netip.MustParsePrefix("224.0.0.0/4"))
	for i := range bindings {
		p.Bindings = append(p.Bindings, kernel.Binding{Pod: boundPod(i), Protocol: kernel.TCP, EgressIP: egressIP(i % max(1, bindings/100))})
	}
	return p
}

// blockPorts is how many ports a pod has of its egress IP, so that all that share one have a block.
const blockPorts = 256

// blockOf is the block of the pod of a binding.
func blockOf(i, bindings int) kernel.Ports {
	first := uint16(firstPort + i/max(1, bindings/100)*blockPorts)
	return kernel.Ports{First: first, Last: first + blockPorts - 1}
}

// flow is a new flow.
type flow struct {
	pod netip.Addr
	// leavesAs is the pod's egress IP; its own address if it is unbound.
	leavesAs netip.Addr
	// port is the pod's; another one for each flow if 0.
	port uint16
}

// load is which pods send.
type load struct {
	name, title string
	// next returns the pod of the next flow, bound or not, by its number.
	next    func(bindings int, random *rand.Rand) (pod int)
	unbound bool
	// blocks: each pod sends from the ports of its block.
	blocks bool
}

// A quarter as many pods are unbound as bound.
var (
	onePod     = load{"one", "new flows of one pod", func(n int, _ *rand.Rand) int { return n / 2 }, false, false}
	randomPods = load{"random", "new flows of random pods", func(n int, r *rand.Rand) int { return r.IntN(n) }, false, false}
	blockPods  = load{"blocks", "new flows of random pods from ports in a row", func(n int, r *rand.Rand) int { return r.IntN(n) }, false, true}
	oneUnbound = load{"unbound", "new flows of one unbound pod", func(n int, _ *rand.Rand) int { return n / 8 }, true, false}
	unbound    = load{"unbound-random", "new flows of random unbound pods", func(n int, r *rand.Rand) int { return r.IntN(max(1, n/4)) }, true, false}

	loads = []load{onePod, randomPods, blockPods, oneUnbound, unbound}
)

// of returns so many flows of a plan's pods.
func (l load) of(p kernel.Desired, count int) []flow {
	random := rand.New(rand.NewPCG(1, uint64(len(p.Bindings))))
	all, begun := make([]flow, count), map[int]int{}
	for i := range all {
		pod := l.next(len(p.Bindings), random)
		switch {
		case l.unbound:
			all[i] = flow{unboundPod(pod), unboundPod(pod), 0}
		default:
			all[i] = flow{p.Bindings[pod].Pod, p.Bindings[pod].EgressIP, 0}
		}
		if l.blocks { // each port for all destinations before the next one
			begun[pod]++
			all[i].port = blockOf(pod, len(p.Bindings)).First + uint16(begun[pod]%blockPorts)
		}
	}
	return all
}

// MAC addresses, the last byte of 02:00:00:00:00:xx.
const (
	macGenerator = 1
	macFrom      = 2
	macTo        = 3
	macSink      = 4
	macNobody    = 5
)

// frameSize is that of Ethernet, IPv4 and TCP headers without options.
const frameSize = 14 + 20 + 20

// TCP flags.
const (
	syn = 0x02
	ack = 0x10
)

// segment is a TCP segment without data in its frame.
type segment struct {
	from, to            byte // MAC addresses
	source, destination netip.AddrPort
	sequence, acks      uint32
	flags               byte
}

// put writes the frame.
func (s segment) put(frame []byte) {
	clear(frame[:frameSize])
	frame[0], frame[5], frame[6], frame[11], frame[12] = 2, s.to, 2, s.from, 8
	ip, tcp := frame[14:34], frame[34:54]
	ip[0], ip[3], ip[6], ip[8], ip[9] = 0x45, 40, 0x40, 64, 6
	copy(ip[12:], s.source.Addr().AsSlice())
	copy(ip[16:], s.destination.Addr().AsSlice())
	binary.BigEndian.PutUint16(ip[10:], checksum(ip, 0))
	binary.BigEndian.PutUint16(tcp[0:], s.source.Port())
	binary.BigEndian.PutUint16(tcp[2:], s.destination.Port())
	binary.BigEndian.PutUint32(tcp[4:], s.sequence)
	binary.BigEndian.PutUint32(tcp[8:], s.acks)
	tcp[12], tcp[13] = 0x50, s.flags
	binary.BigEndian.PutUint16(tcp[14:], 0xFFFF)
	const pseudo = 6 + 20 // protocol and length
	binary.BigEndian.PutUint16(tcp[16:], checksum(frame[26:54], pseudo))
}

// checksum is that of RFC 1071.
func checksum(data []byte, sum uint32) uint16 {
	for i := 0; i < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

// parse is the inverse of put, except for MAC addresses.
func parse(frame []byte) (s segment, ok bool) {
	if len(frame) < frameSize || frame[12] != 8 || frame[13] != 0 || frame[14] != 0x45 || frame[23] != 6 {
		return s, false
	}
	port := func(at int) uint16 { return binary.BigEndian.Uint16(frame[at:]) }
	s.source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(frame[26:30])), port(34))
	s.destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(frame[30:34])), port(36))
	s.sequence, s.acks = binary.BigEndian.Uint32(frame[38:]), binary.BigEndian.Uint32(frame[42:])
	s.flags = frame[47]
	return s, true
}

// first is the segment that begins flow i of a load; i is its sequence number.
func first(load []flow, i int) segment {
	return segment{
		from: macGenerator, to: macFrom, flags: syn, sequence: uint32(i),
		source:      netip.AddrPortFrom(load[i].pod, cmp.Or(load[i].port, uint16(firstPort+i))),
		destination: netip.AddrPortFrom(outsideAddr(i), 443),
	}
}

func outsideAddr(i int) netip.Addr {
	return fromUint(binary.BigEndian.Uint32(toOutside.Addr().AsSlice()) + 1 + uint32(i%destinations))
}

// begin returns the frames that begin the flows of a load.
func begin(load []flow) []byte {
	frames := make([]byte, len(load)*frameSize)
	for i := range load {
		first(load, i).put(frames[i*frameSize:])
	}
	return frames
}

// carryOn returns n frames of the load's flows in turn, as sent after the far side's answer.
func carryOn(load []flow, n int) []byte {
	frames := make([]byte, n*frameSize)
	for k := range n {
		s := first(load, k%len(load))
		s.flags, s.sequence, s.acks = ack, s.sequence+1, s.sequence+1
		s.put(frames[k*frameSize:])
	}
	return frames
}

// answer is the far side's answer to a segment.
func answer(seen segment) segment {
	return segment{
		from: macSink, to: macTo, source: seen.destination, destination: seen.source,
		sequence: seen.sequence, acks: seen.sequence + 1, flags: syn | ack,
	}
}
