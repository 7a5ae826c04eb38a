package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe/internal/text"
)

// A word is a keyword of JSON Schema in the tag jsonschema of a field.
type word struct {
	on    string // the type of the values that it restricts: "string", "number" or "array"; "": all
	whole bool   // on an array it concerns the array; else its items
	many  bool   // it may occur more than once
}

// words are the words of tags by name. The table is read-only.
var words = map[string]word{
	"title":       {whole: true},
	"description": {whole: true},
	"default":     {whole: true, many: true},
	"example":     {many: true},
	"enum":        {many: true},

	"minLength": {on: "string"},
	"maxLength": {on: "string"},
	"pattern":   {on: "string"},
	"format":    {on: "string"},

	"minimum":          {on: "number"},
	"maximum":          {on: "number"},
	"exclusiveMinimum": {on: "number"},
	"exclusiveMaximum": {on: "number"},
	"multipleOf":       {on: "number"},

	"minItems":    {on: "array", whole: true},
	"maxItems":    {on: "array", whole: true},
	"uniqueItems": {on: "array", whole: true},
}

// fieldOf returns a pointer to the field of the schema that a word sets.
func fieldOf(s *jsonschema.Schema, word string) any {
	return map[string]any{"title": &s.Title, "description": &s.Description, "default": &s.Default, "example": &s.Examples, "enum": &s.Enum,
		"minLength": &s.MinLength, "maxLength": &s.MaxLength, "pattern": &s.Pattern, "format": &s.Format,
		"minimum": &s.Minimum, "maximum": &s.Maximum, "exclusiveMinimum": &s.ExclusiveMinimum, "exclusiveMaximum": &s.ExclusiveMaximum, "multipleOf": &s.MultipleOf,
		"minItems": &s.MinItems, "maxItems": &s.MaxItems, "uniqueItems": &s.UniqueItems}[word]
}

// applyTags applies the tags jsonschema and jsonschema_description of a field to its schema, and reports whether the tag has `required`.
//
// The tag jsonschema is either a description or a list of words as in "enum=low,enum=high,required", in the syntax of
// github.com/invopop/jsonschema: separated by commas, with \, for a comma in a value. On an array, words about values restrict the items.
// It is a list if its first element is `required` or has the form WORD=, or if another element begins with a known WORD=.
func applyTags(s *jsonschema.Schema, f reflect.StructField) (required bool, err error) {
	tag, description := f.Tag.Get("jsonschema"), f.Tag.Get("jsonschema_description")
	elements := splitTag(tag)
	if !isWords(elements) {
		return false, setDescription(s, tag, description)
	}
	s.Description = description
	own := clone(s) // what the type alone allows
	seen := map[string]bool{}
	for _, element := range elements {
		if element == "required" {
			required = true
			continue
		}
		if err := applyWord(s, element, seen); err != nil {
			return false, err
		}
	}
	return required, checkTagged(s, own)
}

// setDescription sets the description to that of the tag jsonschema, which is not a list of words, or else to that of jsonschema_description.
func setDescription(s *jsonschema.Schema, tag, description string) error {
	switch name, _, ok := strings.Cut(tag, ":"); {
	case ok && meant(name) != "":
		return fmt.Errorf("the tag begins with %s: and is read as a description: write %s=VALUE, or the description in the tag jsonschema_description", name, meant(name))
	case tag == "-":
		return errors.New(`the tag jsonschema:"-" does not remove a field: write json:"-"`)
	case tag != "" && description != "":
		return errors.New("the tags jsonschema and jsonschema_description are two descriptions: remove one")
	}
	s.Description = cmp.Or(tag, description)
	return nil
}

// clone returns a copy of s and of its items.
func clone(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	if s.Items != nil {
		items := *s.Items
		c.Items = &items
	}
	return &c
}

// splitTag splits a tag at the commas that have no backslash before them.
func splitTag(tag string) []string {
	elements := strings.Split(strings.ReplaceAll(tag, `\,`, "\x00"), ",")
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(e, "\x00", ",")
	}
	return elements
}

// isWords reports whether a tag is a list of words, and not a description.
func isWords(elements []string) bool {
	name, _, ok := strings.Cut(elements[0], "=")
	if elements[0] == "required" || ok && !strings.ContainsAny(name, " \t\n") {
		return true
	}
	return slices.ContainsFunc(elements[1:], func(e string) bool {
		name, _, ok := strings.Cut(e, "=")
		_, known := words[name]
		return ok && (known || meant(name) != "")
	})
}

// meant returns the word from which name differs by at most one letter, apart from case. It returns "" if there is no such word or several,
// and for words that often begin a description, such as format and example.
func meant(name string) (found string) {
	name = strings.ToLower(strings.TrimSpace(name))
	for known, w := range words {
		restricts := known == "enum" || w.on != "" && known != "pattern" && known != "format"
		if !restricts || text.Distance(name, strings.ToLower(known)) > 1 {
			continue
		}
		if found != "" {
			return ""
		}
		found = known
	}
	return found
}

