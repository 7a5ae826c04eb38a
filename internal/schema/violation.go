package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/jsonschema"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A Violation is one way in which a value breaks a schema.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the place in the value; "" is the value itself. It
	// may hold the names of members that the value has and the schema does not. Where it would be
	// longer than [MaxPointer] bytes it is that of the innermost value around the place that is not.
	Pointer string `json:"pointer"`
	// Keyword is the schema's keyword that is broken; "false" for a schema that allows no value,
	// "limit" for a value that is beyond this package's limits, "json" for what is not JSON.
	Keyword string `json:"keyword"`
	// Message says what the schema asks for, in at most [MaxMessage] bytes. It is made of the
	// schema's own words and of types and counts: never of the value's text.
	Message string `json:"message"`
}

// violations turns errors into a sorted list. f may be nil.
func violations(errs []*jsonschema.Error, f *metadata) []Violation {
	return tidy(appendViolations(nil, nil, errs, f))
}

// appendViolations appends the errors about a part of a value, at path.
func appendViolations(dst []Violation, path []string, errs []*jsonschema.Error, f *metadata) []Violation {
	for _, e := range errs {
		dst = append(dst, Violation{pointer(path, e.Path), e.Keyword, cut(describe(e, f))})
	}
	return dst
}

// tidy sorts, and drops what is there twice and what is beyond the limit.
func tidy(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Keyword, b.Keyword), strings.Compare(a.Message, b.Message))
	})
	vs = slices.Compact(vs)
	return slices.Clip(vs[:min(len(vs), MaxViolations)])
}

// describe says what the keyword of an error asks for.
func describe(e *jsonschema.Error, f *metadata) string {
	s := e.Schema
	switch e.Keyword {
	case "false":
		return "no value is allowed here"
	case "$ref":
		return "the schema refers to itself without end"
	case "not":
		return "must not match the schema under not"
	case "anyOf":
		return "matches none of " + count(len(e.Forms), "form") + alternatives(e, f)
	case "oneOf":
		if e.Forms == nil {
			return fmt.Sprintf("must match exactly one form, but matches forms %d and %d", e.Pair[0]+1, e.Pair[1]+1)
		}
		return "matches none of " + count(len(e.Forms), "form") + alternatives(e, f)
	case "type":
		return fmt.Sprintf("must be %s, not %s", strings.Join(s.Types.Names(), " or "), e.Type)
	case "enum":
		return "must be one of " + list(s.Enum)
	case "const":
		return "must be " + quoted(*s.Const)
	case "required":
		return "missing " + names(e.Names)
	case "dependencies", "dependentRequired":
		return fmt.Sprintf("with %s, %s must be there too", strconv.Quote(e.Name), names(e.Names))
	case "additionalProperties":
		return count(e.Count, "member") + " too many; " + f.allowed(s)
	case "propertyNames":
		return "has members whose names are not allowed"
	case "minProperties":
		return fmt.Sprintf("must have at least %s, has %d", count(*s.MinProperties, "member"), e.Count)
	case "maxProperties":
		return fmt.Sprintf("must have at most %s, has %d", count(*s.MaxProperties, "member"), e.Count)
	case "minItems":
		return fmt.Sprintf("must have at least %s, has %d", count(*s.MinItems, "item"), e.Count)
	case "maxItems":
		return fmt.Sprintf("must have at most %s, has %d", count(*s.MaxItems, "item"), e.Count)
	case "additionalItems":
		return count(e.Count, "item") + " too many at the end"
	case "uniqueItems":
		return fmt.Sprintf("items %d and %d are equal", e.Pair[0], e.Pair[1])
	case "contains":
		return "no item is as the schema under contains asks"
	case "minContains":
		return fmt.Sprintf("%d items match the schema under contains, at least %d must", e.Count, *s.MinContains)
	case "maxContains":
		return fmt.Sprintf("%d items match the schema under contains, at most %d may", e.Count, *s.MaxContains)
	case "minLength":
		return fmt.Sprintf("must have at least %s, has %d", count(*s.MinLength, "character"), e.Count)
	case "maxLength":
		return fmt.Sprintf("must have at most %s, has %d", count(*s.MaxLength, "character"), e.Count)
	case "pattern":
		return "must match the pattern " + s.Pattern.String()
	case "format":
		return "must be a valid " + s.Format()
	case "minimum":
		return "must be at least " + number(s.Minimum)
	case "maximum":
		return "must be at most " + number(s.Maximum)
	case "exclusiveMinimum":
		return "must be above " + number(s.ExclusiveMinimum)
	case "exclusiveMaximum":
		return "must be below " + number(s.ExclusiveMaximum)
	case "multipleOf":
		return "must be a multiple of " + number(s.MultipleOf)
	}
	return "is not as the schema asks"
}

// alternatives says for each form why the value does not match it.
func alternatives(e *jsonschema.Error, f *metadata) string {
	var b strings.Builder
	for i, form := range e.Forms {
		if b.Len() > MaxMessage {
			break
		}
		var reasons []string
		for _, inner := range form {
			reason := describe(inner, f)
			if deeper := inner.Path[min(len(e.Path), len(inner.Path)):]; len(deeper) > 0 {
				reason = "at " + f.mask(deeper) + " " + reason
			}
			reasons = append(reasons, reason)
		}
		slices.Sort(reasons) // members are checked in no order
		fmt.Fprintf(&b, "; form %d: %s", i+1, strings.Join(slices.Compact(reasons), ", "))
	}
	return b.String()
}

// mask writes a pointer whose names the schema does not know as stars.
func (f *metadata) mask(tokens []string) string {
	masked := slices.Clone(tokens)
	for i, t := range masked {
		if _, err := strconv.Atoi(t); err != nil && (f == nil || !f.declared[t]) {
			masked[i] = "*"
		}
	}
	return pointer(masked)
}

// allowed lists the members that a schema knows.
func (f *metadata) allowed(s *jsonschema.Schema) string {
	if f == nil || len(s.Properties) == 0 {
		return "only what the schema names is allowed"
	}
	return "allowed are " + names(slices.Sorted(maps.Keys(s.Properties)))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func names(ss []string) string {
	var b strings.Builder
	for i, s := range ss {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(s))
		if b.Len() > MaxMessage {
			break
		}
	}
	return b.String()
}

func list(vs []any) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(v))
		if b.Len() > MaxMessage {
			break
		}
	}
	return b.String()
}

// quoted writes a value of the schema as JSON.
func quoted(v any) string {
	if s, ok := v.(string); ok {
		return string(rawjson.AppendQuote(nil, s))
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "the value that the schema names"
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// pointer writes the path made of the parts, as far as MaxPointer goes.
func pointer(parts ...[]string) string {
	var b strings.Builder
	for _, t := range slices.Concat(parts...) {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
		if b.Len()+1+len(t) > MaxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(t)
	}
	return b.String()
}

// cut shortens a message to MaxMessage bytes, between characters.
func cut(s string) string {
	if len(s) <= MaxMessage {
		return s
	}
	return text.Cut(s, MaxMessage-len("…")) + "…"
}
