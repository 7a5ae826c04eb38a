// Package form reads the forms that a server asks a person to fill in: the flat JSON Schemas of the Model Context Protocol, with texts,
// numbers, booleans and choices. It checks whether an answer fits, adds the defaults of missing fields, and parses the input of a person.
package form

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// Limits of a form.
const (
	maxFields    = 32
	maxChoices   = 256
	maxTextBytes = 512 // bytes of each name, title, description and choice
)

// ErrForm is returned for a schema that is not one of a form, or that exceeds the limits.
var ErrForm = errors.New("a form that is not one of flat fields within the limits")

// A Form is a list of fields for a person to fill in.
type Form struct{ Fields []Field }

// Read reads the schema of a form. It returns ErrForm if the schema has other than flat fields or exceeds the limits.
func Read(schema []byte) (*Form, error) {
	if rawjson.Check(schema, rawjson.Limits{}) != nil {
		return nil, ErrForm
	}
	schema = schema[rawjson.SkipSpace(schema, 0):]
	if schema[0] != '{' {
		return nil, ErrForm
	}
	f := &Form{}
	required := map[string]bool{}
	for e := range rawjson.Elements(rawjson.At(schema, "required")) {
		if name, ok := unquote(e); ok {
			required[name] = true
		}
	}
	properties := rawjson.At(schema, "properties")
	if properties != nil && properties[0] != '{' {
		return nil, ErrForm
	}
	for quoted, raw := range rawjson.Members(properties) {
		name, ok := unquote(quoted)
		if !ok || name == "" || len(name) > maxTextBytes || len(f.Fields) == maxFields {
			return nil, ErrForm
		}
		field, err := readField(name, raw)
		if err != nil {
			return nil, err
		}
		field.Required = required[name]
		delete(required, name)
		f.Fields = append(f.Fields, *field)
	}
	if len(required) > 0 {
		return nil, ErrForm // a required name is not among the properties
	}
	return f, nil
}

// Fill returns the values of an answer by field name, with defaults for the fields that the answer leaves out, or an error that names a
// missing or wrong field. An answer of nil leaves out every field.
func (f *Form) Fill(answer json.RawMessage) (map[string]json.RawMessage, error) {
	given, err := members(answer)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for i := range f.Fields {
		field := &f.Fields[i]
		v, ok := given[field.Name]
		if !ok && field.Default != nil {
			v, ok = field.Default, true
		}
		if !ok && field.Required {
			return nil, fmt.Errorf("the field %q is missing", field.Name)
		}
		if !ok {
			continue
		}
		if err := field.Check(v); err != nil {
			return nil, fmt.Errorf("the field %q %w", field.Name, err)
		}
		out[field.Name] = v
		delete(given, field.Name)
	}
	if len(given) > 0 {
		return nil, errors.New("there are values for fields that the form does not have")
	}
	return out, nil
}

func members(answer json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if len(answer) == 0 {
		return out, nil
	}
	if rawjson.Check(answer, rawjson.Limits{}) != nil || json.Unmarshal(answer, &out) != nil || out == nil {
		return nil, errors.New("the answer is not a JSON object")
	}
	return out, nil
}

func unquote(raw []byte) (string, bool) {
	if rawjson.Kind(raw) != '"' {
		return "", false
	}
	b, err := rawjson.AppendUnquote(nil, raw)
	return string(b), err == nil
}

// memberText returns the string of a member, cut to maxTextBytes. It returns "" if the member is missing or is not a string.
func memberText(obj []byte, name string) string {
	s, _ := unquote(rawjson.At(obj, name))
	return text.Clip(s, maxTextBytes)
}
