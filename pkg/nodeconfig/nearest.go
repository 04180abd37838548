package nodeconfig

import "strings"

// Nearest returns the candidate that word is most likely a misspelling of, or
// "" when none is near. Case does not count. A candidate is near when at most
// a third of the longer of the two has to be inserted, deleted, replaced or
// swapped with its neighbour; the first of several equally near ones wins.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", -1
	typed := []rune(strings.ToLower(word))
	for _, candidate := range candidates {
		wanted := []rune(strings.ToLower(candidate))
		limit := max(len(typed), len(wanted)) / 3
		if len(typed)-len(wanted) > limit || len(wanted)-len(typed) > limit {
			continue // too far whatever the letters, and too long to compare
		}
		if d := distance(typed, wanted); d <= limit && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: Levenshtein's, with the
// swap of two neighbours as one edit.
func distance(a, b []rune) int {
	beforeLast := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}
