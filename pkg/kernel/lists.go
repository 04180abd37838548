package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// SetOf returns what is in a list, for a look-up.
func SetOf[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, item := range list {
		set[item] = true
	}
	return set
}

// Without returns what of a list others are not, in its order. It is the list itself if one of the two is empty.
func Without[T comparable](list, others []T) []T {
	if len(list) == 0 || len(others) == 0 {
		return list
	}
	known := SetOf(others)
	return slices.DeleteFunc(slices.Clone(list), func(item T) bool { return known[item] })
}

// Left returns what is left of a list when others are taken away, one for one, in its order.
func Left[T comparable](list, others []T) (left []T) {
	count := make(map[T]int, len(others))
	for _, item := range others {
		count[item]++
	}
	for _, item := range list {
		if count[item]--; count[item] < 0 {
			left = append(left, item)
		}
	}
	return left
}

// Put puts a value into a map of maps, in which there may be nothing under a.
func Put[A, B comparable, V any, M ~map[B]V](of map[A]M, a A, b B, value V) {
	if of[a] == nil {
		of[a] = M{}
	}
	of[a][b] = value
}

// Join returns the items as text, with a separator between.
func Join[T any](items []T, separator string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	return strings.Join(texts, separator)
}

// Listed returns no more than so many of the items for people, and how many there are besides: "a, b and 3 more". The words are what follows
// that number.
func Listed[T any](items []T, most int, words string) string {
	if more := len(items) - most; more > 0 {
		return fmt.Sprintf("%s and %d %s", Join(items[:most], ", "), more, words)
	}
	return Join(items, ", ")
}
