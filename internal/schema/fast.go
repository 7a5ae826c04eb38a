package schema

import "github.com/lathe-run/lathe/internal/rawjson"

// The fast path walks the text of a value once, beside the schema's nodes, without building
// anything. Its "valid" is final. Anything else is decided by package jsonschema, which also
// reports what is wrong, so that a shortcut can only cost time.

// The limits of the fast path. Beyond them it is unsure.
const (
	maxSteps  = 100_000 // schemas tried, and a step for each stepBytes of text
	stepBytes = 32
	maxNested = 300 // schemas inside each other
)

// A verdict is yes or no only where that is certain.
type verdict uint8

const (
	unsure verdict = iota
	yes
	no
)

// A walk checks one text.
type walk struct {
	b     []byte
	steps int
	// undeclared is set when the walk meets a name that the `properties` of its schema do not declare, or an object or
	// array that no schema describes.
	undeclared bool
}

// decide says whether value is valid, as far as that is certain. If the verdict is yes and declared is true, then the
// `properties` of the schemas of each object in value declare all names of that object, as they are spelled.
func (n *node) decide(value []byte) (v verdict, declared bool) {
	w := walk{b: value, steps: maxSteps}
	end, v := w.value(n, rawjson.SkipSpace(value, 0), place{})
	if v == yes && rawjson.SkipSpace(value, end) != len(value) {
		return unsure, false
	}
	return v, !w.undeclared
}

// A place is how deep a value stands: in arrays and objects, and in schemas.
type place struct{ depth, nested int16 }

// value checks the value at w.b[i]. The end is that of the value, where the verdict is yes.
func (w *walk) value(n *node, i int, at place) (end int, v verdict) {
	at.nested++
	if w.steps--; w.steps < 0 || at.nested > maxNested || i >= len(w.b) {
		return i, unsure
	}
	if n.never {
		return i, no
	}
	if n.free {
		return w.skip(i, at)
	}
	if !n.bare {
		if end, v = w.own(n, i, at); v != yes {
			return end, v
		}
		if n.all == nil && n.any == nil && n.one == nil && n.not == nil && n.test == nil {
			return end, yes
		}
	}
	return w.combined(n, i, end, at)
}

// combined checks the schemas that n holds for the same value. end is i where it is not known.
func (w *walk) combined(n *node, i, end int, at place) (int, verdict) {
	for _, sub := range n.all {
		e, v := w.value(sub, i, at)
		if v != yes {
			return i, v
		}
		end = e
	}
	if n.any != nil {
		e, v := w.anyOf(n.any, i, at)
		if v != yes {
			return i, v
		}
		end = e
	}
	if n.one != nil {
		e, v := w.oneOf(n.one, i, at)
		if v != yes {
			return i, v
		}
		end = e
	}
	if n.not != nil {
		switch _, v := w.value(n.not, i, at); v {
		case yes:
			return i, no
		case unsure:
			return i, unsure
		}
	}
	if n.test != nil {
		_, v := w.value(n.test, i, at)
		branch := n.then
		switch v {
		case unsure:
			return i, unsure
		case no:
			branch = n.other
		}
		if branch != nil {
			e, v := w.value(branch, i, at)
			if v != yes {
				return i, v
			}
			end = e
		}
	}
	if end <= i {
		return w.skip(i, at)
	}
	return end, yes
}

func (w *walk) anyOf(subs []*node, i int, at place) (end int, v verdict) {
	v = no
	for _, sub := range subs {
		switch e, got := w.value(sub, i, at); got {
		case yes:
			return e, yes
		case unsure:
			v = unsure
		}
	}
	return i, v
}

func (w *walk) oneOf(subs []*node, i int, at place) (end int, v verdict) {
	end, v = i, no
	for _, sub := range subs {
		e, got := w.value(sub, i, at)
		switch {
		case got == unsure:
			return i, unsure
		case got == no:
		case v == yes:
			return i, no
		default:
			end, v = e, yes
		}
	}
	return end, v
}

// skip passes a value of which nothing is asked but the limits.
func (w *walk) skip(i int, at place) (end int, v verdict) {
	end, err := rawjson.Scan(w.b, i)
	if i < len(w.b) && (w.b[i] == '{' || w.b[i] == '[') {
		w.undeclared = true
	}
	if err != nil || checkBounds(w.b[i:end], int(at.depth)) != nil {
		return i, unsure
	}
	w.steps -= (end - i) / stepBytes
	return end, yes
}

// own checks the keywords of n that are about the value itself.
func (w *walk) own(n *node, i int, at place) (end int, v verdict) {
	switch w.b[i] {
	case '"':
		return w.text(n, i)
	case '{':
		if v := n.admits(isObject); v != yes {
			return i, v
		}
		if n.object == nil {
			return w.skip(i, at)
		}
		return w.object(n.object, i, at)
	case '[':
		if v := n.admits(isArray); v != yes {
			return i, v
		}
		if n.array == nil {
			return w.skip(i, at)
		}
		return w.array(n.array, i, at)
	case 't':
		return w.word(n, i, "true", isBool)
	case 'f':
		return w.word(n, i, "false", isBool)
	case 'n':
		return w.word(n, i, "null", isNull)
	}
	return w.numeral(n, i)
}

// admits checks type, enum and const for a value of which only the kind matters.
func (n *node) admits(k kinds) verdict {
	switch {
	case n.allow&k == 0:
		return no
	case n.unsure&k != 0:
		return unsure
	}
	for _, c := range [...]*choices{n.constant, n.enum} {
		switch {
		case c == nil:
		case c.kinds&k == 0:
			return no
		case k != isNull:
			return unsure
		}
	}
	return yes
}
