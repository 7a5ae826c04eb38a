// Package form reads the forms that a server wants a person to fill in: the flat JSON Schemas of the
// Model Context Protocol, with texts, numbers, booleans and choices. It says whether an answer fits,
// adds the defaults that it leaves out, and reads what a person types.
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
	maxTextBytes = 512 // of each name, title, description and choice
)

// ErrForm says that a schema is not one of a form, or goes beyond the limits.
var ErrForm = errors.New("a form that is not one of flat fields within the limits")

// A Form is what a person is to fill in.
type Form struct{ Fields []Field }

// Read reads the schema of a form.
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
	if list, ok := rawjson.Get(schema, "required"); ok && list[0] == '[' {
		for e := range rawjson.Elements(list) {
			if name, ok := unquote(e); ok {
				required[name] = true
			}
		}
	}
	properties, ok := rawjson.Get(schema, "properties")
	if ok && properties[0] != '{' {
		return nil, ErrForm
	}
	if ok {
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
	}
	if len(required) > 0 {
		return nil, ErrForm // it wants what it has no field for
	}
	return f, nil
}

// Fill returns the answer with the defaults of the fields that it leaves out, by the names of fields,
// or says what is wrong with it. nil stands for an answer that leaves out everything.
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
		switch {
		case !ok && field.Required:
			return nil, fmt.Errorf("the field %q is missing", field.Name)
		case !ok:
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
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	b, err := rawjson.AppendUnquote(nil, raw)
	return string(b), err == nil
}

// memberText returns a member that is a string, "" for any other, cut to the limit.
func memberText(obj []byte, name string) string {
	v, _ := rawjson.Get(obj, name)
	s, _ := unquote(v)
	return text.Clip(s, maxTextBytes)
}
