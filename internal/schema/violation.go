package schema

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A Violation is one way in which a value violates a schema.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the location in the value; "" is the value itself. It may contain member names that the
	// value has and the schema does not. If the pointer were longer than [MaxPointer] bytes, it ends at the innermost enclosing value that
	// is within the limit.
	Pointer string `json:"pointer"`
	// Keyword is the violated keyword of the schema; "false" for a schema that allows no value, "limit" for a value that exceeds the limits
	// of this package, "json" for text that is not JSON.
	Keyword string `json:"keyword"`
	// Message describes what the schema requires, in at most [MaxMessage] bytes. It contains text of the schema, types and counts, and
	// never text of the value.
	Message string `json:"message"`
}

// violations turns the error tree of the library into a sorted list. meta may be nil.
func violations(err *jsonschema.ValidationError, meta *metadata) (vs []Violation) {
	for _, leaf := range leaves(nil, err) {
		keyword, message := describe(leaf, meta)
		vs = append(vs, Violation{pointer(leaf.InstanceLocation), keyword, cut(message)})
	}
	return tidy(vs)
}

// tidy sorts violations, and removes duplicates and those above MaxViolations.
func tidy(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Keyword, b.Keyword), strings.Compare(a.Message, b.Message))
	})
	vs = slices.Compact(vs)
	return slices.Clip(vs[:min(len(vs), MaxViolations)])
}

// leaves appends the errors that have their own message: groups, references and allOf only contain other errors.
func leaves(dst []*jsonschema.ValidationError, err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch err.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range err.Causes {
			dst = leaves(dst, cause)
		}
		return dst
	}
	return append(dst, err)
}

func describe(err *jsonschema.ValidationError, meta *metadata) (keyword, message string) {
	switch k := err.ErrorKind.(type) {
	case *kind.FalseSchema:
		return "false", "no value is allowed here"
	case *kind.RefCycle:
		return "$ref", "the schema refers to itself without end"
	case *kind.Not:
		return "not", "must not match the schema under not"
	case *kind.AnyOf:
		return "anyOf", alternatives(err, meta)
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return "oneOf", fmt.Sprintf("must match exactly one form, but matches forms %d and %d", k.Subschemas[0]+1, k.Subschemas[1]+1)
		}
		return "oneOf", alternatives(err, meta)
	case *kind.Type:
		return "type", fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "enum", "must be one of " + joined(k.Want, quoted)
	case *kind.Const:
		return "const", "must be " + quoted(k.Want)
	case *kind.Required:
		return "required", "missing " + names(k.Missing)
	case *kind.Dependency:
		return "dependencies", fmt.Sprintf("with %s, %s must be there too", strconv.Quote(k.Prop), names(k.Missing))
	case *kind.DependentRequired:
		return "dependentRequired", fmt.Sprintf("with %s, %s must be there too", strconv.Quote(k.Prop), names(k.Missing))
	case *kind.AdditionalProperties:
		return "additionalProperties", count(len(k.Properties), "member") + " too many; " + meta.allowed(err.SchemaURL)
	case *kind.PropertyNames:
		return "propertyNames", "has members whose names are not allowed"
	case *kind.MinProperties:
		return "minProperties", fmt.Sprintf("must have at least %s, has %d", count(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return "maxProperties", fmt.Sprintf("must have at most %s, has %d", count(k.Want, "member"), k.Got)
	case *kind.MinItems:
		return "minItems", fmt.Sprintf("must have at least %s, has %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return "maxItems", fmt.Sprintf("must have at most %s, has %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return "additionalItems", count(k.Count, "item") + " too many at the end"
	case *kind.UniqueItems:
		return "uniqueItems", fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "contains", "no item is as the schema under contains asks"
	case *kind.MinContains:
		return "minContains", fmt.Sprintf("%d items match the schema under contains, at least %d must", len(k.Got), k.Want)
	case *kind.MaxContains:
		return "maxContains", fmt.Sprintf("%d items match the schema under contains, at most %d may", len(k.Got), k.Want)
	case *kind.MinLength:
		return "minLength", fmt.Sprintf("must have at least %s, has %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return "maxLength", fmt.Sprintf("must have at most %s, has %d", count(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return "pattern", "must match the pattern " + k.Want
	case *kind.Format:
		return "format", "must be a valid " + k.Want
	case *kind.Minimum:
		return "minimum", "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "maximum", "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "exclusiveMinimum", "must be above " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "exclusiveMaximum", "must be below " + number(k.Want)
	case *kind.MultipleOf:
		return "multipleOf", "must be a multiple of " + number(k.Want)
	}
	if path := err.ErrorKind.KeywordPath(); len(path) > 0 {
		return path[0], "is not as the schema asks"
	}
	return "schema", "is not as the schema asks"
}

// alternatives returns the message for a value that matches no form of an anyOf or oneOf, with the reason for each form.
func alternatives(err *jsonschema.ValidationError, meta *metadata) string {
	var b strings.Builder
	b.WriteString("matches none of " + count(len(err.Causes), "form"))
	for i, cause := range err.Causes {
		if b.Len() > MaxMessage {
			break
		}
		var reasons []string
		for _, leaf := range leaves(nil, cause) {
			_, reason := describe(leaf, meta)
			if deeper := leaf.InstanceLocation[min(len(err.InstanceLocation), len(leaf.InstanceLocation)):]; len(deeper) > 0 {
				reason = "at " + meta.mask(deeper) + " " + reason
			}
			reasons = append(reasons, reason)
		}
		slices.Sort(reasons) // members are checked in random order
		fmt.Fprintf(&b, "; form %d: %s", i+1, strings.Join(slices.Compact(reasons), ", "))
	}
	return b.String()
}

// mask returns a pointer in which a star replaces each name that the schema does not contain.
func (meta *metadata) mask(tokens []string) string {
	masked := slices.Clone(tokens)
	for i, t := range masked {
		if _, err := strconv.Atoi(t); err != nil && (meta == nil || !meta.declared[t]) {
			masked[i] = "*"
		}
	}
	return pointer(masked)
}

// allowed lists the properties in the schema at a location.
func (meta *metadata) allowed(location string) string {
	if meta != nil {
		if s := meta.byLocation[location]; s != nil && len(s.Properties) > 0 {
			return "allowed are " + names(slices.Sorted(maps.Keys(s.Properties)))
		}
	}
	return "only what the schema names is allowed"
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func names(list []string) string { return joined(list, strconv.Quote) }

// joined returns the texts of values, separated by commas, up to the one that exceeds MaxMessage.
func joined[T any](values []T, text func(T) string) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(v))
		if b.Len() > MaxMessage {
			break
		}
	}
	return b.String()
}

// quoted returns a value of the schema as JSON.
func quoted(v any) string {
	if s, ok := v.(string); ok {
		return string(rawjson.AppendQuote(nil, s))
	}
	text, err := rawjson.Marshal(v)
	if err != nil {
		return "the value that the schema names"
	}
	return string(text)
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// pointer returns a JSON pointer made of the parts, cut after the last part within MaxPointer.
func pointer(parts ...[]string) string {
	var b strings.Builder
	for _, t := range slices.Concat(parts...) {
		t = escapeToken(t)
		if b.Len()+1+len(t) > MaxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(t)
	}
	return b.String()
}

// escapeToken escapes a name for use in a JSON pointer.
func escapeToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// cut shortens a message to MaxMessage bytes without splitting a character.
func cut(s string) string {
	if len(s) <= MaxMessage {
		return s
	}
	return text.Cut(s, MaxMessage-len("…")) + "…"
}
