package jsonschema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"
)

// parts checks the keywords for the type of the value: text, number, array or object.
func (a *application) parts(v any) {
	switch v := v.(type) {
	case string:
		a.text(v)
	case json.Number:
		a.number(v)
	case []any:
		a.array(v)
	case map[string]any:
		a.object(v)
	}
}

func (a *application) text(v string) {
	s := a.s
	if s.MinLength != nil || s.MaxLength != nil {
		n := utf8.RuneCountInString(v)
		if s.MinLength != nil && n < *s.MinLength {
			a.add(&Error{Keyword: "minLength", Count: n})
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			a.add(&Error{Keyword: "maxLength", Count: n})
		}
	}
	if s.Pattern != nil && !s.Pattern.MatchString(v) {
		a.add(&Error{Keyword: "pattern"})
	}
}

func (a *application) number(v json.Number) {
	s := a.s
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	n := rational(v)
	if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
		a.add(&Error{Keyword: "minimum"})
	}
	if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
		a.add(&Error{Keyword: "maximum"})
	}
	if s.ExclusiveMinimum != nil && n.Cmp(s.ExclusiveMinimum) <= 0 {
		a.add(&Error{Keyword: "exclusiveMinimum"})
	}
	if s.ExclusiveMaximum != nil && n.Cmp(s.ExclusiveMaximum) >= 0 {
		a.add(&Error{Keyword: "exclusiveMaximum"})
	}
	if s.MultipleOf != nil && !new(big.Rat).Quo(n, s.MultipleOf).IsInt() {
		a.add(&Error{Keyword: "multipleOf"})
	}
}

func (a *application) array(v []any) {
	s := a.s
	if s.MinItems != nil && len(v) < *s.MinItems {
		a.add(&Error{Keyword: "minItems", Count: len(v)})
	}
	if s.MaxItems != nil && len(v) > *s.MaxItems {
		a.add(&Error{Keyword: "maxItems", Count: len(v)})
	}
	if s.UniqueItems {
		if i, j, found := duplicates(v); found {
			a.add(&Error{Keyword: "uniqueItems", Pair: [2]int{i, j}})
		}
	}
	first := min(len(s.PrefixItems), len(v))
	for i, e := range v[:first] {
		a.errs = append(a.errs, a.item(s.PrefixItems[i], i, e)...)
	}
	rest := s.Items
	switch more := s.AdditionalItems.(type) {
	case bool:
		if !more && len(v) > first {
			a.add(&Error{Keyword: "additionalItems", Count: len(v) - first})
		}
	case *Schema:
		rest = more
	}
	if rest != nil {
		for i, e := range v[first:] {
			if a.quick && a.errs != nil {
				return
			}
			a.errs = append(a.errs, a.item(rest, first+i, e)...)
		}
	}
	if a.seen != nil {
		a.seen.first, a.seen.all = max(a.seen.first, first), a.seen.all || rest != nil || s.AdditionalItems != nil
	}
	if s.Contains != nil {
		a.contains(v)
	}
}

func (a *application) contains(v []any) {
	s, count := a.s, 0
	for i, e := range v {
		if a.apply(&frame{schema: s.Contains, parent: a.frame, index: i, inList: true}, e, true, nil) == nil {
			if count++; a.seen != nil && s.Draft != Draft7 {
				a.seen.item(i)
			}
		}
	}
	switch {
	case s.MinContains != nil:
		if count < *s.MinContains {
			a.add(&Error{Keyword: "minContains", Count: count})
		}
	case count == 0:
		a.add(&Error{Keyword: "contains"})
	}
	if s.MaxContains != nil && count > *s.MaxContains {
		a.add(&Error{Keyword: "maxContains", Count: count})
	}
}

// duplicates returns the index j of the first item that is equal to an earlier one, and the index i of the earlier one.
func duplicates(v []any) (i, j int, found bool) {
	known := make(map[string]int, len(v))
	var key []byte
	for j, e := range v {
		key = appendKey(key[:0], e)
		if i, ok := known[string(key)]; ok {
			return i, j, true
		}
		known[string(key)] = j
	}
	return 0, 0, false
}

// appendKey appends a text that is equal for two values if and only if the values are equal.
func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, 'n')
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return append(append(dst, '0'), rational(v).RatString()...)
	case string:
		return appendText(dst, v)
	case []any:
		dst = append(strconv.AppendInt(append(dst, '['), int64(len(v)), 10), ':')
		for _, e := range v {
			dst = append(appendKey(dst, e), ',')
		}
	case map[string]any:
		dst = append(strconv.AppendInt(append(dst, '{'), int64(len(v)), 10), ':')
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			dst = append(appendKey(appendText(dst, name), v[name]), ',')
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	dst = append(strconv.AppendInt(append(dst, '"'), int64(len(s)), 10), ':')
	return append(dst, s...)
}

func (a *application) object(v map[string]any) {
	s := a.s
	if s.MinProperties != nil && len(v) < *s.MinProperties {
		a.add(&Error{Keyword: "minProperties", Count: len(v)})
	}
	if s.MaxProperties != nil && len(v) > *s.MaxProperties {
		a.add(&Error{Keyword: "maxProperties", Count: len(v)})
	}
	if names := missing(v, s.Required); names != nil {
		a.add(&Error{Keyword: "required", Names: names})
	}
	for name, dep := range s.Dependencies {
		if _, has := v[name]; !has {
			continue
		}
		switch dep := dep.(type) {
		case []string:
			if names := missing(v, dep); names != nil {
				a.add(&Error{Keyword: "dependencies", Name: name, Names: names})
			}
		case *Schema:
			a.require(dep, v)
		}
	}
	for name, dep := range s.DependentRequired {
		if _, has := v[name]; has {
			if names := missing(v, dep); names != nil {
				a.add(&Error{Keyword: "dependentRequired", Name: name, Names: names})
			}
		}
	}
	for name, dep := range s.DependentSchemas {
		if _, has := v[name]; has {
			a.require(dep, v)
		}
	}
	a.members(v)
	if s.PropertyNames != nil {
		for name := range v {
			if a.apply(&frame{schema: s.PropertyNames, parent: a.frame, name: name}, name, true, nil) != nil {
				a.add(&Error{Keyword: "propertyNames"})
				break
			}
		}
	}
}

// members checks properties, patternProperties and additionalProperties.
func (a *application) members(v map[string]any) {
	s, tooMany := a.s, 0
	for name, value := range v {
		if a.quick && a.errs != nil {
			return
		}
		known := false
		if sub := s.Properties[name]; sub != nil {
			known = true
			a.member(sub, name, value)
		}
		for re, sub := range s.PatternProperties {
			if re.MatchString(name) {
				known = true
				a.member(sub, name, value)
			}
		}
		if known {
			if a.seen != nil {
				a.seen.name(name)
			}
			continue
		}
		switch more := s.AdditionalProperties.(type) {
		case bool:
			if !more {
				tooMany++
			}
		case *Schema:
			a.member(more, name, value)
		}
	}
	if tooMany > 0 {
		a.add(&Error{Keyword: "additionalProperties", Count: tooMany})
	}
	if a.seen != nil && s.AdditionalProperties != nil {
		a.seen.all = true
	}
}

// missing returns the names that no member has; nil if there are none.
func missing(v map[string]any, names []string) (out []string) {
	for _, name := range names {
		if _, has := v[name]; !has {
			out = append(out, name)
		}
	}
	return out
}
