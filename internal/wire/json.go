package wire

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A JSON is JSON text under construction. Like append, each method appends to it and returns the result. Methods that append a member or an
// element add the comma before it, unless it is the first. JSON and []byte are assignable to each other.
type JSON []byte

// Next appends the comma before an element, unless it is the first.
func (j JSON) Next() JSON {
	if n := len(j); n > 0 && (j[n-1] == '[' || j[n-1] == '{') {
		return j
	}
	return append(j, ',')
}

// Lit appends text unchanged.
func (j JSON) Lit(text string) JSON { return append(j, text...) }

// If appends text unchanged if the condition is true.
func (j JSON) If(condition bool, text string) JSON {
	if condition {
		j = append(j, text...)
	}
	return j
}

// Raw appends an encoded value unchanged.
func (j JSON) Raw(value []byte) JSON { return append(j, value...) }

// Compact appends an encoded value without white space between its tokens.
func (j JSON) Compact(value []byte) JSON { return rawjson.AppendCompact(j, value) }

// Quote appends text as a JSON string.
func (j JSON) Quote(text string) JSON { return rawjson.AppendQuote(j, text) }

// Int appends an integer.
func (j JSON) Int(n int64) JSON { return strconv.AppendInt(j, n, 10) }

// Key appends the name of a member and the colon.
func (j JSON) Key(name string) JSON { return append(rawjson.AppendQuote(j.Next(), name), ':') }

// Obj appends the name of a member and the opening bracket of its value, an object.
func (j JSON) Obj(name string) JSON { return append(j.Key(name), '{') }

// Arr appends the name of a member and the opening bracket of its value, an array.
func (j JSON) Arr(name string) JSON { return append(j.Key(name), '[') }

// Str appends a member with a string value.
func (j JSON) Str(name, text string) JSON { return j.Key(name).Quote(text) }

// OptStr appends a member with a string value, unless text is empty.
func (j JSON) OptStr(name, text string) JSON {
	if text == "" {
		return j
	}
	return j.Str(name, text)
}

// Num appends a member with an integer value.
func (j JSON) Num(name string, n int64) JSON { return j.Key(name).Int(n) }

// float appends a number in the format of encoding/json, or null for infinities and NaN.
func (j JSON) float(f float64) JSON {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return j.Lit("null")
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(j, f, format, -1, 64)
}

// Bool appends a member with true or false.
func (j JSON) Bool(name string, b bool) JSON { return strconv.AppendBool(j.Key(name), b) }

// Val appends a member with an encoded value.
func (j JSON) Val(name string, value []byte) JSON { return append(j.Key(name), value...) }

// Members appends members unchanged, except for those without a value and those for whose names except returns true. Of members with equal
// names it appends the last. A nil except excludes none.
func (j JSON) Members(members []lathe.Member, except func(name string) bool) JSON {
	for _, m := range last(members, except) {
		j = j.Val(m.Name, m.Value)
	}
	return j
}

// Extra does what Members does, with compact values, so that the result has no line breaks within an event.
func (j JSON) Extra(members []lathe.Member, except func(name string) bool) JSON {
	for _, m := range last(members, except) {
		j = j.Key(m.Name).Compact(m.Value)
	}
	return j
}

// Pair appends a member whose name is already encoded as a JSON string, with an encoded value.
func (j JSON) Pair(literal, value []byte) JSON {
	return append(append(append(j.Next(), literal...), ':'), value...)
}

// Event appends the beginning of a server-sent event of a type, whose data is an object with the type as its first member.
func (j JSON) Event(typ string) JSON {
	return j.Lit("event: ").Lit(typ).Lit("\ndata: {\"type\":").Quote(typ)
}

// EndEvent appends the end of an event whose data is an object.
func (j JSON) EndEvent() JSON { return append(j, "}\n\n"...) }

// An Optional is a string that [JSON.Fields] does not append if it is empty.
type Optional string

// Fields appends members of an object. Each is a name and its value: a string, an [Optional], a number, a bool, strings, encoded JSON, or a
// pointer to a number or bool. A member is not appended if its value is a nil pointer, has no strings, or is empty JSON. Fields panics for
// other values.
func (j JSON) Fields(members ...any) JSON { return j.FieldsExcept(nil, members...) }

// FieldsExcept does what Fields does, without the members for whose names except returns true. A nil except excludes none.
func (j JSON) FieldsExcept(except func(name string) bool, members ...any) JSON {
	for i := 1; i < len(members); i += 2 {
		if name, _ := members[i-1].(string); except == nil || !except(name) {
			j = j.field(name, members[i])
		}
	}
	return j
}

func (j JSON) field(name string, value any) JSON {
	switch v := value.(type) {
	case string:
		return j.Str(name, v)
	case Optional:
		return j.OptStr(name, string(v))
	case int:
		return j.Num(name, int64(v))
	case int64:
		return j.Num(name, v)
	case bool:
		return j.Bool(name, v)
	case float64:
		return j.Key(name).float(v)
	case *int:
		return optional(j, name, v)
	case *int64:
		return optional(j, name, v)
	case *float64:
		return optional(j, name, v)
	case *bool:
		return optional(j, name, v)
	case []string:
		if len(v) == 0 {
			return j
		}
		j = j.Arr(name)
		for _, text := range v {
			j = j.Next().Quote(text)
		}
		return j.Lit("]")
	case []byte:
		return j.field(name, JSON(v))
	case json.RawMessage:
		return j.field(name, JSON(v))
	case JSON:
		if len(v) == 0 {
			return j
		}
		return j.Val(name, v)
	}
	panic("wire: a member of another type")
}

func optional[T any](j JSON, name string, v *T) JSON {
	if v == nil {
		return j
	}
	return j.field(name, *v)
}

// ObjectOf returns an object with members; see [JSON.Fields].
func ObjectOf(members ...any) JSON { return JSON("{").Fields(members...).Lit("}") }

// ArrayOf returns an array of encoded elements.
func ArrayOf[E ~[]byte](elements ...E) JSON {
	j := JSON("[")
	for _, e := range elements {
		j = j.Next().Raw(e)
	}
	return j.Lit("]")
}

// Quoted returns text as a JSON string.
func Quoted(text string) JSON { return JSON(nil).Quote(text) }
