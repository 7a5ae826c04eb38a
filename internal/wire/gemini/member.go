package gemini

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A nameSet is the set of members that the codec reads of one kind of object, by their camel case names.
type nameSet struct {
	names []string
	once  sync.Once         // of index, so that a program without this wire allocates no maps
	camel map[string]string // camel case name by both spellings; read it with spellings
	exact *rawjson.Names    // both spellings; set by spellings
}

// newNameSet returns the set of the names in list, which are separated by blanks.
func newNameSet(list string) *nameSet { return &nameSet{names: strings.Fields(list)} }

// spellings returns a map from both spellings of each name to its camel case name.
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

// object returns the members of an object under their camel case names: see [wire.Reader.Object].
func (r *reader) object(at string, v []byte, s *nameSet) wire.Object {
	camel := s.spellings()
	return r.Object(at, v, s.exact).Rename(camel)
}

// in returns the member name of o as an object, with the members of s under their camel case names.
func (s *nameSet) in(o wire.Object, name string) wire.Object {
	camel := s.spellings()
	return o.Object(name, s.exact).Rename(camel)
}

// get returns the member of obj with the given camel case name, in camel case or snake case. It returns nil if the member does not exist or
// is null.
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

// parseInt parses an integer. In the JSON form of protocol buffers it is a number, possibly with a fraction of zero, or a string. If v is
// no integer, must is the error text.
func parseInt(v []byte) (n int64, must string) {
	if rawjson.Kind(v) == '"' {
		v = []byte(rawjson.Text(v))
	}
	if whole, ok := rawjson.Integer(v); ok {
		if n, err := strconv.ParseInt(string(whole), 10, 64); err == nil {
			return n, ""
		}
	}
	return 0, "Must be an integer."
}

func parseInt32(v []byte) (int, string) {
	n, must := parseInt(v)
	if n < math.MinInt32 || n > math.MaxInt32 {
		must = "Must be an integer of 32 bits."
	}
	return int(n), must
}

func parseCount(v []byte) (int, string) {
	n, must := parseInt32(v)
	if must == "" && n < 1 {
		must = "Must be at least 1."
	}
	return n, must
}
