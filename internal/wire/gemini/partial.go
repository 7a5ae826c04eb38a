package gemini

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A partialCall is a call whose arguments are streamed as values, each with its JSONPath in the arguments. A string may be split into
// several values. These chunks of partialArgs give {"city":"Paris","days":[3]}:
//
//	[{"jsonPath":"$.city","stringValue":"Pa","willContinue":true}]
//	[{"jsonPath":"$.city","stringValue":"ris"},{"jsonPath":"$.days[0]","numberValue":3}]
type partialCall struct {
	index int // number of the call in the answer
	part  int // index of the call in the parts of the assembler
	root  node
	whole string // the arguments, if they were received as a whole in the end
	bad   bool   // a value could not be set at its path
	cut   bool   // the last piece is missing
}

// maxPathDepth bounds the number of steps in the JSONPath of a value.
const maxPathDepth = 64

// A node is a value under construction.
type node struct {
	kind byte // '{', '[', '"', or 'v' for any other value; 0: nothing received
	text []byte
	keys []string // keys of an object, in the order of receipt
	by   map[string]*node
	list []*node
}

// arguments returns the arguments received so far.
func (p *partialCall) arguments() string {
	if p.whole != "" {
		return p.whole
	}
	if p.root.kind == 0 {
		return "{}"
	}
	return string(p.root.append(nil))
}

// add sets the value of an element of partialArgs at its path, or appends it if it continues a string. It returns false if that is not
// possible.
func (p *partialCall) add(piece []byte) bool {
	path, ok := parsePath(rawjson.Text(get(piece, "jsonPath")))
	if !ok || len(path) == 0 {
		return false
	}
	n := &p.root
	for _, step := range path {
		n = n.at(step)
		if n == nil {
			return false
		}
	}
	text := get(piece, "stringValue")
	number, boolean := get(piece, "numberValue"), get(piece, "boolValue")
	switch {
	case text != nil:
		if n.kind != 0 && n.kind != '"' {
			return false
		}
		n.kind = '"'
		n.text = rawjson.AppendUnquoteLossy(n.text, text)
	case number != nil:
		return n.set(number)
	case boolean != nil:
		return n.set(boolean)
	case rawjson.At(piece, "nullValue") != nil, rawjson.At(piece, "null_value") != nil:
		return n.set([]byte("null"))
	case n.kind == 0 && string(get(piece, "willContinue")) != "true": // the empty piece that ends a string may lack the member
		n.kind = '"'
	}
	return true
}

func (n *node) set(v []byte) bool {
	if n.kind == '{' || n.kind == '[' {
		return false
	}
	n.kind, n.text = 'v', append(n.text[:0], v...)
	return true
}

// A step is one name or index of a path.
type step struct {
	name  string
	index int // -1: the step is a name
}

// at returns the child at a step, and creates it if it does not exist. It returns nil if the node cannot have such a child.
func (n *node) at(s step) *node {
	if s.index < 0 {
		if n.kind == 0 {
			n.kind, n.by = '{', map[string]*node{}
		}
		if n.kind != '{' {
			return nil
		}
		child, ok := n.by[s.name]
		if !ok {
			child = &node{}
			n.by[s.name] = child
			n.keys = append(n.keys, s.name)
		}
		return child
	}
	if n.kind == 0 {
		n.kind = '['
	}
	if n.kind != '[' || s.index > len(n.list) {
		return nil
	}
	if s.index == len(n.list) {
		n.list = append(n.list, &node{})
	}
	return n.list[s.index]
}

func (n *node) append(dst wire.JSON) wire.JSON {
	switch n.kind {
	case '{':
		dst = dst.Lit("{")
		for _, key := range n.keys {
			dst = n.by[key].append(dst.Key(key))
		}
		return dst.Lit("}")
	case '[':
		dst = dst.Lit("[")
		for _, child := range n.list {
			dst = child.append(dst.Next())
		}
		return dst.Lit("]")
	case '"':
		return dst.Quote(string(n.text))
	case 'v':
		return dst.Raw(n.text)
	}
	return dst.Lit("null")
}

// parsePath parses a JSONPath that consists of names and indexes, such as $.a.b[0]['c'].
func parsePath(s string) ([]step, bool) {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return nil, false
	}
	var path []step
	for rest != "" {
		if len(path) == maxPathDepth {
			return nil, false
		}
		var st step
		st, rest, ok = nextStep(rest)
		if !ok {
			return nil, false
		}
		path = append(path, st)
	}
	return path, true
}

// nextStep returns the first step of s, and the text after it.
func nextStep(s string) (st step, rest string, ok bool) {
	after, isName := strings.CutPrefix(s, ".")
	if isName {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		return step{name: after[:end], index: -1}, after[end:], end > 0
	}
	inner, ok := strings.CutPrefix(s, "[")
	if !ok || inner == "" {
		return st, "", false
	}
	if inner[0] == '\'' || inner[0] == '"' {
		return quotedStep(inner)
	}
	digits, rest, ok := strings.Cut(inner, "]")
	n, err := strconv.Atoi(digits)
	return step{index: n}, rest, ok && err == nil && n >= 0
}

// quotedStep returns the step with the name in quotes at the beginning of s, and the text after the bracket that follows it.
func quotedStep(s string) (st step, rest string, ok bool) {
	var name []byte
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			rest, ok = strings.CutPrefix(s[i+1:], "]")
			return step{name: string(name), index: -1}, rest, ok
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		name = append(name, s[i])
	}
	return st, "", false
}
