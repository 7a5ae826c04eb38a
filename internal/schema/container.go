package schema

import (
	"bytes"

	"github.com/lathe-run/lathe/internal/rawjson"
)

func (w *walk) array(r *arrayRules, i int, at place) (end int, v verdict) {
	if at.depth++; at.depth > MaxDepth {
		return i, unsure
	}
	start, count := i, 0
	i = rawjson.SkipSpace(w.b, i+1)
	for i < len(w.b) && w.b[i] != ']' {
		if count > 0 {
			if w.b[i] != ',' {
				return i, unsure
			}
			i = rawjson.SkipSpace(w.b, i+1)
		}
		if count == r.max {
			return i, no
		}
		item := r.rest
		if count < len(r.first) {
			item = r.first[count]
		}
		if item == nil {
			i, v = w.skip(i, at)
		} else {
			i, v = w.value(item, i, at)
		}
		if v != yes {
			return i, v
		}
		count++
		i = rawjson.SkipSpace(w.b, i)
	}
	if i >= len(w.b) {
		return i, unsure
	}
	if count < r.min {
		return i, no
	}
	if r.unique && count > 1 {
		if v := w.unique(start); v != yes {
			return i, v
		}
	}
	return i + 1, yes
}

// unique compares the items of the valid array at w.b[i], where they are few and scalar.
func (w *walk) unique(i int) verdict {
	const most = 16
	var items [most][]byte
	count := 0
	for i = rawjson.SkipSpace(w.b, i+1); w.b[i] != ']'; {
		end, err := rawjson.Scan(w.b, i)
		if err != nil || count == most {
			return unsure
		}
		item := w.b[i:end]
		for _, other := range items[:count] {
			if v := different(item, other); v != yes {
				return v
			}
		}
		items[count] = item
		count++
		if i = rawjson.SkipSpace(w.b, end); w.b[i] == ',' {
			i = rawjson.SkipSpace(w.b, i+1)
		}
	}
	return yes
}

// different compares two values, of which it knows words, numbers and strings without escapes.
func different(a, b []byte) verdict {
	if a[0] == '{' || a[0] == '[' {
		return unsure
	}
	if a[0] == '"' && b[0] == '"' && (bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0) {
		return unsure
	}
	if bytes.Equal(a, b) {
		return no
	}
	x, _, isNumber := readNumber(a, 0)
	y, _, bothNumbers := readNumber(b, 0)
	if isNumber && bothNumbers {
		if !x.exact || !y.exact {
			return unsure
		}
		if x.decimal == y.decimal {
			return no
		}
	}
	return yes
}

func (w *walk) object(r *objectRules, i int, at place) (end int, v verdict) {
	if at.depth++; at.depth > MaxDepth {
		return i, unsure
	}
	var seen uint64
	count := 0
	i = rawjson.SkipSpace(w.b, i+1)
	for i < len(w.b) && w.b[i] != '}' {
		if count > 0 {
			if w.b[i] != ',' {
				return i, unsure
			}
			i = rawjson.SkipSpace(w.b, i+1)
		}
		if count == r.max {
			return i, no
		}
		if i >= len(w.b) || w.b[i] != '"' {
			return i, unsure
		}
		name, next, ok := w.str(i)
		if !ok || name.escaped && !name.decode(w.b[i:next]) {
			return i, unsure
		}
		i = rawjson.SkipSpace(w.b, next)
		if i >= len(w.b) || w.b[i] != ':' {
			return i, unsure
		}
		if i, v = w.member(r, name.inner, rawjson.SkipSpace(w.b, i+1), at, &seen); v != yes {
			return i, v
		}
		count++
		i = rawjson.SkipSpace(w.b, i)
	}
	switch {
	case i >= len(w.b):
		return i, unsure
	case seen != r.required, count < r.min:
		return i, no
	}
	return i + 1, yes
}

// member checks the value at w.b[i] of one member, and ticks the member off in seen.
func (w *walk) member(r *objectRules, name []byte, i int, at place, seen *uint64) (end int, v verdict) {
	end = i
	known := false
	if m := r.find(name); m != nil {
		*seen |= m.required
		if m.value != nil {
			known = true
			if end, v = w.value(m.value, i, at); v != yes {
				return i, v
			}
		}
	}
	w.undeclared = w.undeclared || !known
	for k := range r.patterns {
		switch w.matches(r.patterns[k].name, name) {
		case unsure:
			return i, unsure
		case yes:
			known = true
			if end, v = w.value(r.patterns[k].value, i, at); v != yes {
				return i, v
			}
		}
	}
	switch {
	case known:
		return end, yes
	case r.rest == nil:
		return w.skip(i, at)
	}
	return w.value(r.rest, i, at)
}
