package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	if c.noop || c.data == nil {
		return proceed
	}
	if hasFields := c.data[0] == '{' || c.data[0] == '['; c.source == fromApprover && !hasFields {
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
	shown = appendShown(make([]byte, 0, len(value)), value, []place{{node: p.root}})
	return shown, len(shown) > 0
}

// A place is where a path has led in a value. Several paths may lead to one value.
type place struct {
	node *showNode
	// elements: the node belongs to an array above, and no `*` in its path stands for the elements of the array.
	elements bool
}

// appendShown appends the allowed part of a valid value that has these places, or nothing if none exists.
func appendShown(dst, value []byte, places []place) []byte {
	switch {
	case isEmpty(value) || slices.ContainsFunc(places, func(p place) bool { return p.node.end }):
		return append(dst, value...)
	case value[0] != '{' && value[0] != '[':
		return dst
	}
	start := len(dst)
	dst = rawjson.AppendEach(dst, value, func(dst, key, v []byte) []byte {
		if under := placesUnder(places, key); len(under) > 0 {
			return appendShown(dst, v, under)
		}
		return dst
	})
	if len(dst) == start+len("{}") {
		return dst[:start]
	}
	return dst
}

// placesUnder returns the places of a member with this quoted key, or of an element of an array if key is nil.
func placesUnder(places []place, key []byte) (under []place) {
	for _, p := range places {
		if key == nil {
			under = append(under, place{p.node, true})
		} else if child := p.node.fields[rawjson.Text(key)]; child != nil {
			under = append(under, place{node: child})
		}
		if p.node.star != nil && !p.elements {
			under = append(under, place{node: p.node.star})
		}
	}
	return under
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
