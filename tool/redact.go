package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// Limits of an allowlist.
const (
	maxShowPaths = 1_000
	maxShowDepth = 32
)

// redact is stage 12. The model may receive only the projection of the output onto the allowlist. If nothing remains of an output that was
// not empty, the allowlist does not match the tool, and the call fails. For an error result, the data is omitted in this case, because the
// result is an error already.
func redact(ctx context.Context, c *call) ending {
	hidden := !c.entry.show.whole && len(c.blobs) > 0
	if hidden {
		c.blobs = nil // blobs have no fields, so only `*` allows them
	}
	if c.noop || c.data == nil || c.source == fromApprover && c.data[0] != '{' && c.data[0] != '[' { // the result of an approver that is not an object or array has no fields
		return proceed
	}
	shown, ok := c.entry.show.apply(c.data)
	if c.toolCode == "" && (!ok || hidden && isEmpty(shown)) {
		c.cause = "the allowlist matches nothing of the output: it names " + text.Cut(strings.Join(c.entry.spec.Allowlist, ", "), maxCause/2)
		reportError(ctx, c, lathe.CodeRedactionFailed, &CauseError{Cause: c.cause, Err: fmt.Errorf("the output has %s", fieldsOf(c.data))})
		return fail(lathe.CodeRedactionFailed)
	}
	c.data = shown // nil if nothing of an error may be shown
	return proceed
}

// fieldsOf returns a text with the names of the first fields of an object, or "no fields" for other values.
func fieldsOf(data []byte) string {
	const few = 10
	var fields []string
	if len(data) > 0 && data[0] == '{' {
		for name := range rawjson.Members(data) {
			if fields = append(fields, string(name)); len(fields) == few {
				break
			}
		}
	}
	if len(fields) == 0 {
		return "no fields"
	}
	return "the fields " + strings.Join(fields, ", ")
}

// A projection is a compiled allowlist.
type projection struct {
	whole bool // the entry `*`: all values, scalars included
	root  *showNode
}

// A showNode is a node in the tree of allowed paths.
type showNode struct {
	end    bool // the value and all below it are allowed
	fields map[string]*showNode
	star   *showNode
}

// newProjection compiles an allowlist of dotted paths. `*` stands for every key or element of one level. The level of array elements may be
// omitted: `items.id` allows the id of each item. A path allows everything below its end.
func newProjection(paths []string) (*projection, error) {
	if len(paths) == 0 {
		return nil, errors.New(`no allowlist: name the fields of its output that the model may see ("*" for all)`)
	}
	if len(paths) > maxShowPaths {
		return nil, fmt.Errorf("the allowlist has %d paths, and at most %d are taken", len(paths), maxShowPaths)
	}
	p := &projection{root: &showNode{}}
	for _, path := range paths {
		if path == "*" {
			p.whole = true
		}
		segs := strings.Split(path, ".")
		if len(segs) > maxShowDepth {
			return nil, fmt.Errorf("allowlist path %.80q is deeper than %d", path, maxShowDepth)
		}
		n := p.root
		for _, s := range segs {
			if s == "" {
				return nil, fmt.Errorf("allowlist path %.80q has an empty field name", path)
			}
			n = n.grow(s)
		}
		n.end = true
	}
	return p, nil
}

func (n *showNode) grow(seg string) *showNode {
	if seg == "*" {
		if n.star == nil {
			n.star = &showNode{}
		}
		return n.star
	}
	child := n.fields[seg]
	if child == nil {
		if n.fields == nil {
			n.fields = map[string]*showNode{}
		}
		child = &showNode{}
		n.fields[seg] = child
	}
	return child
}

// apply returns the allowed part of the JSON value. ok is false if none exists. null and empty objects and arrays are always allowed,
// because they contain nothing to hide.
func (p *projection) apply(value []byte) (shown []byte, ok bool) {
	if p.whole {
		return value, true
	}
	pr := projector{places: []place{{node: p.root}}}
	if shown, ok = pr.append(make([]byte, 0, len(value)), value, 0); !ok {
		return nil, false
	}
	return shown, true
}

// A projector walks a value and the tree of paths together. Several paths may lead to one value: the places that they have reached are the
// end of the stack.
type projector struct{ places []place }

type place struct {
	node *showNode
	// elements: the node belongs to an array above, and no `*` in its path stands for the elements of the array.
	elements bool
}

// append appends the allowed part of a valid value. ok is false, and nothing is appended, if none exists. The places of the value are
// those from index from on.
func (pr *projector) append(dst, value []byte, from int) ([]byte, bool) {
	for _, p := range pr.places[from:] {
		if p.node.end {
			return append(dst, value...), true
		}
	}
	switch {
	case isEmpty(value):
		return append(dst, value...), true
	case value[0] == '{':
		return pr.appendObject(dst, value, from)
	case value[0] == '[':
		return pr.appendArray(dst, value, from)
	}
	return dst, false
}

func (pr *projector) appendObject(dst, value []byte, from int) ([]byte, bool) {
	start, shown := len(dst), false
	dst = append(dst, '{')
	to := len(pr.places)
	for key, member := range rawjson.Members(value) {
		pr.enterMember(key, from)
		if len(pr.places) == to {
			continue
		}
		mark := len(dst)
		if shown {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
		var ok bool
		dst, ok = pr.append(dst, member, to)
		pr.places = pr.places[:to]
		if !ok {
			dst = dst[:mark]
			continue
		}
		shown = true
	}
	if !shown {
		return dst[:start], false
	}
	return append(dst, '}'), true
}

func (pr *projector) appendArray(dst, value []byte, from int) ([]byte, bool) {
	start, shown := len(dst), false
	dst = append(dst, '[')
	to := len(pr.places)
	for _, p := range pr.places[from:to] {
		pr.places = append(pr.places, place{p.node, true})
		if p.node.star != nil && !p.elements {
			pr.places = append(pr.places, place{node: p.node.star})
		}
	}
	for elem := range rawjson.Elements(value) {
		mark := len(dst)
		if shown {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = pr.append(dst, elem, to); !ok {
			dst = dst[:mark]
			continue
		}
		shown = true
	}
	pr.places = pr.places[:to]
	if !shown {
		return dst[:start], false
	}
	return append(dst, ']'), true
}

// enterMember pushes the places of the member with this quoted key.
func (pr *projector) enterMember(quoted []byte, from int) {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		plain, err := rawjson.AppendUnquote(nil, quoted)
		if err != nil {
			return
		}
		name = plain
	}
	for _, p := range pr.places[from:] {
		if child := p.node.fields[string(name)]; child != nil {
			pr.places = append(pr.places, place{node: child})
		}
		if p.node.star != nil && !p.elements {
			pr.places = append(pr.places, place{node: p.node.star})
		}
	}
}

// isEmpty reports whether value is null, or an empty object or array.
func isEmpty(value []byte) bool { return value[0] == 'n' || hollow(value) }

// hollow reports whether value is an empty object or array.
func hollow(value []byte) bool {
	if value[0] != '{' && value[0] != '[' {
		return false
	}
	i := rawjson.SkipSpace(value, 1)
	return value[i] == '}' || value[i] == ']'
}
