package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A grouper is a value that is a mapping from free names to entries with keys of their own.
type grouper interface {
	value
	group(name string) ([]key, error) // the rows of an entry, which is made if need be
	groups() []namedRows              // sorted by name
	sample() []key                    // the rows of any entry, for the reference
}

type namedRows struct {
	name string
	rows []key
}

type groupValue[T any] struct {
	p     *map[string]*T
	key   string // for errors
	check func(string) error
	rows  func(*T) []key
}

// group is a mapping from names to entries, each of which has the rows that rows binds to it.
func group[T any](p *map[string]*T, key string, check func(string) error, rows func(*T) []key) grouper {
	return groupValue[T]{p, key, check, rows}
}

func (g groupValue[T]) set(string) error {
	return errors.New("wants a mapping of entries, each under its " + g.key)
}
func (g groupValue[T]) text() string { return strings.Join(slices.Sorted(maps.Keys(*g.p)), ",") }
func (g groupValue[T]) kind() string { return "mapping: " + g.key + " to entry" }

func (g groupValue[T]) group(name string) ([]key, error) {
	if err := g.check(name); err != nil {
		return nil, err
	}
	if *g.p == nil {
		*g.p = map[string]*T{}
	}
	entry := (*g.p)[name]
	if entry == nil {
		entry = new(T)
		applyDefaults(g.rows(entry))
		(*g.p)[name] = entry
	}
	return g.rows(entry), nil
}

func (g groupValue[T]) groups() []namedRows {
	var out []namedRows
	for _, name := range slices.Sorted(maps.Keys(*g.p)) {
		out = append(out, namedRows{name, g.rows((*g.p)[name])})
	}
	return out
}

func (g groupValue[T]) sample() []key {
	rows := g.rows(new(T))
	applyDefaults(rows)
	return rows
}

// entry notes where an entry begins, and reads its keys.
func (l *loader) entry(g grouper, k, v *yaml.Node, full string) {
	path := full + "." + k.Value
	rows, err := g.group(k.Value)
	if err != nil {
		l.problem(k.Line, path, "%s", err)
		return
	}
	l.lines[path] = k.Line
	l.cfg.origin[path] = l.place(k.Line)
	l.section(v, path+".", "", rows)
}

// flat returns the rows with the rows of a sample entry in the place of each group, under NAME.
func flat(rows []key) []key {
	var out []key
	for _, k := range rows {
		g, ok := k.v.(grouper)
		if !ok {
			out = append(out, k)
			continue
		}
		for _, inner := range flat(g.sample()) {
			inner.path = k.path + ".NAME." + inner.path
			out = append(out, inner)
		}
	}
	return out
}
