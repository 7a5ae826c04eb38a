package text

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// ByName yields the entries of m in the order of their keys. Entries that are added during the iteration are not yielded.
func ByName[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
