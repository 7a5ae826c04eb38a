package tool

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
)

// SchemaOf returns the JSON Schema that [Func] derives from the type T, after the functions in adjust have changed it, in order. The result
// is meant for [FuncOptions].Schema or, if T is the type of an output, for OutputSchema. SchemaOf returns the same bytes at each call. It
// may be called from several goroutines at once.
//
// The schema of a struct allows no members other than its fields. A field is required if its json tag has neither omitempty nor omitzero,
// or if its jsonschema tag has required. A slice or pointer does not allow null. A type with the methods MarshalText or UnmarshalText is a
// string. A type with the method Enum() []string allows the strings that it returns.
//
// The struct tag jsonschema of a field is its description, or a list of words in the syntax of github.com/invopop/jsonschema:
//
//	`json:"state" jsonschema:"enum=open,enum=closed,default=open,description=the state\\, as stored"`
//
// These words are allowed for every field: title, description, default, example, enum and required. For strings there are also minLength,
// maxLength, pattern and format, for numbers minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf, and for slices minItems,
// maxItems and uniqueItems. On a slice, enum, example and the words for strings and numbers apply to its elements. enum and example may be
// repeated, and so may default on a slice. A default is only shown to the model: the function must apply it. Write \\, for a comma within a
// value, or write a description with any text in the struct tag jsonschema_description.
//
// The error is a *[lathe.Error] with the code invalid_config. It names the type and the field. SchemaOf returns an error for a type that
// has no JSON form or contains itself, for a tag with an unknown word or with one that contradicts the type of the field or another word,
// and for a schema that is not valid after the changes.
func SchemaOf[T any](adjust ...func(*jsonschema.Schema)) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	s, err := schema.Of(t)
	if err != nil {
		return nil, invalidSchema(t, "%w. Correct the type, or write the schema as JSON", err)
	}
	for _, f := range adjust {
		f(s)
	}
	raw, err := schema.Encode(s)
	if err == nil {
		_, err = schema.Compile(raw)
	}
	if err != nil {
		return nil, invalidSchema(t, "not valid after the adjustments: %w", err)
	}
	return raw, nil
}

func invalidSchema(t reflect.Type, format string, err error) error {
	return lathe.CodeInvalidConfig.Errorf("tool: schema of "+t.String(), format, err)
}

// checkShownByDefault returns an error if a type does not say that all of its JSON form may be shown. See [FuncOptions].Show.
func checkShownByDefault(out reflect.Type) error {
	if why := notShown(out, map[reflect.Type]bool{}); why != "" {
		return fmt.Errorf(`the list Show is empty, and %s: write Show: []string{"*"} in FuncOptions to show the model the whole output, or list the fields that it may receive`, why)
	}
	return nil
}

// notShown returns why a type does not say that all of its JSON form may be shown, or "". seen are types that it contains or that contain it.
func notShown(t reflect.Type, seen map[reflect.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	switch ptr := reflect.PointerTo(t); {
	case t.Kind() == reflect.Interface:
		return fmt.Sprintf("the type %s does not say what the output contains", t)
	case ptr.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return ""
	case hasOwnJSON(ptr), t == reflect.TypeFor[lathe.Output]():
		return fmt.Sprintf("the type %s writes its own JSON, whose fields are not known", t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return notShown(t.Elem(), seen)
	case reflect.Struct:
		for f := range schema.Fields(t) {
			if _, tagged := f.Tag.Lookup("json"); !tagged {
				return fmt.Sprintf("the field %s of %s has no json tag", f.Name, t)
			}
			if why := notShown(f.Type, seen); why != "" {
				return why
			}
		}
	}
	return ""
}
