package config

import (
	"errors"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A lister is a value that is a list of words.
type lister interface {
	value
	setList([]string) error
	list() []string
}

type listValue struct {
	p     *[]string
	check func(string) error
}

func list(p *[]string) lister { return listValue{p, isToolName} }

// names is a list of names that are looked at later.
func names(p *[]string) lister { return listValue{p, isName} }

func (v listValue) set(s string) error { return setWords(v, s) }

// setWords sets a list from words with commas between them.
func setWords(v lister, s string) error {
	items := []string{} // an empty list is not an unset one
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return v.setList(items)
}

func (v listValue) setList(items []string) error {
	seen := map[string]bool{}
	for _, item := range items {
		if err := v.check(item); err != nil {
			return err
		}
		if seen[item] {
			return errors.New(quote(item) + " stands twice")
		}
		seen[item] = true
	}
	*v.p = slices.Clone(items)
	return nil
}

func (v listValue) list() []string { return *v.p }
func (v listValue) text() string   { return strings.Join(*v.p, ",") }
func (v listValue) kind() string   { return "list of names" }

// A tabler is a value that is a mapping from free names to values of one kind.
type tabler interface {
	value
	entry(name string) (value, error) // makes the entry
	entries() []namedValue            // sorted by name
}

type namedValue struct {
	name string
	v    value
}

type tableValue[T any] struct {
	p          *map[string]T
	key, value string // for the reference
	check      func(string) error
	make       func(*T) value
}

// table is a mapping whose values are read by what newValue makes. Values are written back into the
// map as they are set.
func table[T any](p *map[string]T, key, kind string, check func(string) error, newValue func(*T) value) tabler {
	return tableValue[T]{p, key, kind, check, newValue}
}

func (t tableValue[T]) set(string) error {
	return errors.New("wants a mapping, " + t.key + " to value")
}
func (t tableValue[T]) text() string { return "" }
func (t tableValue[T]) kind() string { return "mapping: " + t.key + " to " + t.value }

func (t tableValue[T]) entry(name string) (value, error) {
	if err := t.check(name); err != nil {
		return nil, err
	}
	if *t.p == nil {
		*t.p = map[string]T{}
	}
	held := (*t.p)[name]
	return &stored{t.make(&held), func() { (*t.p)[name] = held }}, nil
}

func (t tableValue[T]) entries() []namedValue {
	var out []namedValue
	for _, name := range slices.Sorted(maps.Keys(*t.p)) {
		held := (*t.p)[name]
		out = append(out, namedValue{name, t.make(&held)})
	}
	return out
}

// stored puts a value back into its map after each change.
type stored struct {
	value
	put func()
}

func (s *stored) set(text string) error {
	err := s.value.set(text)
	if err == nil {
		s.put()
	}
	return err
}

func (s *stored) resolve(r *resolver) error {
	ref, ok := s.value.(referrer)
	if !ok {
		return nil
	}
	err := ref.resolve(r)
	s.put()
	return err
}

func (s *stored) refers() bool {
	_, ok := s.value.(referrer)
	return ok
}

// storedList is a list in a mapping.
type storedList struct {
	lister
	put func()
}

func (s storedList) setList(items []string) error {
	err := s.lister.setList(items)
	if err == nil {
		s.put()
	}
	return err
}

// listIn returns the entry of a mapping as a list, nil where it is none.
func listIn(entry value) lister {
	if s, ok := entry.(*stored); ok {
		if l, ok := s.value.(lister); ok {
			return storedList{l, s.put}
		}
	}
	return nil
}

func newDecision(p *lathe.Decision) value { return decision(p) }
func newText(p *string) value             { return text(p) }
func newHeader(p *Ref) value              { return reference(p, isHeaderValue) }

func isScriptName(s string) error {
	if !isLabel(s) {
		return errors.New("a script's name has lower-case letters, digits, _ . and -")
	}
	return nil
}

func isHeaderName(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return errors.New("this is not the name of a header")
		}
	}
	switch textproto.CanonicalMIMEHeaderKey(s) {
	case "":
		return errors.New("this is not the name of a header")
	case "Content-Length", "Content-Type", "Transfer-Encoding", "Host", "Connection":
		return errors.New("this header is the transport's own")
	}
	return nil
}
