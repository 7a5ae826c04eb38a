package gemini

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A nameSet is the set of members that the codec reads of one kind of object, by their camel case names.
type nameSet struct {
	names []string
	once  sync.Once         // of index: a program that does not read this wire makes no maps
	camel map[string]string // by both spellings; through spellings
	exact *rawjson.Names    // through spellings
}

func newNameSet(names ...string) *nameSet { return &nameSet{names: names} }

// spellings returns the names in camel case by both spellings.
func (s *nameSet) spellings() map[string]string {
	s.once.Do(s.index)
	return s.camel
}

func (s *nameSet) index() {
	s.camel = make(map[string]string, 2*len(s.names))
	all := make([]string, 0, 2*len(s.names))
	for _, name := range s.names {
		s.camel[name], s.camel[snake(name)] = name, name
		all = append(all, name, snake(name))
	}
	s.exact = rawjson.NewNames(all...)
}

// snake returns a camel case name in snake case.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			b.WriteByte(c + 'a' - 'A')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// A member is a member of an object whose value is not null.
type member struct {
	name  string // in camel case if it is one of the set
	known bool
	value []byte
}

// read returns the members of the object at the path at, a part of the text of index or another text. index may be nil. It returns an error for names that other parsers may take for one of
// the set. It appends the members to out, which may be nil.
func (s *nameSet) read(out []member, index *rawjson.Index, obj []byte, at string) ([]member, *wire.APIError) {
	if wire.Kind(obj) != '{' {
		return nil, wire.BadRequest(at, "Must be an object.")
	}
	spellings := s.spellings()
	for key, v := range index.Members(obj) {
		camel, known := spellings[string(key[1:len(key)-1])] // most are written without escapes
		if !known {
			if as, name := s.exact.LikeKey(key); name != "" {
				return nil, ambiguous(wire.Join(at, as), "The member %.64q differs from %s in the case or the form of its letters only: servers may read both as the same member. Send one of them, as %s.", as, name, name)
			}
		}
		if string(v) == "null" {
			continue
		}
		m := member{name: camel, known: known, value: v}
		if !known {
			m.name = s.exact.Text(key)
			if camel, m.known = spellings[m.name]; m.known {
				m.name = camel
			}
		}
		if m.known && slices.ContainsFunc(out, func(o member) bool { return o.known && o.name == camel }) {
			return nil, ambiguous(wire.Join(at, s.exact.Text(key)), "The member is there twice, in two spellings. Send it once, as %s.", camel)
		}
		out = append(out, m)
	}
	return out, nil
}

// fewMembers is memory for the members of most objects.
type fewMembers [4]member

// kept returns a copy of the member.
func (m *member) kept() lathe.Member { return lathe.Member{Name: m.name, Value: bytes.Clone(m.value)} }

// member is kept without the copy: the value is part of the request.
func (m *member) member() lathe.Member { return lathe.Member{Name: m.name, Value: m.value} }

// get returns the member of obj under its camel case or its snake case name; nil if there is none, or null.
func get(obj []byte, name string) []byte {
	v, ok := rawjson.Get(obj, name)
	if !ok {
		if other := snake(name); other != name {
			v, ok = rawjson.Get(obj, other)
		}
	}
	if !ok || string(v) == "null" {
		return nil
	}
	return v
}

func ambiguous(param, format string, args ...any) *wire.APIError {
	err := wire.BadRequest(param, format, args...)
	err.Code = "ambiguous_member"
	return err
}

// parseInt parses an integer. In the JSON form of protocol buffers it is a number, with or without a fraction of zero, or a
// string.
func parseInt(v []byte, at string) (int64, *wire.APIError) {
	if wire.Kind(v) == '"' {
		v = []byte(rawjson.Text(v))
	}
	if whole, ok := rawjson.Integer(v); ok {
		if n, err := strconv.ParseInt(string(whole), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, wire.BadRequest(at, "Must be an integer.")
}

func parseInt32(v []byte, at string) (int, *wire.APIError) {
	n, err := parseInt(v, at)
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		err = wire.BadRequest(at, "Must be an integer of 32 bits.")
	}
	return int(n), err
}

func parseCount(v []byte, at string) (int, *wire.APIError) {
	n, err := parseInt32(v, at)
	if err == nil && n < 1 {
		err = wire.BadRequest(at, "Must be at least 1.")
	}
	return n, err
}

func parseStrings(v []byte, at string) ([]string, *wire.APIError) {
	if wire.Kind(v) != '[' {
		return nil, wire.BadRequest(at, "Must be an array of strings.")
	}
	var out []string
	for el := range rawjson.Elements(v) {
		s, err := wire.ParseString(el, wire.Element(at, len(out)))
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
