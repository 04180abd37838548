package portblocks

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// FirstPort is the first source port of an egress IP that pods get.
	FirstPort = 1024
	// SmallestBlock is the least number of ports that a block may have.
	SmallestBlock = 64
	// LargestBlock is the greatest.
	LargestBlock = 8192
)

// Shared are the source ports of an egress IP that all pods without a block have in common.
var Shared = kernel.Ports{First: 61440, Last: 65535}

// Sizes are the numbers of ports that a block may have. 0 is for no blocks.
func Sizes() (sizes []int) {
	sizes = []int{0}
	for size := SmallestBlock; size <= LargestBlock; size *= 2 {
		sizes = append(sizes, size)
	}
	return sizes
}

// NoSize is what is wrong with a text, in front of it, that is none of [Sizes].
var NoSize = fmt.Sprintf("is no number of ports of a block: expected a power of two from %d to %d, or 0 for no blocks", SmallestBlock, LargestBlock)

// ParseSize reads a number of ports of a block.
func ParseSize(text string) (int, error) {
	for _, size := range Sizes() {
		if text == strconv.Itoa(size) {
			return size, nil
		}
	}
	return 0, fmt.Errorf("%.100q %s", text, NoSize)
}

// sizeOf returns how many ports these are.
func sizeOf(p kernel.Ports) int { return int(p.Last) - int(p.First) + 1 }

// Validate returns what is wrong with ports as a block: it lies in front of the shared range, and is aligned to its size.
func Validate(p kernel.Ports) error {
	size := sizeOf(p)
	switch {
	case size <= 0 || !slices.Contains(Sizes(), size):
		return fmt.Errorf("%s is no block: its number of ports is no power of two from %d to %d", p, SmallestBlock, LargestBlock)
	case int(p.First)%size != 0:
		return fmt.Errorf("%s is no block: its first port is no multiple of %d", p, size)
	case p.First < FirstPort || p.Last >= Shared.First:
		return fmt.Errorf("%s is no block: blocks lie from %d to %d", p, FirstPort, Shared.First-1)
	}
	return nil
}

// parsePorts reads what [kernel.Ports.String] writes of a block.
func parsePorts(text string) (p kernel.Ports, err error) {
	var first, last uint16
	if _, err := fmt.Sscanf(text, "%d-%d", &first, &last); err != nil || text != (kernel.Ports{First: first, Last: last}).String() {
		return p, fmt.Errorf("%.100q is no block: expected the first and the last port, for example 1024-1535", text)
	}
	p = kernel.Ports{First: first, Last: last}
	return p, Validate(p)
}

// blocksOf returns the blocks of a size that an egress IP has, in order.
func blocksOf(size int) func(yield func(kernel.Ports) bool) {
	return func(yield func(kernel.Ports) bool) {
		if size == 0 {
			return
		}
		for first := (FirstPort + size - 1) / size * size; first+size <= int(Shared.First); first += size {
			if !yield(kernel.Ports{First: uint16(first), Last: uint16(first + size - 1)}) {
				return
			}
		}
	}
}

// Unlisted is what neither journals nor the Leases of nodes have of the pods that share. The node of such a pod lists it as long as it
// runs.
const Unlisted = "pods that started without the CNI plugin share these ports, too, and are recorded neither in journals nor in Leases"

// units are the smallest blocks of all ports, in order.
type units [(1 << 16) / SmallestBlock]bool

// mark notes that ports are taken.
func (u *units) mark(p kernel.Ports) {
	for i := int(p.First) / SmallestBlock; i <= int(p.Last)/SmallestBlock; i++ {
		u[i] = true
	}
}

// overlap tells whether one of these ports is taken.
func (u *units) overlap(p kernel.Ports) bool {
	for i := int(p.First) / SmallestBlock; i <= int(p.Last)/SmallestBlock; i++ {
		if u[i] {
			return true
		}
	}
	return false
}

// isNone tells whether these are no ports of a block.
func isNone(p kernel.Ports) bool { return p == kernel.Ports{} }

// overlaps tells whether a port is in both.
func overlaps(p, q kernel.Ports) bool { return p.First <= q.Last && q.First <= p.Last }
