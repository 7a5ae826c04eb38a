package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// For returns the JSON of the schema that [Of] returns.
func For(t reflect.Type) (json.RawMessage, error) {
	s, err := Of(t)
	if err != nil {
		return nil, err
	}
	return Encode(s)
}

// Encode returns the JSON of a schema. The bytes are always the same for equal schemas: keys are sorted and nothing is indented.
func Encode(s *jsonschema.Schema) (json.RawMessage, error) {
	b, err := json.Marshal(s)
	var doc any
	if err == nil {
		doc, err = rawjson.Value(b)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return rawjson.Marshal(withoutTrue(doc)) // sorts the keys of objects
}

// withoutTrue replaces the schema true of a member by {}, since some model servers do not support it.
func withoutTrue(schema any) any {
	obj, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := obj[key]; ok {
			obj[key] = withoutTrue(sub)
		}
	}
	if props, ok := obj["properties"].(map[string]any); ok {
		for name, sub := range props {
			if props[name] = withoutTrue(sub); sub == true {
				props[name] = map[string]any{}
			}
		}
	}
	return obj
}

// Of returns the schema of the JSON that is decoded into a value of t:
//
//   - Objects from structs allow no other members. A field is required if its json tag has neither omitempty nor omitzero, or if its
//     jsonschema tag has required. The tags jsonschema and jsonschema_description narrow and describe a field: see [applyTags].
//   - Slices and pointers do not allow null.
//   - A type with text methods ([encoding.TextMarshaler], [encoding.TextUnmarshaler]) is a string. Any value is allowed for a type with JSON
//     methods, unless it is a struct with json tags: then its fields describe it.
//   - A type with the method Enum() []string allows the strings that it returns.
//
// It returns an error for a type that has no JSON form (a channel, a function, a complex number) or that contains itself, and for tags
// that contradict the type of their field or each other.
func Of(t reflect.Type) (*jsonschema.Schema, error) {
	if t == nil {
		return nil, errors.New("schema: no type")
	}
	d := derivation{open: map[reflect.Type]bool{}}
	return d.of(t)
}

// derivation derives the schema of one type.
type derivation struct {
	open map[reflect.Type]bool // named types that contain the current one
}

var (
	textTypes = []reflect.Type{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	jsonTypes = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler]()}
)

// implements reports whether t or *t implements one of the interfaces.
func implements(t reflect.Type, interfaces []reflect.Type) bool {
	return slices.ContainsFunc(interfaces, reflect.PointerTo(t).Implements)
}

func (d *derivation) of(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Name() != "" || t.Kind() == reflect.Pointer {
		if d.open[t] {
			return nil, fmt.Errorf("%s contains itself", t)
		}
		d.open[t] = true
		defer delete(d.open, t)
	}
	if t.Kind() == reflect.Pointer {
		return d.of(t.Elem())
	}
	s, err := d.form(t)
	if err != nil {
		return nil, err
	}
	if list, ok := reflect.New(t).Interface().(interface{ Enum() []string }); ok {
		if err := enumerate(s, list.Enum()); err != nil {
			return nil, fmt.Errorf("%s has the method Enum, and %w", t, err)
		}
	}
	return s, nil
}

// enumerate allows only the values that a type lists.
func enumerate(s *jsonschema.Schema, values []string) error {
	switch {
	case len(values) == 0:
		return errors.New("it returns no value")
	case s.Type == "" && s.Not == nil:
		s.Type = "string"
	case s.Type != "string":
		return fmt.Errorf("its JSON form is of type %s, not a string: add the methods MarshalText and UnmarshalText", s.Type)
	}
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return nil
}

// form returns the schema of a type that is not a pointer, without the values of Enum.
func (d *derivation) form(t reflect.Type) (*jsonschema.Schema, error) {
	switch {
	case t == reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}, nil
	case t == reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}, nil
	case t == reflect.TypeFor[time.Duration]():
		return nil, errors.New("a time.Duration has no JSON form: take a number of seconds, or a string")
	case implements(t, textTypes):
		return &jsonschema.Schema{Type: "string"}, nil
	case implements(t, jsonTypes) && !hasTaggedField(t):
		return &jsonschema.Schema{}, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.object(t)
	case reflect.Map:
		if t.Key().Kind() != reflect.String && !implements(t.Key(), textTypes) {
			return nil, fmt.Errorf("the keys of %s are not strings", t)
		}
		values, err := d.of(t.Elem())
		return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
		}
		items, err := d.of(t.Elem())
		s := &jsonschema.Schema{Type: "array", Items: items}
		if t.Kind() == reflect.Array {
			s.MinItems, s.MaxItems = new(t.Len()), new(t.Len())
		}
		return s, err
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	default: // a boolean, a number with the range of its type, a string
		s, err := jsonschema.ForType(t, nil)
		if err != nil {
			return nil, fmt.Errorf("%s has no JSON form", t)
		}
		return s, nil
	}
}

// hasTaggedField reports whether t is a struct with a json tag. The JSON methods of such a type usually add defaults or checks.
func hasTaggedField(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		_, ok := f.Tag.Lookup("json")
		return ok && f.IsExported()
	})
}

// object returns the schema of a struct. Of fields with the same name, it uses the one that is embedded least deeply.
func (d *derivation) object(t reflect.Type) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	depth := map[string]int{}
	for f, name := range Fields(t) {
		if at, ok := depth[name]; ok && at <= len(f.Index) {
			continue
		}
		depth[name] = len(f.Index)
		field, required, err := d.field(f)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", f.Name, t, err)
		}
		if s.Properties == nil {
			s.Properties = map[string]*jsonschema.Schema{}
		}
		s.Properties[name] = field
		s.Required = slices.DeleteFunc(s.Required, func(n string) bool { return n == name })
		if required {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

// Fields yields the fields of a struct that its JSON form has, with their names in it. The fields of an embedded struct without a name of
// its own follow it in its place.
func Fields(t reflect.Type) iter.Seq2[reflect.StructField, string] {
	return func(yield func(reflect.StructField, string) bool) {
		var named [][]int // embedded fields that are members themselves
		for _, f := range reflect.VisibleFields(t) {
			if slices.ContainsFunc(named, func(at []int) bool { return len(f.Index) > len(at) && slices.Equal(f.Index[:len(at)], at) }) {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			omitted := f.Tag.Get("json") == "-"
			if f.Anonymous && (name != "" || omitted) {
				named = append(named, f.Index)
			} else if f.Anonymous {
				continue
			}
			if omitted || !f.IsExported() {
				continue
			}
			if name == "" {
				name = f.Name
			}
			if !yield(f, name) {
				return
			}
		}
	}
}

// field returns the schema of a field and whether it is required.
func (d *derivation) field(f reflect.StructField) (*jsonschema.Schema, bool, error) {
	options := strings.Split(f.Tag.Get("json"), ",")[1:]
	s := &jsonschema.Schema{}
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "format:") }) { // a form that its type does not tell
		var err error
		if s, err = d.of(f.Type); err != nil {
			return nil, false, err
		}
	}
	if slices.Contains(options, "string") && (s.Type == "integer" || s.Type == "number") {
		s = &jsonschema.Schema{Type: "string"}
	}
	required, err := applyTags(s, f)
	return s, required || !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero"), err
}
