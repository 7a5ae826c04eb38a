package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Field is one input field of a form.
type Field struct {
	Name, Title, Description string
	Type                     string   // string, integer, number, boolean, or array (several of Choices)
	Format                   string   // format of a string: email, uri, date or date-time; "": any
	Choices                  []Choice // allowed values; nil: any value of Type
	Required                 bool
	Default                  json.RawMessage // nil: none

	min, max *big.Rat // bounds of a number, of the length of a string, or of the number of choices; nil: no bound
}

// A Choice is one of the values that a field allows.
type Choice struct{ Value, Title string }

// readField reads one property of the schema of a form. It returns ErrForm if the property is not a field.
func readField(name string, raw []byte) (*Field, error) {
	if raw[0] != '{' {
		return nil, ErrForm
	}
	f := &Field{Name: name, Title: memberText(raw, "title"), Description: memberText(raw, "description"), Type: memberText(raw, "type"), Format: memberText(raw, "format")}
	choices, low, high := raw, "minimum", "maximum" // the object with the choices, and the members with the bounds
	switch f.Type {
	case "string":
		low, high = "minLength", "maxLength"
	case "integer", "number", "boolean":
	case "array":
		choices, low, high = rawjson.At(raw, "items"), "minItems", "maxItems"
		if rawjson.Kind(choices) != '{' {
			return nil, ErrForm
		}
	default:
		return nil, ErrForm
	}
	f.min, f.max = rat(rawjson.At(raw, low)), rat(rawjson.At(raw, high))
	if err := f.readChoices(choices); err != nil {
		return nil, err
	}
	hasChoices := f.Choices != nil
	if f.Type == "array" && !hasChoices || hasChoices && f.Type != "array" && f.Type != "string" {
		return nil, ErrForm
	}
	if v := rawjson.At(raw, "default"); v != nil && string(v) != "null" {
		f.Default = append(json.RawMessage(nil), v...)
		if f.Check(f.Default) != nil {
			return nil, ErrForm
		}
	}
	return f, nil
}

// readChoices reads the choices of a field in one of these forms:
//
//	{"enum":["a","b"],"enumNames":["First","Second"]}
//	{"oneOf":[{"const":"a","title":"First"},{"const":"b","title":"Second"}]}, or the same with anyOf
func (f *Field) readChoices(raw []byte) error {
	for _, member := range []string{"enum", "oneOf", "anyOf"} {
		list := rawjson.At(raw, member)
		if list == nil {
			continue
		}
		if list[0] != '[' || f.Choices != nil {
			return ErrForm
		}
		f.Choices = []Choice{}
		var names [][]byte
		if member == "enum" {
			names = slices.Collect(rawjson.Elements(rawjson.At(raw, "enumNames")))
		}
		for e := range rawjson.Elements(list) {
			var value, title []byte
			switch n := len(f.Choices); {
			case member != "enum" && e[0] == '{':
				value, title = rawjson.At(e, "const"), rawjson.At(e, "title")
			case member != "enum":
				return ErrForm
			case n < len(names):
				value, title = e, names[n]
			default:
				value = e
			}
			if err := f.addChoice(value, title); err != nil {
				return err
			}
		}
	}
	return nil
}

// addChoice adds a choice from its JSON. A title that is not a string counts as missing.
func (f *Field) addChoice(value, title []byte) error {
	v, ok := unquote(value)
	t, _ := unquote(title)
	if !ok || len(v) > maxTextBytes || len(t) > maxTextBytes || len(f.Choices) == maxChoices {
		return ErrForm
	}
	f.Choices = append(f.Choices, Choice{v, t})
	return nil
}

// rat returns the value of a JSON number. It returns nil for anything else, and for numbers of more than 64 bytes or beyond 1e±300, which
// would be slow.
func rat(raw []byte) *big.Rat {
	if len(raw) == 0 || len(raw) > 64 || strings.IndexByte("-0123456789", raw[0]) < 0 {
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	size := math.Abs(f)
	if err != nil || size > 1e300 || size != 0 && size < 1e-300 {
		return nil
	}
	r, _ := new(big.Rat).SetString(string(raw)) // nil if it is none
	return r
}

func (f *Field) checkRange(r *big.Rat, what string) error {
	if f.min != nil && r.Cmp(f.min) < 0 {
		return fmt.Errorf("wants at least %s%s", f.min.RatString(), what)
	}
	if f.max != nil && r.Cmp(f.max) > 0 {
		return fmt.Errorf("wants at most %s%s", f.max.RatString(), what)
	}
	return nil
}

func (f *Field) checkChoice(s string) error {
	if !slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == s }) {
		return errors.New("is not one of the choices")
	}
	return nil
}

// Check returns why a JSON value does not fit the field, as text that follows the name of the field; nil if it fits.
func (f *Field) Check(v json.RawMessage) error {
	if rawjson.Check(v, rawjson.Limits{}) != nil {
		return errors.New("is not JSON")
	}
	switch f.Type {
	case "boolean":
		if s := string(v); s != "true" && s != "false" {
			return errors.New("wants yes or no")
		}
	case "integer", "number":
		r := rat(v)
		if r == nil || f.Type == "integer" && !r.IsInt() {
			return errors.New("wants a number of its kind")
		}
		return f.checkRange(r, "")
	case "string":
		s, ok := unquote(v)
		if !ok {
			return errors.New("wants text")
		}
		if f.Choices != nil {
			return f.checkChoice(s)
		}
		if err := f.checkRange(big.NewRat(int64(utf8.RuneCountInString(s)), 1), " characters"); err != nil {
			return err
		}
		return checkFormat(s, f.Format)
	case "array":
		if v[0] != '[' {
			return errors.New("wants a list")
		}
		n := int64(0)
		for e := range rawjson.Elements(v) {
			n++
			s, ok := unquote(e)
			if !ok {
				return errors.New("wants texts")
			}
			if err := f.checkChoice(s); err != nil {
				return err
			}
		}
		return f.checkRange(big.NewRat(n, 1), " choices")
	}
	return nil
}

func checkFormat(s, format string) error {
	ok := true
	switch format {
	case "email":
		a, err := mail.ParseAddress(s)
		ok = err == nil && a.Address == s
	case "uri":
		u, err := url.Parse(s)
		ok = err == nil && u.IsAbs()
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		ok = err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		ok = err == nil
	}
	if !ok {
		return errors.New("is not of the format " + format)
	}
	return nil
}

// Parse returns the JSON value of a line that a person typed: text unchanged, numbers, y or n for booleans, the value of a choice, and
// several choices separated by commas.
func (f *Field) Parse(line string) (json.RawMessage, error) {
	line = strings.TrimSpace(line)
	var v []byte
	switch f.Type {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			v = []byte("true")
		case "n", "no", "false":
			v = []byte("false")
		default:
			return nil, errors.New("wants yes or no")
		}
	case "integer", "number":
		v = []byte(line)
	case "array":
		var items []string
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, string(rawjson.AppendQuote(nil, item)))
			}
		}
		v = []byte("[" + strings.Join(items, ",") + "]")
	default:
		v = rawjson.AppendQuote(nil, line)
	}
	if err := f.Check(v); err != nil {
		return nil, err
	}
	return v, nil
}
