package proxier

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// sorted returns a list in an order that depends on nothing but what it has.
func sorted[E any](list []E) []E {
	return slices.SortedFunc(slices.Values(list), func(a, b E) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// inOrder ranges over a map as range does, but always in the same order.
func inOrder[M ~map[K]V, K comparable, V any](m M) iter.Seq2[K, V] {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return func(yield func(K, V) bool) {
		for _, key := range keys {
			if value, ok := m[key]; ok && !yield(key, value) {
				return
			}
		}
	}
}