// applyWord applies one element of a tag to the schema of a field.
func applyWord(s *jsonschema.Schema, element string, seen map[string]bool) error {
	name, value, ok := strings.Cut(element, "=")
	w, known := words[name]
	switch {
	case !ok && known:
		return fmt.Errorf("the tag has %s without a value: write %s=VALUE", name, name)
	case !ok:
		return fmt.Errorf(`the tag has %q, which is not WORD=VALUE: write a comma within a value as \\,, and a description as description=TEXT or in the tag jsonschema_description`, element)
	case !known:
		all := slices.Sorted(maps.Keys(words))
		return fmt.Errorf("the tag has %s, and there is no word %s: %s", element, name, text.Suggest(name, all, "the words are "+strings.Join(all, ", ")+", required"))
	case seen[name] && !w.many:
		return fmt.Errorf("the tag has %s twice", name)
	case name == "description" && s.Description != "":
		return errors.New("description and the tag jsonschema_description are two descriptions: remove one")
	}
	if !w.whole && s.Type == "array" {
		s = s.Items
	}
	isOther := s.Type != w.on && (s.Type != "integer" || w.on != "number") // an integer is a number
	if w.on != "" && isOther {
		return fmt.Errorf("the tag has %s, which restricts a %s, and the JSON form of the field is %s", element, w.on, describeType(s))
	}
	if !seen[name] && name == "enum" {
		s.Enum = nil // replaces the values of the type's method Enum, which checkTagged compares
	}
	seen[name] = true
	if err := set(s, name, value); err != nil {
		return fmt.Errorf("the tag has %s, and %w", element, err)
	}
	return nil
}

// describeType names the type of a schema in an error.
func describeType(s *jsonschema.Schema) string {
	if s.Type == "" {
		return "not known from its type"
	}
	return "of type " + s.Type
}

// set sets the field of a word to a value, or appends the value to it.
func set(s *jsonschema.Schema, word, value string) (err error) {
	switch p := fieldOf(s, word).(type) {
	case *string:
		if value == "" {
			return errors.New("it has no value")
		}
		*p = value
	case **int:
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return fmt.Errorf("%q is not an integer of 0 or more", value)
		}
		*p = new(int(n))
	case **float64:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !json.Valid([]byte(value)) {
			return fmt.Errorf("%q is not a number of JSON", value)
		}
		*p = &n
	case *[]any:
		v, err := typed(s, value)
		if err != nil {
			return err
		}
		if slices.Contains(*p, v) {
			return errors.New("that value occurs twice")
		}
		*p = append(*p, v)
	case *bool:
		*p, err = parseBool(value)
	case *json.RawMessage:
		err = setDefault(s, value)
	}
	return err
}

// setDefault sets the default, or appends an item to the default of an array.
func setDefault(s *jsonschema.Schema, value string) error {
	of := s
	if s.Type == "array" {
		of = s.Items
	}
	v, err := typed(of, value)
	if err != nil {
		return err
	}
	if s.Type == "array" {
		var list []any
		if s.Default != nil {
			if err := json.Unmarshal(s.Default, &list); err != nil {
				return err
			}
		}
		s.Default, err = json.Marshal(append(list, v))
		return err
	}
	if s.Default != nil {
		return errors.New("there is another default")
	}
	s.Default, err = json.Marshal(v)
	return err
}

// typed returns the value of a word in the type of the schema.
func typed(s *jsonschema.Schema, value string) (any, error) {
	switch s.Type {
	case "string":
		return value, nil
	case "boolean":
		return parseBool(value)
	case "integer":
		n, ok := new(big.Int).SetString(value, 10)
		if !ok {
			return nil, fmt.Errorf("%q is not an integer", value)
		}
		return json.Number(n.String()), nil
	case "number":
		if _, err := strconv.ParseFloat(value, 64); err != nil || !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("%q is not a number of JSON", value)
		}
		return json.Number(value), nil
	default:
		return nil, fmt.Errorf("a tag cannot hold a value of the field, whose JSON form is %s", describeType(s))
	}
}

func parseBool(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, fmt.Errorf("%q is neither true nor false", value)
	}
	return value == "true", nil
}

// checkTagged checks the words of a field against each other and against own, the schema of its type.
func checkTagged(s, own *jsonschema.Schema) error {
	if s.Type == "array" && s.Items != nil {
		if err := checkTagged(s.Items, own.Items); err != nil {
			return err
		}
	}
	if err := errors.Join(
		ordered("minimum", s.Minimum, "maximum", s.Maximum), ordered("minLength", s.MinLength, "maxLength", s.MaxLength), ordered("minItems", s.MinItems, "maxItems", s.MaxItems),
		ordered("exclusiveMinimum", s.ExclusiveMinimum, "exclusiveMaximum", s.ExclusiveMaximum),
		within("minimum", s.Minimum, own.Minimum, 1), within("maximum", s.Maximum, own.Maximum, -1), within("minItems", s.MinItems, own.MinItems, 1), within("maxItems", s.MaxItems, own.MaxItems, -1),
	); err != nil {
		return err
	}
	for _, v := range s.Enum {
		if own.Enum != nil && !slices.Contains(own.Enum, v) {
			return fmt.Errorf("the tag has enum=%v, which the method Enum of its type does not return", v)
		}
	}
	raw, err := Encode(s)
	if err != nil {
		return err
	}
	compiled, err := Compile(raw)
	if err != nil {
		return fmt.Errorf("the tag makes a schema that is not valid: %w", err)
	}
	values := slices.Concat(s.Enum, s.Examples)
	if s.Default != nil {
		values = append(values, s.Default)
	}
	for _, v := range values {
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if bad := compiled.Validate(value); len(bad) > 0 {
			return fmt.Errorf("the tag has the value %s, and its other words do not allow it: it %s", value, bad[0].Message)
		}
	}
	return nil
}

// ordered returns an error if low is above high.
func ordered[N int | float64](lowName string, low *N, highName string, high *N) error {
	if low == nil || high == nil || *low <= *high {
		return nil
	}
	return fmt.Errorf("%s %v is above %s %v", lowName, *low, highName, *high)
}

// within returns an error if a bound of a tag allows values that the type cannot hold. sign is 1 for a lower bound, and -1 for an upper one.
func within[N int | float64](name string, tag, own *N, sign N) error {
	if tag == nil || own == nil || *tag*sign >= *own*sign {
		return nil
	}
	return fmt.Errorf("the tag has %s=%v, and the bound of the Go type is %v", name, *tag, *own)
}
