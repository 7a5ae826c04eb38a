package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The library tries every schema on every value to which it applies, as often as it applies. A schema of a few hundred bytes can require
// more work than can ever be done, so the work is computed before the check. One unit is about the time to try one schema on one value; the
// other weights below are rough estimates in this unit, and follow the steps of the library. The cost of a pattern is known only after
// matching: each pattern is matched once with each text to which it applies.

// maxWork is the largest amount of work of one check.
const maxWork = 500_000

// matchUnit is the matching time that counts as one unit.
const matchUnit = MaxPatternTime / maxWork

// workload has the data to compute the cost of a check against one schema.
type workload struct {
	anchors     map[string][]*jsonschema.Schema // by the name of a dynamic anchor
	fixed       map[*jsonschema.Schema]int      // cost of enum and const
	tracksItems bool                            // at least one schema has unevaluatedItems
}

// newWorkload returns an error for other drafts, and for schemas that apply themselves to the same value without end.
func newWorkload(all []*jsonschema.Schema) (*workload, error) {
	w := &workload{anchors: map[string][]*jsonschema.Schema{}, fixed: map[*jsonschema.Schema]int{}}
	for _, s := range all {
		if s.DraftVersion != 7 && s.DraftVersion != 2020 {
			return nil, fmt.Errorf("%q is of another draft than 2020-12 and 7", s.Location)
		}
		w.tracksItems = w.tracksItems || s.UnevaluatedItems != nil
		if s.DynamicAnchor != "" {
			w.anchors[s.DynamicAnchor] = append(w.anchors[s.DynamicAnchor], s)
		}
		if n := choiceWork(s); n > 0 {
			w.fixed[s] = n
		}
	}
	state := map[*jsonschema.Schema]bool{} // false: in progress, true: done
	for _, s := range all {
		if !w.ends(s, state) {
			return nil, errors.New("the schema refers to itself without end")
		}
	}
	return w, nil
}

// choiceWork returns the cost of enum and const: the library compares the value with each choice.
func choiceWork(s *jsonschema.Schema) int {
	n := 0
	if s.Const != nil {
		n += valueWork(*s.Const)
	}
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			n += valueWork(v)
		}
	}
	return n / 8 // valueWork counts in eighths
}

// valueWork returns the cost of comparing a value with v, in eighths of a unit.
func valueWork(v any) int {
	n := 1
	switch v := v.(type) {
	case json.Number:
		n = 40 + len(v) // both numbers are parsed as big.Rat for the comparison
	case []any:
		for _, e := range v {
			n += valueWork(e)
		}
	case map[string]any:
		for _, e := range v {
			n += valueWork(e)
		}
	}
	return n
}

// ends reports whether the schemas that s applies to the same value never lead back to s. state is as in newWorkload.
func (w *workload) ends(s *jsonschema.Schema, state map[*jsonschema.Schema]bool) bool {
	if done, seen := state[s]; seen {
		return done
	}
	state[s] = false
	for sub := range w.inPlace(s) {
		if !w.ends(sub, state) {
			return false
		}
	}
	state[s] = true
	return true
}

// inPlace yields the schemas that s applies to the same value as itself.
func (w *workload) inPlace(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		subs := slices.Concat(s.AllOf, s.AnyOf, s.OneOf,
			[]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else})
		if s.DynamicRef != nil {
			subs = append(subs, s.DynamicRef.Ref)
			subs = append(subs, w.anchors[s.DynamicRef.Anchor]...)
		}
		for _, sub := range s.DependentSchemas {
			subs = append(subs, sub)
		}
		for _, dep := range s.Dependencies {
			if sub, ok := dep.(*jsonschema.Schema); ok {
				subs = append(subs, sub)
			}
		}
		for _, sub := range subs {
			if sub != nil && !yield(sub) {
				return
			}
		}
	}
}

// allows reports whether a check of v costs at most maxWork.
func (w *workload) allows(root *jsonschema.Schema, v any) bool {
	c := counter{workload: w, known: map[application]int{}}
	return c.cost(root, newItem(v)) <= maxWork
}

// pairWork returns the cost of comparing each of the n²/2 pairs of n items, a sixteenth of a unit for each.
func pairWork(n int) int { return n * n / 32 }

// An item is a value with identity, so that costs can be stored for it.
type item struct {
	value any
	names []string // names of kids if the value is an object
	kids  []*item
	size  int // number of values in this value, including itself
}

func newItem(v any) *item {
	it := &item{value: v, size: 1}
	add := func(e any) {
		kid := newItem(e)
		it.kids = append(it.kids, kid)
		it.size += kid.size
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			add(e)
		}
	case map[string]any:
		for name, e := range v {
			it.names = append(it.names, name)
			add(e)
		}
	}
	return it
}

// An application is one schema that is tried on one value.
type application struct {
	schema *jsonschema.Schema
	item   *item
}

// A counter computes the cost of one check.
type counter struct {
	*workload
	known     map[application]int
	matchWork int // cost of the matches so far
}

// matchCounted is the function match, in which all matches of the check share maxWork.
func (c *counter) matchCounted(re jsonschema.Regexp, text string) (found bool, work int) {
	found, work = match(re, text, maxWork-c.matchWork)
	c.matchWork += work
	return found, work
}

