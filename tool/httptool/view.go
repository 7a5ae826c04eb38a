package httptool

// This file removes from answers the members that the document marks as writeOnly. While the document is read, ofAnswers makes a view of each
// set of shapes that can apply to one value, and expand makes the views of its members and elements. The views stay in memory;
// withoutWriteOnly filters answers by them.
//
//	schema  {"properties":{"name":{},"password":{"writeOnly":true}}}
//	answer  {"name":"Ann","password":"x"}  is shown as  {"name":"Ann"}

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxShapes is the maximum number of schemas with writeOnly members that apply to one value of an answer.
const maxShapes = 256

// A view determines what is shown of a value to which a set of shapes applies. nil shows all. The node is marked if the view or one below
// it has more shapes than maxShapes.
type view struct {
	node
	shapes  []*shape // nil after the document was read
	hidden  bool     // as a member of an object, the value is left out
	members map[string]*view
	others  *view // for members that are not in members
	items   *view // for the elements of a list
}

// member returns the view of a member.
func (v *view) member(name string) *view {
	if below, named := v.members[name]; named {
		return below
	}
	return v.others
}

// ofAnswers returns the views of an operation's answers, by status; nil if nothing is hidden.
func (s *shapes) ofAnswers(responses map[string]any) (map[string]*view, error) {
	if !s.doc.writeOnly || responses == nil {
		return nil, nil
	}
	out, known := s.answers[identityOf(responses)]
	if !known {
		var err error
		if out, err = s.readAnswers(responses); err != nil {
			return nil, err
		}
		s.answers[identityOf(responses)] = out
	}
	for _, one := range out {
		if one != nil && one.marked {
			return nil, fmt.Errorf("more than %d schemas with members that are writeOnly apply to one value of its answers", maxShapes)
		}
	}
	return out, nil
}

// readAnswers makes the views of a responses object. The shapes must be complete before their views are made.
func (s *shapes) readAnswers(responses map[string]any) (map[string]*view, error) {
	all := map[string]*shape{}
	for status, v := range responses {
		if response, err := s.doc.resolve(v); err == nil { // answers without a description are not changed
			all[strings.ToUpper(status)] = s.ofResponse(response)
		}
	}
	if err := drain(&s.unread, s.left, s.readSchema); err != nil {
		return nil, err
	}
	out := map[string]*view{}
	for status, one := range all {
		out[status] = s.view([]*shape{one})
	}
	return out, drain(&s.unexpanded, s.left, s.expand)
}

// view returns the view of a value to which shapes apply, or nil if nothing is hidden.
func (s *shapes) view(shapes []*shape) *view {
	all := s.closure(shapes)
	if len(all) == 0 {
		return nil
	}
	var key []byte
	for _, one := range all {
		key = append(strconv.AppendInt(key, int64(one.number), 36), ' ')
	}
	v, known := s.views[string(key)]
	if !known {
		*s.left -= shapeBytes + len(key)
		v = &view{shapes: all, hidden: slices.ContainsFunc(all, func(one *shape) bool { return one.writeOnly })}
		s.views[string(key)] = v
		if len(all) > maxShapes {
			v.mark()
		} else {
			s.unexpanded = append(s.unexpanded, v)
		}
	}
	return v
}

// expand sets the parts of a view. A named member has a view of its own unless others, which is set first, shows the same of it.
func (s *shapes) expand(v *view) {
	part := func(shapes []*shape) *view {
		below := s.view(shapes)
		if below != nil {
			*s.left -= linkBytes
			v.link(&below.node)
		}
		return below
	}
	var items, others []*shape
	for _, one := range v.shapes {
		items, others = append(items, one.items...), append(others, one.others...)
	}
	v.items, v.others = part(items), part(others)
	for _, one := range v.shapes {
		*s.left -= linkBytes * len(one.members)
		for name, m := range one.members {
			_, known := v.members[name]
			othersShowIt := !m.marked && v.others == nil // another shape of the value that hides a part of it adds it
			if known || othersShowIt {
				continue
			}
			*s.left -= nameBytes + linkBytes*len(v.shapes)
			if *s.left < 0 { // the whole document is refused
				return
			}
			if v.members == nil {
				v.members = map[string]*view{}
			}
			v.members[name] = part(memberShapes(v.shapes, name))
		}
	}
}

// memberShapes returns the shapes of a member of a value with these shapes.
func memberShapes(shapes []*shape, name string) (out []*shape) {
	for _, one := range shapes {
		if m, ok := one.members[name]; ok {
			out = append(out, m)
		} else {
			out = append(out, one.others...)
		}
	}
	return out
}

// closure adds to the shapes of a value the further shapes of the same value, and returns those that a view needs, sorted by number: shapes
// that are writeOnly or have parts, and lead to a writeOnly member. A shape that has only further shapes is replaced by these. closure stops
// after more than maxShapes.
func (s *shapes) closure(list []*shape) (out []*shape) {
	seen := map[*shape]bool{}
	for next := list; len(next) > 0 && len(out) <= maxShapes; {
		*s.left -= linkBytes * len(next)
		var more []*shape
		for _, one := range next {
			if !one.marked || seen[one] {
				continue
			}
			seen[one] = true
			more = append(more, one.sameValue...)
			if one.writeOnly || len(one.members)+len(one.items)+len(one.others) > 0 {
				out = append(out, one)
			}
		}
		next = more
	}
	slices.SortFunc(out, func(a, b *shape) int { return cmp.Compare(a.number, b.number) })
	return out
}

// finish frees memory that is used only while the document is read. No answers may be read afterwards.
func (s *shapes) finish() {
	for _, v := range s.views {
		v.shapes, v.parents = nil, nil
	}
}

// withoutWriteOnly returns a JSON answer without the writeOnly members of the document, also if the answer is a string that contains JSON.
// Other answers are returned unchanged.
func (d *Definition) withoutWriteOnly(status int, b []byte) []byte {
	shown := d.document.viewOf(status)
	if shown == nil || rawjson.Check(b, rawjson.Limits{}) != nil {
		return b
	}
	if text := rawjson.Text(b); text != "" { // the content type is not JSON
		inner := []byte(text)
		end, err := rawjson.Scan(inner, 0)
		if err != nil || rawjson.SkipSpace(inner, end) < len(inner) {
			return b
		}
		return rawjson.AppendQuote(nil, string(appendVisible(nil, inner, shown, rawjson.DefaultMaxDepth)))
	}
	return appendVisible(make([]byte, 0, len(b)), b, shown, rawjson.DefaultMaxDepth)
}

// viewOf returns the view of answers with a status; nil shows all.
func (d *described) viewOf(status int) *view {
	code := strconv.Itoa(status)
	for _, key := range []string{code, code[:1] + "XX", "DEFAULT"} {
		if one, ok := d.answers[key]; ok {
			return one
		}
	}
	return nil
}

// appendVisible appends the visible part of a value. A part that is nested deeper than depth is replaced by null if it could contain
// something hidden.
func appendVisible(dst, v []byte, shown *view, depth int) []byte {
	v = v[rawjson.SkipSpace(v, 0):]
	switch {
	case shown == nil || len(v) == 0 || v[0] != '[' && v[0] != '{':
		return append(dst, v...)
	case depth == 0:
		return append(dst, "null"...)
	}
	return rawjson.AppendEach(dst, v, func(dst, key, e []byte) []byte {
		if key == nil {
			return appendVisible(dst, e, shown.items, depth-1)
		}
		part := shown.member(rawjson.Text(key))
		if part != nil && part.hidden {
			return dst
		}
		return appendVisible(dst, e, part, depth-1)
	})
}
