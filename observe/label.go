package observe

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of metrics come from vocabularies with a limit, so that no client can create an unbounded number of series.

// A vocabulary contains the values for the labels of one kind, such as a set of series: each is made once, by create, and found without
// allocating. A label that accepts refuses gets the value of rest, and so does each new label once the number of labels is limit.
type vocabulary[K comparable, T any] struct {
	limit   int
	rest    K
	accepts func(K) bool // nil: there are no labels beyond the known ones
	create  func(K) T

	mu   sync.RWMutex
	seen map[K]T
}

type counters = vocabulary[string, prometheus.Counter]

// newVocabulary makes the values of rest and of the known labels.
func newVocabulary[K comparable, T any](rest K, known []K, limit int, accepts func(K) bool, create func(K) T) *vocabulary[K, T] {
	v := &vocabulary[K, T]{limit: limit, rest: rest, accepts: accepts, create: create, seen: map[K]T{rest: create(rest)}}
	for _, k := range known {
		v.seen[k] = create(k)
	}
	return v
}

func (v *vocabulary[K, T]) get(label K) T {
	v.mu.RLock()
	t, ok := v.seen[label]
	if !ok {
		t = v.seen[v.rest]
	}
	v.mu.RUnlock()
	if ok || v.accepts == nil || !v.accepts(label) {
		return t
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.seen[label]; ok {
		return known
	}
	if len(v.seen) >= v.limit {
		return t
	}
	t = v.create(label)
	v.seen[label] = t
	return t
}

// toolName reports whether s can be the name of a registered tool.
func toolName(s string) bool { return word(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") }

// lowerWord reports whether s can be a name of a fixed vocabulary: lower-case letters, digits, '_', '.' and '-'.
func lowerWord(s string) bool { return word(s, ".") }

// word reports whether s has 1 to 64 bytes: lower-case letters, digits, '_', '-' and those of also.
func word(s, also string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		isCommon := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
		if !isCommon && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}