// cost returns the cost of an application, or a number above maxWork if it exceeds maxWork.
func (c *counter) cost(s *jsonschema.Schema, it *item) int {
	at := application{s, it}
	if n, ok := c.known[at]; ok {
		return n
	}
	if len(c.known) > maxWork {
		return maxWork + 1
	}
	c.known[at] = 0 // counts towards the limit above; never read, since newWorkload refuses schemas that lead back to themselves
	n := 1 + c.fixed[s] + c.own(s, it)
	for sub := range c.inPlace(s) {
		n = c.add(n, sub, it)
	}
	for i := 0; i < len(it.kids) && n <= maxWork; i++ {
		if it.names != nil {
			n = c.addMember(n, s, it.names[i], it.kids[i])
			continue
		}
		for sub := range forItem(s, i) {
			n = c.add(n, sub, it.kids[i])
		}
	}
	c.known[at] = min(n, maxWork+1)
	return c.known[at]
}

// add returns n plus the cost of an application, or n if that exceeds maxWork already.
func (c *counter) add(n int, s *jsonschema.Schema, it *item) int {
	if n > maxWork {
		return n
	}
	return n + c.cost(s, it)
}

// addMember returns n plus the cost of what s applies to a member of an object, and to its name.
func (c *counter) addMember(n int, s *jsonschema.Schema, name string, it *item) int {
	nameMatches := func(re jsonschema.Regexp) bool { // forMember calls it between two iterations of the loop, so n is up to date
		found, work := c.matchCounted(re, name)
		n += work
		return found
	}
	for sub := range forMember(s, name, nameMatches) {
		n = c.add(n, sub, it)
	}
	for _, ext := range s.Extensions {
		if names, ok := ext.(propertyNames); ok {
			n = c.add(n, names.schema, &item{value: name, size: 1})
		}
	}
	return n
}

// own returns the cost of the keywords of s that contain no schema.
func (c *counter) own(s *jsonschema.Schema, it *item) int {
	n := 0
	switch v := it.value.(type) {
	case string:
		if s.Pattern != nil {
			_, n = c.matchCounted(s.Pattern, v)
		}
	case json.Number:
		for _, bound := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
			if bound != nil {
				n += 1 + len(v)/16 // a comparison takes longer with more digits
			}
		}
	case []any:
		if c.tracksItems {
			n = len(v)
		}
		if s.UniqueItems {
			n += it.size * min(len(v), 20) // the library compares up to 20 items in pairs, and more by their hashes
			if it.size > len(v)+1 {        // nested items can have equal hashes although they differ
				n += pairWork(len(v))
			}
		}
	case map[string]any:
		n = len(s.Required)/2 + len(v)
		for _, names := range s.DependentRequired {
			n += 1 + len(names)/2
		}
	}
	return n
}

// A timedPattern is a pattern of a compiled schema. It is a *pattern, except in tests.
type timedPattern interface {
	match(text string) (found bool, took time.Duration, err error)
}

// match reports whether a pattern matches, and the cost of matching. If the cost exceeds a tenth of left, or MaxPatternTime has elapsed, it
// makes a second attempt, since a busy machine may have done other work in that time, and returns the lower cost. It panics with a slowMatch
// if both attempts reach MaxPatternTime, or one of them maxBacktracking. If left is not positive, it makes no attempt.
func match(re jsonschema.Regexp, text string, left int) (found bool, work int) {
	if left <= 0 {
		return false, maxWork + 1
	}
	p := re.(timedPattern)
	found, took, err := p.match(text)
	if err != nil || int(took/matchUnit) > left/10 {
		if again, tookAgain, errAgain := p.match(text); errAgain == nil {
			found, took, err = again, min(took, tookAgain), nil
		}
	}
	if err != nil { // its text contains the value
		panic(slowMatch{fmt.Sprintf("matching with the pattern %s takes longer than %v", re, MaxPatternTime)})
	}
	return found, 1 + int(took/matchUnit)
}

// forItem yields the schemas that s can apply to item i of an array.
func forItem(s *jsonschema.Schema, i int) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		subs := []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems}
		byIndex := s.PrefixItems
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			subs = append(subs, items)
		case []*jsonschema.Schema:
			byIndex = items
		}
		if others, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			subs = append(subs, others)
		}
		if i < len(byIndex) {
			subs = append(subs, byIndex[i])
		}
		for _, sub := range subs {
			if sub != nil && !yield(sub) {
				return
			}
		}
	}
}

// forMember yields the schemas that s can apply to a member of an object. matches reports whether a pattern matches the name.
func forMember(s *jsonschema.Schema, name string, matches func(jsonschema.Regexp) bool) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		if sub := s.Properties[name]; sub != nil && !yield(sub) {
			return
		}
		for re, sub := range s.PatternProperties {
			if matches(re) && !yield(sub) {
				return
			}
		}
		if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !yield(sub) {
			return
		}
		if s.UnevaluatedProperties != nil {
			yield(s.UnevaluatedProperties)
		}
	}
}
