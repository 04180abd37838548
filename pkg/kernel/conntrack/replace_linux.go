package conntrack

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/nftables"
)

// there returns the sets that the table has in the kernel now.
func (b *barrier) there() ([]*nftables.Set, error) {
	tables, err := b.ListTablesOfFamily(b.table.Family)
	if err != nil {
		return nil, barrierError(b.table.Name, err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == b.table.Name }) {
		return nil, nil
	}
	sets, err := b.GetSets(b.table)
	if err != nil {
		return nil, fmt.Errorf("list the sets of the nftables table %s: %w", b.table.Name, err)
	}
	return sets, nil
}

// differ tells whether a set has another size than it should. Few kernels can resize a set, and none reports that it could not.
func (b *barrier) differ(there []*nftables.Set) bool {
	for _, set := range b.spec.Sets {
		same := func(other *nftables.Set) bool { return other.Name == set.Name && other.Size != set.Size }
		if slices.ContainsFunc(there, same) {
			return true
		}
	}
	return false
}

// elements returns what the sets remember, for sets in their place: as long as the kernel would have, and if that is more than there
// is room for, what it would have remembered longest.
func (b *barrier) elements(there []*nftables.Set) (map[string][]nftables.SetElement, error) {
	found := map[string][]nftables.SetElement{}
	for _, of := range b.remembering() {
		set := b.spec.Set(of.Name)
		i := slices.IndexFunc(there, func(other *nftables.Set) bool { return other.Name == set.Name })
		if i < 0 {
			continue
		}
		elements, err := b.GetSetElements(set)
		if err != nil {
			return nil, fmt.Errorf("read the set %s of the nftables table %s: %w", set.Name, b.table.Name, err)
		}
		elements = slices.DeleteFunc(elements, func(e nftables.SetElement) bool { return len(e.Key) != int(set.KeyType.Bytes) || e.Expires == 0 })
		slices.SortFunc(elements, func(a, b nftables.SetElement) int { return cmp.Compare(b.Expires, a.Expires) })
		for _, e := range elements[:min(len(elements), int(set.Size))] {
			found[set.Name] = append(found[set.Name], nftables.SetElement{Key: e.Key, Timeout: e.Expires})
		}
	}
	return found, nil
}
