package pool

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/egress/rendezvous"
)

// Objection is why a member cannot hold an address; empty if it can.
type Objection string

// The objections.
const (
	NotLive   Objection = "it gives no sign of life"
	NotInPool Objection = "it is not in the pool"
	Draining  Objection = "it is drained"
	NoSubnet  Objection = "no interface has a subnet with the address"
	LinkDown  Objection = "the link of the interface is down"
	Failed    Objection = "it could not take the address"
	Full      Objection = "it has as many addresses as a node may have"
	Inactive  Objection = "it did not take the address in time"
)

// Objections are those of the nodes of a pool, by name; empty for a node that has none.
type Objections map[string]Objection

// Able tells whether any node can hold the address, and otherwise why not, for people.
func (o Objections) Able() (able bool, why string) {
	var whys []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if o[name] == "" {
			return true, ""
		}
		whys = append(whys, name+": "+string(o[name]))
	}
	if len(whys) == 0 {
		return false, "the pool is empty"
	}
	return false, strings.Join(whys, "; ")
}

// Candidate is a member that may get addresses.
type Candidate struct {
	Name string
	// Zone is its node's; empty if that is not known.
	Zone string
	// Load is how many addresses it has, and Has tells which ones.
	Load int
	Has  func(netip.Addr) bool
	// Objects says why it cannot hold an address.
	Objects func(netip.Addr) Objection
}

// Assign returns which candidate each of these addresses should get. An address goes to a candidate in whose zone there are
// the fewest of its siblings; of several, to one that has the fewest itself, then to one with the fewest addresses, and then to that with
// the highest score (rendezvous hashing). Addresses that nobody can hold are left out, as are those beyond what all of them may have.
//
// If a candidate has all that is its own, the others get the same of the rest as before, but for addresses with siblings in zones. So
// members that look at slightly different times agree.
func Assign(addresses []netip.Addr, siblings map[netip.Addr][]netip.Addr, candidates []Candidate) map[netip.Addr]string {
	candidates = slices.Clone(candidates)
	result := make(map[netip.Addr]string, len(addresses))
	for _, ip := range slices.SortedFunc(slices.Values(addresses), netip.Addr.Compare) {
		if best := bestFor(ip, crowdOf(siblings[ip], candidates, result), candidates); best != nil {
			best.Load++
			result[ip] = best.Name
		}
	}
	return result
}

// crowd counts siblings of an address, by the zone and by the name of who has them.
type crowd struct{ zones, names map[string]int }

// crowdOf counts the siblings that candidates have, or have just been assigned.
func crowdOf(siblings []netip.Addr, candidates []Candidate, assigned map[netip.Addr]string) (result crowd) {
	if len(siblings) == 0 {
		return result // as mostly
	}
	result = crowd{map[string]int{}, map[string]int{}}
	for _, ip := range siblings {
		for _, c := range candidates {
			if c.Has(ip) || assigned[ip] == c.Name {
				result.names[c.Name]++
				result.zones[c.Zone]++
			}
		}
	}
	delete(result.zones, "") // nodes without one have nothing in common
	return result
}

// bestFor returns the candidate that is to get an address; nil if none can hold it. There may be a thousand candidates, and ten thousand
// addresses: what costs most is asked last.
func bestFor(ip netip.Addr, siblings crowd, candidates []Candidate) (best *Candidate) {
	var highest uint64
	for i := range candidates {
		c := &candidates[i]
		order := -1
		if best != nil {
			order = compareLoads(siblings, c, best)
		}
		if order > 0 || c.Load >= mostAddresses {
			continue
		}
		score := rendezvous.Score(ip, c.Name)
		if order == 0 && cmp.Or(cmp.Compare(score, highest), cmp.Compare(c.Name, best.Name)) < 0 || c.Objects(ip) != "" {
			continue
		}
		best, highest = c, score
	}
	return best
}

// compareLoads is negative if a candidate is to get an address rather than another one, whatever their scores.
func compareLoads(siblings crowd, a, b *Candidate) int {
	if siblings.names == nil { // as mostly
		return cmp.Compare(a.Load, b.Load)
	}
	return cmp.Or(
		cmp.Compare(siblings.zones[a.Zone], siblings.zones[b.Zone]),
		cmp.Compare(siblings.names[a.Name], siblings.names[b.Name]),
		cmp.Compare(a.Load, b.Load))
}

// compareScores compares the scores that two members have for an address. They differ if the names do.
func compareScores(ip netip.Addr, a, b string) int {
	return cmp.Or(cmp.Compare(rendezvous.Score(ip, a), rendezvous.Score(ip, b)), cmp.Compare(a, b))
}
