package steering

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// path is the way of one IP family's packets to other nodes and from them: the device, neighbours, routes and
// rules. It is kept in the network namespace of the calling thread. No two goroutines may use it at once, but the
// paths of the two families may be used at once.
type path struct {
	config Config
	// used are the numbers that packets may be marked with. An earlier process has left what there is for others.
	used map[int]bool
}

func newPath(c Config) *path { return &path{config: c, used: map[int]bool{}} }

// sharing is held while the device and its entries, which both families have in common, are looked at and changed.
var sharing sync.Mutex

// ensure makes the kernel hold what it takes to receive, and to send to these holders, by their numbers. It tells
// whether it had to change anything. What there is for a number that ensure or known was told of before stays
// until remove; what an earlier process has left for other numbers goes. After an error some may be missing: call
// ensure again.
//
// The error is a [conflict] if somebody else has the device's name, the tables, or bits of the mark. Nothing is
// changed then.
func (p *path) ensure(ctx context.Context, holders map[int]netip.Addr) (changed bool, err error) {
	if err := p.config.checkHolders(holders); err != nil {
		return false, err
	}
	sharing.Lock()
	defer sharing.Unlock()
	for number := range holders {
		p.used[number] = true
	}
	// A device that is replaced or set up loses what was on it. The last look finds no difference.
	const looks = 4
	var missing, unexpected []part
	for range looks {
		s, err := p.look(ctx, holders)
		if err != nil {
			return changed, err
		}
		if len(s.conflicts) > 0 {
			return changed, s.conflicts
		}
		missing, unexpected = compareParts(s.want, s.held)
		unexpected = slices.DeleteFunc(unexpected, func(u part) bool {
			number := s.numberOf(u)
			return p.used[number] && !holders[number].IsValid()
		})
		if len(missing)+len(unexpected) == 0 {
			return changed, nil
		}
		changed = true
		if err := replace(ctx, missing, unexpected); err != nil {
			return changed, err
		}
	}
	return changed, fmt.Errorf("something else keeps changing what egress SNAT steers by: %s", strings.Join(describeParts(missing, unexpected), "; "))
}

// remove removes what there is for a number. No packets must be marked with it any more. It is no error if there
// is nothing.
func (p *path) remove(ctx context.Context, number int) error {
	if number < 1 || number > maxNumber {
		return fmt.Errorf("number %d is not from 1 to %d", number, maxNumber)
	}
	sharing.Lock()
	defer sharing.Unlock()
	s, err := p.look(ctx, nil)
	if err != nil {
		return err
	}
	parts := slices.DeleteFunc(s.held, func(h part) bool { return s.numberOf(h) != number })
	if err := replace(ctx, nil, parts); err != nil {
		return err
	}
	delete(p.used, number)
	return nil
}

// glance reads what there is. The fingerprint is another one when something has changed that ensure looks at. The differences
// say, for an operator and in a line each, how the kernel differs from what ensure makes of it; none if it does not.
func (p *path) glance(ctx context.Context, holders map[int]netip.Addr) (fingerprint string, differences []string, err error) {
	s, err := p.look(ctx, holders)
	if err != nil {
		return "", nil, err
	}
	if differences = slices.Clone(s.conflicts); s.uplink.name != "" { // else the MTU and the next hops are not known
		differences = append(differences, describeParts(compareParts(s.want, s.held))...)
	}
	return s.fingerprint(), differences, nil
}

func (s *pathState) fingerprint() string {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, s.uplink, s.conflicts) // it never fails
	for _, part := range slices.Concat(s.held, s.remotes) {
		_, _ = fmt.Fprintln(hash, part)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// known returns the numbers that an earlier process gave to these nodes. What there is for them stays until remove.
func (p *path) known(ctx context.Context, nodes []netip.Addr) (numbers, error) {
	s, err := p.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	known, given := numbers{}, map[int]bool{} // a number is of one node, also if the hardware addresses of two are alike
	for _, part := range s.held {
		for _, node := range nodes {
			number := numberOf(part)
			if !leadsTo(part, node) {
				continue
			}
			if _, has := known[node]; !has && !given[number] {
				known[node], given[number] = number, true
			}
			p.used[number] = true
		}
	}
	return known, nil
}

// leadsTo tells whether a part says that its number is the node's.
func leadsTo(p part, node netip.Addr) bool {
	switch p := p.(type) {
	case neighbour:
		return p.hardwareAddr == HardwareAddrOf(node)
	case route:
		return p.via == node // with the transport Direct
	}
	return false
}

// replace adds parts in their order, and removes others in the reverse order unless an added one has replaced them.
func replace(ctx context.Context, missing, unexpected []part) error {
	logger := klog.FromContext(ctx)
	replaced := map[any]bool{}
	for _, p := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addPart(p); err != nil {
			return fmt.Errorf("add %q: %w", p, err)
		}
		logger.V(4).Info("Added to the path of steered packets", "part", p.String())
		replaced[p.slot()] = true
	}
	for _, p := range slices.Backward(unexpected) {
		if replaced[p.slot()] {
			continue
		}
		if err := removePart(p); err != nil && !isGone(err) {
			return fmt.Errorf("remove %q: %w", p, err)
		}
		logger.V(4).Info("Removed from the path of steered packets", "part", p.String())
	}
	return nil
}

// isGone tells whether something cannot be removed because it is not there.
func isGone(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOENT, unix.ESRCH, unix.ENODEV, unix.EADDRNOTAVAIL}, func(e error) bool { return errors.Is(err, e) })
}

// conflict says, in a line each, what others have that egress SNAT needs, and what to do.
type conflict []string

func (c conflict) Error() string { return "egress SNAT cannot steer packets: " + strings.Join(c, "; ") }
