package observe

import "sync"

// Labels of metrics come from bounded vocabularies, so that no client can create an unbounded number of series.

// A vocabulary hands out what belongs to one label value: made once, found without allocating. A
// value that clean refuses counts as rest, and so does each new one once there are max.
type vocabulary[T any] struct {
	max   int
	rest  string
	clean func(string) bool
	make  func(label string) T

	mu   sync.RWMutex
	seen map[string]T
}

// newVocabulary makes what belongs to rest and to the values known from the start. Without clean no other value is taken.
func newVocabulary[T any](rest string, known []string, max int, clean func(string) bool, make func(string) T) *vocabulary[T] {
	v := &vocabulary[T]{max: max, rest: rest, clean: clean, make: make, seen: map[string]T{rest: make(rest)}}
	for _, k := range known {
		v.seen[k] = make(k)
	}
	return v
}

func (v *vocabulary[T]) get(label string) T {
	v.mu.RLock()
	t, ok := v.seen[label]
	if !ok {
		t = v.seen[v.rest]
	}
	v.mu.RUnlock()
	if ok || v.clean == nil || !v.clean(label) {
		return t
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.seen[label]; ok {
		return known
	}
	if len(v.seen) >= v.max {
		return t
	}
	t = v.make(label)
	v.seen[label] = t
	return t
}

// toolName reports whether s can be the name of a registered tool.
func toolName(s string) bool { return word(s, true) }

// lowerWord reports whether s is a name of a fixed vocabulary: lower-case letters, digits, _ . and -.
func lowerWord(s string) bool { return word(s, false) }

func word(s string, upper bool) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		case c >= 'A' && c <= 'Z' && upper, c == '.' && !upper:
		default:
			return false
		}
	}
	return true
}
